"""Starts runs for events: matches events to action_rules, admits runs, wakes runs that wait for
events.

Guarantees: an action starts at most once per (action_rule, event). The same events and the same
rules start the same runs, however the record lane divides them into batches. A run that an
action_rule does not start because of a rate limit, an overlap or its lineage is recorded as
skipped, with the reason.

What decides is pure (`matcher`, `notifications`, `admission`, `wait_matcher`); rule tests and
backtests use it as well. `dispatcher`, `policies` and `event_waits` read and write Postgres.

Entry points: the record lane calls `dispatcher` for each batch of events, and `tocsin dead-letters
retry` calls `dispatch_again`.
"""
