from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from schemas.documents import IngestMappingDocument
from schemas.documents.ingest_mapping import MetricSource
from schemas.values.series_key import series_key
from schemas.wire.datapoint import check_datapoint
from tocsin.protocols.placement import PlacedSamples, Placement, place_all
from tocsin.protocols.sample import ReadSamples, Sample


def mapping(**keys: Any) -> IngestMappingDocument:
    return IngestMappingDocument.model_validate({"name": "m", "owner": "{instance}"} | keys)


def placed(
    samples: list[Sample],
    *documents: IngestMappingDocument,
    source: MetricSource = "prometheus",
    dimensions: Sequence[str] = (),
) -> PlacedSamples:
    return place_all(
        ReadSamples(samples),
        Placement(source, documents),
        lambda key, labels: series_key(key, labels, dimensions),
    )


@pytest.mark.parametrize(
    ("source", "label"),
    [("prometheus", "instance"), ("otlp", "service.name"), ("influx", "host"), ("alertmanager", "instance")],
)
def test_without_a_mapping_the_label_that_clients_have_is_the_owner(source: MetricSource, label: str) -> None:
    (one,) = placed([Sample("up", {label: "web-1", "job": "node"}, 1.0)], source=source).placed
    assert (one.owner, one.key, one.sample.labels) == ("web-1", "up", {"job": "node"})


def test_a_mapping_places_by_labels_and_patterns() -> None:
    document = mapping(
        metrics=["node_*"], labels={"job": "no*"}, owner="{cluster}-{instance}", key="{dc}.node.{metric}"
    )
    labels = {"cluster": "eu", "instance": "a:9100", "job": "node", "dc": "ams.1", "cpu": "0"}
    (one,) = placed([Sample("node_load1", labels, 1.0)], document).placed
    assert (one.owner, one.key) == ("eu-a:9100", "ams_1.node.node_load1")
    assert one.sample.labels == {"job": "node", "cpu": "0"}


def test_the_first_mapping_by_name_decides() -> None:
    documents = [mapping(name="b", owner="second"), mapping(name="a", owner="first", metrics=["up"])]
    result = placed([Sample("up", {}, 1.0), Sample("down", {}, 1.0)], *documents)
    assert [one.owner for one in result.placed] == ["first", "second"]


def test_with_mappings_what_none_matches_is_skipped() -> None:
    result = placed([Sample("up", {"instance": "a"}, 1.0)], mapping(metrics=["node_*"]))
    assert (result.placed, result.skipped, result.problems) == ([], 1, [])


def test_a_disabled_mapping_and_one_for_another_protocol_do_not_count() -> None:
    documents = [mapping(name="a", enabled=False, owner="x"), mapping(name="b", sources=["otlp"], owner="y")]
    (one,) = placed([Sample("up", {"instance": "z"}, 1.0)], *documents).placed
    assert one.owner == "z"


def test_a_sample_without_the_label_of_the_owner_is_a_problem() -> None:
    result = placed([Sample("up", {}, 1.0)], mapping())
    assert result.problems == [
        "the metric 'up' has no label 'instance', which is part of the owner in ingest_mapping 'm': "
        "send it, or map the metric by another label"
    ]


@pytest.mark.parametrize(
    ("keys", "kept"),
    [
        ({}, {"cpu": "0", "mode": "idle"}),
        ({"keep": ["cpu"]}, {"cpu": "0"}),
        ({"drop": ["cpu"]}, {"mode": "idle"}),
    ],
)
def test_labels_are_kept_or_dropped(keys: dict[str, Any], kept: dict[str, str]) -> None:
    labels = {"instance": "a", "cpu": "0", "mode": "idle", "empty": ""}
    (one,) = placed([Sample("cpu", labels, 1.0)], mapping(**keys)).placed
    assert one.sample.labels == kept


def test_values_that_would_overwrite_each_other_are_all_rejected() -> None:
    samples = [Sample("cpu", {"instance": "a", "cpu": str(core)}, 1.0) for core in range(4)]
    result = placed([*samples, Sample("up", {"instance": "a"}, 1.0)], mapping())
    assert [one.key for one in result.placed] == ["up"]
    assert result.problems == [
        "the series 'cpu' of 'a' has several values, which differ in the labels cpu: name them as dimensions "
        "of a datapoint_type for this key, or drop them in the ingest_mapping"
    ]


def test_dimensions_keep_series_apart() -> None:
    samples = [Sample("cpu", {"instance": "a", "cpu": str(core)}, 1.0) for core in range(4)]
    assert len(placed(samples, mapping(), dimensions=["cpu"]).placed) == 4


def test_several_values_of_one_series_are_not_mixed() -> None:
    samples = [Sample("cpu", {"instance": "a", "cpu": "0"}, number) for number in range(4)]
    assert [one.sample.value for one in placed(samples, mapping()).placed] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "sample",
    [
        Sample("x" * 2_000, {"instance": "a"}, 1.0),
        Sample("up", {"instance": "a" * 200}, 1.0),
        Sample("up", {"instance": "a", "long": "b" * 300}, 1.0),
        Sample("up", {"instance": "a", "longer": "b" * 3_000}, 1.0),
        Sample("up", {"instance": "a"} | {f"l{number}": "b" for number in range(40)}, 1.0),
        Sample("calc.x", {"instance": "a"}, 1.0),
        Sample("system.health", {"instance": "a"}, 1.0),
        Sample("a..b", {"instance": "a"}, 1.0),
        Sample("up", {"instance": "a\0"}, 1.0),
        Sample("up", {"instance": "a"}, 2**64),
    ],
)
def test_what_a_worker_would_reject_is_a_problem(sample: Sample) -> None:
    result = placed([sample, Sample("ok", {"instance": "b"}, 1.0)], mapping())
    assert len(result.problems) == 1
    assert [one.owner for one in result.placed] == ["b"]


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"owner": "{instance"}, "not closed"),
        ({"owner": "{}"}, "empty braces"),
        ({"owner": "{metric}"}, "the name of the metric"),
        ({"keep": ["a"], "drop": ["b"]}, "both 'keep' and 'drop'"),
        ({"metrics": ["a*b*c*d*"]}, "more than 3"),
        ({"sources": ["graphite"]}, "sources"),
        ({"metrics": []}, "at least 1"),
    ],
)
def test_a_mapping_that_cannot_work_is_refused(keys: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        mapping(**keys)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@given(TEXTS, st.dictionaries(TEXTS, TEXTS, max_size=4), TEXTS)
def test_what_is_placed_is_accepted_by_workers(metric: str, labels: dict[str, str], instance: str) -> None:
    documents = [mapping(key="a.{metric}.{instance}")]
    result = placed([Sample(metric, labels | {"instance": instance}, 1.0)], *documents)
    assert len(result.placed) + len(result.problems) == 1
    for one in result.placed:
        check_datapoint(one.owner, {"key": one.key, "value": 1.0, "labels": one.sample.labels})
