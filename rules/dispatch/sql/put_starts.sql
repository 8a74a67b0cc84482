-- Write the recent starts of rules with a rate limit, as far as they still count.
insert into tocsin.action_limit (action_rule, starts)
select item.action_rule, array(select jsonb_array_elements_text(item.starts)::timestamptz)
from unnest(%(rules)s::text[], %(starts)s::jsonb[]) as item (action_rule, starts)
order by item.action_rule
on conflict (action_rule) do update set starts = excluded.starts
