"""NATS with TLS, client certificates, keys and creds files, on a real server."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tocsin.core.bus import open_bus
from tocsin.core.errors import WrongAddress
from tocsin.core.nats_client import TocsinNatsClient
from tocsin.core.nats_transport import clear_text_rule
from tocsin.core.nkey import NkeyInvalid, UserKey, _crc16
from tocsin.core.settings import Settings
from tocsin.embedded import Nats

_SEED, _USER, _ACCOUNT, _OPERATOR = 18 << 3, 20 << 3, 0, 14 << 3


class ConfiguredNats(Nats):
    """An embedded server whose authorization is replaced by other lines."""

    lines = ""

    @property
    def host_and_port(self) -> str:
        return self.shown_url.removeprefix("nats://")

    def _write_config(self, port: int) -> None:
        super()._write_config(port)
        own = re.sub(r"authorization \{.*?\n\}\n", "", self._config_path.read_text(), flags=re.DOTALL)
        self._config_path.write_text(f"{own}{self.lines}\n")


@contextmanager
def configured(folder: Path, lines: str) -> Iterator[ConfiguredNats]:
    folder.mkdir(exist_ok=True)
    server = ConfiguredNats(folder)
    server.lines = lines
    server.start()
    try:
        yield server
    finally:
        server.stop()
        server.close()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an authority, and certificates of a server and of a client."""
    folder = tmp_path_factory.mktemp("certificates")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    for name in ("localhost", "client"):
        certificate = authority.issue_cert(name)
        certificate.private_key_pem.write_to_path(folder / f"{name}.key")
        certificate.cert_chain_pems[0].write_to_path(folder / f"{name}.pem")
    folder.chmod(0o755)
    for file in folder.iterdir():
        file.chmod(0o644)
    return folder


def tls_lines(folder: Path, verify: bool = False) -> str:
    client = f'\n  ca_file: "{folder}/ca.pem"\n  verify: true' if verify else ""
    return f'tls {{\n  cert_file: "{folder}/localhost.pem"\n  key_file: "{folder}/localhost.key"{client}\n}}'


async def works(settings: Settings) -> None:
    async with open_bus(settings, "test") as bus:
        await bus.jetstream(timeout=10).account_info()


async def test_a_server_with_tls_is_verified_by_the_given_authority(tmp_path: Path, authority: Path) -> None:
    with configured(tmp_path, tls_lines(authority)) as server:
        url = f"tls://{server.host_and_port}".replace("127.0.0.1", "localhost")
        await works(Settings(nats=url, nats_ca=str(authority / "ca.pem")))
        with pytest.raises(WrongAddress, match=r"certificate .* not trusted .*TOCSIN_NATS_CA"):
            await works(Settings(nats=url))
        # The certificate is for another name.
        with pytest.raises(WrongAddress, match="not trusted"):
            await works(Settings(nats=f"tls://{server.host_and_port}", nats_ca=str(authority / "ca.pem")))


async def test_a_client_certificate_is_sent(tmp_path: Path, authority: Path) -> None:
    with configured(tmp_path, tls_lines(authority, verify=True)) as server:
        url = f"tls://{server.host_and_port}".replace("127.0.0.1", "localhost")
        settings = Settings(
            nats=url,
            nats_ca=str(authority / "ca.pem"),
            nats_cert=str(authority / "client.pem"),
            nats_key=str(authority / "client.key"),
        )
        await works(settings)
        with pytest.raises(WrongAddress, match="needs both TOCSIN_NATS_CERT and TOCSIN_NATS_KEY"):
            await works(settings.model_copy(update={"nats_key": ""}))


async def test_a_server_without_tls_gets_no_credentials_if_tls_is_required(tmp_path: Path) -> None:
    with configured(tmp_path, "") as server:
        with pytest.raises(WrongAddress, match=r"does not use tls.*TOCSIN_ALLOW_CLEAR_TEXT=1"):
            await works(Settings(nats=f"tls://me:s3cret@{server.host_and_port}"))
        await works(Settings(nats=f"nats://{server.host_and_port}"))


@pytest.mark.parametrize(
    ("url", "host", "is_allowed"),
    [
        ("nats://a", "nats.example", False),
        ("nats://a", "10.0.0.7", False),
        ("nats://a", "localhost", True),
        ("nats://a", "127.0.0.1", True),
        ("nats://a", "::1", True),
        ("tls://a", "127.0.0.1", False),
    ],
)
def test_clear_text_is_for_loopback_unless_it_is_allowed(url: str, host: str, is_allowed: bool) -> None:
    assert clear_text_rule(Settings(), [url])(host) is is_allowed
    allowed = Settings(allow_clear_text=True)
    assert clear_text_rule(allowed, [url])(host) is not url.startswith("tls")


async def test_servers_that_another_one_announces_are_not_reached_in_clear_text(tmp_path: Path) -> None:
    with configured(tmp_path, "") as server:
        async with open_bus(Settings(nats=server.shown_url), "test") as bus:
            assert isinstance(bus, TocsinNatsClient)
            await bus._process_info({"connect_urls": ["10.0.0.7:4222", "127.0.0.1:1"]})
            assert [found.hostname for found in bus.discovered_servers] == ["127.0.0.1"]


def new_key() -> tuple[str, UserKey]:
    secret = os.urandom(32)
    raw = bytes([_SEED | _USER >> 5, (_USER & 31) << 3]) + secret
    return _text(raw), UserKey(secret)


def _text(raw: bytes) -> str:
    return base64.b32encode(raw + _crc16(raw).to_bytes(2, "little")).decode().rstrip("=")


async def test_a_key_authenticates(tmp_path: Path) -> None:
    seed, key = new_key()
    file = tmp_path / "user.nk"
    file.write_text(seed + "\n")
    with configured(
        tmp_path / "nats", f"authorization {{\n  users: [ {{ nkey: {key.public} }} ]\n}}"
    ) as server:
        await works(Settings(nats=server.shown_url, nats_nkey=str(file)))
        file.write_text(new_key()[0])
        with pytest.raises(WrongAddress, match="rejects the user"):
            await works(Settings(nats=server.shown_url, nats_nkey=str(file)))


def _jwt(claims: dict[str, object], signer: Ed25519PrivateKey) -> str:
    def encoded(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    head = f"{encoded({'typ': 'JWT', 'alg': 'ed25519-nkey'})}.{encoded(claims)}"
    return f"{head}.{base64.urlsafe_b64encode(signer.sign(head.encode())).decode().rstrip('=')}"


def _public(prefix: int, key: Ed25519PrivateKey) -> str:
    return _text(bytes([prefix]) + key.public_key().public_bytes_raw())


async def test_a_creds_file_authenticates(tmp_path: Path) -> None:
    operator, account = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    seed, key = new_key()
    issuer, account_name = _public(_OPERATOR, operator), _public(_ACCOUNT, account)
    now = 1_700_000_000
    base = {"jti": "x", "iat": now}
    limits = {
        "subs": -1,
        "data": -1,
        "payload": -1,
        "imports": -1,
        "exports": -1,
        "wildcards": True,
        "conn": -1,
    }
    storage = {"mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1}
    operator_jwt = _jwt(
        {**base, "iss": issuer, "sub": issuer, "nats": {"type": "operator", "version": 2}}, operator
    )
    account_claims = {"type": "account", "version": 2, "limits": {**limits, **storage}}
    account_jwt = _jwt({**base, "iss": issuer, "sub": account_name, "nats": account_claims}, operator)
    system_name = _public(_ACCOUNT, Ed25519PrivateKey.generate())
    system_claims = {"type": "account", "version": 2, "limits": limits}
    system_jwt = _jwt({**base, "iss": issuer, "sub": system_name, "nats": system_claims}, operator)
    user_claims = {"type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1}
    user_jwt = _jwt({**base, "iss": account_name, "sub": key.public, "nats": user_claims}, account)
    file = tmp_path / "user.creds"
    file.write_text(
        f"-----BEGIN NATS USER JWT-----\n{user_jwt}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    )
    preloaded = f"  {account_name}: {account_jwt}\n  {system_name}: {system_jwt}\n"
    lines = (
        f"operator: {operator_jwt}\nsystem_account: {system_name}\nresolver: MEMORY\n"
        f"resolver_preload: {{\n{preloaded}}}"
    )
    with configured(tmp_path / "nats", lines) as server:
        async with open_bus(Settings(nats=server.shown_url, nats_creds=str(file)), "test") as bus:
            assert bus.is_connected


@pytest.mark.parametrize("text", ["", "SUAX", "hello world", "SU" + "A" * 56])
def test_a_text_that_is_no_key_is_not_repeated(text: str) -> None:
    with pytest.raises(NkeyInvalid) as refused:
        UserKey.of_seed(text)
    assert not text or text not in str(refused.value)


async def test_a_missing_file_is_named(tmp_path: Path) -> None:
    for setting in ("nats_creds", "nats_nkey", "nats_ca"):
        settings = Settings(nats="nats://127.0.0.1:1", **{setting: str(tmp_path / "missing")})  # type: ignore[arg-type]
        with pytest.raises(WrongAddress, match=rf"TOCSIN_{setting.upper()}=.*missing.* cannot be used"):
            await works(settings)


async def test_user_and_password_may_be_settings_of_their_own(tmp_path: Path) -> None:
    lines = 'authorization {\n  users: [ {user: me, password: "a b@c"} ]\n}'
    with configured(tmp_path, lines) as server:
        await works(Settings(nats=server.shown_url, nats_user="me", nats_password="a b@c"))
