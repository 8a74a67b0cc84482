-- The names of the documents in force that other documents refer to. Index: rule_version_current.
select v.kind, v.name
from tocsin.rule_version v
where v.until_seq is null and v.kind in ('action', 'calendar', 'channel', 'datapoint_type', 'schedule', 'system')
order by v.kind, v.name
limit 2000
