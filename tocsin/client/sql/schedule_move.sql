-- See tocsin.schedule_move in the migrations. `who` defaults to the role of the database.
select id, status, generation, fire_at, deduped
from tocsin.schedule_move(%(owner)s::text, %(name)s::text, %(at)s::timestamptz,
                          coalesce(%(who)s::text, current_user::text), 'client', %(if_generation)s::bigint)
