"""The target of a probe: an HTTP address or a TCP port.

Guarantee: exactly one of `http` and `tcp`.
"""

from datetime import timedelta
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from schemas.documents.strict_model import StrictModel, document_error
from schemas.documents.targets import Timeout
from schemas.values.http_headers import Headers
from schemas.values.web_address import Host, Port, Url


class HttpProbe(StrictModel):
    """Sends a request, and checks the answer."""

    url: Url = Field(description="Address of the request.", examples=["https://shop.example.com/health"])
    method: Literal["GET", "HEAD"] = Field("GET", description="Method of the request.", examples=["GET"])
    headers: Headers = Field(
        default_factory=dict,
        description="Additional headers; a value may be a reference to a secret.",
        examples=[{"Authorization": {"secret": "shop-authorization"}}],
    )
    status: Annotated[
        tuple[Annotated[int, Field(ge=100, le=599)], ...], Field(strict=False, max_length=20)
    ] = Field((), description="Expected statuses (default: 200 to 299).", examples=[[200, 301]])
    contains: str | None = Field(
        None,
        description="A text that the first 64 kB of the answer must contain.",
        examples=["ok"],
        min_length=1,
        max_length=1_000,
    )
    timeout: Timeout = Field(
        timedelta(seconds=10), description="Longest time for the whole request.", examples=["10s"]
    )


class TcpProbe(StrictModel):
    """Connects to a port and closes the connection again."""

    host: Host = Field(description="Name or address.", examples=["db.example.com"])
    port: Port = Field(description="The port.", examples=[5432])
    timeout: Timeout = Field(timedelta(seconds=5), description="Longest time to connect.", examples=["5s"])


class Probe(StrictModel):
    """A check of a service from outside."""

    http: HttpProbe | None = Field(
        None, description="Send an HTTP request.", examples=[{"url": "https://shop.example.com/health"}]
    )
    tcp: TcpProbe | None = Field(
        None, description="Connect to a port.", examples=[{"host": "db.example.com", "port": 5432}]
    )

    @model_validator(mode="after")
    def _has_one_target(self) -> Self:
        if (self.http is None) == (self.tcp is None):
            raise document_error("needs one of http or tcp")
        return self
