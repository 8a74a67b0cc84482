"""Records for tests of the feed, without servers."""

from __future__ import annotations

import json
from typing import Any

from tocsin.api.live.record import LiveRecord, read_record


def live_record(seq: int, kind: str = "event", **attributes: Any) -> LiveRecord:
    body = {"seq": seq, "type": "noted", **attributes}
    record = read_record(seq, f"tocsin.v1.{kind}.x", json.dumps(body).encode())
    assert record is not None
    return record
