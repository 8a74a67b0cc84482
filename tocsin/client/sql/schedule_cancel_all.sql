-- See tocsin.schedule_cancel_all in the migrations; who is the database's role unless it is named.
select tocsin.schedule_cancel_all(%(owner)s::text, %(type)s::text, coalesce(%(who)s::text, current_user::text),
                                  'client')
