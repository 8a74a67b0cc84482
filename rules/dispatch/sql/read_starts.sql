-- When rules with a limit started of late. Written by the record lane alone, which has one reader.
select action_rule, starts from tocsin.action_limit where action_rule = any(%(rules)s)
