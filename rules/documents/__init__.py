"""Documents: `load` reads YAML into models, `rule_book` reads stored versions from Postgres.

Guarantee: a document that `load` returns is valid together with the others, so it can be applied.
`rule_book` returns the documents that hold at a seq. `compiled_rules` compiles the event_rules of a
rule set, in one place for workers, apply and backtests; a rule that does not compile is logged and
skipped, and the others stay active.

Entry points: the command line calls `load`, workers call `rule_book` and `compiled_rules`.
"""
