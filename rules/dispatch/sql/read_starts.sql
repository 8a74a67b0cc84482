-- Recent starts of rules with a rate limit. Only the record lane writes them, and it has one
-- reader.
select action_rule, starts from tocsin.action_limit where action_rule = any(%(rules)s)
