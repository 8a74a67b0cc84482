-- Recorded in the transaction that applied it.
insert into public.tocsin_migration (number, name, checksum) values (%s, %s, %s)
