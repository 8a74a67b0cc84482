"""Callers that were authenticated in the last seconds, by the digest of their secret.

Why: authentication would otherwise cost a statement per request. A revoked token works for at most
`KEPT_S` more; docs/api.md says so. At most `_MOST` callers are kept, and failures are not kept.
"""

from __future__ import annotations

import time
from collections import OrderedDict

from tocsin.api.access.caller import Caller

KEPT_S = 5.0
_MOST = 10_000


class KnownTokens:
    def __init__(self) -> None:
        self._known: OrderedDict[bytes, tuple[float, Caller]] = OrderedDict()

    def find(self, digest: bytes) -> Caller | None:
        until_s, caller = self._known.get(digest, (0.0, None))
        return caller if time.monotonic() < until_s else None

    def keep(self, digest: bytes, caller: Caller) -> None:
        self._known[digest] = (time.monotonic() + KEPT_S, caller)
        self._known.move_to_end(digest)
        while len(self._known) > _MOST:
            self._known.popitem(last=False)

    def forget(self) -> None:
        """Forget all, after a change of this process."""
        self._known.clear()
