-- The number of audit rows that are not chained yet.
select count(*) from tocsin.audit a
where not exists (select from tocsin.audit_seal s where s.audit_id = a.id)
