-- The seq of the newest apply; one that only removed documents wrote no `from_seq`. Index:
-- rule_version_from, rule_version_until.
select greatest((select max(v.from_seq) from tocsin.rule_version v),
                (select max(v.until_seq) from tocsin.rule_version v), 0)
