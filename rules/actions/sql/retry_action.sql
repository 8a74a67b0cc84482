-- Start a dead run again. No row: another process has changed it, and the caller refuses.
update tocsin.action a
set state = 'running', active = %(active)s, version = a.version + 1, ended_at = null, result = null, error = null,
    failing_since = null
where a.id = %(id)s and a.version = %(version)s and a.state in ('failed', 'timed_out')
