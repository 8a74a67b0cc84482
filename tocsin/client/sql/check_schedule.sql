-- See tocsin.check_schedule in the migrations. The caller has checked the retry.
select tocsin.check_schedule(%(name)s::text, %(payload)s::jsonb, %(action)s::text, null)
