-- Delete runs by id, with the events that started them and their waits, in key order. A run that
-- another transaction has locked, or that was retried meanwhile, is skipped.
with gone as materialized (
    select id from tocsin.action
    where id = any (%(key_2)s::uuid[]) and ended_at is not null
    order by id
    for update skip locked
),
links as (delete from tocsin.action_event l using gone g where l.action_id = g.id),
waits as (delete from tocsin.action_wait w using gone g where w.action_id = g.id)
delete from tocsin.action a using gone g where a.id = g.id returning a.id
