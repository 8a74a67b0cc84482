"""Applies rule files: shows the changes first (plan), then makes them in one transaction.

Guarantee: `plan_changes` decides what changes, `preview` shows what follows from it and writes
nothing, and `apply` makes the changes in one transaction, with the same decisions. That transaction
also resolves, cancels or changes what older documents have started (alarms, runs, timers): nothing
is left that no document would ever end, and nothing is started twice.

Entry points: `preview` for `tocsin plan`, `apply` for `tocsin apply` and `tocsin up`.
"""

from rules.apply.plan import ApplyPlan, DocumentChange, DocumentKey
from rules.apply.preview import Preview, preview
from rules.apply.transaction import ApplyResult, apply

__all__ = ["ApplyPlan", "ApplyResult", "DocumentChange", "DocumentKey", "Preview", "apply", "preview"]
