"""Runs the rule engine in other times: `rule_tests` in virtual time, `backtest` over recordings."""
