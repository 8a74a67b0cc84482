-- Phase 2: states that go on under another rule; lock_states has locked them.
update tocsin.rule_state s
set phase = d.phase, alarm_id = d.alarm_id, state = d.state, version = s.version + 1
from unnest(%(rules)s::text[], %(owners)s::text[], %(phases)s::text[], %(alarm_ids)s::uuid[], %(states)s::jsonb[])
    as d (event_rule, owner, phase, alarm_id, state)
where s.event_rule = d.event_rule and s.owner = d.owner
