"""Runs the rules outside of live time: `rule_tests` in virtual time, `backtest` over recordings.

Guarantee: both call the live engine, dispatch and runbooks. They share one in-memory shell around
them, which replaces the workers, the clock and the database:

- `memory`: the rule states of an owner, and the transitions that follow from its inputs,
- `staleness`: the series of an owner, and when they become stale,
- `alarms`: open and resolved alarms, and what operators did to them,
- `scheduler`, `runs`, `perform`, `log`: runs of actions, without deliveries.

Why live code: a rule test or a backtest predicts production only if it runs the code of production.
"""
