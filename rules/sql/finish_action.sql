-- The outcome of a step, unique per (action, step, attempt): whoever comes second changes no row and appends nothing.
with finished as (
    update tocsin.action a
    set state = %(state)s, active = '{}', version = a.version + 1, ended_at = tocsin.instant(), result = %(result)s,
        error = %(error)s
    where a.id = %(id)s and a.state = 'running' and a.active -> (%(step)s::text) ->> 'attempt' = %(attempt)s::text
    returning a.id, a.name, a.owner, a.correlation_id, a.event_id
)
select count(*), case when count(*) > 0 then tocsin.append(
    '{}',
    array_agg(
        row(gen_random_uuid(), f.id, f.name, f.owner, %(step)s::integer, %(attempt)s::integer, %(state)s,
            f.correlation_id, f.event_id, %(result)s::jsonb)::tocsin.step_input))
    end
from finished f
