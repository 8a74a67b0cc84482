-- A chunk of the starts that count against a rate limit, and whether no version of their
-- action_rule is left. Locks nothing. Index: the keys of action_limit and rule_version.
select l.action_rule,
       not exists (select from tocsin.rule_version v where v.kind = 'action_rule' and v.name = l.action_rule)
from tocsin.action_limit l
where l.action_rule > (%(after)s::text[])[1]
order by l.action_rule
limit %(limit)s
