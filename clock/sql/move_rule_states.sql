-- Apply a sustain to the state of its rule: `open` makes a pending alarm open, `clear` ends it. In
-- key order. A worker that read the state before finds another version and evaluates again.
update tocsin.rule_state s
set phase = case d.key when 'open' then 'open' else 'ok' end,
    alarm_id = case d.key when 'open' then s.alarm_id end,
    state = s.state || case d.key
        when 'open' then jsonb_build_object('phase', 'open', 'last_opened_at', s.state -> 'due_at', 'due_at', null)
        else '{"phase": "ok", "alarm": null, "resolution": null, "due_at": null}'::jsonb || jsonb_build_object('firing_series',
            (select coalesce(jsonb_object_agg(f.key, f.value), '{}') from jsonb_each(s.state -> 'firing_series') f
             where f.value ->> 'clear_due_at' is null)) end,
    version = s.version + 1
from (
    select locked.event_rule, locked.owner, locked.instance, m.alarm_id, m.key
    from unnest(%(alarm_ids)s::uuid[], %(rules)s::text[], %(owners)s::text[], %(instances)s::text[],
                %(keys)s::text[])
        as m (alarm_id, event_rule, owner, instance, key)
    join tocsin.rule_state locked on locked.event_rule = m.event_rule and locked.owner = m.owner and locked.instance = m.instance
    order by locked.event_rule, locked.owner, locked.instance
    for update of locked
) as d
where s.event_rule = d.event_rule and s.owner = d.owner and s.instance = d.instance and s.alarm_id = d.alarm_id
