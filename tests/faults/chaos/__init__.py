"""Chaos: one fault at a time against a whole installation under load, and the account of what it cost.

Guarantee: the seed decides which process, series and row a fault hits. A fault that did not happen
(no process died, no connection broke, no commit was lost) is an error of the run, never a success.

Why real processes and links: a fault inside one process shows what its code does with an error. Only
the whole installation shows what is lost between two components.

On failure: `CellResult.problems` lists what was lost, doubled, out of order or wrong.
"""
