-- Delete the rate limits of action_rules that are gone.
delete from tocsin.action_limit where action_rule = any (%(key_1)s::text[]) returning action_rule
