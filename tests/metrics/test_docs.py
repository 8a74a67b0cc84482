"""The docs list the metrics of the code, and the alerts of the docs use metrics that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml

from tests.paths import ROOT
from tocsin.cli.metrics import groups_of
from tocsin.core.metrics import Family
from tocsin.metrics.database_metrics import DatabaseMetrics
from tocsin.metrics.exposition import ProcessMetrics

_PAGE = ROOT / "docs" / "operating.md"
_ROW = re.compile(r"^\| `tocsin_\w+` \| (?:counter|gauge|histogram) \|.*$", re.MULTILINE)
_ALERTS = re.compile(r"^```text\n(groups:.*?)^```", re.MULTILINE | re.DOTALL)


def families() -> Iterator[Family]:
    groups = [ProcessMetrics().metrics, *groups_of(["clock", "cdc", "worker"]), DatabaseMetrics().metrics]
    return (family for group in groups for family in group.families.values())


def row(family: Family) -> str:
    return f"| `{family.name}` | {family.type} | {', '.join(family.labels)} | {family.help} |"


def test_the_docs_list_every_metric_as_the_code_has_it() -> None:
    assert _ROW.findall(_PAGE.read_text()) == [row(family) for family in families()]


def test_names_have_our_prefix_base_units_and_no_repetition() -> None:
    names = [family.name for family in families()]
    assert len(names) == len(set(names))
    assert all(name.startswith("tocsin_") for name in names)
    assert not [name for name in names if re.search(r"_(ms|us|minutes|hours|s)(_total)?$", name)]
    assert all(family.name.endswith("_seconds") for family in families() if family.type == "histogram")


def test_alerts_use_metrics_and_labels_that_exist() -> None:
    (text,) = _ALERTS.findall(_PAGE.read_text())
    rules = [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]
    assert len(rules) >= 3
    known = {family.name: family.labels for family in families()}
    for rule in rules:
        named = re.findall(r"(tocsin_[a-z_]+)(?:\{([^}]*)\})?", rule["expr"])
        assert named
        for name, labels in named:
            assert name in known, rule["alert"]
            assert set(re.findall(r"(\w+)=", labels)) <= set(known[name])
