"""`tocsin next` and `tocsin parse-time`."""

from __future__ import annotations

from tests.cli.conftest import CommandLine

_NEW_YORK = ("--tz", "America/New_York")


def test_a_daily_time_in_the_gap_is_moved_with_a_note(alone: CommandLine) -> None:
    words = ("--cron", "30 2 * * *", *_NEW_YORK, "--after", "2026-03-07T00:00Z", "--count", "3")
    header, *rows = alone("next", *words).lines
    assert header.split() == ["LOCAL", "TIME", "UTC", "NOTE"]
    assert [row[:53] for row in rows] == [
        "Sat 2026-03-07 02:30:00 EST  2026-03-07 07:30:00Z",
        "Sun 2026-03-08 03:00:00 EDT  2026-03-08 07:00:00Z  02",
        "Mon 2026-03-09 02:30:00 EDT  2026-03-09 06:30:00Z",
    ]
    assert "02:30" in rows[1][51:]


def test_policies_for_gap_and_fold_are_options(alone: CommandLine) -> None:
    gap = ("--cron", "30 2 * * *", *_NEW_YORK, "--after", "2026-03-08T00:00Z", "--count", "1", "--json")
    assert alone("next", *gap, "--dst-gap", "skip").json[0]["utc"] == "2026-03-09T06:30:00Z"
    fold = ("--cron", "30 1 * * *", *_NEW_YORK, "--after", "2026-11-01T00:00Z", "--count", "2", "--json")
    found = [time["utc"] for time in alone("next", *fold, "--dst-fold", "both").json]
    assert found == ["2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z"]


def test_json_gives_local_time_utc_tz_and_note(alone: CommandLine) -> None:
    words = ("--rrule", "FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0", "--tz", "Europe/London")
    assert alone("next", *words, "--after", "2026-07-01T00:00Z", "--count", "1", "--json").json == [
        {
            "local": "Wed 2026-07-01 09:00:00 BST",
            "utc": "2026-07-01T08:00:00Z",
            "tz": "Europe/London",
            "note": None,
        }
    ]


def test_an_interval_counts_from_the_instant_given(alone: CommandLine) -> None:
    found = alone("next", "--every", "90s", "--after", "2026-01-01T00:00:07Z", "--count", "2", "--json").json
    assert [time["utc"] for time in found] == ["2026-01-01T00:01:37Z", "2026-01-01T00:03:07Z"]


def test_an_rrule_that_has_ended_is_reported(alone: CommandLine) -> None:
    words = ("--rrule", "FREQ=DAILY;UNTIL=20260101T000000Z", "--dtstart", "2025-12-01T00:00")
    assert (
        "does not fire after 2027-01-01 00:00:00Z"
        in alone("next", *words, "--after", "2027-01-01T00:00Z").out
    )


def test_an_instant_without_an_offset_is_refused(alone: CommandLine) -> None:
    assert alone("next", "--every", "5s", "--after", "2026-03-07T00:00", exit_code=1).err == (
        "tocsin: --after '2026-03-07T00:00' is not an instant: write it as 2026-03-07T00:00Z, "
        "as a unix timestamp, or as 'tomorrow at 9am'\n"
    )


def test_a_wrong_recurrence_is_one_line(alone: CommandLine) -> None:
    assert alone("next", exit_code=1).err == (
        "tocsin: a recurrence is exactly one of cron, rrule, every or at: none of them was given\n"
    )
    assert (
        "did you mean 'Europe/London'?"
        in alone("next", "--every", "5s", "--tz", "Europe/Lundon", exit_code=1).err
    )


def test_parse_time_shows_the_absolute_time(alone: CommandLine) -> None:
    words = ("friday at 3pm", "--tz", "Europe/London", "--now", "2026-07-01T12:00Z")
    assert alone("parse-time", *words).out == (
        "Fri 2026-07-03 15:00:00 BST (Europe/London) = 2026-07-03 14:00:00Z, in 2d2h\n"
    )
    assert alone("parse-time", *words, "--json").json == {
        "text": "friday at 3pm",
        "local": "Fri 2026-07-03 15:00:00 BST",
        "utc": "2026-07-03T14:00:00Z",
        "tz": "Europe/London",
    }


def test_parse_time_rejects_an_unknown_phrase_with_examples(alone: CommandLine) -> None:
    answer = alone("parse-time", "someday", exit_code=1)
    assert answer.err.startswith(
        "tocsin: 'someday' is not a time that tocsin understands: write 'in 30 minutes'"
    )
    assert answer.out == ""
