-- See tocsin.schedule_once in the migrations; who is the database's role unless it is named.
select id, status, generation, fire_at, deduped
from tocsin.schedule_once(%(owner)s::text, %(name)s::text, %(at)s::timestamptz, %(payload)s::jsonb, %(type)s::text,
                          %(action)s::text, coalesce(%(who)s::text, current_user::text), 'client')
