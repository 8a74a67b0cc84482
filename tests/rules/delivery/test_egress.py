import asyncio
import ssl
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from pathlib import Path

import pytest

from rules.delivery.addresses import why_internal
from rules.delivery.egress import Egress, EgressRefused, Resolver
from tests.rules.delivery.receivers import receiver
from tocsin.core.errors import InvalidInput, Unreachable
from tocsin.core.settings import read_settings


def resolver_of(*answers: Sequence[str]) -> tuple[Resolver, list[str]]:
    """A resolver that answers differently each time, and what it was asked."""
    asked: list[str] = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return answers[min(len(asked), len(answers)) - 1]

    return resolve, asked


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("127.0.0.1", "a loopback address"),
        ("127.255.255.254", "a loopback address"),
        ("0.0.0.0", "an unspecified address"),
        ("0.1.2.3", "an unspecified address"),
        ("10.0.0.1", "a private address"),
        ("172.16.0.1", "a private address"),
        ("172.31.255.255", "a private address"),
        ("192.168.1.1", "a private address"),
        ("100.64.0.1", "a shared (carrier) address"),
        ("169.254.0.1", "a link-local address"),
        ("169.254.169.254", "a metadata address"),
        ("169.254.170.2", "a metadata address"),
        ("100.100.100.200", "a metadata address"),
        ("168.63.129.16", "a metadata address"),
        ("192.0.0.192", "a metadata address"),
        ("192.0.0.1", "a reserved address"),
        ("198.18.0.1", "an address for benchmarks"),
        ("203.0.113.1", "an address for documentation"),
        ("224.0.0.1", "a multicast address"),
        ("239.255.255.255", "a multicast address"),
        ("240.0.0.1", "a reserved address"),
        ("255.255.255.255", "a reserved address"),
        ("::", "an unspecified address"),
        ("::1", "a loopback address"),
        ("::7f00:1", "a reserved address"),
        ("fc00::1", "a private address"),
        ("fdff::1", "a private address"),
        ("fe80::1", "a link-local address"),
        ("fec0::1", "a private address"),
        ("ff02::1", "a multicast address"),
        ("fd00:ec2::254", "a metadata address"),
        ("2001:db8::1", "an address for documentation"),
        ("2001::1", "a reserved address"),
        ("100::1", "a reserved address"),
        ("64:ff9b:1::7f00:1", "a reserved address"),
        ("4000::1", "a reserved address"),
        ("::ffff:127.0.0.1", "a loopback address (127.0.0.1)"),
        ("::ffff:169.254.169.254", "a metadata address (169.254.169.254)"),
        ("::ffff:10.0.0.1", "a private address (10.0.0.1)"),
        ("64:ff9b::10.0.0.1", "a private address (10.0.0.1)"),
        ("64:ff9b::169.254.169.254", "a metadata address (169.254.169.254)"),
        ("2002:7f00:1::1", "a loopback address (127.0.0.1)"),
        ("2002:a00:1::", "a private address (10.0.0.1)"),
        ("2002:c0a8:101::", "a private address (192.168.1.1)"),
    ],
)
async def test_an_internal_address_is_rejected_with_the_reason(
    guard: Callable[..., Egress], address: str, reason: str
) -> None:
    resolve, _ = resolver_of([address])
    with pytest.raises(EgressRefused) as refused:
        await guard(allow="", resolve=resolve).open("hooks.example", 443)
    assert str(refused.value) == (
        f"hooks.example resolves to {address}, {reason}: allow it with TOCSIN_EGRESS_ALLOW"
    )


@pytest.mark.parametrize(
    "address",
    [
        *(
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "128.0.0.1",
            "172.15.255.255",
            "172.32.0.1",
            "223.255.255.255",
        ),
        *("2606:4700::1111", "2a00::1", "::ffff:1.1.1.1", "64:ff9b::1.1.1.1", "2002:101:101::1"),
    ],
)
def test_a_public_address_is_accepted(address: str) -> None:
    assert why_internal(ip_address(address)) is None


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.1", "2130706433", "0x7f.1", "017700000001", "localhost", "::1", "0", "[::1]"]
)
async def test_every_way_to_write_this_machine_is_rejected(guard: Callable[..., Egress], host: str) -> None:
    async with receiver() as server:
        with pytest.raises((EgressRefused, Unreachable)):
            await guard(allow="").open(host, server.port)
    assert server.connections == 0


async def test_of_several_addresses_only_those_that_may_be_used_are_tried(
    guard: Callable[..., Egress],
) -> None:
    resolve, _ = resolver_of(["10.0.0.1", "127.0.0.1", "169.254.169.254"])
    egress = guard(allow="127.0.0.1", resolve=resolve)
    assert await egress.addresses("hooks.example", 443) == ["127.0.0.1"]


async def test_a_name_is_resolved_once_and_the_checked_address_is_connected_to(
    guard: Callable[..., Egress],
) -> None:
    async with receiver() as first, receiver(host="127.0.0.2") as second:
        resolve, asked = resolver_of(["127.0.0.1"], ["127.0.0.2"])
        egress = guard(allow="127.0.0.1, 127.0.0.2", resolve=resolve)
        connection = await egress.open("rebinding.example", first.port)
        assert connection.getpeername() == ("127.0.0.1", first.port)
        connection.close()
    assert asked == ["rebinding.example"]
    assert second.connections == 0


async def test_an_allowed_name_may_resolve_to_an_internal_address(guard: Callable[..., Egress]) -> None:
    resolve, _ = resolver_of(["127.0.0.1"])
    async with receiver() as server:
        egress = guard(allow=f"hooks.internal:{server.port}", resolve=resolve)
        (await egress.open("hooks.internal", server.port)).close()
        with pytest.raises(EgressRefused):
            await egress.open("other.internal", server.port)
        with pytest.raises(EgressRefused):
            await egress.open("hooks.internal", 1)


@pytest.mark.parametrize("host", ["no-such-host.invalid", "x" * 300, "a..b", "ü" * 100])
async def test_a_name_that_cannot_be_resolved_may_be_tried_again(egress: Egress, host: str) -> None:
    with pytest.raises(Unreachable, match="cannot be resolved"):
        await egress.open(host, 80)


async def test_a_closed_port_may_be_tried_again(egress: Egress) -> None:
    async with receiver() as server:
        pass
    with pytest.raises(Unreachable, match=rf"127.0.0.1:{server.port} cannot be reached: connect"):
        await egress.open("127.0.0.1", server.port)


async def test_an_answer_without_addresses_is_rejected(guard: Callable[..., Egress]) -> None:
    resolve, _ = resolver_of([])
    with pytest.raises(EgressRefused, match="no address"):
        await guard(resolve=resolve).open("hooks.example", 80)


@pytest.mark.parametrize("content", [None, b"", b"not a certificate"])
def test_a_file_of_authorities_that_cannot_be_used_is_an_error_at_start_up(
    tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidInput, match=r"TOCSIN_EGRESS_CA='.*ca.pem' cannot be used: "):
        Egress.from_settings(read_settings(egress_ca=str(path)))


def test_certificates_and_names_are_verified(egress: Egress) -> None:
    assert egress.tls.verify_mode == ssl.CERT_REQUIRED
    assert egress.tls.check_hostname
    assert egress.tls.minimum_version >= ssl.TLSVersion.TLSv1_2


async def test_a_slow_resolver_does_not_outlast_the_timeout(guard: Callable[..., Egress]) -> None:
    async def never(host: str, port: int) -> Sequence[str]:
        await asyncio.Event().wait()
        return []

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await guard(resolve=never).open("hooks.example", 80)
