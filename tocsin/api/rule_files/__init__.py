"""Rule files over HTTP: check, plan, apply, test and backtest, each in a process of its own.

Guarantees: a request runs the command of the command line on the files that it sends, so words, checks and
results are the same. Whatever the files contain, the process is killed after a bounded time of CPU and
clock, and has bounded memory; at most `MAX_RUNNING` run at a time. The API itself never reads a document.
"""
