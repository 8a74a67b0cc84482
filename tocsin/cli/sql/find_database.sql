-- Whether the database of `tocsin up` exists; no row if not.
select 1 from pg_database where datname = 'tocsin'
