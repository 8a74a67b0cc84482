-- Make a failed timer due again and reset its failures; its nominal time is kept. Waits for a fire
-- in progress. No row: it fired, or was edited or cancelled meanwhile.
update tocsin.timer
set fire_at = %(now)s, attempts = 0, last_error = null, parked_at = null
where kind = %(kind)s and ref = %(ref)s and key = %(key)s and attempts > 0
returning fire_at
