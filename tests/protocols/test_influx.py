from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.core.errors import InvalidInput
from tocsin.protocols.influx import MAX_INFLUX_BYTES, read_lines
from tocsin.protocols.sample import MAX_SAMPLES, Sample

AT = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
NAMES = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\\\n\r\x85\u2028\u2029"),
    min_size=1,
    max_size=20,
).filter(lambda name: not name.startswith(("#", " ")) and not name.endswith(" "))
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\\"), max_size=30)


def escaped(name: str, letters: str) -> str:
    return "".join(f"\\{letter}" if letter in letters else letter for letter in name)


def test_a_line_of_telegraf_becomes_one_sample_per_field() -> None:
    read = read_lines(b"cpu,cpu=cpu0,host=web-1 usage_idle=98.1,usage_user=1i 1700000000000000000\n")
    labels = {"cpu": "cpu0", "host": "web-1"}
    assert read.samples == [
        Sample("cpu.usage_idle", labels, 98.1, AT),
        Sample("cpu.usage_user", labels, 1, AT),
    ]
    assert read.problems == []


@pytest.mark.parametrize(
    ("precision", "timestamp"),
    [
        ("ns", "1700000000000000000"),
        ("us", "1700000000000000"),
        ("ms", "1700000000000"),
        ("s", "1700000000"),
        ("m", "28333333"),
        ("h", "472222"),
    ],
)
def test_the_precision_is_the_unit_of_timestamps(precision: str, timestamp: str) -> None:
    (sample,) = read_lines(f"a,b=c d=1 {timestamp}".encode(), precision).samples
    assert sample.ts is not None
    assert abs((AT - sample.ts).total_seconds()) < 3600
    assert precision in "mh" or sample.ts == AT


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1.0),
        ("-1.5e3", -1500.0),
        ("2i", 2),
        ("-9223372036854775808i", -(2**63)),
        ("3u", 3),
        ("t", True),
        ("FALSE", False),
        (r'"a \"b\" \\ c, d=e"', 'a "b" \\ c, d=e'),
        ('""', ""),
    ],
)
def test_a_value_has_the_type_that_it_is_written_with(text: str, value: object) -> None:
    (sample,) = read_lines(f"m f={text}".encode()).samples
    assert sample.value == value
    assert type(sample.value) is type(value)
    assert sample.ts is None


def test_comments_and_empty_lines_are_left_out() -> None:
    assert len(read_lines(b"# a comment\n\n  \r\nm f=1\r\n").samples) == 1


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("m", "line 1: expected a space and the fields at the end"),
        ("m f", "line 1: expected field=value at column 3 ('f')"),
        ("m f=", "line 1: expected field=value at column 3 ('f=')"),
        ("m,t f=1", "line 1: expected tag=value at column 2 (',t f=1')"),
        ("m f=1 soon", "line 1: the timestamp 'soon' is not an integer"),
        ("m f=1 -5", "line 1: the timestamp -1 µs is not plausible: send one since 1970"),
        ("m f=nan", "line 1: the value 'nan' of field 'f' is not a number, a boolean or a text"),
        ("m f=1e999", "line 1: the value '1e999' of field 'f' is not a number, a boolean or a text"),
        ('m f="a"b', "line 1: expected a space or a comma at column 8 ('b')"),
    ],
)
def test_a_wrong_line_is_a_problem_and_the_others_are_read(line: str, reason: str) -> None:
    read = read_lines(f"{line}\nok f=2".encode())
    assert read.problems == [reason]
    assert [sample.metric for sample in read.samples] == ["ok.f"]


def test_a_wrong_field_does_not_affect_the_others_of_its_line() -> None:
    read = read_lines(b"m a=x,b=1")
    assert [sample.metric for sample in read.samples] == ["m.b"]
    assert len(read.problems) == 1


@pytest.mark.parametrize(
    ("body", "precision", "reason"),
    [
        (b"m f=1", "fortnight", "the precision 'fortnight' is not known"),
        (b"m f=\xff", "ns", "not UTF-8"),
        (b" " * (MAX_INFLUX_BYTES + 1), "ns", "bytes"),
        (b"m f=1\n" * (MAX_SAMPLES + 1), "ns", f"more than {MAX_SAMPLES} values"),
    ],
)
def test_a_body_that_cannot_be_read_is_refused(body: bytes, precision: str, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        read_lines(body, precision)


@given(NAMES, st.dictionaries(NAMES, NAMES, max_size=4), NAMES, TEXTS)
def test_every_name_and_text_can_be_escaped(
    measurement: str, tags: dict[str, str], field: str, text: str
) -> None:
    line = escaped(measurement, ", ")
    line += "".join(f",{escaped(name, ',= ')}={escaped(value, ',= ')}" for name, value in tags.items())
    quoted = text.replace('"', '\\"')
    read = read_lines(f'{line} {escaped(field, ",= ")}="{quoted}" 1700000000000000000'.encode())
    assert read.problems == []
    assert read.samples == [Sample(f"{measurement}.{field}", tags, text, AT)]


@given(st.binary(max_size=300))
def test_no_bytes_make_the_reader_fail(body: bytes) -> None:
    with suppress(InvalidInput):
        read_lines(body)


@given(st.lists(st.sampled_from(["m", ",", "=", " ", "\\", '"', "1", "i", "t", "\n", "-", "e"]), max_size=40))
def test_no_sequence_of_tokens_makes_the_reader_fail(tokens: list[str]) -> None:
    read = read_lines("".join(tokens).encode())
    assert len(read.samples) + len(read.problems) <= 40
