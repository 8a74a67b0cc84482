"""Subjects that an action may publish to.

Guarantee: `check_subject` refuses what is no NATS subject, and the names that Tocsin and NATS keep for themselves; the
loader asks it for the fixed part of a subject, the worker for the whole.

Why reserved subjects are refused: the record log's stream accepts one writer, and its sequence numbers
are the proof that nothing was lost or sent twice.
"""

import re

from tocsin.core.errors import InvalidInput

_TOKEN = re.compile(r"[^\s.*>\x00-\x1f\x7f]+")


def check_subject(subject: str) -> None:
    """Refuses a subject that NATS would refuse, or that is not the user's to write."""
    for token in subject.split("."):
        if not _TOKEN.fullmatch(token):
            raise InvalidInput(
                f"{subject!r} is not a subject to publish to",
                remedy="write tokens joined by dots, without spaces, '*' and '>'",
            )
    if subject.startswith("$") or subject.split(".")[0] in ("tocsin", "_INBOX"):
        raise InvalidInput(f"the subject {subject!r} is reserved", remedy="start it with another word")
