"""Applying: what rules files say becomes what holds, seen before and done as a whole.

Guarantee: `plan` decides what changes, `preview` says what would follow from it and writes nothing, `apply` does it in
one transaction, by the same decisions. What older documents began (alarms, actions, timers) is settled in that
transaction: nothing is left that no document would ever end, and nothing is started twice.
"""

from rules.apply.plan import Change, Key, Plan
from rules.apply.preview import Preview, preview
from rules.apply.transaction import Applied, apply

__all__ = ["Applied", "Change", "Key", "Plan", "Preview", "apply", "preview"]
