-- Whether any of these runs has a timer. Index: timer's key.
select exists (
    select 1 from tocsin.timer t where t.kind = 'runbook-wait' and t.ref = any(%(refs)s::text[]))
