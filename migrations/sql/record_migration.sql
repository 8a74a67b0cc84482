-- In the transaction that applies the version.
insert into public.tocsin_migration (number, name, checksum) values (%s, %s, %s)
