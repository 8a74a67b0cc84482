"""The lines and the live view of `up`, rendered without a terminal."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.console import Console, RenderableType

from timers.coming_fires import ComingFire, coming_fires
from tocsin.cli.records.foreign_messages import NOT_A_RECORD_ERRORS
from tocsin.cli.up.lines import Line, Record, foreign_line, line_of
from tocsin.cli.up.screen import LiveScreen, PlainScreen
from tocsin.cli.up.services import database_url
from tocsin.cli.up.view import Restarts, ShownAlarm, ViewState, line_text, view

_AT = datetime(2026, 3, 8, 7, 0, tzinfo=UTC)
_FIRE: dict[str, Any] = {
    "type": "schedule-fired",
    "origin": "scheduled",
    "time": "2026-03-08T07:00:00Z",
    "fireat": "2026-03-08T07:01:00Z",
    "recordedat": "2026-03-08T07:01:00.003400Z",
    "schedule": "digest",
    "owner": "plant",
    "data": {},
}


def _state(**changes: Any) -> ViewState:
    values = {"postgres": "postgresql://here", "nats": "nats://there", "data": "/data dir", **changes}
    return ViewState(version="1.2.3", log="/data dir/log", **values)


def _rendered(renderable: RenderableType, *, colours: bool = False) -> str:
    file = io.StringIO()
    Console(file=file, width=100, force_terminal=colours, markup=False, highlight=False).print(renderable)
    return file.getvalue()


def _new_york(owner: str, name: str) -> str:
    assert (owner, name) == ("plant", "digest")
    return "America/New_York"


def _row(name: str, minutes: int, every: str = "10m", **changes: Any) -> dict[str, Any]:
    at = _AT + timedelta(minutes=minutes)
    spec = {
        "every": every,
        "anchor": "2026-03-08T07:00:00Z",
        "tz": "UTC",
        "dst_gap": "forward",
        "dst_fold": "first",
    }
    row = {"name": name, "owner": "", "status": "active", "recurrence": spec, "nominal_at": at, "fire_at": at}
    return {**row, "attempts": 0, "last_error": None, "parked_at": None, **changes}


def test_a_fire_is_local_nominal_time_and_lateness_after_its_spread() -> None:
    line = line_of(Record(7, _FIRE), _new_york)
    assert line is not None
    assert line.plain() == "fired   plant/digest  Sun 2026-03-08 03:00:00 EDT  3 ms late  seq 7"


def test_a_fire_of_a_type_of_its_own_is_a_fire() -> None:
    line = line_of(Record(7, {**_FIRE, "type": "reminder"}), _new_york)
    assert line is not None
    assert line.kind == "fired"


@pytest.mark.parametrize(
    ("count", "at_least", "text"),
    [
        (1, False, "once, Sun 2026-03-08 03:00:00 EDT"),
        (4, False, "4 times, Sun 2026-03-08 03:00:00 EDT to Sun 2026-03-08 04:00:00 EDT"),
        (9, True, "at least 9 times, Sun 2026-03-08 03:00:00 EDT to Sun 2026-03-08 04:00:00 EDT"),
    ],
)
def test_missed_times_are_counted_with_first_last_and_reason(count: int, at_least: bool, text: str) -> None:
    data = {
        **{"count": count, "at_least": at_least, "reason": "why"},
        **{"first": "2026-03-08T07:00:00+00:00", "last": "2026-03-08T08:00:00+00:00"},
    }
    body = {**_FIRE, "type": "schedule-missed", "origin": "derived", "data": data}
    assert line_of(Record(8, body), _new_york) == Line("missed", f"plant/digest  {text}  (why)", 8)


@pytest.mark.parametrize(
    ("state", "data", "line"),
    [
        ("due", {}, None),
        ("completed", {"message": "hi\x1b[2J"}, Line("action", "say  completed  hi\\x1b[2J", 9)),
        ("completed", {"subject": "a.b"}, Line("action", 'say  completed  {"subject": "a.b"}', 9)),
        ("failed", {"error": "no"}, Line("failed", "say  failed  no", 9)),
        ("timed_out", {"error": "no report"}, Line("failed", "say  timed_out  no report", 9)),
        ("cancelled", {}, Line("action", "say  cancelled", 9)),
        (
            *("waiting", {"until": "2026-03-08T07:10:00+00:00"}),
            Line("action", "say  waiting  until 2026-03-08 07:10:00Z", 9),
        ),
        (
            *("waiting", {"error": "answered 500", "until": "2026-03-08T07:10:00+00:00"}),
            Line("action", "say  waiting  answered 500  again at 2026-03-08 07:10:00Z", 9),
        ),
    ],
)
def test_an_action_is_one_line_when_it_ends(state: str, data: dict[str, Any], line: Line | None) -> None:
    body = {"type": f"action-step-{state}", "state": state, "action": "say", "step": 0, "data": data}
    assert line_of(Record(9, body), _new_york) == line


def test_a_step_of_a_runbook_has_its_name() -> None:
    body = {
        **{"type": "action-step-completed", "state": "completed", "action": "page", "owner": "plant-7"},
        **{"step": 2, "data": {"text": "pager answered 200"}},
    }
    line = line_of(Record(9, body), _new_york, lambda action, step: {("page", 2): "ring"}[action, step])
    assert line == Line("action", "plant-7/page  ring  completed  pager answered 200", 9)


@pytest.mark.parametrize(
    ("type", "data", "line"),
    [
        ("alarm-opened", {"message": "hot: 71"}, Line("alarm", "plant-7/hot  opened, high  hot: 71", 3)),
        ("alarm-resolved", {"message": "clear"}, Line("alarm", "plant-7/hot  resolved  clear", 3, True)),
        (
            *("alarm-acknowledged", {"who": "ann", "note": "on it"}),
            Line("alarm", "plant-7/hot  acknowledged  by ann  on it", 3),
        ),
        (
            *("alarm-snoozed", {"who": "ann", "until": "2026-03-08T07:00:00+00:00"}),
            Line("alarm", "plant-7/hot  snoozed  by ann  until 2026-03-08 07:00:00Z", 3),
        ),
        ("alarm-snooze-ended", {}, Line("alarm", "plant-7/hot  no longer snoozed", 3)),
    ],
)
def test_a_transition_of_an_alarm_is_one_line(type: str, data: dict[str, Any], line: Line) -> None:
    body = {"type": type, "origin": "derived", "rule": "hot", "owner": "plant-7", "severity": 4, "data": data}
    assert line_of(Record(3, body), _new_york) == line


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("stale", Line("stale", "plant-7/flow  no datapoint for 1m15s, the last value was 80", 3)),
        ("fresh", Line("fresh", "plant-7/flow  the value is 80", 3)),
    ],
)
def test_a_series_that_becomes_stale_or_fresh_is_one_line(kind: str, line: Line) -> None:
    data = {"value": 80, "age_s": 75.0}
    body = {
        **{"type": f"datapoint-{kind}", "kind": kind, "owner": "plant-7", "key": "flow"},
        "data": data,
    }
    assert line_of(Record(3, body), _new_york) == line


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (
            {"was": None, "health": "unknown", "reason": "no-data", "members": []},
            Line("health", "cooling  unknown (no-data)", 3),
        ),
        ({"was": "ok", "health": "outage", "reason": None}, Line("health", "cooling  outage, was ok", 3)),
        (
            {"was": "outage", "health": "ok", "reason": None},
            Line("health", "cooling  ok, was outage", 3, True),
        ),
    ],
)
def test_the_health_of_a_system_is_one_line(data: dict[str, Any], line: Line) -> None:
    body = {"type": "datapoint-health", "kind": "health", "owner": "cooling", "key": "system.health"}
    assert line_of(Record(3, {**body, "data": data}), _new_york) == line
    assert _rendered(line_text(line)).rstrip() == line.plain()


@pytest.mark.parametrize(
    "data", [b"\xff\x1b[2J", b"5", b'{"value": "stale"}', b'{"type": "alarm-opened", "rule": 1}']
)
def test_a_foreign_message_is_marked(data: bytes) -> None:
    def read() -> Line | None:
        return line_of(Record(3, json.loads(data)), _new_york)

    with pytest.raises(NOT_A_RECORD_ERRORS):
        read()
    line = foreign_line(3, data)
    assert line.plain().startswith("event   not a record of tocsin: ")
    assert "\x1b" not in line.plain()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_many_records_cost_the_live_view_one_frame_and_omitted_ones_are_counted() -> None:
    file = Terminal()
    state = _state(now=_AT)
    console = Console(file=file, force_terminal=True, width=100, markup=False, highlight=False)
    with LiveScreen(state, console) as screen:
        screen.show(Line("fired", "first", 1))
        screen.refresh(state)
        before = file.getvalue().count("Ctrl-C stops everything")
        for seq in range(2, 1002):
            screen.show(Line("fired", "digest", seq))
        screen.refresh(state)
        drawn = file.getvalue().count("Ctrl-C stops everything") - before
        screen.show(Line("fired", "last", 1002))
    assert drawn == 1
    shown = [line for line in file.getvalue().splitlines() if "digest" in line or "not shown" in line]
    assert "900 records are not shown, from seq 2 on: `tocsin tail --from-seq 2`" in shown[0]
    assert [f"seq {seq}" in line for seq, line in zip(range(902, 1002), shown[1:], strict=True)] == [
        True
    ] * 100
    assert "last" in file.getvalue()


def test_open_alarms_are_in_the_view_and_the_rest_is_counted() -> None:
    alarm = ShownAlarm("high", "plant-7/hot", _AT - timedelta(minutes=3), "71 \x1b[2J degrees", False)
    shown = _rendered(view(_state(now=_AT, alarms=[alarm])))
    assert "high  plant-7/hot  3m ago  71 \\x1b[2J degrees" in shown
    assert " more" not in shown
    crowded = _rendered(view(_state(now=_AT, alarms=[alarm] * 9)))
    assert "and 4 more: `tocsin alarms` lists them" in crowded
    assert "high  plant-7/hot  3m ago" in crowded


def test_other_events_are_shown_by_type() -> None:
    body = {
        "type": "rules-applied",
        "origin": "caused",
        "time": "2026-03-08T07:00:00Z",
        "data": {"count": 6, "documents": [{}]},
    }
    assert line_of(Record(1, body), _new_york) == Line("event", 'rules-applied  {"count": 6}', 1)


def test_a_tombstone_is_shown_with_its_reason() -> None:
    body = {"type": "record-missing", "kind": "gap", "seq": 7, "data": {"reason": "lost"}}
    assert line_of(Record(7, body), _new_york) == Line("event", 'record-missing  {"reason": "lost"}', 7)


def test_the_view_shows_servers_services_and_countdowns() -> None:
    note = "02:30 does not exist on this day: moved to 03:00"
    fires = [
        ComingFire("digest", "plant", _AT, _AT, "America/New_York", note),
        ComingFire("late", "", _AT - timedelta(minutes=2), _AT - timedelta(minutes=2), "UTC", ""),
    ]
    shown = _rendered(
        view(
            _state(
                now=_AT - timedelta(seconds=75),
                coming_fires=fires,
                paused_schedules=3,
                restarts={"cdc": Restarts(2, "nats is away")},
            )
        )
    )
    for text in (
        "tocsin 1.2.3",
        "postgresql://here",
        "nats://there",
        "/data dir",
        "cdc restarted 2 times: nats is away",
    ):
        assert text in shown
    assert "Sun 2026-03-08 03:00:00 EDT  in 1m15s" in shown
    assert "due now" in shown
    assert "3 paused" in shown
    assert "\x1b" not in shown


def test_a_restart_that_is_over_is_shown_without_its_error() -> None:
    shown = _rendered(
        view(_state(now=_AT, restarts={"cdc": Restarts(2, "nats is away", is_running_again=True)}))
    )
    assert "cdc restarted 2 times" in shown
    assert "nats is away" not in shown


def test_before_the_first_read_the_view_does_not_report_that_no_fires_are_scheduled() -> None:
    shown = _rendered(view(_state()))
    assert "no fires are scheduled" not in shown
    assert "reading the schedules" in shown


def test_an_empty_view_tells_how_to_add_a_schedule() -> None:
    assert "no fires are scheduled" in _rendered(view(_state(now=_AT)))


def test_lines_have_colours_on_a_terminal_only() -> None:
    line = Line("fired", "digest", 7)
    assert _rendered(line_text(line)).rstrip() == line.plain()
    assert "\x1b[" in _rendered(line_text(line), colours=True)


def test_every_schedule_is_shown_once_before_any_is_shown_twice() -> None:
    rows = [_row("often", 10), _row("held", 20, status="paused"), _row("rare", 90, "90m")]
    assert [(fire.schedule, fire.at) for fire in coming_fires(rows, 4)] == [
        *(("often", _AT + timedelta(minutes=minutes)) for minutes in (10, 20, 30)),
        ("rare", _AT + timedelta(minutes=90)),
    ]
    assert [fire.schedule for fire in coming_fires(rows, 1)] == ["often"]


def test_coming_fires_keep_the_spread_and_mark_parked_timers() -> None:
    row = _row("one", 10, fire_at=_AT + timedelta(minutes=11), parked_at=_AT, last_error="boom", attempts=5)
    first, second = coming_fires([row], 2)
    assert (first.note, second.note) == ("parked: boom", "")
    assert second.fire_at - second.at == timedelta(minutes=1)


def test_plain_output_introduces_itself_and_reports_restarts_once(capsys: pytest.CaptureFixture[str]) -> None:
    coming = [ComingFire("digest", "", _AT, _AT, "UTC", "")]
    state = _state(now=_AT - timedelta(seconds=5), coming_fires=coming)
    with PlainScreen(state) as screen:
        for current in (
            {},
            {"cdc": Restarts(1, "nats is away")},
            {"cdc": Restarts(1, "nats is away", True)},
        ):
            state.restarts = current
            screen.refresh(state)
    assert capsys.readouterr().out.splitlines()[1:] == [
        "postgres  postgresql://here",
        "nats      nats://there",
        "data      /data dir",
        "log       /data dir/log",
        "next    digest  Sun 2026-03-08 07:00:00 UTC  in 5s",
        "restart  cdc restarted 1 time: nats is away",
    ]


def test_the_database_of_up_is_its_own_on_the_same_server() -> None:
    url = "postgresql://postgres@/postgres?host=%2Fa%20b%2Fpostgres&port=5432"
    assert database_url(url) == "postgresql://postgres@/tocsin?host=%2Fa%20b%2Fpostgres&port=5432"
