-- One row if the database of `tocsin up` exists.
select 1 from pg_database where datname = 'tocsin'
