-- The first seq recorded at or after an instant, and whether nothing was recorded before it, pruned
-- rows included. Reads log_commit once; index: the key of datapoint.
select coalesce((select min(c.first_seq) from tocsin.log_commit c where c.recorded_at >= %(start)s),
                (select max(c.last_seq) + 1 from tocsin.log_commit c), 1),
       not exists (select from tocsin.log_commit c where c.recorded_at < %(start)s)
       and not exists (select from tocsin.datapoint d where d.arrived_at < %(start)s)
       and not exists (select from tocsin.datapoint_kept)
       and (select h.horizon from tocsin.log_head h) <= 1
