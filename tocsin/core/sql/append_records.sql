-- Append events, steps and calculated datapoints given as columns, each in order. The log is locked
-- from here until COMMIT.
select tocsin.append(
    (select coalesce(array_agg(
         row(e.id, e.ts, e.origin, e.type, e.schedule, e.rule, e.action, e.owner, null, e.alarm_id, e.severity,
             e.source_event_id, coalesce(e.correlation_id, e.id), e.payload)::tocsin.event_input
         order by e.position), '{}')
     from unnest(%(event_id)s::uuid[], %(event_ts)s::timestamptz[], %(event_origin)s::text[], %(event_type)s::text[],
                 %(event_schedule)s::text[], %(event_rule)s::text[], %(event_action)s::text[],
                 %(event_owner)s::text[], %(event_alarm_id)s::uuid[], %(event_severity)s::smallint[],
                 %(event_source_event_id)s::uuid[], %(event_correlation_id)s::uuid[], %(event_payload)s::jsonb[])
         with ordinality as e (id, ts, origin, type, schedule, rule, action, owner, alarm_id, severity,
                               source_event_id, correlation_id, payload, position)),
    (select coalesce(array_agg(
         row(s.id, s.action_id, s.name, s.owner, s.step, s.attempt, s.state, s.correlation_id, s.source_event_id,
             s.result)::tocsin.step_input
         order by s.position), '{}')
     from unnest(%(step_id)s::uuid[], %(step_action_id)s::uuid[], %(step_name)s::text[], %(step_owner)s::text[],
                 %(step_step)s::integer[], %(step_attempt)s::integer[], %(step_state)s::text[],
                 %(step_correlation_id)s::uuid[], %(step_source_event_id)s::uuid[], %(step_result)s::jsonb[])
         with ordinality as s (id, action_id, name, owner, step, attempt, state, correlation_id, source_event_id,
                               result, position)),
    null,
    (select coalesce(array_agg(
         row(c.id, c.owner, c.key, c.ts, c.kind, coalesce(c.correlation_id, c.id), c.payload)::tocsin.calculated_input
         order by c.position), '{}')
     from unnest(%(calculated_id)s::uuid[], %(calculated_owner)s::text[], %(calculated_key)s::text[],
                 %(calculated_ts)s::timestamptz[], %(calculated_kind)s::text[],
                 %(calculated_correlation_id)s::uuid[], %(calculated_payload)s::jsonb[])
         with ordinality as c (id, owner, key, ts, kind, correlation_id, payload, position)),
    (select case when %(observations)s::jsonb is not null then coalesce(array_agg(
         row(o.owner, o.at, o.what, o.subject, o.severity, o.since, o.keys, o.instance)::tocsin.member_observation_input), '{}') end
     from jsonb_to_recordset(%(observations)s::jsonb)
         as o (owner text, at timestamptz, what text, subject text, severity smallint, since timestamptz, keys text[],
               instance text)))
