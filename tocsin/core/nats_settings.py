"""The settings that protect connections: credentials and TLS for NATS, and clear text."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tocsin.core.api_settings import ApiSettings


class NatsSettings(ApiSettings):
    nats_api: Annotated[str, Field(pattern=r"^[$A-Za-z0-9_-]+(\.[$A-Za-z0-9_-]+)*$")] = Field(
        default="$JS.API",
        description="Prefix of the JetStream API: `<namespace>.api` for a user outside of the account of the streams",
    )
    nats_user: str = Field(
        default="",
        description="NATS user, instead of one in TOCSIN_NATS",
    )
    nats_password: str = Field(
        default="",
        repr=False,
        description="Password of TOCSIN_NATS_USER, not encoded",
    )
    nats_creds: str = Field(
        default="",
        description="Creds file with the JWT and the key of the NATS user. Read at every connect.",
    )
    nats_nkey: str = Field(
        default="",
        description="File with the seed of the key of the NATS user. Read at every connect.",
    )
    nats_ca: str = Field(
        default="",
        description="PEM file with the certificate authorities of the NATS servers, instead of those of the system. "
        "Requires TLS.",
    )
    nats_cert: str = Field(
        default="",
        description="PEM file with the client certificate for NATS. Requires TLS.",
    )
    nats_key: str = Field(
        default="",
        description="PEM file with the key of TOCSIN_NATS_CERT",
    )
    allow_clear_text: bool = Field(
        default=False,
        description="Whether NATS and Postgres on other hosts may be reached without TLS",
    )
