-- Open alarms of the rule `hot`, as the data lane leaves them.
insert into tocsin.alarm (id, event_rule, owner, state, severity, since, opened_at, payload, correlation_id)
select item.id, 'hot', item.owner, 'open', 4, tocsin.instant(), tocsin.instant(), item.payload, item.id
from unnest(%(ids)s::uuid[], %(owners)s::text[], %(payloads)s::jsonb[]) as item (id, owner, payload)
