-- Delete ended versions by key. An apply ends versions and begins new ones, and changes none that
-- has ended.
delete from tocsin.rule_version v
using unnest(%(key_1)s::text[], %(key_2)s::text[], %(key_3)s::integer[]) as g (kind, name, version)
where v.kind = g.kind and v.name = g.name and v.version = g.version and v.until_seq is not null
returning v.version
