-- Delete cutovers by key. No other transaction changes them.
delete from tocsin.rule_cutover w
using unnest(%(key_1)s::text[], %(key_2)s::integer[], %(key_3)s::bigint[]) as g (lane, partition, rules_seq)
where w.lane = g.lane and w.partition = g.partition and w.rules_seq = g.rules_seq
returning w.rules_seq
