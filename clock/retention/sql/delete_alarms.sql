-- Delete alarms by id, in key order. One that another transaction has locked is skipped.
with gone as materialized (
    select id from tocsin.alarm
    where id = any (%(key_2)s::uuid[]) and state = 'resolved'
    order by id
    for update skip locked
)
delete from tocsin.alarm a using gone g where a.id = g.id returning a.id
