-- The newest version of every document, and whether it holds still: numbers go on after one that
-- was ended.
select distinct on (kind, name) kind, name, version, document, until_seq is null
from tocsin.rule_version
order by kind, name, version desc
