-- Note the failure of a timer: it is retried after a growing delay, and parked after too many
-- failures. Without `max_failures` the timer is not to blame: it is retried every 5 seconds, and the
-- failure does not count. The nominal time is kept. No row: it was edited or cancelled meanwhile.
update tocsin.timer t
set attempts = t.attempts + (%(max_failures)s::integer is not null)::integer,
    last_error = left(%(error)s, 1000),
    fire_at = %(now)s::timestamptz + case when %(max_failures)s::integer is null then interval '5 seconds'
        else least(interval '5 minutes', interval '1 second' * 2 ^ least(t.attempts, 10)) end,
    parked_at = case when t.attempts + 1 >= %(max_failures)s::integer then %(now)s::timestamptz end
where t.kind = %(kind)s and t.ref = %(ref)s and t.key = %(key)s and t.generation = %(generation)s
