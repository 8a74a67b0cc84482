import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.wire.ingest_event import read_ingest_event
from tocsin.core.errors import InvalidInput
from tocsin.protocols.alertmanager import MAX_ALERTS, fingerprint, read_alerts, read_silence
from tocsin.protocols.alertmanager_views import alert_view, group_views, silence_view

NOW = datetime(2026, 3, 2, 8, tzinfo=UTC)
ALERT = {
    "labels": {"alertname": "HighLoad", "instance": "web-1:9100", "severity": "high"},
    "annotations": {"summary": "load is 12"},
    "startsAt": "2026-03-02T07:59:00Z",
    "endsAt": "2026-03-02T08:04:00Z",
    "generatorURL": "http://prometheus.example/graph",
}


def posted(**keys: Any) -> bytes:
    return json.dumps([ALERT | keys]).encode()


def event(body: bytes, now: datetime = NOW) -> dict[str, Any]:
    (alert,), problems = read_alerts(body)
    assert problems == []
    fields = alert.event("web-1", now)
    read_ingest_event(json.dumps(fields).encode())
    return fields


def test_an_alert_that_fires_is_an_event_with_its_labels_and_annotations() -> None:
    fields = event(posted())
    assert (fields["type"], fields["owner"], fields["severity"]) == ("prometheus-alert", "web-1", "high")
    assert fields["ts"] == "2026-03-02T07:59:00Z"
    assert fields["payload"]["status"] == "firing"
    assert fields["payload"]["annotations"] == {"summary": "load is 12"}
    assert fields["payload"]["labels"]["alertname"] == "HighLoad"


def test_an_alert_is_sent_again_under_the_same_key() -> None:
    again = event(posted(endsAt="2026-03-02T08:05:00Z", annotations={"summary": "load is 13"}))
    assert again["id"] == event(posted())["id"]


def test_a_resolved_alert_has_a_key_and_a_time_of_its_own() -> None:
    resolved = event(posted(endsAt="2026-03-02T07:59:30Z"))
    assert resolved["payload"]["status"] == "resolved"
    assert resolved["ts"] == "2026-03-02T07:59:30Z"
    assert resolved["id"] != event(posted())["id"]
    later = event(posted(startsAt="2026-03-02T09:00:00Z", endsAt="2026-03-02T09:05:00Z"))
    assert later["id"] not in (resolved["id"], event(posted())["id"])


@pytest.mark.parametrize("severity", ["page", "", "HIGH"])
def test_a_severity_that_is_no_level_stays_a_label(severity: str) -> None:
    fields = event(posted(labels={"alertname": "a", "severity": severity}))
    assert fields["severity"] is None
    assert fields["payload"]["labels"]["severity"] == severity


def test_an_alert_that_cannot_be_used_does_not_affect_the_others() -> None:
    entries = [ALERT, {"labels": {}}, 7, {"labels": {"a": "b" * 2_000}}, ALERT | {"startsAt": "soon"}]
    alerts, problems = read_alerts(json.dumps(entries).encode())
    assert len(alerts) == 1
    assert [problem[:3] for problem in problems] == ["[1]", "[2]", "[3]", "[4]"]


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"nope", json.dumps([1] * (MAX_ALERTS + 1)).encode(), b"[" * 10_000]
)
def test_what_is_no_list_of_alerts_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidInput):
        read_alerts(body)


LABELS = st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3)


@given(LABELS, LABELS)
def test_different_labels_have_different_fingerprints(one: dict[str, str], other: dict[str, str]) -> None:
    if any("\ud800" <= letter <= "\udfff" for letter in str(one) + str(other)):
        return
    assert (fingerprint(one) == fingerprint(other)) == (one == other)


def test_an_alarm_is_an_alert_with_the_labels_that_matchers_read() -> None:
    alarm = {
        "id": UUID(int=7),
        "event_rule": "cpu-hot",
        "owner": "web-1",
        "severity": 2,
        "since": NOW,
        "opened_at": NOW,
        "acknowledged_by": "ann",
        "payload": {"key": "cpu", "labels": {"site": "ams"}, "message": "it is hot", "title": "CPU is hot"},
    }
    view = alert_view(alarm, f"silence:{UUID(int=9)}", NOW)
    assert view["labels"] == {
        "alertname": "cpu-hot",
        "owner": "web-1",
        "severity": "warning",
        "key": "cpu",
        "site": "ams",
    }
    assert view["status"]["state"] == "suppressed"
    assert view["status"]["silencedBy"] == [str(UUID(int=9))]
    assert view["annotations"]["summary"] == "CPU is hot"
    assert view["annotations"]["acknowledged_by"] == "ann"
    assert group_views([view])[0]["labels"] == {"alertname": "cpu-hot"}
    inhibited = alert_view(alarm, f"alarm:{UUID(int=11)}", NOW)
    assert inhibited["status"]["inhibitedBy"] == [UUID(int=11).hex[:16]]


@pytest.mark.parametrize(
    ("starts", "ends", "ended", "state"),
    [(-1, 1, None, "active"), (1, 2, None, "pending"), (-2, -1, None, "expired"), (-1, 1, -0.5, "expired")],
)
def test_a_silence_has_a_state(starts: float, ends: float, ended: float | None, state: str) -> None:
    hours = {"starts_at": starts, "ends_at": ends, "ended_at": ended}
    silence = {
        "id": UUID(int=1),
        "matcher": 'labels.site == "ams"',
        "reason": "",
        "source": "maintenance:m",
        "created_by": "ann",
        "created_at": NOW,
        **{name: None if value is None else NOW + timedelta(hours=value) for name, value in hours.items()},
    }
    view = silence_view(silence, NOW)
    assert view["status"] == {"state": state}
    assert view["comment"] == "maintenance:m"
    assert view["matchers"][0]["value"] == 'labels.site == "ams"'


def test_a_silence_of_amtool_is_read() -> None:
    body = {
        "matchers": [{"name": "site", "value": "a|b", "isRegex": True}],
        "startsAt": "2026-03-02T08:00:00.000Z",
        "endsAt": "2026-03-02T09:00:00.000Z",
        "createdBy": "ann",
        "comment": "new switch",
    }
    silence = read_silence(json.dumps(body).encode())
    assert str(silence.matchers[0].matcher) == 'site=~"a|b"'
    with pytest.raises(InvalidInput, match="matchers"):
        read_silence(json.dumps(body | {"matchers": []}).encode())


@given(st.binary(max_size=200))
def test_no_bytes_make_the_readers_fail(body: bytes) -> None:
    for read in (read_alerts, read_silence):
        try:
            read(body)
        except InvalidInput:
            continue
