-- The versions that this database has.
select number, name, checksum from public.tocsin_migration order by number
