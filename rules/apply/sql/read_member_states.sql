-- The series of some owners, and the states of rules over series that have an alarm of these
-- owners. One row. No lock: the partitions are locked, and the reader treats a due sustain alike
-- whether the clock has fired it or not. Index: the key of current_value, alarm_active_owner.
select (select coalesce(jsonb_agg(jsonb_build_array(c.owner, c.key, c.stale_since)), '[]')
        from tocsin.current_value c
        where c.owner = any (%(owners)s::text[])),
       (select coalesce(jsonb_agg(jsonb_build_array(a.owner, a.event_rule, a.instance, s.partition, s.state)), '[]')
        from tocsin.alarm a
        join tocsin.rule_state s
            on s.event_rule = a.event_rule and s.owner = a.owner and s.instance = a.instance and s.alarm_id = a.id and s.lane = 'data'
        where a.owner = any (%(owners)s::text[]) and a.state <> 'resolved')
