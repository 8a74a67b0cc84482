"""Rules: YAML documents become versions in Postgres; workers react to the stream by them.

Guarantees: a file is applied whole or not at all, and applying it again changes nothing. A rule sees only
events that were committed after it was applied, by the versions that held at their seq, whoever evaluates
them and however late. An action starts at most once per (action_rule, event) (I7); what it does is done at
least once, with one idempotency key.

Why this way: versions begin and end at a seq of the record log (the `rules-applied` event), so which rule
holds for which event is a fact of the log, not of a worker's memory.
"""
