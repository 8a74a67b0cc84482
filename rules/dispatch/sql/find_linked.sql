-- Pairs of (action_rule, event) that have a run already. Index: the key of action_event.
select e.action_rule, e.event_id
from unnest(%(rules)s::text[], %(event_ids)s::uuid[]) as item (action_rule, event_id)
join tocsin.action_event e on e.action_rule = item.action_rule and e.event_id = item.event_id
