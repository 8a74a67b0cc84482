-- Insert runs and alarms that ended long ago, with the links (action_event) to the events that would
-- have started the runs.
with actions as (
    insert into tocsin.action (id, name, action_rule, event_id, event_seq, document, state, started_at, ended_at, correlation_id)
    select gen_random_uuid(), 'tell', 'page', gen_random_uuid(), 1, '{"name": "tell", "log": {"message": "hello"}}',
           'completed', %(at)s, %(at)s::timestamptz + g * interval '1 ms', gen_random_uuid()
    from generate_series(1, %(actions)s::integer) g
    returning id, event_id
),
links as (
    insert into tocsin.action_event (action_rule, event_id, event_seq, action_id) select 'page', event_id, 1, id from actions
)
insert into tocsin.alarm (id, event_rule, owner, state, severity, since, opened_at, resolved_at, correlation_id, payload)
select gen_random_uuid(), 'hot', 'plant-' || g, 'resolved', 2, %(at)s, %(at)s, %(at)s::timestamptz + g * interval '1 ms',
       gen_random_uuid(), '{"message": "it is hot", "value": 70}'
from generate_series(1, %(alarms)s::integer) g
