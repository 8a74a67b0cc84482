-- The first seq the tables still have, or the one after the head when they have none.
select coalesce(
    least((select min(seq) from tocsin.event), (select min(seq) from tocsin.action_step),
          (select min(seq) from tocsin.datapoint_calculated)),
    (select greatest(h.floor, coalesce((select max(c.last_seq) from tocsin.log_commit c), 0)) + 1
     from tocsin.log_head h))
