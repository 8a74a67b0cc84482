-- Whether one of these runs is active. Locks nothing. Index: action's key.
select exists (
    select from tocsin.action a
    where a.id = any(%(ids)s::uuid[]) and a.state in ('gathering', 'queued', 'running'))
