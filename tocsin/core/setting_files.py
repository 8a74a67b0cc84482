"""Settings in files: `DIRECTORY/TOCSIN_POSTGRES` holds the value of the variable of that name.

Why: systemd (`LoadCredential`), Kubernetes and compose hand passwords over as files, which children do
not inherit and `/proc` does not show. The directory is `TOCSIN_SETTINGS_DIR`, or else the
`CREDENTIALS_DIRECTORY` that systemd sets. A variable overrides a file.

A rule author cannot read such a file as a secret: names of secrets have no capital letters.

On failure: `InvalidInput` with the path, never with the content.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_settings import PydanticBaseSettingsSource

from tocsin.core.errors import InvalidInput

DIRECTORY_VARIABLE = "TOCSIN_SETTINGS_DIR"
_MAX_BYTES = 65_536


class SettingFiles(PydanticBaseSettingsSource):
    """A source of pydantic-settings, after the variables."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        directory = settings_directory()
        value = None if directory is None else _read(directory / f"TOCSIN_{field_name.upper()}")
        return value, field_name, False

    def __call__(self) -> dict[str, Any]:
        fields = self.settings_cls.model_fields
        found = {name: self.get_field_value(field, name)[0] for name, field in fields.items()}
        return {name: value for name, value in found.items() if value is not None}


def settings_directory() -> Path | None:
    name = os.environ.get(DIRECTORY_VARIABLE) or os.environ.get("CREDENTIALS_DIRECTORY")
    if not name:
        return None
    if os.environ.get(DIRECTORY_VARIABLE) and not Path(name).is_dir():
        raise InvalidInput(
            f"{DIRECTORY_VARIABLE}={name!r} is not a directory", remedy="name one, or leave it unset"
        )
    return Path(name)


def _read(path: Path) -> str | None:
    """The text of a file without the line break at its end; None without a file."""
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidInput(
            f"the setting '{path}' cannot be read ({error.strerror})",
            remedy="let the account of the service read it",
        ) from None
    if len(content) > _MAX_BYTES:
        raise InvalidInput(f"the setting '{path}' is longer than {_MAX_BYTES:,} bytes")
    try:
        return content.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise InvalidInput(f"the setting '{path}' is not UTF-8 text") from None
