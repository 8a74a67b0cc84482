"""The `ingest_mapping` document: owner and key of the metrics that other systems send.

Guarantee: `owner` and `key` are texts with placeholders for labels, and a placeholder is well formed.
Whether a metric has the label is known only when it arrives (`tocsin.protocols.placement`).
"""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from schemas.documents.strict_model import StrictModel, document_error
from schemas.values.annotation import Description
from schemas.values.names import Name

MetricSource = Literal["prometheus", "otlp", "influx", "alertmanager"]
METRIC_SOURCES: tuple[MetricSource, ...] = ("prometheus", "otlp", "influx", "alertmanager")
METRIC = "metric"
"""The placeholder of the name of the metric."""
PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
MAX_MAPPING_LABELS = 32
MAX_STARS = 3
"""The cost of a pattern grows with the length of the text to this power."""


def _check_placeholders(text: str) -> str:
    rest = PLACEHOLDER.sub("", text)
    if "{" in rest or "}" in rest:
        raise ValueError(f"'{text}' has a brace that is not closed: write {{label}} for the value of a label")
    if "" in PLACEHOLDER.findall(text):
        raise ValueError(f"'{text}' has empty braces: write the name of a label between them")
    return text


def _check_stars(pattern: str) -> str:
    if pattern.count("*") > MAX_STARS:
        raise ValueError(f"'{pattern}' has more than {MAX_STARS} '*': write a shorter pattern")
    return pattern


PlacementText = Annotated[str, Field(min_length=1, max_length=512), AfterValidator(_check_placeholders)]
MetricPattern = Annotated[str, Field(min_length=1, max_length=256), AfterValidator(_check_stars)]
LabelName = Annotated[str, Field(min_length=1, max_length=256)]
LabelPattern = Annotated[str, Field(max_length=256), AfterValidator(_check_stars)]


class IngestMappingDocument(StrictModel):
    """Places metrics of Prometheus, OpenTelemetry, Influx clients and alerts of Prometheus."""

    name: Name = Field(
        description="Unique name. Of several that match a metric, the first in the order of the names is used.",
        examples=["10-node-exporter"],
    )
    description: Description = ""
    sources: Annotated[tuple[MetricSource, ...], Field(strict=False, min_length=1)] = Field(
        METRIC_SOURCES,
        description="Protocols whose metrics are placed: prometheus, otlp, influx, alertmanager.",
        examples=[["prometheus"]],
    )
    metrics: Annotated[tuple[MetricPattern, ...], Field(strict=False, min_length=1, max_length=256)] = Field(
        ("*",),
        description="Names of the metrics; `*` stands for any letters.",
        examples=[["node_*", "up"]],
    )
    labels: Annotated[dict[LabelName, LabelPattern], Field(max_length=MAX_MAPPING_LABELS)] = Field(
        default_factory=dict,
        description="Labels that a metric must have, with their values; `*` stands for any letters.",
        examples=[{"job": "node*"}],
    )
    owner: PlacementText = Field(
        description="Owner. `{instance}` stands for the value of the label `instance`.",
        examples=["{instance}", "{cluster}-{host.name}"],
    )
    key: PlacementText = Field(
        "{metric}",
        description="Key of the series. `{metric}` stands for the name of the metric. In the value of a label, "
        "characters that a key cannot have become `_`.",
        examples=["node.{metric}"],
    )
    keep: Annotated[tuple[LabelName, ...], Field(strict=False, max_length=MAX_MAPPING_LABELS)] | None = Field(
        None,
        description="Labels that datapoints keep; by default all but those that `owner` and `key` contain.",
        examples=[["cpu", "mode"]],
    )
    drop: Annotated[tuple[LabelName, ...], Field(strict=False, max_length=256)] = Field(
        (), description="Labels that datapoints do not keep.", examples=[["job"]]
    )
    enabled: bool = Field(True, description="false places nothing.", examples=[True])

    @model_validator(mode="after")
    def _has_no_key_without_effect(self) -> Self:
        if self.keep is not None and self.drop:
            raise document_error("has both 'keep' and 'drop': keep one", "drop")
        if METRIC in PLACEHOLDER.findall(self.owner):
            raise document_error("has '{metric}' in 'owner', which is the name of the metric", "owner")
        return self
