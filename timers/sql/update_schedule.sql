-- Store an edit as a new generation, after the tick was moved or removed. No row is updated if
-- the clock ended the schedule while this transaction waited for its tick: the caller starts again.
update tocsin.schedule
set recurrence = %(recurrence)s, spread = %(spread)s, catch_up = %(catch_up)s, "window" = %(window)s,
    grace = %(grace)s, max_catch_up = %(max_catch_up)s, type = %(type)s, payload = %(payload)s, action = %(action)s,
    retry = %(retry)s, title = %(title)s, description = %(description)s, runbook_url = %(runbook_url)s,
    status = %(status)s, source = %(source)s, generation = %(generation)s,
    last_occurrence = %(last_occurrence)s, last_identity = %(last_identity)s, updated_at = %(now)s
where id = %(id)s and generation = %(seen_generation)s and status = %(seen_status)s
