-- Delete silences by id, in key order. One that another transaction has locked is skipped.
with gone as materialized (
    select id from tocsin.silence
    where id = any (%(key_2)s::uuid[]) and ended_at is not null
    order by id
    for update skip locked
)
delete from tocsin.silence s using gone g where s.id = g.id returning s.id
