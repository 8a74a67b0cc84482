-- The current documents of a channel and of its fallback. Locks nothing. Index: rule_version_current.
with channel as (
    select document from tocsin.rule_version where kind = 'channel' and name = %(name)s and until_seq is null
)
select document from channel
union all
select f.document
from channel c
join tocsin.rule_version f on f.kind = 'channel' and f.name = c.document ->> 'fallback' and f.until_seq is null
