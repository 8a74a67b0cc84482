-- The contents of ended runs of an owner. A dead one cannot be retried any more, because its event is gone.
-- Index: action_ended.
update tocsin.action
set result = null, error = null, active = '{}', answers = '{}', version = version + 1,
    state = case when state in ('failed', 'timed_out') then 'cancelled' else state end
where owner = %(owner)s and ended_at is not null and state not in ('gathering', 'queued', 'running')
  and (result is not null or error is not null or active <> '{}' or answers <> '{}' or state in ('failed', 'timed_out'))
