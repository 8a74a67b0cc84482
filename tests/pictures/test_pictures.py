"""Every picture stays in its box, has a bounded number of elements, and escapes every text, for any data."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.paths import ROOT
from tests.pictures.drawn import ALLOWED_ATTRIBUTES, Drawn
from tests.pictures.samples import samples
from tocsin.pictures import svg
from tocsin.pictures.chart import ChartLevel, Point, value_chart
from tocsin.pictures.compare import ComparedAlarm, CompareLane, Period, compare_lanes
from tocsin.pictures.figure import MAX_ROWS, Picture
from tocsin.pictures.freshness import SeriesFreshness, freshness_strip
from tocsin.pictures.health import SystemHealth, health_strip
from tocsin.pictures.herd import HerdMinute, week_ahead
from tocsin.pictures.lanes import LaneMark, PictureLane, Span, lanes_picture
from tocsin.pictures.runbook import RunStep, runbook_timeline
from tocsin.pictures.strip import StripBar, occurrence_strip
from tocsin.pictures.time_axis import TimeAxis, TimeView
from tocsin.pictures.tones import ORDER, severity_tone
from tocsin.pictures.year import YearDay, year_calendar

MOST_ELEMENTS = 12_000
ZONES = [ZoneInfo(name) for name in ("UTC", "Europe/Amsterdam", "Asia/Kathmandu", "Australia/Lord_Howe")]
HOSTILE = "<script>alert(1)</script>\"' onload=x &amp; \u202e\x00\x07" + "w" * 300
NOW = datetime(2026, 11, 18, 14, tzinfo=UTC)

zones = st.sampled_from(ZONES)
texts = st.one_of(st.text(max_size=40), st.just(HOSTILE))
instants = st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))
tones = st.sampled_from(ORDER)
spans = st.builds(Span, instants, instants, tones, texts, st.booleans())
drawn_marks = st.builds(LaneMark, instants, texts, st.sampled_from(["tick", "diamond"]))
lengths = st.timedeltas(timedelta(0), timedelta(days=4000))
values = st.one_of(st.none(), st.floats())


@st.composite
def views(draw: Callable[[st.SearchStrategy[Any]], Any]) -> TimeView:
    start = draw(instants)
    return TimeView(start, start + draw(lengths), draw(zones), draw(st.one_of(st.none(), instants)))


def many(strategy: st.SearchStrategy[Any], most: int = 20) -> st.SearchStrategy[list[Any]]:
    return st.lists(strategy, max_size=most)


periods = st.builds(Period, instants, instants, texts)
compared = st.one_of(
    st.builds(
        ComparedAlarm, st.sampled_from(["same", "earlier", "later", "ended otherwise"]), periods, periods
    ),
    st.builds(ComparedAlarm, st.just("gained"), st.none(), periods),
    st.builds(ComparedAlarm, st.just("lost"), periods, st.none()),
)
steps = st.builds(
    RunStep,
    texts,
    st.sampled_from(["done", "failed", "running", "waiting", "pending", "skipped"]),
    texts,
    st.integers(-3, 40),
    st.one_of(st.none(), instants),
    texts,
    texts,
    st.integers(0, 99),
    texts,
    texts,
)
numbers = st.integers(0, 10**9)
days = st.dates(date(2025, 12, 1), date(2027, 1, 31))
year_days = st.builds(YearDay, numbers, numbers, texts, texts, st.booleans())


PICTURES: dict[str, st.SearchStrategy[Picture]] = {
    "strip": st.builds(
        occurrence_strip,
        many(st.builds(StripBar, instants, st.sampled_from(["fired", "late", "missed", "paused", "due"]), texts), 80),
        zones,
        name=texts,
    ),
    "lanes": st.builds(
        lanes_picture,
        many(st.builds(PictureLane, texts, many(spans), many(drawn_marks), st.one_of(st.none(), texts))),
        views(),
        title=texts,
    ),
    "chart": st.builds(
        value_chart,
        many(st.builds(Point, instants, values), 60),
        views(),
        title=texts,
        unit=texts,
        levels=many(st.builds(ChartLevel, st.floats(), texts), 14),
        bands=many(spans),
    ),
    "year": st.builds(
        year_calendar, st.just(2026), st.dictionaries(days, year_days), title=texts, today=st.one_of(st.none(), days)
    ),
    "herd": st.builds(
        week_ahead, many(st.builds(HerdMinute, instants, numbers, numbers), 60), days, zones, title=texts
    ),
    "health": st.builds(
        health_strip, many(st.builds(SystemHealth, texts, many(spans), st.integers(0, 30))), views(), title=texts
    ),
    "freshness": st.builds(
        freshness_strip,
        many(st.builds(SeriesFreshness, texts, many(instants), many(spans), st.one_of(st.none(), instants))),
        views(),
        title=texts,
    ),
    "runbook": st.builds(runbook_timeline, many(steps), zones, title=texts),
    "compare": st.builds(
        compare_lanes, many(st.builds(CompareLane, texts, many(compared)), 10), views(), title=texts
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PICTURES)
@settings(max_examples=20)
@given(data=st.data())
def test_a_picture_is_well_formed_and_stays_in_its_box(name: str, data: st.DataObject) -> None:
    drawn = Drawn(data.draw(PICTURES[name]))
    assert drawn.outside() == []
    assert drawn.attributes() <= ALLOWED_ATTRIBUTES
    assert {"title", "desc"} <= {element.tag for element in drawn.root}
    assert not [element for element in drawn.page.iter() if element.tag in ("script", "style")]


def huge(name: str) -> Picture:
    """A picture of far more data than it has pixels."""
    view = TimeView(NOW - timedelta(days=7), NOW, ZONES[0], NOW)
    at = [view.start + timedelta(seconds=second) for second in range(0, 7 * 86_400, 30)]
    one_second = timedelta(seconds=1)
    span = [Span(begins, begins + one_second, "open") for begins in at]
    marks = [LaneMark(begins, "m") for begins in at]
    pairs = [ComparedAlarm("lost", Period(begins, begins + one_second), None) for begins in at]
    few = SystemHealth("x", span[::50])
    fresh, fresh_too = SeriesFreshness("x", at, span, NOW), SeriesFreshness("x", at[::50], (), NOW)
    lane = CompareLane("x", pairs[::50])
    minutes = [HerdMinute(view.start + number * timedelta(minutes=1), 9, 99) for number in range(10_080)]
    pictures: dict[str, Callable[[], Picture]] = {
        "strip": lambda: occurrence_strip([StripBar(one, "missed") for one in at], ZONES[0], name="x"),
        "lanes": lambda: lanes_picture(
            [PictureLane("x", span, marks), *[PictureLane("x", span[::9], marks[::9])] * 69], view, title="x"
        ),
        "chart": lambda: value_chart(
            [Point(one, index % 97) for index, one in enumerate(at)], view, title="x", bands=span
        ),
        "year": lambda: year_calendar(
            2028,
            {date(2028, 1, 1) + timedelta(days=n): YearDay(9, 9, "h", "d") for n in range(366)},
            title="x",
        ),
        "herd": lambda: week_ahead(minutes, view.start.date(), ZONES[0], title="x"),
        "health": lambda: health_strip([SystemHealth("x", span), *[few] * 69], view, title="x"),
        "freshness": lambda: freshness_strip([fresh, *[fresh_too] * 69], view, title="x"),
        "runbook": lambda: runbook_timeline([RunStep("x", "failed", depth=1)] * 5000, ZONES[0], title="x"),
        "compare": lambda: compare_lanes([CompareLane("x", pairs), *[lane] * 49], view, title="x"),
    }  # fmt: skip
    return pictures[name]()


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_of_much_data_is_bounded(name: str) -> None:
    picture = huge(name)
    drawn = Drawn(picture)
    assert len(drawn.elements) < MOST_ELEMENTS
    assert max(len(element.attrib.get("d", "")) for element in drawn.elements) < 100_000
    assert len(drawn.page.findall(".//tbody/tr")) <= MAX_ROWS
    assert drawn.outside() == []


@pytest.mark.parametrize("name", samples())
def test_a_sample_uses_only_classes_that_have_a_style(name: str) -> None:
    style = (ROOT / "tocsin" / "pictures" / "pictures.css").read_text()
    styled = set(re.findall(r"\.([a-z][a-z0-9-]*)", style))
    drawn = Drawn(samples()[name])
    used = {kind for element in drawn.page.iter() for kind in element.attrib.get("class", "").split()}
    shapes = {
        "pic-chart",
        "pic-lanes",
        "pic-herd",
        "pic-health",
        "pic-runbook",
        "pic-freshness",
        "pic-compare",
    }
    assert used - styled - shapes == set()


def test_a_text_of_a_stranger_is_text() -> None:
    picture = lanes_picture([PictureLane(HOSTILE, href=HOSTILE)], TimeView(NOW, NOW, ZONES[0]), title=HOSTILE)
    assert "<script" not in str(picture)
    assert "alert(1)" in " ".join(Drawn(picture).texts())


def test_a_number_that_is_none_is_an_error() -> None:
    with pytest.raises(ValueError, match="nan is no coordinate"):
        svg.number(float("nan"))


def test_no_peak_is_lost_where_pixels_are_few() -> None:
    view = TimeView(NOW - timedelta(days=7), NOW, ZONES[0])
    points = [Point(view.start + timedelta(seconds=second), 1.0) for second in range(0, 604_800, 20)]
    unbroken = value_chart(points, view, title="x")
    points[12_345] = Point(points[12_345].at, 99.0)
    peak = value_chart(points, view, title="x")
    assert ">80<" not in str(unbroken)
    assert ">80<" in str(peak)


def test_a_line_ends_where_there_is_no_value() -> None:
    view = TimeView(NOW - timedelta(hours=1), NOW, ZONES[0])
    minute = timedelta(minutes=1)
    points = [Point(view.start + minute * number, 1.0 + number % 2) for number in range(60)]
    points[30:40] = [Point(points[29].at, None)]
    (data,) = [
        one.attrib["d"] for one in Drawn(value_chart(points, view, title="x")).elements if one.tag == "path"
    ]
    assert data.count("M") == 2


@given(view=views())
def test_ticks_are_round_times_of_the_zone_in_order(view: TimeView) -> None:
    axis = TimeAxis.of(view, 100, 900)
    ticks = axis.ticks()
    assert [tick.x for tick in ticks] == sorted(tick.x for tick in ticks)
    assert len(ticks) <= 14
    for tick in ticks:
        local = tick.at.astimezone(view.zone)
        assert (local.second, local.microsecond) == (0, 0)
        if axis.length > timedelta(days=8):
            assert (local.hour, local.minute) in ((0, 0), (1, 0), (0, 30)), "midnight, or what follows it"


def test_ticks_follow_a_change_of_the_clocks() -> None:
    zone = ZoneInfo("Europe/Amsterdam")
    start = datetime(2026, 3, 28, 12, tzinfo=UTC)
    axis = TimeAxis.of(TimeView(start, start + timedelta(hours=24), zone), 0, 800)
    assert "06:00" in [tick.label for tick in axis.ticks()]
    assert all(tick.at.astimezone(zone).hour % 2 == 0 for tick in axis.ticks())


@pytest.mark.parametrize(
    ("levels", "tones"),
    [
        (1, ["sev5"]),
        (4, ["sev1", "sev3", "sev4", "sev5"]),
        (5, ["sev1", "sev2", "sev3", "sev4", "sev5"]),
        (6, ["sev1", "sev2", "sev3", "sev4", "sev5", "sev5"]),
    ],
)
def test_the_highest_severity_has_the_strongest_tone(levels: int, tones: list[str]) -> None:
    assert [severity_tone(level, levels) for level in range(1, levels + 1)] == tones
