"""Secrets of a worker for tests: values by name, bound to the hosts of the tests."""

from __future__ import annotations

from rules.delivery.secret_store import SecretStore
from rules.delivery.secrets import Secrets
from schemas.values.secret import secret_variable
from tocsin.core.secret_bindings import SecretBinding


def named_secrets(host: str = "127.0.0.1", **values: str) -> Secrets:
    """`smtp_password="..."` is the secret `smtp-password`. Urls are bound to themselves."""
    by_name = {name.replace("_", "-"): value for name, value in values.items()}
    return Secrets(
        SecretStore(
            variables={secret_variable(name): value for name, value in by_name.items()},
            bindings=tuple(
                SecretBinding(name, host) for name, value in by_name.items() if "://" not in value
            ),
        )
    )
