"""An authority of our own, and a guard that may reach this machine and trusts that authority."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import trustme

from rules.delivery.egress import Egress, Resolver, resolve_by_system
from tocsin.core.allow_list import AllowList
from tocsin.core.settings import read_settings


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="session")
def authority_file(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("authority") / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return path


@pytest.fixture(scope="session")
def server_tls(authority: trustme.CA) -> Callable[[str], ssl.SSLContext]:
    """The context of a server with a certificate for a host."""

    def made(host: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(host).configure_cert(context)
        return context

    return made


@pytest.fixture(scope="session")
def base_egress(authority_file: Path) -> Egress:
    """Made once: reading the system's authorities takes a tenth of a second."""
    return Egress.from_settings(read_settings(egress_ca=str(authority_file)))


@pytest.fixture
def guard(base_egress: Egress) -> Callable[..., Egress]:
    def made(allow: str = "127.0.0.1, localhost", resolve: Resolver = resolve_by_system) -> Egress:
        return replace(base_egress, allow_list=AllowList.parse(allow), resolve=resolve)

    return made


@pytest.fixture
def egress(guard: Callable[..., Egress]) -> Egress:
    return guard()
