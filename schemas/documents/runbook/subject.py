"""Checks subjects that an action publishes to.

Guarantee: `check_subject` rejects texts that are no NATS subject, and subjects that Tocsin and NATS
reserve. The loader checks the fixed part of a subject, the worker the whole subject.

Why reserved subjects are rejected: the record stream accepts one writer, and its sequence numbers
prove that no record was lost or sent twice.
"""

import re

from tocsin.core.errors import InvalidInput

_TOKEN = re.compile(r"[^\s.*>\x00-\x1f\x7f]+")


def check_subject(subject: str) -> None:
    """`InvalidInput` for a subject that NATS would reject, or that is reserved."""
    for token in subject.split("."):
        if not _TOKEN.fullmatch(token):
            raise InvalidInput(
                f"{subject!r} is not a subject to publish to",
                remedy="write tokens joined by dots, without spaces, '*' and '>'",
            )
    if subject.startswith("$") or subject.split(".")[0] in ("tocsin", "_INBOX"):
        raise InvalidInput(f"the subject {subject!r} is reserved", remedy="start it with another word")
