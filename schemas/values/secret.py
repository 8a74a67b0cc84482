"""Secrets in documents: always a reference, `{env: NAME}` or `{file: /path}`, never the value.

Guarantee: a document, and so everything that is stored, shown or compared, has only the reference.
A plain text in its place is an error whose message does not repeat it. Tocsin settings cannot be
referred to: one of them is the address of the database, with its password.
"""

import re
from pathlib import PurePosixPath
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema, model_serializer

REFERENCE_HINT = "write {env: NAME} or {file: /path}, where the worker finds it"

_ENV = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_MAX_PATH = 4_096
_SCHEMA: dict[str, Any] = {
    "title": "SecretRef",
    "description": "Reference to a secret: a variable in the environment of the worker, or a file.",
    "oneOf": [
        {
            "type": "object",
            "properties": {"env": {"type": "string", "pattern": f"^{_ENV.pattern}$"}},
            "required": ["env"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {"file": {"type": "string", "pattern": "^/", "maxLength": _MAX_PATH}},
            "required": ["file"],
            "additionalProperties": False,
        },
    ],
}


class SecretRef(BaseModel):
    """A reference to a secret. `secret_ref` makes one and explains errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True)

    env: str | None = None
    file: str | None = None

    @model_serializer
    def _dump_present(self) -> dict[str, str]:
        return {"env": self.env} if self.env is not None else {"file": str(self.file)}

    def __str__(self) -> str:
        return f"{{env: {self.env}}}" if self.env is not None else f"{{file: {self.file}}}"


def secret_ref(value: object) -> SecretRef:
    """`ValueError`, without the value, if it is not a reference."""
    if isinstance(value, SecretRef):
        return value
    if not isinstance(value, dict):
        raise ValueError(f"a secret is never written down: {REFERENCE_HINT}")
    if len(value) != 1 or not set(value) <= {"env", "file"}:
        raise ValueError(f"a reference to a secret has one key: {REFERENCE_HINT}")
    env, file = value.get("env"), value.get("file")
    if "env" in value:
        if not isinstance(env, str) or not _ENV.fullmatch(env):
            raise ValueError("'env' must be the name of a variable: letters, digits and '_'")
        if env.upper().startswith("TOCSIN_"):
            raise ValueError(f"'{env}' is a setting of tocsin itself: name the variable without TOCSIN_")
    elif not isinstance(file, str) or not PurePosixPath(file).is_absolute() or len(file) > _MAX_PATH:
        raise ValueError("'file' must be an absolute path")
    elif "\0" in file or ".." in PurePosixPath(file).parts:
        raise ValueError("'file' must be a path without '..'")
    return SecretRef(env=env, file=file)


def _text_or_ref(value: object) -> object:
    if isinstance(value, str):
        return value
    if isinstance(value, dict | SecretRef):
        return secret_ref(value)
    raise ValueError(f"must be a text or a reference to a secret: {REFERENCE_HINT}")


Secret = Annotated[SecretRef, BeforeValidator(secret_ref), WithJsonSchema(_SCHEMA)]
TextOrSecret = Annotated[
    SecretRef | str,
    BeforeValidator(_text_or_ref),
    WithJsonSchema({"anyOf": [{"type": "string"}, _SCHEMA]}),
]
