"""Settings of the HTTP API. `tocsin.core.settings` has all others and reads them."""

from __future__ import annotations

import re
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_settings import BaseSettings

from tocsin.core.errors import InvalidInput
from tocsin.core.listen_address import ListenAddress

_GROUP = re.compile(
    r"(?P<group>[^=,]{1,128})="
    r"(?P<grant>(viewer|responder|author|approver|sender|operator|admin):([^*,]{1,128}\*?|\*))"
)


def check_listen_address(text: str) -> str:
    try:
        if text:
            ListenAddress.parse(text)
    except InvalidInput as error:
        raise ValueError(str(error)) from None
    return text


def networks_of(text: str) -> list[IPv4Network | IPv6Network]:
    """The networks and addresses in a list. `ValueError` names the first that is none."""
    return [ip_network(part.strip()) for part in text.split(",") if part.strip()]


def groups_of(text: str) -> list[tuple[str, str]]:
    """Each group with a grant. `ValueError` names the first part that is none."""
    pairs = []
    for part in (part.strip() for part in text.split(",") if part.strip()):
        match = _GROUP.fullmatch(part)
        if match is None:
            raise ValueError(f"{part!r} is not GROUP=ROLE:OWNERS, such as ops=responder:*")
        pairs.append((match["group"].strip(), match["grant"]))
    return pairs


def _check_networks(text: str) -> str:
    networks_of(text)
    return text


def _check_groups(text: str) -> str:
    groups_of(text)
    return text


class ApiSettings(BaseSettings):
    api: Annotated[str, AfterValidator(check_listen_address)] = Field(
        default="127.0.0.1:8470",
        description="host:port of the HTTP API. `tocsin up` takes a free port if the default is in use, and "
        "serves no API if it is empty.",
    )
    api_plain: bool = Field(
        default=False,
        description="Whether the API may serve plain HTTP on an address that is not loopback, because a proxy in "
        "front of it ends TLS",
    )
    api_tls_cert: str = Field(
        default="",
        description="PEM file with the certificate of the API and its chain. Empty: plain HTTP.",
    )
    api_tls_key: str = Field(
        default="",
        description="PEM file with the private key of the certificate",
    )
    api_connections: Annotated[int, Field(ge=10, le=100_000)] = Field(
        default=2000,
        description="Connections of the API at once. A new one replaces one without a request.",
    )
    api_body_bytes: Annotated[int, Field(ge=1000, le=100_000_000)] = Field(
        default=1_000_000,
        description="Largest body of a request in bytes; doors for bulk data have their own limits",
    )
    api_request_s: Annotated[float, Field(ge=1.0, le=600.0)] = Field(
        default=30.0,
        description="Seconds after which a request that is not answered is cancelled",
    )
    api_trusted_proxies: Annotated[str, AfterValidator(_check_networks)] = Field(
        default="",
        description="Addresses and networks of proxies, separated by commas, whose `X-Forwarded-User` and "
        "`X-Forwarded-Groups` name a person. Empty: none.",
    )
    api_groups: Annotated[str, AfterValidator(_check_groups)] = Field(
        default="",
        description="Grants of the groups of people, separated by commas: `group=role:owners`, such as "
        "`ops=responder:*`",
    )
    api_ping_create: Annotated[int, Field(ge=0, le=10_000)] = Field(
        default=0,
        description="Number of heartbeats that pings with `?create=1` may create. 0: none.",
    )
