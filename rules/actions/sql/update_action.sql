-- Write a run after a step. While `finally` runs, `error` keeps why the run ends. No row: the run was
-- cancelled, has ended, or another step of it was committed first; the caller rolls back and reads
-- it again.
update tocsin.action a
set active = %(active)s, answers = a.answers || %(answers)s, version = a.version + 1, state = %(state)s,
    ended_at = case when %(state)s <> 'running' then tocsin.instant() end,
    result = %(result)s, ending = coalesce(%(ending)s, a.ending), error = coalesce(%(error)s, a.error),
    held_by = %(held_by)s, failing_since = %(failing_since)s
where a.id = %(id)s and a.version = %(version)s and a.state = 'running'
