"""What a probe looks at: an HTTP address or a TCP port.

Guarantee: exactly one of `http` and `tcp`.
"""

from datetime import timedelta
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from schemas.documents.targets import Timeout
from schemas.values.http_headers import Headers
from schemas.values.web_address import Host, Port, Url


class HttpProbe(BaseModel):
    """Asks an address, and judges the answer."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    url: Url = Field(description="What to ask.", examples=["https://shop.example.com/health"])
    method: Literal["GET", "HEAD"] = Field("GET", description="Method of the request.", examples=["GET"])
    headers: Headers = Field(
        default_factory=dict,
        description="Additional headers; a value may be a reference to a secret.",
        examples=[{"Authorization": {"env": "SHOP_AUTHORIZATION"}}],
    )
    status: Annotated[
        tuple[Annotated[int, Field(ge=100, le=599)], ...], Field(strict=False, max_length=20)
    ] = Field((), description="Answers that are well (default: 200 to 299).", examples=[[200, 301]])
    contains: str | None = Field(
        None,
        description="A text that the first 64 kB of the answer must hold.",
        examples=["ok"],
        min_length=1,
        max_length=1_000,
    )
    timeout: Timeout = Field(
        timedelta(seconds=10), description="Longest time for the whole request.", examples=["10s"]
    )


class TcpProbe(BaseModel):
    """Connects to a port and closes the connection again."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    host: Host = Field(description="Name or address.", examples=["db.example.com"])
    port: Port = Field(description="The port.", examples=[5432])
    timeout: Timeout = Field(
        timedelta(seconds=5), description="Longest time until it is connected.", examples=["5s"]
    )


class Probe(BaseModel):
    """A look at a service from outside."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    http: HttpProbe | None = Field(
        None, description="Ask over HTTP.", examples=[{"url": "https://shop.example.com/health"}]
    )
    tcp: TcpProbe | None = Field(
        None, description="Connect to a port.", examples=[{"host": "db.example.com", "port": 5432}]
    )

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if (self.http is None) == (self.tcp is None):
            raise PydanticCustomError("one_of", "needs one of http or tcp", {})
        return self
