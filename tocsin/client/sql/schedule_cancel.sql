-- See tocsin.schedule_cancel in the migrations; who is the database's role unless it is named.
select tocsin.schedule_cancel(%(owner)s::text, %(name)s::text, coalesce(%(who)s::text, current_user::text), 'client')
