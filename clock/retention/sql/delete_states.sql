-- Delete states of rules, in key order. A worker that has read one finds another version and
-- evaluates again.
with gone as materialized (
    select s.event_rule, s.owner, s.instance
    from unnest(%(key_1)s::text[], %(key_2)s::text[], %(key_3)s::text[]) as g (event_rule, owner, instance)
    join tocsin.rule_state s on s.event_rule = g.event_rule and s.owner = g.owner and s.instance = g.instance
    where s.phase = 'ok'
    order by s.event_rule, s.owner, s.instance
    for update of s skip locked
)
delete from tocsin.rule_state s using gone g
where s.event_rule = g.event_rule and s.owner = g.owner and s.instance = g.instance
returning s.owner
