"""`tocsin calendar show`, `tocsin calendar import`, and `tocsin next` with calendars."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import CommandLine
from tests.paths import ROOT

RULES = ("--rules", str(ROOT / "examples" / "calendars.yaml"))
ICS = """\
BEGIN:VCALENDAR
BEGIN:VEVENT
DTSTART;VALUE=DATE:20261224
DTEND;VALUE=DATE:20261227
SUMMARY:Christmas
END:VEVENT
BEGIN:VEVENT
DTSTART;TZID=Europe/Berlin:20261224T120000
SUMMARY:Lunch
END:VEVENT
END:VCALENDAR
"""


def test_the_days_of_a_year_are_shown_as_ranges(alone: CommandLine) -> None:
    lines = alone("calendar", "show", "company-closed", "--year", "2026", *RULES).lines
    assert [line.split() for line in lines] == [
        ["FROM", "TO", "DAYS"],
        ["Thu", "2026-12-24", "Thu", "2026-12-31", "8", "days"],
        ["8", "of", "365", "days", "of", "2026", "are", "in", "calendar", "company-closed"],
    ]


def test_the_days_of_a_year_as_json(alone: CommandLine) -> None:
    found = alone("calendar", "show", "us-holidays", "--year", "2028", *RULES, "--json").json
    assert found["days"][:3] == ["2028-01-01", "2028-01-17", "2028-02-21"]
    assert len(found["days"]) == 11


def test_an_unknown_calendar_is_rejected_with_the_known_ones(alone: CommandLine) -> None:
    answer = alone("calendar", "show", "holidays", *RULES, exit_code=1)
    assert "no calendar 'holidays' is known" in answer.err
    assert "business-days, company-closed, us-holidays" in answer.err


def test_the_calendars_in_force_are_shown_without_files(tocsin: CommandLine) -> None:
    tocsin("apply", RULES[1])
    assert "8 of 365 days" in tocsin("calendar", "show", "company-closed", "--year", "2026").out
    times = tocsin(
        "next",
        "--cron",
        "0 8 * * *",
        "--except",
        "us-holidays",
        "--after",
        "2026-11-26T00:00Z",
        "-n",
        "1",
        "--json",
    ).json
    assert [(time["utc"], time["skipped"]) for time in times] == [
        ("2026-11-26T08:00:00Z", "excluded by calendar us-holidays"),
        ("2026-11-27T08:00:00Z", None),
    ]


def test_next_names_what_is_skipped_and_what_is_moved(alone: CommandLine) -> None:
    days = ("--only-in", "business-days", *RULES, "--after", "2026-05-28T00:00Z", "--tz", "America/New_York")
    skipped = alone("next", "--cron", "0 8 * * *", *days, "-n", "3").lines
    assert [line[:14] for line in skipped[1:]] == [
        "Thu 2026-05-28",
        "Fri 2026-05-29",
        "Sat 2026-05-30",
        "Sun 2026-05-31",
        "Mon 2026-06-01",
    ]
    assert skipped[3].endswith("skipped: not in calendar business-days")
    moved = alone("next", "--cron", "0 17 L * *", "--shift", "previous", *days, "-n", "1").lines
    assert moved[1].startswith("Fri 2026-05-29")
    assert moved[1].endswith("moved from Sun 2026-05-31, not in calendar business-days")


def test_an_imported_calendar_is_a_rule_file(alone: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "h.ics").write_text(ICS)
    answer = alone("calendar", "import", str(tmp_path / "h.ics"), "--name", "h", "--years", "2026-2027")
    assert answer.out == (
        "calendar:\n  name: h\n  dates:\n  - 2026-12-24/2026-12-26\n  valid_until: 2027-12-31\n"
    )
    assert answer.err.endswith(
        "h.ics:7: event 'Lunch' is left out: DTSTART '20261224T120000' is not a whole day\n"
    )
    (tmp_path / "h.yaml").write_text(answer.out)
    assert "ok: 1 calendar" in alone("check", str(tmp_path / "h.yaml")).out


def test_files_that_cannot_be_imported_are_rejected(alone: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "h.ics"
    words = ("calendar", "import", str(file), "--name", "h")
    assert "cannot be read" in alone(*words, exit_code=1).err
    file.write_text("<html>")
    assert "not an iCalendar file" in alone(*words, exit_code=1).err
    file.write_text(ICS)
    assert "has no whole-day event in 2030 to 2031" in alone(*words, "--years", "2030-2031", exit_code=1).err
    assert "is not a range of years" in alone(*words, "--years", "soon", exit_code=1).err
    assert "out of range" in alone(*words, "--years", "1800-2300", exit_code=1).err
    file.write_bytes(b"BEGIN:VCALENDAR\n" + b"X" * 2_000_000)
    assert "import at most 2,000,000 at a time" in alone(*words, exit_code=1).err


def test_the_holidays_of_a_country_become_a_calendar_that_can_be_applied(
    alone: CommandLine, tmp_path: Path
) -> None:
    words = ("calendar", "holidays", "US", "--region", "NY", "--name", "ny", "--years", "2026-2027")
    answer = alone(*words)
    assert "# 2026-07-03 Fri  Independence Day (observed)" in answer.lines
    assert "# 2026-02-12 Thu  Lincoln's Birthday" in answer.lines, "of the state"
    assert "valid_until: 2027-12-31" in answer.out
    (tmp_path / "ny.yaml").write_text(answer.out)
    shown = alone("calendar", "show", "ny", "--year", "2026", "--rules", str(tmp_path / "ny.yaml"), "--json")
    days = shown.json["days"]
    assert {"2026-01-01", "2026-07-03", "2026-11-26", "2026-12-25"} <= set(days)
    assert "2027-01-01" not in days


def test_an_unknown_country_region_or_category_is_rejected_with_the_known_ones(alone: CommandLine) -> None:
    def rejected(*words: str) -> str:
        return alone("calendar", "holidays", *words, "--name", "h", exit_code=1).err

    assert "no holidays of country 'Texas' are known" in rejected("Texas")
    assert "US has no region 'NX'" in rejected("US", "--region", "NX")
    assert "known: " in rejected("US", "--region", "NX")
    assert "GB has no holidays of category 'school'" in rejected("GB", "--category", "school")
