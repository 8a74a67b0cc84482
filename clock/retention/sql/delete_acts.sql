-- Acts by number. Nobody changes one.
delete from tocsin.audit where id = any (%(key_2)s::bigint[]) returning id
