-- False for a database that was never migrated.
select to_regclass('public.tocsin_migration') is not null
