"""Secrets in documents: always a reference, `{secret: NAME}`, never the value.

Guarantee: a document, and so everything that is stored, shown or compared, has only the name. A
plain text in its place is an error whose message does not repeat it. The name is all that an author
controls: where the value is read from, and which hosts may receive it, is decided by the operator of
the worker (`rules.delivery.secret_store`).
"""

import re
from pathlib import PurePosixPath
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema, model_serializer

REFERENCE_HINT = "write {secret: NAME}, the name of a secret of the worker"
SECRET_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,60}")
_SCHEMA: dict[str, Any] = {
    "title": "SecretRef",
    "description": "Reference to a secret of the worker by its name.",
    "type": "object",
    "properties": {"secret": {"type": "string", "pattern": f"^{SECRET_NAME.pattern}$"}},
    "required": ["secret"],
    "additionalProperties": False,
}


class SecretRef(BaseModel):
    """A reference to a secret. `secret_ref` makes one and explains errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True)

    secret: str

    @model_serializer
    def _dump(self) -> dict[str, str]:
        return {"secret": self.secret}

    def __str__(self) -> str:
        return f"{{secret: {self.secret}}}"


def secret_variable(name: str) -> str:
    """The variable of the worker that holds a secret: `TOCSIN_SECRET_SLACK_URL` for `slack-url`."""
    return f"TOCSIN_SECRET_{name.replace('-', '_').upper()}"


def secret_ref(value: object) -> SecretRef:
    """`ValueError`, without the value, if it is not a reference."""
    if isinstance(value, SecretRef):
        return value
    if not isinstance(value, dict):
        raise ValueError(f"a secret is never written down: {REFERENCE_HINT}")
    if len(value) == 1 and set(value) <= {"env", "file"}:
        raise ValueError(_old_form(value))
    if set(value) != {"secret"}:
        raise ValueError(f"a reference to a secret has the key 'secret' alone: {REFERENCE_HINT}")
    name = value["secret"]
    if not isinstance(name, str) or not SECRET_NAME.fullmatch(name):
        raise ValueError("'secret' must be a name: at most 63 lower-case letters, digits and '-'")
    return SecretRef(secret=name)


def _old_form(value: dict[str, Any]) -> str:
    """The remedy for `{env: ...}` and `{file: ...}`, which could read whatever the worker can read."""
    env, file = value.get("env"), value.get("file")
    name = ""
    if isinstance(env, str) and _VARIABLE.fullmatch(env):
        name = _name_from(env)
    elif isinstance(file, str):
        name = _name_from(PurePosixPath(file).stem)
    if not name:
        return f"'env' and 'file' are not read any more: {REFERENCE_HINT}"
    form = "env" if "env" in value else "file"
    place = (
        f"set {secret_variable(name)}" if form == "env" else f"put the file '{name}' into TOCSIN_SECRETS_DIR"
    )
    return f"'{form}' is not read any more: write {{secret: {name}}}, and {place} for the worker"


def _name_from(text: str) -> str:
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    return name if SECRET_NAME.fullmatch(name) else ""


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
