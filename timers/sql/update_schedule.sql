-- An edit: a new generation. Phase 2, after the tick was moved or removed.
update tocsin.schedule
set recurrence = %(recurrence)s, spread = %(spread)s, catch_up = %(catch_up)s, "window" = %(window)s,
    grace = %(grace)s, max_catch_up = %(max_catch_up)s, type = %(type)s, payload = %(payload)s, action = %(action)s,
    status = %(status)s, source = %(source)s, generation = %(generation)s,
    last_occurrence = %(last_occurrence)s, updated_at = %(now)s
where id = %(id)s
