"""One sample of each picture, for the contact sheet."""

from __future__ import annotations

import math
import random
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from tocsin.pictures.chart import ChartLevel, Point, value_chart
from tocsin.pictures.compare import ComparedAlarm, CompareLane, Period, compare_lanes
from tocsin.pictures.figure import Picture
from tocsin.pictures.freshness import SeriesFreshness, freshness_strip
from tocsin.pictures.health import SystemHealth, health_strip
from tocsin.pictures.herd import HerdMinute, week_ahead
from tocsin.pictures.lanes import LaneMark, PictureLane, Span, lanes_picture
from tocsin.pictures.runbook import RunStep, runbook_timeline
from tocsin.pictures.strip import OccurrenceState, StripBar, occurrence_strip
from tocsin.pictures.time_axis import TimeView
from tocsin.pictures.year import YearDay, year_calendar

ZONE = ZoneInfo("Europe/Amsterdam")
NOW = datetime(2026, 11, 18, 14, 20, tzinfo=UTC)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
DAY_VIEW = TimeView(NOW - 24 * HOUR, NOW, ZONE, NOW)


def samples() -> dict[str, Picture]:
    return {
        "Occurrences": strip(),
        "Alarm lanes": alarm_lanes(),
        "Value": chart(),
        "Year": year(),
        "Week ahead": herd(),
        "Health": health(),
        "Runbook": runbook(),
        "Freshness": freshness(),
        "Then and now": comparison(),
    }


def strip() -> Picture:
    states: list[OccurrenceState] = ["fired"] * 40
    special: dict[int, OccurrenceState] = {
        **{7: "late", 15: "missed", 16: "missed", 31: "skipped", 35: "cancelled", 39: "due"},
        **dict.fromkeys((22, 23, 24), "paused"),
    }
    for place, state in special.items():
        states[place] = state
    reasons = {"missed": "outage of 2h13m, catch-up: skip", "late": "41 s late", "paused": "paused by ann"}
    return occurrence_strip(
        [
            StripBar(NOW + (place - 38) * HOUR, state, reasons.get(state, ""))
            for place, state in enumerate(states)
        ],
        ZONE,
        name="daily-digest",
    )


def alarm_lanes() -> Picture:
    generator = random.Random(1)
    names = (
        "plant-7/room-hot",
        "plant-7/pump-stopped",
        "node-01/disk-full",
        "checkout/errors",
        "dsp-3/dsp-hot",
    )
    tones = ("sev3", "sev4", "sev2", "sev5", "sev1")
    lanes = []
    for name, tone in zip(names, tones, strict=True):
        at = DAY_VIEW.start + generator.random() * 5 * HOUR
        spans: list[Span] = []
        while at < NOW:
            pending = at + generator.random() * HOUR / 2
            opened = pending + generator.random() * 4 * HOUR
            spans.append(Span(at, min(pending, NOW), "pending", "pending"))
            acknowledged = pending + (opened - pending) / 3
            if opened < NOW:
                spans.append(Span(pending, acknowledged, tone, "open"))  # type: ignore[arg-type]
                spans.append(Span(acknowledged, opened, "acknowledged", "acknowledged by ann"))
            elif pending < NOW:
                spans.append(Span(pending, NOW, tone, "open", is_open=True))  # type: ignore[arg-type]
            at = opened + generator.random() * 9 * HOUR
        lanes.append(
            PictureLane(
                name, spans, [LaneMark(NOW - generator.random() * 20 * HOUR, "notified ops", "diamond")], "#x"
            )
        )
    legend = (("pending", "pending"), ("sev4", "open"), ("acknowledged", "acknowledged"))
    return lanes_picture(lanes, DAY_VIEW, title="alarms of the last day", legend=legend)


def chart() -> Picture:
    start = NOW - 6 * HOUR
    generator = random.Random(4)
    points = []
    for minute in range(360):
        at = start + minute * MINUTE
        if 70 < minute < 90:
            continue
        base = 52 + 9 * math.sin(minute / 37) + (14 if 190 < minute < 300 else 0)
        points.append(Point(at, base + generator.gauss(0, 1.2)))
        if minute == 70:
            points.append(Point(at, None))
    bands = [
        Span(start + 186 * MINUTE, start + 196 * MINUTE, "pending", "pending for 10m"),
        Span(start + 196 * MINUTE, start + 228 * MINUTE, "open", "open, high"),
        Span(start + 228 * MINUTE, start + 305 * MINUTE, "acknowledged", "acknowledged by ann"),
        Span(start + 305 * MINUTE, NOW, "ok", "resolved"),
    ]
    levels = [ChartLevel(65, "fire > 65"), ChartLevel(60, "clear < 60", "clear")]
    return value_chart(
        points,
        TimeView(start, NOW, ZONE, NOW),
        title="dsp.temperature of plant-7",
        unit="°C",
        levels=levels,
        bands=bands,
    )


def year() -> Picture:
    generator = random.Random(2)
    days = {}
    for number in range(365):
        at = date(2026, 1, 1) + timedelta(days=number)
        weekend = at.weekday() > 4
        days[at] = YearDay(0 if weekend else generator.choice((4, 8, 12, 24, 24, 24)), is_skipped=weekend)
    days[date(2026, 3, 29)] = YearDay(24, dst="02:30 does not exist, fires at 03:00")
    days[date(2026, 10, 25)] = YearDay(24, dst="02:30 exists twice, fires at the first")
    days[date(2026, 4, 27)] = YearDay(0, holiday="King's Day", is_skipped=True)
    days[date(2026, 12, 25)] = YearDay(0, holiday="Christmas Day", is_skipped=True)
    days[date(2026, 6, 10)] = YearDay(20, missed=4)
    days[date(2026, 6, 11)] = YearDay(2, missed=22)
    return year_calendar(2026, days, title="daily-digest", today=NOW.date())


def herd() -> Picture:
    minutes = []
    start = datetime(2026, 10, 19, tzinfo=ZONE)
    for minute in range(7 * 1440):
        at = start.astimezone(UTC) + minute * MINUTE
        hour, within = divmod(minute % 1440, 60)
        unspread = (
            420 if within == 0 and 8 <= hour <= 18 else 90 if within == 0 else 30 if within % 15 == 0 else 2
        )
        spread = 95 if within < 6 and 8 <= hour <= 18 else 22 if within < 5 else 8
        if minute // 1440 > 4:
            unspread, spread = unspread // 4, spread // 4
        minutes.append(HerdMinute(at, spread, unspread))
    return week_ahead(minutes, start.date(), ZONE, title="fires per minute, next seven days")


def health() -> Picture:
    view = TimeView(NOW - timedelta(days=30), NOW, ZONE, NOW)

    def spans(seed: int, failures: int) -> list[Span]:
        generator = random.Random(seed)
        at, found = view.start + seed * timedelta(days=1.5), []
        for _ in range(failures):
            ends = at + generator.random() * (NOW - at) / 2
            found.append(Span(at, ends, "ok", "healthy"))
            at = ends + generator.random() * timedelta(days=1.2)
            found.append(Span(ends, at, generator.choice(("late", "missed")), "2 alarms of plant-7"))
        return [*found, Span(at, NOW, "ok", "healthy")]

    systems = [
        SystemHealth("production", spans(0, 4), 0, "#a"),
        SystemHealth("plant-7", spans(1, 3), 1, "#b"),
        SystemHealth("pumps", spans(2, 2), 2, "#c"),
        SystemHealth("checkout", spans(0, 0), 1, "#d"),
    ]
    return health_strip(systems, view, title="health of the last 30 days")


def runbook() -> Picture:
    at = NOW - 20 * MINUTE
    steps = [
        RunStep(
            "tell-ops", "done", "slack", 0, at, "340 ms", "200 ok", request="POST /hook {…}", answer="ok"
        ),
        RunStep(
            "restart-pump",
            "failed",
            "webhook",
            0,
            at + MINUTE,
            "12.1 s",
            "503 service unavailable",
            attempts=4,
        ),
        RunStep("page-second-line", "done", "pagerduty", 1, at + 2 * MINUTE, "180 ms", "202 accepted"),
        RunStep("wait-for-ack", "waiting", "wait", 1, at + 2 * MINUTE, "", "until acknowledged, at most 15m"),
        RunStep("page-manager", "pending", "mail", 2, None, "", "if not acknowledged within 15m"),
        RunStep("note-success", "skipped", "emit", 1, None, "", "restart-pump failed"),
        RunStep("close-ticket", "pending", "webhook", 0, None, "", "after page-second-line"),
    ]
    return runbook_timeline(steps, ZONE, title="run of pump-runbook")


def freshness() -> Picture:
    start = NOW - 2 * HOUR
    view = TimeView(start, NOW + 25 * MINUTE, ZONE, NOW)
    regular = [start + place * 5 * MINUTE for place in range(25)]
    stopped = [at for at in regular if at < NOW - 40 * MINUTE]
    holes = [at for at in regular if not NOW - 90 * MINUTE < at < NOW - 60 * MINUTE]
    hole = Span(NOW - 80 * MINUTE, NOW - 60 * MINUTE, "missed", "stale")
    return freshness_strip(
        [
            SeriesFreshness("plant-7/room.temperature", regular, deadline=NOW + 10 * MINUTE, href="#a"),
            SeriesFreshness("plant-7/pump.flow", holes, [hole], NOW + 8 * MINUTE),
            SeriesFreshness('node-01/cpu.temp{core="0"}', stopped, [Span(NOW - 30 * MINUTE, NOW, "missed")],
                            NOW - 30 * MINUTE),
            SeriesFreshness("node-02/cpu.temp", [], deadline=None),
            SeriesFreshness("node-03/door", [NOW - 100 * MINUTE], deadline=None),
        ],
        view,
        title="freshness of series",
    )  # fmt: skip


def comparison() -> Picture:
    view = TimeView(NOW - timedelta(days=7), NOW, ZONE)

    def period(start: float, hours: float) -> Period:
        return Period(view.start + start * HOUR, view.start + (start + hours) * HOUR, "66.2 > 65")

    lanes = [
        CompareLane(
            "dsp-hot of plant-7",
            [
                ComparedAlarm("same", period(5, 4), period(5, 4)),
                ComparedAlarm("later", period(30, 9), period(33, 6)),
                ComparedAlarm("lost", period(70, 2), None),
                ComparedAlarm("ended otherwise", period(100, 8), period(100, 16)),
            ],
        ),
        CompareLane("dsp-hot of plant-8", [ComparedAlarm("gained", None, period(50, 5))]),
        CompareLane(
            "disk-full of node-01",
            [ComparedAlarm("lost", period(at, 0.5), None) for at in range(10, 160, 12)],
        ),
    ]
    return compare_lanes(lanes, view, title="alarms then and now")
