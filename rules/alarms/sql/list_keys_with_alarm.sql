-- The owners and instances for which some rules have a pending or open alarm. Locks nothing. Index: alarm_active.
select event_rule, owner, instance from tocsin.alarm where event_rule = any(%(rules)s) and state in ('pending', 'open')
