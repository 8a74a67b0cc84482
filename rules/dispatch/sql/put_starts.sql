-- When rules with a limit started of late, as far as it still counts.
insert into tocsin.action_limit (action_rule, starts)
select g.action_rule, array(select jsonb_array_elements_text(g.starts)::timestamptz)
from unnest(%(rules)s::text[], %(starts)s::jsonb[]) as g (action_rule, starts)
order by g.action_rule
on conflict (action_rule) do update set starts = excluded.starts
