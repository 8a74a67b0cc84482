-- See tocsin.schedule_once in the migrations. `who` defaults to the role of the database.
select id, status, generation, fire_at, deduped
from tocsin.schedule_once(%(owner)s::text, %(name)s::text, %(at)s::timestamptz, %(payload)s::jsonb, %(type)s::text,
                          %(action)s::text, coalesce(%(who)s::text, current_user::text), 'client')
