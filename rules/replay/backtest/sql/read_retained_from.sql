-- The instants from which the log, and the datapoints, are complete; null if nothing was pruned. Index:
-- log_commit's key; reads datapoint_kept once.
select (select c.recorded_at from tocsin.log_head h
        join tocsin.log_commit c on c.last_seq >= h.horizon
        where h.horizon > 1
        order by c.last_seq
        limit 1),
       (select date_trunc('day', max(k.arrived_at), 'UTC') + interval '1 day' from tocsin.datapoint_kept k)
