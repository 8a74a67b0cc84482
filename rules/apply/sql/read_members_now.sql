-- The series of some owners, and the states of rules over series that have an alarm of theirs, as they are. One row. Locks nothing:
-- partitions are locked, and whether the clock has fired a sustain that is decided makes no difference to who reads this.
-- Index: current_value's key, alarm_held_owner.
select (select coalesce(jsonb_agg(jsonb_build_array(c.owner, c.key, c.stale_since)), '[]')
        from tocsin.current_value c
        where c.owner = any (%(owners)s::text[])),
       (select coalesce(jsonb_agg(jsonb_build_array(a.owner, a.event_rule, s.partition, s.state)), '[]')
        from tocsin.alarm a
        join tocsin.rule_state s
            on s.event_rule = a.event_rule and s.owner = a.owner and s.alarm_id = a.id and s.lane = 'data'
        where a.owner = any (%(owners)s::text[]) and a.state <> 'resolved')
