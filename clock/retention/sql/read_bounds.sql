-- Where the log begins, and since when; from when on there are datapoints; and the current instant.
-- `horizon` and `day` are where they would begin after ranges and days that are still to be
-- dropped. Before anything was dropped there is no instant at which the log begins. Index: the key
-- of log_commit.
select b.horizon,
       case when b.horizon > 1 then (
           select c.recorded_at from tocsin.log_commit c where c.last_seq >= b.horizon order by c.last_seq limit 1) end,
       coalesce(
           (select greatest(min(to_date(substring(c.relname from '_([0-9]{8})$'), 'YYYYMMDD')), %(day)s::date)::timestamp
                   at time zone 'UTC'
            from pg_class c
            where c.relnamespace = 'tocsin'::regnamespace and c.relkind = 'r' and c.relname ~ '^datapoint_[0-9]{8}$'),
           tocsin.instant()),
       tocsin.instant()
from (select greatest(h.horizon, %(horizon)s) as horizon from tocsin.log_head h) b
