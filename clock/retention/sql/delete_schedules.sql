-- Delete ended schedules by id, in key order. One that is being edited, or that was put again, is
-- skipped.
with gone as materialized (
    select id from tocsin.schedule
    where id = any (%(key_2)s::uuid[]) and status in ('fired', 'ended', 'cancelled', 'failed') and updated_at < %(horizon_at)s
    order by id
    for update skip locked
)
delete from tocsin.schedule s using gone g where s.id = g.id returning s.id
