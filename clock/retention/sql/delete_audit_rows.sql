-- Delete audit rows by number. No other transaction changes them.
delete from tocsin.audit where id = any (%(key_2)s::bigint[]) returning id
