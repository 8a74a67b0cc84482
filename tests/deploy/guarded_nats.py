"""A NATS server with the permissions of deploy/nats, started as an embedded server."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from tests.paths import ROOT
from tocsin.core.settings import Settings
from tocsin.embedded import Nats
from tocsin.embedded.server import _KEPT_VARIABLES
from tocsin.nats_access.example import NAMESPACE, example_roles, password_variable
from tocsin.nats_access.roles import JETSTREAM_API, api_prefix

CONFIG = ROOT / "deploy" / "nats"
ROLES = {role.name: role for role in example_roles()}
USERS = tuple(ROLES)
# A password that has to be encoded in a URL.
PASSWORD = "p@ss/%40 w:rd"
ENCODED = "p%40ss%2F%2540%20w%3Ard"


class GuardedNats(Nats):
    @property
    def url(self) -> str:
        """Without credentials: the users are those of deploy/nats."""
        return self.shown_url

    def _write_config(self, port: int) -> None:
        """Write the configuration of an embedded server, with the permissions of deploy/nats."""
        super()._write_config(port)
        shutil.copy(CONFIG / "permissions.conf", self.data_dir)
        own = re.sub(r"authorization \{.*?\n\}\n", "", self._config_path.read_text(), flags=re.DOTALL)
        self._config_path.write_text(f"{own}include permissions.conf\n")

    def url_of(self, user: str) -> str:
        return self.url.replace("nats://", f"nats://{user}:{ENCODED}@")

    def settings_of(self, user: str, settings: Settings) -> Settings:
        """The settings of a role, in the namespace of the example."""
        changed = {
            "nats": self.url_of(user),
            "nats_inbox": f"_INBOX_{user}",
            "nats_api": api_of_user(user),
            "namespace": NAMESPACE,
        }
        return settings.model_copy(update=changed)


def api_of_user(user: str) -> str:
    return api_prefix(NAMESPACE) if ROLES[user].is_isolated else JETSTREAM_API


def passwords() -> dict[str, str]:
    """The passwords, in quotes: the server would parse them as numbers, references or words."""
    return {password_variable(user)[1:]: f'"{PASSWORD}"' for user in USERS}


@contextmanager
def guarded_nats(data_dir: Path) -> Iterator[GuardedNats]:
    server = GuardedNats(data_dir)
    # An embedded server gets nothing else of our environment.
    kept = (*_KEPT_VARIABLES, *passwords())
    with patch.dict(os.environ, passwords()), patch("tocsin.embedded.server._KEPT_VARIABLES", kept):
        server.start()
    try:
        yield server
    finally:
        server.stop()
        server.close()
