-- The owners for whom some rules hold a pending or open alarm. Index: alarm_held. Locks nothing.
select event_rule, owner from tocsin.alarm where event_rule = any(%(rules)s) and state in ('pending', 'open')
