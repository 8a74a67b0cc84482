-- See tocsin.schedule_cancel in the migrations. `who` defaults to the role of the database.
select tocsin.schedule_cancel(%(owner)s::text, %(name)s::text, coalesce(%(who)s::text, current_user::text), 'client',
                              %(if_generation)s::bigint)
