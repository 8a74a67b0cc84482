-- The series of an owner that nothing watches and that received nothing since, in key order, with their kept
-- datapoints. A series for which a datapoint is arriving is skipped. Index: the keys of current_value and timer.
with gone as materialized (
    select c.owner, c.key
    from tocsin.current_value c
    where c.owner = %(owner)s and c.arrived_at <= %(arrived_until)s
      and c.handled_stale_since is not distinct from c.stale_since
      and not exists (select from tocsin.timer t where t.kind = 'watchdog' and t.ref = tocsin.token(c.owner) and t.key = c.key)
      and not exists (select from tocsin.system_member m where m.owner = c.owner)
      and not exists (select from tocsin.alarm a where a.owner = c.owner and a.state <> 'resolved')
    order by c.owner, c.key
    for update of c skip locked
),
kept as (delete from tocsin.datapoint_kept k using gone g where k.owner = g.owner and k.key = g.key)
delete from tocsin.current_value c using gone g where c.owner = g.owner and c.key = g.key
