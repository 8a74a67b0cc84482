"""Calendars become part of the documents that use them, and mistakes in them have a place."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rules.documents.load import LoadedDocuments, RulesInvalid, load_text, recurrence_of
from rules.documents.yaml_text import document_text
from schemas.documents.recurrence_keys import RecurrenceDocument
from tests.rules.documents.load.problems import problems_of

NOW = datetime(2026, 11, 1, tzinfo=UTC)
HOLIDAYS = 'calendar: {name: holidays, yearly: ["12-25"]}\n'
BUSINESS = "calendar: {name: business, weekdays: [mon, tue, wed, thu, fri], none_of: [holidays]}\n"
PAY = 'schedule: {name: pay, cron: "0 9 25 * *", only_in: [business], shift: next}\n'


def recurrent(loaded: LoadedDocuments, kind: str = "schedule") -> RecurrenceDocument:
    (document,) = loaded.of_kind(kind)
    assert isinstance(document.model, RecurrenceDocument)
    return document.model


def fires(model: RecurrenceDocument, count: int = 3) -> list[str]:
    recurrence = recurrence_of(model, anchor=NOW, hash_id=model.name)
    found = recurrence.occurrences(NOW, datetime(2100, 1, 1, tzinfo=UTC), count)
    return [f"{occurrence.at:%Y-%m-%d}" for occurrence in found]


@pytest.mark.parametrize(
    "order", [(HOLIDAYS, BUSINESS, PAY), (PAY, BUSINESS, HOLIDAYS)], ids=["before", "after"]
)
def test_a_schedule_fires_on_the_days_of_its_calendars(order: tuple[str, ...]) -> None:
    assert fires(recurrent(load_text("---\n".join(order)))) == ["2026-11-25", "2026-12-28", "2027-01-25"]


def test_a_maintenance_has_windows_on_the_days_of_its_calendars() -> None:
    text = 'maintenance: {name: m, where: "true", cron: "0 0 * * *", duration: 2h, only_in: [holidays]}'
    loaded = load_text(f"{HOLIDAYS}---\n{text}")
    assert fires(recurrent(loaded, "maintenance")) == ["2026-12-25", "2027-12-25", "2028-12-25"]


def test_a_calendar_that_was_applied_earlier_is_used() -> None:
    applied = [document.model for document in load_text(f"{HOLIDAYS}---\n{BUSINESS}").documents]
    assert fires(recurrent(load_text(PAY, applied=applied))) == ["2026-11-25", "2026-12-28", "2027-01-25"]


def test_a_schedule_outside_of_the_files_changes_with_its_calendar() -> None:
    applied = [document.model for document in load_text("---\n".join((HOLIDAYS, BUSINESS, PAY))).documents]
    changed = 'calendar: {name: holidays, yearly: ["12-25", "12-28"]}'
    loaded = load_text(changed, applied=applied)
    assert [(each.kind, each.name) for each in loaded.documents] == [
        ("calendar", "holidays"),
        ("schedule", "pay"),
    ]
    assert fires(recurrent(loaded)) == ["2026-11-25", "2026-12-29", "2027-01-25"]
    assert len(load_text(HOLIDAYS, applied=applied).documents) == 1, "nothing changes with the same days"


def test_a_calendar_that_would_end_a_schedule_outside_of_the_files_is_rejected() -> None:
    only = 'schedule: {name: xmas, cron: "0 9 25 12 *", except: [holidays]}'
    before = 'calendar: {name: holidays, yearly: ["12-24"]}'
    applied = [document.model for document in load_text(f"{before}\n---\n{only}").documents]
    with pytest.raises(RulesInvalid) as rejected:
        load_text(HOLIDAYS, file="r.yaml", applied=applied)
    assert str(rejected.value).startswith(
        "r.yaml:1:18: calendar 'holidays' is used by 'xmas', which is not in the files: cron 0 9 25 12 * in UTC never"
    )


def test_the_text_of_a_document_has_the_names_of_its_calendars_only() -> None:
    loaded = load_text("---\n".join((HOLIDAYS, BUSINESS, PAY)))
    texts = [document_text(document.kind, document.data) for document in loaded.documents]
    assert "days:" not in texts[2].replace("weekdays:", "")
    again = load_text("---\n".join(texts))
    assert [document.data for document in again.documents] == [document.data for document in loaded.documents]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            'schedule: {name: s, cron: "0 9 * * *", except: [holiday]}',
            "3:49: unknown calendar 'holiday' in schedule 's', did you mean 'holidays'?",
        ),
        (
            "calendar: {name: c, any_of: [holidais]}",
            "3:30: unknown calendar 'holidais' in calendar 'c', did you mean 'holidays'?",
        ),
        ("calendar: {name: c, none_of: [c]}", "3:30: calendar 'c' contains itself: c -> c"),
        ("calendar: {name: c}", "3:1: calendar 'c' has no days: add one of weekdays, dates, "),
        (
            "calendar: {name: c, weekdays: [mon], dtstart: 2026-01-01}",
            "3:38: calendar 'c' has 'dtstart', which belongs to 'rrules': remove it",
        ),
        ('calendar: {name: c, dates: ["2026-02-30"]}', "3:29: calendar 'c': '2026-02-30' is not a date"),
        ('calendar: {name: c, yearly: ["25-12"]}', "3:30: calendar 'c': '25-12' is not a day of the year"),
        (
            'calendar: {name: c, rrules: ["FREQ=HOURLY"]}',
            "3:30: calendar 'c': rrule 'FREQ=HOURLY': a calendar is",
        ),
        (
            'calendar: {name: c, weekdays: [mon], valid_until: "soon"}',
            "3:51: calendar 'c': 'valid_until' 'soon' is not a date",
        ),
        (
            "schedule: {name: s, every: 5m, except: [holidays]}",
            "3:28: schedule 's': every '5m' counts elapsed time and has no days",
        ),
        (
            'schedule: {name: s, cron: "*/5 * * * *", except: [holidays], shift: next}',
            "3:69: schedule 's': shift of cron '*/5 * * * *': it fires all day long",
        ),
        (
            'schedule: {name: s, cron: "0 9 * * *", shift: next}',
            "3:47: schedule 's': shift has no effect without 'only_in' or 'except'",
        ),
        (
            'schedule: {name: s, cron: "0 9 * * *", days: {}}',
            "3:40: schedule 's' has 'days', which is filled in when the file is loaded: remove it",
        ),
    ],
)
def test_a_mistake_has_its_place(text: str, problem: str) -> None:
    (found,) = problems_of(f"{HOLIDAYS}---\n{text}")
    assert found.startswith(f"r.yaml:{problem}")


def test_a_cycle_is_reported_and_nothing_hangs() -> None:
    text = "calendar: {name: a, any_of: [b]}\n---\ncalendar: {name: b, all_of: [a]}\n---\n"
    assert problems_of(text + 'schedule: {name: s, cron: "0 9 * * *", only_in: [a]}') == [
        "r.yaml:1:29: calendar 'a' contains itself: a -> b -> a",
        "r.yaml:3:29: calendar 'b' contains itself: b -> a -> b",
    ]


def test_calendars_whose_copies_multiply_are_rejected() -> None:
    """Eight levels of twenty names are 20 ** 8 copies."""
    levels = [
        f"calendar: {{name: c{level}-{number}, any_of: [{', '.join(f'c{level + 1}-{below}' for below in range(20))}]}}"
        for level in range(6)
        for number in range(20)
    ]
    last = [f'calendar: {{name: c6-{number}, yearly: ["12-25"]}}' for number in range(20)]
    (found, *_) = problems_of("\n---\n".join([*levels, *last]))
    assert "has more than 200,000 bytes with the calendars that it uses" in found


def test_a_calendar_that_ends_soon_is_a_warning() -> None:
    text = 'calendar: {name: c, dates: ["2026-12-25"], valid_until: "2026-12-31"}'
    (warning,) = load_text(text, file="r.yaml", anchor=NOW).warnings
    assert str(warning) == (
        "r.yaml:1:57: calendar 'c' is known until 2026-12-31: add the days after it, and move 'valid_until'"
    )
    (past,) = load_text('calendar: {name: c, dates: ["2020-12-25"]}', file="r.yaml", anchor=NOW).warnings
    assert "has no day within ten years from now" in str(past)
