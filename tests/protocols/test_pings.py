"""Pings of healthchecks as check-ins."""

from __future__ import annotations

import uuid

import pytest

from schemas.wire.check_in import CheckIn
from tocsin.protocols.pings import BODY_LIMIT, PingRejected, is_action, output_of, read_ping

RUN = str(uuid.UUID(int=17))


@pytest.mark.parametrize(
    ("action", "check_in"),
    [
        ("", CheckIn("success")),
        ("start", CheckIn("start")),
        ("fail", CheckIn("fail")),
        ("0", CheckIn("success", exit_code=0)),
        ("255", CheckIn("fail", exit_code=255)),
        ("log", None),
    ],
)
def test_each_action_is_a_check_in_with_its_run(action: str, check_in: CheckIn | None) -> None:
    assert read_ping(action, None).check_in == check_in
    with_run = read_ping(action, RUN.upper())
    assert with_run.run == RUN
    assert with_run.check_in == (None if check_in is None else check_in._replace(run=RUN))


@pytest.mark.parametrize("action", ["256", "-1", "stop", "٣", "9" * 50])
def test_an_action_that_is_none_has_the_words_of_healthchecks(action: str) -> None:
    with pytest.raises(PingRejected, match="invalid url format"):
        read_ping(action, None)


@pytest.mark.parametrize("rid", ["17", RUN.replace("-", ""), "{" + RUN + "}", RUN + "\0"])
def test_a_run_id_that_is_no_uuid_is_rejected(rid: str) -> None:
    with pytest.raises(PingRejected, match="invalid uuid format"):
        read_ping("start", rid)


def test_a_part_of_a_path_is_an_action_or_a_name() -> None:
    assert [is_action(text) for text in ("start", "fail", "log", "3")] == [True] * 4
    assert [is_action(text) for text in ("backup", "Start", "3a", "")] == [False] * 4


def test_the_end_of_a_body_is_kept_whatever_its_bytes() -> None:
    assert output_of(b"x" * BODY_LIMIT + "é".encode()).endswith("é")
    assert len(output_of(b"\xff" * 3 * BODY_LIMIT)) == BODY_LIMIT
