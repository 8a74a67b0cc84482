from contextlib import suppress
from datetime import UTC, datetime
from math import inf, nan

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.protocols.write_requests import compressed, write_request
from tocsin.core.errors import InvalidInput
from tocsin.protocols.remote_write import MAX_COMPRESSED_BYTES, MAX_DECODED_BYTES, read_write_request
from tocsin.protocols.sample import MAX_SAMPLES, Sample

AT = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
MS = 1_700_000_000_000


def test_each_sample_has_the_labels_of_its_series() -> None:
    body = write_request([({"__name__": "up", "instance": "web-1:9100"}, [(1.0, MS), (0.0, MS + 15_000)])])
    read = read_write_request(body)
    assert [(sample.metric, sample.labels, sample.value) for sample in read.samples] == [
        ("up", {"instance": "web-1:9100"}, 1.0),
        ("up", {"instance": "web-1:9100"}, 0.0),
    ]
    assert read.samples[0].ts == AT


@pytest.mark.parametrize("value", [nan, inf, -inf])
def test_a_value_that_is_not_finite_is_skipped_and_is_no_problem(value: float) -> None:
    """A stale marker is a NaN, and summaries without observations send NaN all the time."""
    read = read_write_request(write_request([({"__name__": "up"}, [(value, MS), (2.0, MS)])]))
    assert (len(read.samples), read.skipped, read.problems) == (1, 1, [])


def test_a_series_without_a_name_and_a_wrong_time_are_problems_of_their_own() -> None:
    series = [({"job": "x"}, [(1.0, MS)]), ({"__name__": "a"}, [(1.0, -5), (2.0, MS)])]
    read = read_write_request(write_request(series))
    assert read.samples == [Sample("a", {}, 2.0, AT)]
    assert read.problems == [
        "a series has no label '__name__': send the name of its metric",
        "the metric 'a': the timestamp -5000 µs is not plausible: send one since 1970",
    ]


def test_the_announced_size_is_refused_before_anything_is_decompressed() -> None:
    bomb = compressed(b"\x0a\x00" * MAX_DECODED_BYTES)
    assert len(bomb) < MAX_COMPRESSED_BYTES
    with pytest.raises(InvalidInput, match="when decompressed"):
        read_write_request(bomb)


def test_too_many_values_are_refused() -> None:
    body = write_request([({"__name__": "a"}, [(1.0, MS)] * (MAX_SAMPLES + 1))])
    with pytest.raises(InvalidInput, match="more than"):
        read_write_request(body)


def test_a_series_with_too_many_labels_is_a_problem() -> None:
    labels = {"__name__": "a"} | {f"l{number}": "x" for number in range(200)}
    assert read_write_request(write_request([(labels, [(1.0, MS)])])).problems == [
        "a series has 201 labels: send at most 128"
    ]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "snappy"),
        (b"\xff\xff\xff\xff\x0f123", "when decompressed"),
        (b"not snappy", "snappy"),
        (compressed(b"\xff\xff"), "not a prometheus.WriteRequest"),
        (b"a" * (MAX_COMPRESSED_BYTES + 1), "bytes"),
    ],
)
def test_what_is_not_a_request_is_refused(body: bytes, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        read_write_request(body)


@given(st.binary(max_size=300))
def test_no_bytes_make_the_reader_fail(body: bytes) -> None:
    for tried in (body, bytes(cramjam.snappy.compress_raw(body))):
        with suppress(InvalidInput):
            read_write_request(tried)


NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


@given(
    st.lists(
        st.tuples(
            st.dictionaries(NAMES, NAMES, max_size=5), st.lists(st.tuples(st.floats(), st.integers(0, MS)))
        ),
        max_size=5,
    )
)
def test_every_sample_is_read_skipped_or_a_problem(
    series: list[tuple[dict[str, str], list[tuple[float, int]]]],
) -> None:
    named = [(labels | {"__name__": "m"}, samples) for labels, samples in series]
    read = read_write_request(write_request(named))
    assert len(read.samples) + read.skipped == sum(len(samples) for _, samples in series)
    assert read.problems == []
