"""Models of the steps of an action.

Guarantee: a step that exists is one response or one piece of flow (`wait`, `branch`, `parallel`),
with its retry policy, its timeout and what a failure means. Names, channels, conditions and
timezones are checked by the loader, which knows the other documents.
"""

from schemas.documents.runbook.messages import DispatchStep, EmitStep, LogStep, PublishStep, RecordStep
from schemas.documents.runbook.retry import RetryPolicy
from schemas.documents.runbook.step import FLOW, RESPONSES, BranchStep, Responses, StepDocument, walk
from schemas.documents.runbook.wait import WaitStep

__all__ = [
    "FLOW",
    "RESPONSES",
    "BranchStep",
    "DispatchStep",
    "EmitStep",
    "LogStep",
    "PublishStep",
    "RecordStep",
    "Responses",
    "RetryPolicy",
    "StepDocument",
    "WaitStep",
    "walk",
]
