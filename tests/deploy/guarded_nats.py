"""A NATS server with the permissions of deploy/nats, started as an embedded server."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from tests.paths import ROOT
from tocsin.core.settings import Settings
from tocsin.embedded import Nats

CONFIG = ROOT / "deploy" / "nats"
USERS = ("clock", "cdc", "worker", "producer", "billing", "operator", "rebuild")
# A password that has to be encoded in a URL.
PASSWORD = "p@ss/%40 w:rd"
ENCODED = "p%40ss%2F%2540%20w%3Ard"


class GuardedNats(Nats):
    def _write_config(self, port: int) -> None:
        """Write the configuration of an embedded server, with the permissions of deploy/nats."""
        super()._write_config(port)
        shutil.copy(CONFIG / "permissions.conf", self.data_dir)
        with self._config_path.open("a") as config:
            config.write("include permissions.conf\n")

    def url_of(self, user: str) -> str:
        return self.url.replace("nats://", f"nats://{user}:{ENCODED}@")

    def settings_of(self, user: str, settings: Settings) -> Settings:
        """The settings of a role, in the namespace of the example."""
        changed = {"nats": self.url_of(user), "nats_inbox": f"_INBOX_{user}", "namespace": "tocsin"}
        return settings.model_copy(update=changed)


def passwords() -> dict[str, str]:
    """The passwords, in quotes: the server would parse them as numbers, references or words."""
    return {f"TOCSIN_{user.upper()}_PASSWORD": f'"{PASSWORD}"' for user in USERS}


@contextmanager
def guarded_nats(data_dir: Path) -> Iterator[GuardedNats]:
    server = GuardedNats(data_dir)
    with patch.dict(os.environ, passwords()):
        server.start()
    try:
        yield server
    finally:
        server.stop()
        server.close()
