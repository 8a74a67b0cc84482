"""Settings of the HTTP API. `tocsin.core.settings` has all others and reads them."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_settings import BaseSettings

from tocsin.core.errors import InvalidInput
from tocsin.core.listen_address import ListenAddress


def check_listen_address(text: str) -> str:
    try:
        if text:
            ListenAddress.parse(text)
    except InvalidInput as error:
        raise ValueError(str(error)) from None
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
