-- How far the readers of the log and of the datapoints have come. Locks nothing. A dead run may be
-- retried for its own retention; one whose event has left the log needs nothing more of it. Index:
-- action_active, action_dead.
select tocsin.instant(),
       (select r.last_seq from tocsin.cdc_report r),
       (select min(p.last_seq) from tocsin.lane_partition p where p.lane = 'record'),
       (select min(a.event_seq) from tocsin.action a
        where a.state in ('gathering', 'queued', 'running') and a.event_seq >= h.horizon),
       (select min(a.event_seq) from tocsin.action a
        where a.state in ('failed', 'timed_out') and a.ended_at >= (select tocsin.instant()) - %(dead_age)s::interval
          and a.event_seq >= h.horizon),
       (select case when count(*) = count(p.watermark) then min(p.watermark) end
        from tocsin.lane_partition p where p.lane = 'data')
from tocsin.log_head h
