"""`tocsin schema`: prints the JSON Schemas."""

from __future__ import annotations

import jsonschema

from schemas.export import DIRECTORY
from tests.cli.conftest import CommandLine


def test_the_schema_of_all_kinds_is_the_default(alone: CommandLine) -> None:
    printed = alone("schema")
    assert printed.out == (DIRECTORY / "rules.schema.json").read_text(encoding="utf-8")
    validator = jsonschema.Draft202012Validator(printed.json)
    assert validator.is_valid({"schedule": {"name": "a", "every": "5s"}})
    assert validator.is_valid(None)
    assert not validator.is_valid({})


def test_the_schema_locates_a_mistake(alone: CommandLine) -> None:
    """One schema per kind would only say that none of them fits."""
    validator = jsonschema.Draft202012Validator(alone("schema").json)
    (error,) = validator.iter_errors({"schedule": {"name": "a", "every": 5}})
    assert list(error.absolute_path) == ["schedule", "every"]


def test_one_kind_or_one_message_may_be_asked_for(alone: CommandLine) -> None:
    assert alone("schema", "schedule").json["title"] == "ScheduleDocument"
    assert alone("schema", "event").json["title"] == "Event"


def test_an_unknown_name_is_refused_with_the_nearest(alone: CommandLine) -> None:
    refused = alone("schema", "shedule", exit_code=1)
    assert refused.err == "tocsin: there is no schema 'shedule': did you mean 'schedule'?\n"
    assert "use one of schedule," in alone("schema", "zzz", exit_code=1).err
