"""Settings: read from `TOCSIN_*`, a bad value rejected by name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.paths import ROOT
from tocsin.core.errors import InvalidInput
from tocsin.core.settings import Settings, read_settings


@pytest.fixture(autouse=True)
def _no_variables_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"TOCSIN_{name.upper()}", raising=False)


def test_a_variable_sets_its_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOCSIN_LEASE_TTL_S", "3.5")
    monkeypatch.setenv("TOCSIN_NAMESPACE", "plant-7")
    settings = read_settings()
    assert settings.lease_ttl_s == 3.5
    assert (settings.stream, settings.lease_bucket, settings.subjects) == (
        "plant-7",
        "plant-7-lease",
        "plant-7.v1",
    )


def test_an_argument_overrides_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOCSIN_TICK_MS", "50")
    assert read_settings(tick_ms=5).tick_ms == 5


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("LEASE_TTL_S", "0.5", "write a number from 1 to 60 (seconds until"),
        ("LEASE_TTL_S", "nan", "write a number from 1 to 60"),
        ("LEASE_TTL_S", "soon", "write a number from 1 to 60"),
        ("TICK_MS", "0", "write a number from 1 to 1,000 (longest sleep"),
        ("NAMESPACE", "a.b", "write 1 to 32 letters, digits, '_' and '-'"),
        ("NAMESPACE", "", "write 1 to 32 letters, digits, '_' and '-'"),
        ("LOG_LEVEL", "loud", "write one of debug, info, warning, error"),
        ("NATS_INBOX", "a b", "write letters, digits, '_' and '-', with dots between words"),
        ("EGRESS_ALLOW", "a b", "'a b' cannot be allowed: write hosts"),
        ("FIRE_BATCH", "1e9", "write a whole number from 1 to 10,000 ("),
        ("STREAM_MAX_AGE_H", "inf", "write a number from 1 to 876,000 ("),
    ],
)
def test_a_bad_value_is_rejected_with_the_name_of_its_variable(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, message: str
) -> None:
    monkeypatch.setenv(f"TOCSIN_{name}", value)
    with pytest.raises(InvalidInput) as rejected:
        read_settings()
    assert str(rejected.value).startswith(f"TOCSIN_{name}={value!r}")
    assert message in str(rejected.value)


def test_all_bad_values_are_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOCSIN_TICK_MS", "0")
    monkeypatch.setenv("TOCSIN_FIRE_BATCH", "0")
    with pytest.raises(InvalidInput, match=r"TOCSIN_TICK_MS='0'.*; TOCSIN_FIRE_BATCH='0'"):
        read_settings()


def test_the_docs_describe_every_setting_as_the_code_does() -> None:
    page = (ROOT / "docs" / "operating.md").read_text()
    rows = re.findall(r"^\| `TOCSIN_(\w+)` \| [^|]*\| (.*) \|$", page, re.MULTILINE)
    assert dict(rows) == {name.upper(): field.description for name, field in Settings.model_fields.items()}


def test_a_setting_can_be_a_file_and_a_variable_overrides_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "TOCSIN_POSTGRES").write_text("postgresql://me:secret@db/tocsin\n")
    (tmp_path / "TOCSIN_TICK_MS").write_text("30")
    monkeypatch.setenv("TOCSIN_SETTINGS_DIR", str(tmp_path))
    assert (read_settings().postgres, read_settings().tick_ms) == ("postgresql://me:secret@db/tocsin", 30)
    monkeypatch.setenv("TOCSIN_TICK_MS", "40")
    assert read_settings().tick_ms == 40


def test_a_bad_value_of_a_file_is_rejected_with_the_name_of_the_setting(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "TOCSIN_TICK_MS").write_text("soon")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    with pytest.raises(InvalidInput, match="TOCSIN_TICK_MS='soon': write a number"):
        read_settings()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfe", "is not UTF-8 text"),
        (b"x" * 70_000, "is longer than 65,536 bytes"),
        (None, "cannot be read"),
    ],
)
def test_a_file_that_is_no_setting_is_rejected_without_its_content(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes | None, message: str
) -> None:
    path = tmp_path / "TOCSIN_POSTGRES"
    path.mkdir() if content is None else path.write_bytes(content)
    monkeypatch.setenv("TOCSIN_SETTINGS_DIR", str(tmp_path))
    with pytest.raises(InvalidInput) as rejected:
        read_settings()
    assert str(rejected.value).startswith(f"the setting '{path}' ")
    assert message in str(rejected.value)
    assert "xxx" not in str(rejected.value)


def test_a_directory_of_settings_that_is_missing_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOCSIN_SETTINGS_DIR", "/no/such/place")
    with pytest.raises(InvalidInput, match="TOCSIN_SETTINGS_DIR='/no/such/place' is not a directory"):
        read_settings()
