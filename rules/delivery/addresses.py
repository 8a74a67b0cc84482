"""Recognises internal addresses: everything that is not the public internet.

A delivery reaches them only if it is allowed to (`egress`).

Guarantee: `why_internal` returns a reason for every address outside the public ranges, including an
IPv4 address inside an IPv6 one (mapped, NAT64, 6to4). An IPv6 address is public only inside
2000::/3.

Why a table of our own: `is_private` of `ipaddress` has changed between Python releases, and the
check must not depend on the interpreter. The table is the IANA registry of special-purpose
addresses and the addresses at which clouds serve credentials.
"""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

_METADATA = {
    ip_address(address): "a metadata address"
    for address in (
        "169.254.169.254",  # most clouds
        "169.254.170.2",  # credentials of a container
        "100.100.100.200",  # Alibaba
        "192.0.0.192",  # Oracle
        "168.63.129.16",  # Azure, inside a public range
        "fd00:ec2::254",
        "fd20:ce::254",
    )
}
_V4: tuple[tuple[IPv4Network, str], ...] = tuple(
    (IPv4Network(network), reason)
    for network, reason in (
        ("0.0.0.0/8", "an unspecified address"),
        ("10.0.0.0/8", "a private address"),
        ("100.64.0.0/10", "a shared (carrier) address"),
        ("127.0.0.0/8", "a loopback address"),
        ("169.254.0.0/16", "a link-local address"),
        ("172.16.0.0/12", "a private address"),
        ("192.0.0.0/24", "a reserved address"),
        ("192.0.2.0/24", "an address for documentation"),
        ("192.88.99.0/24", "a relay address"),
        ("192.168.0.0/16", "a private address"),
        ("198.18.0.0/15", "an address for benchmarks"),
        ("198.51.100.0/24", "an address for documentation"),
        ("203.0.113.0/24", "an address for documentation"),
        ("224.0.0.0/4", "a multicast address"),
        ("240.0.0.0/4", "a reserved address"),
    )
)
_V6: tuple[tuple[IPv6Network, str], ...] = tuple(
    (IPv6Network(network), reason)
    for network, reason in (
        ("::/128", "an unspecified address"),
        ("::1/128", "a loopback address"),
        ("fc00::/7", "a private address"),
        ("fe80::/10", "a link-local address"),
        ("fec0::/10", "a private address"),
        ("ff00::/8", "a multicast address"),
        ("2001::/23", "a reserved address"),
        ("2001:db8::/32", "an address for documentation"),
        ("3fff::/20", "an address for documentation"),
    )
)
_PUBLIC_V6 = IPv6Network("2000::/3")
_MAPPED = IPv6Network("::ffff:0:0/96")
_NAT64 = IPv6Network("64:ff9b::/96")
_6TO4 = IPv6Network("2002::/16")


def why_internal(address: IPv4Address | IPv6Address) -> str | None:
    """The reason why an address is internal; None for a public address."""
    if address in _METADATA:
        return _METADATA[address]
    if isinstance(address, IPv4Address):
        return next((reason for network, reason in _V4 if address in network), None)
    embedded = _embedded(address)
    if embedded is not None:
        inner = why_internal(embedded)
        return f"{inner} ({embedded})" if inner else None
    reason = next((reason for network, reason in _V6 if address in network), None)
    return reason or (None if address in _PUBLIC_V6 else "a reserved address")


def _embedded(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address to which packets for this one would be translated or tunnelled."""
    if address in _MAPPED or address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    if address in _6TO4:
        return IPv4Address((int(address) >> 80) & 0xFFFF_FFFF)
    return None
