"""The checks of the doctor about insecure settings: transport, credentials, files and too wide permissions.

Red: what a stranger could use. The settings are those of this command: run the doctor with the environment
of a service to check that service.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator, Sequence
from ipaddress import ip_network
from pathlib import Path

from nats.aio.client import Client

from tocsin.core.allow_list import AllowList
from tocsin.core.listen_address import ListenAddress
from tocsin.core.loopback import is_loopback
from tocsin.core.postgres_transport import unverified_host
from tocsin.core.settings import Settings
from tocsin.doctor.checks import Finding

_SUBJECT = "security"
_MOST_FILES = 1000
# Networks of at least so many addresses are not those of a company.
_WIDEST_V4, _WIDEST_V6 = 8, 16


def check_settings(settings: Settings) -> list[Finding]:
    """What can be seen without a server."""
    problems = [
        *_postgres(settings),
        *_listening(settings),
        *_networks(settings),
        *_files(settings),
    ]
    return [Finding("red", _SUBJECT, text, remedy) for text, remedy in problems]


def check_nats_access(bus: Client) -> list[Finding]:
    """Whether NATS asks for credentials, and whether the connection is encrypted."""
    host = (bus.connected_url.hostname or "") if bus.connected_url else ""
    return nats_findings(host, asks=bool(bus._server_info.get("auth_required")), encrypted=_is_encrypted(bus))


def nats_findings(host: str, *, asks: bool, encrypted: bool) -> list[Finding]:
    findings = []
    if not asks:
        findings.append(
            Finding(
                "red",
                _SUBJECT,
                "nats asks for no credentials: every client that reaches it can write records and stop the clock",
                "give it users with `tocsin streams config` (deploy/nats)",
            )
        )
    if not encrypted and not is_loopback(host):
        findings.append(
            Finding(
                "red",
                _SUBJECT,
                f"nats at {host!r} is reached in clear text",
                "turn on tls in the server (deploy/nats), and remove TOCSIN_ALLOW_CLEAR_TEXT",
            )
        )
    return findings


def check_epoch_holder(holder: str | None, writer: str | None) -> list[Finding]:
    """`holder` has the lease in NATS, `writer` the newest epoch in Postgres. They are the same process.

    They differ for a moment while another clock takes over.
    """
    if holder is None or writer is None or holder == writer:
        return []
    return [
        Finding(
            "red",
            "clock",
            f"{holder} holds the lease, and {writer} has the newest epoch: the lease was written by something else, "
            "or the clock cannot take over",
            "check which users may publish to the lease bucket (`tocsin streams config`), and read the log of "
            "the clock",
        )
    ]


def secure_finding(findings: Sequence[Finding]) -> list[Finding]:
    """The findings; one that says so if there are none."""
    return list(findings) or [
        Finding("ok", _SUBJECT, "transport, credentials and files are as they should be")
    ]


def _is_encrypted(bus: Client) -> bool:
    writer = getattr(bus._transport, "_io_writer", None)
    return writer is not None and writer.get_extra_info("ssl_object") is not None


def _postgres(settings: Settings) -> Iterator[tuple[str, str]]:
    host = unverified_host(settings.postgres)
    if host:
        yield (
            f"the certificate of postgres at {host!r} is not verified",
            "add sslmode=verify-full and sslrootcert=... to TOCSIN_POSTGRES",
        )


def _listening(settings: Settings) -> Iterator[tuple[str, str]]:
    if settings.metrics and not settings.metrics_token and _is_public(settings.metrics):
        yield (
            f"every client that reaches {settings.metrics} can read the metrics",
            "set TOCSIN_METRICS_TOKEN, or listen where only Prometheus connects",
        )
    if settings.api and settings.api_plain and not settings.api_tls_cert and _is_public(settings.api):
        yield (
            f"the API serves plain HTTP at {settings.api}: tokens cross the network in clear text",
            "set TOCSIN_API_TLS_CERT, or listen on an address that only the proxy reaches",
        )


def _is_public(address: str) -> bool:
    return not is_loopback(ListenAddress.parse(address).host)


def _networks(settings: Settings) -> Iterator[tuple[str, str]]:
    proxies = [part.strip() for part in settings.api_trusted_proxies.split(",") if part.strip()]
    if _widest(proxies):
        yield (
            f"TOCSIN_API_TRUSTED_PROXIES={settings.api_trusted_proxies!r} lets almost every address name a person",
            "name the addresses of the proxies",
        )
    allowed = AllowList.parse(str(settings.egress_allow))
    if _widest(str(network) for network, _ in allowed.networks):
        yield (
            f"TOCSIN_EGRESS_ALLOW={settings.egress_allow!r} lets deliveries reach almost every internal address",
            "name the hosts or networks that deliveries need",
        )


def _widest(networks: Iterable[str]) -> bool:
    parsed = [ip_network(network, strict=False) for network in networks]
    return any(network.prefixlen < (_WIDEST_V4 if network.version == 4 else _WIDEST_V6) for network in parsed)


def _files(settings: Settings) -> Iterator[tuple[str, str]]:
    named = (settings.nats_creds, settings.nats_nkey, settings.nats_key, settings.api_tls_key)
    files = [Path(name) for name in named if name]
    if settings.secrets_dir:
        files += sorted(Path(settings.secrets_dir).glob("*"))[:_MOST_FILES]
    for path in files:
        if _is_open_to_others(path):
            yield f"other users of this host can read the credentials in '{path}'", f"chmod o-rwx '{path}'"


def _is_open_to_others(path: Path) -> bool:
    try:
        status = path.stat()
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and bool(status.st_mode & stat.S_IRWXO)
