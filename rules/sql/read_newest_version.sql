-- Changes whenever rules are applied. Index: rule_version_from.
select coalesce(max(from_seq), 0) from tocsin.rule_version
