from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from tocsin.protocols.calendar_feed import FeedEntry, feed

NOW = datetime(2026, 3, 2, 8, tzinfo=UTC)


def unfolded(text: str) -> list[str]:
    assert text.endswith("\r\n")
    assert all(len(line.encode()) <= 75 for line in text.split("\r\n"))
    return text.replace("\r\n ", "").split("\r\n")[:-1]


def test_a_fire_is_an_event_at_its_nominal_time() -> None:
    at = datetime(2026, 3, 2, 10, tzinfo=UTC) + timedelta(hours=1)
    lines = unfolded(feed([FeedEntry("daily; digest", "web-1", at, note="a\nb")], "tocsin", NOW))
    assert lines[0] == "BEGIN:VCALENDAR"
    assert "DTSTART:20260302T110000Z" in lines
    assert "SUMMARY:daily\\; digest (web-1)" in lines
    assert "DESCRIPTION:a\\nb" in lines


def test_a_feed_that_is_read_again_has_the_same_ids() -> None:
    entries = [
        FeedEntry("a", "b", NOW),
        FeedEntry("a", "b", NOW + timedelta(days=1)),
        FeedEntry("b", "a", NOW),
    ]
    uids = [
        [line for line in unfolded(feed(entries, "x", at)) if line.startswith("UID")] for at in (NOW, NOW)
    ]
    assert uids[0] == uids[1]
    assert len(set(uids[0])) == 3


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)


@given(TEXTS, TEXTS, TEXTS)
def test_no_text_can_add_a_line(schedule: str, owner: str, note: str) -> None:
    lines = unfolded(feed([FeedEntry(schedule, owner, NOW, note=note)], "x", NOW))
    names = [line.partition(":")[0].partition(";")[0] for line in lines]
    assert names[6:] == [
        *("BEGIN", "UID", "DTSTAMP", "DTSTART", "SUMMARY", "TRANSP"),
        *(["DESCRIPTION"] if note else []),
        *("END", "END"),
    ]
