"""The priority of runs: which due steps a worker performs first when it has too many.

Values, most urgent first: `high`, `normal`, `low`. The database and the messages omit `normal`.
"""

from typing import Literal

Priority = Literal["high", "normal", "low"]
PRIORITIES: tuple[Priority, ...] = ("high", "normal", "low")
"""Most urgent first."""
