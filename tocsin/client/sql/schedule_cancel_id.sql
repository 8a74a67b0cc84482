-- See tocsin.schedule_cancel_id in the migrations. `who` defaults to the role of the database.
select tocsin.schedule_cancel_id(%(id)s::uuid, coalesce(%(who)s::text, current_user::text), 'client')
