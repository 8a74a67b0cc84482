-- Whether `tocsin roles create` was run for this database: the role of the clock may use the schema.
select exists (
    select from pg_roles r where r.rolname = 'tocsin_clock' and has_schema_privilege(r.oid, 'tocsin', 'usage'))
