-- See tocsin.schedule_cancel_all in the migrations. `who` defaults to the role of the database.
select tocsin.schedule_cancel_all(%(owner)s::text, %(type)s::text, coalesce(%(who)s::text, current_user::text),
                                  'client')
