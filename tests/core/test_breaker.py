"""The breaker opens when different sources fail in the same way, and never for the failures of one source."""

from __future__ import annotations

import psycopg

from tocsin.core.breaker import LIMIT, Breaker, code_of

ERROR = psycopg.errors.UniqueViolation()


def test_failures_of_one_source_are_always_its_own() -> None:
    breaker = Breaker()
    assert all(breaker.failed(ERROR, "a", now_s) for now_s in range(100))


def test_it_opens_at_the_third_source_and_closes_with_a_success() -> None:
    breaker = Breaker()
    assert [breaker.failed(ERROR, source, 0) for source in "abcda"] == [True, True, False, False, False]
    breaker.succeeded()
    assert breaker.failed(ERROR, "d", 1)


def test_different_errors_have_no_common_cause() -> None:
    breaker = Breaker()
    other = psycopg.errors.CheckViolation()
    assert [breaker.failed(ERROR, source, 0) for source in "ab"] == [True, True]
    assert [breaker.failed(other, source, 0) for source in "cd"] == [True, True]
    assert not breaker.failed(ERROR, "e", 0)


def test_failures_that_are_far_apart_have_no_common_cause() -> None:
    breaker = Breaker(window_s=60)
    assert all(breaker.failed(ERROR, str(number), number * 61) for number in range(10))
    near = Breaker(window_s=60)
    assert [near.failed(ERROR, str(number), number * 60) for number in range(LIMIT)][-1] is False


def test_errors_of_python_are_known_by_their_name() -> None:
    assert (code_of(ERROR), code_of(psycopg.DataError()), code_of(KeyError("x"))) == (
        "23505",
        "DataError",
        "KeyError",
    )
