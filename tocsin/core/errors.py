"""Every error that Tocsin raises on purpose.

Guarantee: what a person can cause or mend arrives as a `TocsinError` whose message is one lower-case
sentence that shows the offending value and says what to do. Anything else is a defect and keeps its
traceback. The command line prints the message and exits with `exit_code`.
"""


class TocsinError(Exception):
    """The root: the message is meant for the person who can act on it."""

    exit_code = 1


class InvalidInput(TocsinError):
    """A value somebody gave us is wrong; the message names it, its place and the remedy."""


class Unreachable(TocsinError):
    """A server could not be reached; the message says what was tried and how to set it."""

    exit_code = 2


class Refused(TocsinError):
    """The request is well formed, and the state of things forbids it; the message says which state."""


class Deposed(TocsinError):
    """Our epoch was superseded: another clock leads, this transaction must not commit."""
