"""Prometheus rules: each construct with its translation, or with the reason why it has none."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from rules.documents.load import load_text
from rules.importer import ImportedRule, translate_prometheus
from tocsin.core.errors import InvalidInput


def rule_file(*rules: dict[str, Any], **group: Any) -> dict[str, str]:
    return {"alerts.yml": yaml.safe_dump({"groups": [{"name": "g", "rules": list(rules), **group}]})}


def translated(expression: str, **rule: Any) -> ImportedRule:
    (imported,) = translate_prometheus(rule_file({"alert": "A", "expr": expression, **rule})).rules
    return imported


def documents(expression: str, **rule: Any) -> list[dict[str, Any]]:
    imported = translated(expression, **rule)
    assert imported.problem == ""
    return [{kind: dict(document)} for kind, document in imported.documents]


def condition(expression: str) -> tuple[str, dict[str, Any], list[str]]:
    """The value, inputs and groups of the last calc_rule of an alert."""
    calculated = [document["calc_rule"] for document in documents(expression) if "calc_rule" in document]
    return calculated[-1]["value"], calculated[-1]["inputs"], calculated[-1]["by"]


def test_an_alert_over_one_series_is_one_event_rule() -> None:
    assert documents(
        'node_load1{job="node"} > 0.9',
        **{"for": "5m", "keep_firing_for": "90s", "labels": {"severity": "page"}},
    ) == [
        {
            "event_rule": {
                "name": "a",
                "datapoint": "node_load1",
                "where": '"job" in labels && labels["job"] == "node"',
                "above": 0.9,
                "for": "5m",
                "keep_firing_for": "1m30s",
                "severity": "critical",
            }
        }
    ]


@pytest.mark.parametrize(
    ("expression", "fields"),
    [
        ("x < 5", {"below": 5.0}),
        ("x == 0", {"fire": "value == 0.0"}),
        ("x != 1", {"fire": "value != 1.0"}),
        ("x > 60 * 60", {"above": 3600.0}),
        ("x > -1", {"above": -1.0}),
        ("avg_over_time(x[10m]) > 3", {"above": 3.0, "window": {"over": "10m", "reduce": "avg"}}),
    ],
)
def test_thresholds_of_one_series(expression: str, fields: dict[str, Any]) -> None:
    (document,) = documents(expression)
    assert document["event_rule"] == {"name": "a", "datapoint": "x", "severity": "warning", **fields}


@pytest.mark.parametrize(
    ("expression", "value", "inputs", "by"),
    [
        ("sum by (job) (rate(x[5m])) > 1", "a", {"a": {"key": "x", "each": "rate", "over": "5m"}}, ["job"]),
        ("sum(x) > 1", "a", {"a": {"key": "x"}}, []),
        ("count by (instance) (x) > 1", "a", {"a": {"key": "x", "aggregate": "count"}}, ["owner"]),
        ("quantile(0.9, x) > 1", "a", {"a": {"key": "x", "aggregate": "quantile(0.9)"}}, []),
        (
            "sum(x) / sum(y) > 1",
            "a / b",
            {"a": {"key": "x"}, "b": {"key": "y"}},
            [],
        ),
        (
            "x / y > 1",
            "a / b",
            {"a": {"key": "x", "aggregate": "max"}, "b": {"key": "y", "aggregate": "max"}},
            ["owner"],
        ),
        (
            "predict_linear(x[1h], 4 * 3600) < 0",
            "a",
            {"a": {"key": "x", "each": "predict_linear(4h)", "over": "1h", "aggregate": "min"}},
            ["owner"],
        ),
        (
            "absent(x{job='j'})",
            "a > 0.0",
            {
                "a": {
                    "key": "x",
                    "where": '"job" in labels && labels["job"] == "j"',
                    "over": "5m",
                    "aggregate": "absent",
                }
            },
            [],
        ),
        (
            "histogram_quantile(0.99, sum by (le, job) (rate(x_bucket[5m]))) > 2",
            "a",
            {"a": {"key": "x_bucket", "each": "rate", "over": "5m", "aggregate": "histogram_quantile(0.99)"}},
            ["job"],
        ),
        (
            "time() - sum(x) > 60",
            "now - a",
            {"a": {"key": "x"}},
            [],
        ),
        (
            "sum(x) > sum(x offset 1d)",
            "a > b",
            {"a": {"key": "x"}, "b": {"key": "x", "offset": "1d"}},
            [],
        ),
        (
            "sum(x) > 1 and sum(y) < 2",
            "(a > 1.0) && (b < 2.0)",
            {"a": {"key": "x"}, "b": {"key": "y"}},
            [],
        ),
        (
            "sum(x) > 1 unless sum(y) > 2",
            "(a > 1.0) && !(b > 2.0)",
            {"a": {"key": "x"}, "b": {"key": "y"}},
            [],
        ),
        (
            "(sum(x) or vector(0)) > 1",
            "a",
            {"a": {"key": "x", "default": 0.0}},
            [],
        ),
        ("abs(sum(x)) > 1", "a < 0.0 ? -a : a", {"a": {"key": "x"}}, []),
        ("clamp_max(sum(x), 5) > 1", "a > 5.0 ? 5.0 : a", {"a": {"key": "x"}}, []),
        ("clamp_min(sum(x), 5) > 6", "a < 5.0 ? 5.0 : a", {"a": {"key": "x"}}, []),
        ("sum(x) / (sum(y) > 0) > 1", "a / b", {"a": {"key": "x"}, "b": {"key": "y"}}, []),
        ("sum(x) * (sum(y) + 1) > 1", "a * (b + 1.0)", {"a": {"key": "x"}, "b": {"key": "y"}}, []),
    ],
)
def test_formulas(expression: str, value: str, inputs: dict[str, Any], by: list[str]) -> None:
    assert condition(expression) == (value, inputs, by)


def test_an_aggregate_of_an_aggregate_reads_a_calc_rule_of_its_own() -> None:
    inner, outer, rule = documents("max(sum by (job) (x)) > 3")
    assert inner["calc_rule"] == {
        "name": "a-part-1",
        "inputs": {"a": {"key": "x"}},
        "by": ["job"],
        "every": "1m",
        "value": "a",
    }
    assert outer["calc_rule"]["inputs"] == {"a": {"key": "calc.a-part-1", "aggregate": "max"}}
    assert rule["event_rule"]["datapoint"] == "calc.a"


def test_values_that_pass_a_condition_are_counted() -> None:
    inner, outer, _ = documents("count(x == 0) > 3")
    assert inner["calc_rule"]["value"] == "(a == 0.0) ? 1.0 : 0.0"
    assert "aggregate" not in outer["calc_rule"]["inputs"]["a"]


def test_a_rule_reads_a_recorded_metric_also_before_its_rule() -> None:
    reading = {"alert": "A", "expr": "job:x:sum > 1"}
    recording = {"record": "job:x:sum", "expr": "sum by (job) (x)"}
    first, second = translate_prometheus(rule_file(reading, recording, interval="15s")).rules
    assert first.documents[0].document["datapoint"] == "calc.job-x-sum"
    assert second.documents[0].document["name"] == "job-x-sum"
    assert second.documents[0].document["every"] == "15s"


def test_what_reads_an_untranslated_metric_has_no_translation() -> None:
    chain = (
        {"alert": "A", "expr": "second > 1"},
        {"record": "second", "expr": "sum(first)"},
        {"record": "first", "expr": "topk(3, x)"},
    )
    assert [rule.problem for rule in translate_prometheus(rule_file(*chain)).rules] == [
        "it reads 'second', whose recording rule has no translation",
        "it reads 'first', whose recording rule has no translation",
        "'topk' has no translation",
    ]


def test_rules_that_read_each_other_have_no_translation() -> None:
    circle = ({"record": "a", "expr": "sum(b)"}, {"record": "b", "expr": "sum(a)"})
    for rule in translate_prometheus(rule_file(*circle)).rules:
        assert "which reads it, directly or through others" in rule.problem


def test_a_metric_that_two_rules_record_is_ambiguous_without_matchers() -> None:
    twice = (
        {"record": "m", "expr": "sum(x)"},
        {"record": "m", "expr": "sum(y)"},
        {"alert": "A", "expr": "m > 1"},
    )
    problems = [rule.problem for rule in translate_prometheus(rule_file(*twice)).rules]
    assert problems == ["", "", "it reads 'm', which 2 rules record: its matchers do not choose one of them"]


def test_the_labels_of_recording_rules_choose_the_one_that_is_read() -> None:
    rules = (
        {"record": "m", "expr": "sum(x)", "labels": {"verb": "read"}},
        {"record": "m", "expr": "sum(y)", "labels": {"verb": "write"}},
        {"alert": "Reads", "expr": 'sum(m{verb="read"}) > 1'},
        {"alert": "Writes", "expr": 'sum(m{verb=~"w.*", zone="n"}) > 1'},
        {"alert": "NotReads", "expr": 'sum(m{verb!="read"}) > 1'},
        {"alert": "None", "expr": 'sum(m{verb="delete"}) > 1'},
    )
    *translated, unknown = translate_prometheus(rule_file(*rules)).rules
    inputs = [rule.documents[0].document["inputs"]["a"] for rule in translated]
    assert [(one["key"], one.get("where")) for one in inputs] == [
        ("x", None),
        ("y", None),
        ("calc.m", None),
        ("calc.m-2", '"zone" in labels && labels["zone"] == "n"'),
        ("calc.m-2", None),
    ]
    assert unknown.problem == "it reads 'm', which no rule records with these labels"


def test_labels_of_messages_are_groups_and_the_owner_is_not_a_label() -> None:
    summary = "{{ $labels.instance }}: {{ $labels.device }} at {{ $value | humanize }}"
    calculated, rule = documents("x / y > 1", annotations={"summary": summary})
    assert calculated["calc_rule"]["by"] == ["owner", "device"]
    assert rule["event_rule"]["message"] == "{{ owner }}: {{ labels.device }} at {{ value }}"


def test_another_label_can_be_the_owner() -> None:
    files = rule_file({"alert": "A", "expr": 'sum by (pod) (x{pod="p"}) > 1'})
    (rule,) = translate_prometheus(files, owner_label="pod").rules
    document = rule.documents[0].document
    assert (document["by"], document["inputs"]["a"]["where"]) == (["owner"], 'owner == "p"')


@pytest.mark.parametrize(
    ("matcher", "where"),
    [
        ('a="b"', '"a" in labels && labels["a"] == "b"'),
        ('a!="b"', '(!("a" in labels) || labels["a"] != "b")'),
        ('a=~"b|c"', '"a" in labels && labels["a"].matches("^(?:b|c)$")'),
        ('a!~"b"', '(!("a" in labels) || !labels["a"].matches("^(?:b)$"))'),
        ('a=""', '!("a" in labels)'),
        ('a!=""', '"a" in labels'),
        ('a=~".*"', '(!("a" in labels) || labels["a"].matches("^(?:.*)$"))'),
        ('instance="i"', 'owner == "i"'),
    ],
)
def test_matchers(matcher: str, where: str) -> None:
    (document,) = documents(f"x{{{matcher}}} > 1")
    assert document["event_rule"]["where"] == where


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("topk(3, x) > 1", "'topk' has no translation"),
        ("x > 1 >", "its expression cannot be parsed"),
        ('{__name__=~"x.*"} > 1', "it selects metrics by a pattern of their names"),
        ("x @ 1609746000 > 1", "'@' fixes a time"),
        ("x * on (job) group_left (a) y > 1", "it joins many series with one"),
        ("sum by (a) (x) / sum by (b) (y) > 1", "it joins groups by (a) with groups by (b)"),
        ("sum(x offset -1h) > 1", "a negative 'offset' reads the future"),
        ("sum(x > 3) > 1", "'sum' of the values that pass a condition"),
        ("vector(1) > 2", "it reads no series"),
        ("x > Inf", "it has an infinite number or NaN"),
        ("x + " * 2_000 + "x > 1", "its expression has more than 4,000 characters"),
        ("-" * 1_000 + "x > 1", "it is nested more than 50 levels deep"),
        (" + ".join(f"sum(x{number})" for number in range(20)) + " > 1", "it reads 20 different inputs"),
    ],
)
def test_what_has_no_translation_says_why(expression: str, problem: str) -> None:
    rule = translated(expression)
    assert problem in rule.problem
    assert not rule.documents


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ({"expr": "x > 1"}, "it has neither 'alert' nor 'record'"),
        ({"alert": "A"}, "its expression cannot be parsed"),
        ({"alert": "A", "expr": ["x"]}, "its expression cannot be parsed"),
        ({"alert": "A", "expr": "x > 1", "for": "soon"}, "the duration 'soon' cannot be read"),
    ],
)
def test_a_rule_that_is_no_rule_says_why(rule: dict[str, Any], problem: str) -> None:
    (imported,) = translate_prometheus(rule_file(rule)).rules
    assert problem in imported.problem


def test_one_untranslatable_rule_does_not_hinder_others() -> None:
    translation = translate_prometheus(
        rule_file({"alert": "Odd", "expr": "topk(3, x) > 1"}, {"alert": "Plain", "expr": "x > 1"})
    )
    assert [rule.is_translated for rule in translation.rules] == [False, True]


def test_assumptions_are_notes() -> None:
    assert translated("sum without (cpu) (irate(x[5m])) > 1").notes == [
        "'without (cpu)' is translated as 'by (instance)'",
        "'irate' is translated as 'rate'",
    ]
    assert "the severity 'odd' is unknown" in translated("x > 1", labels={"severity": "odd"}).notes[0]


def test_a_text_with_functions_of_go_is_left_out_with_a_note() -> None:
    rule = translated("x > 1", annotations={"summary": '{{ with query "y" }}{{ . }}{{ end }}'})
    assert "message" not in rule.documents[0].document
    assert "the summary is not translated" in rule.notes[0]


def test_the_metrics_get_types_with_the_labels_that_rules_mention() -> None:
    translation = translate_prometheus(
        rule_file(
            {"alert": "A", "expr": 'sum by (job) (rate(x_total{code="500"}[5m])) > 1'},
            {"alert": "B", "expr": "histogram_quantile(0.9, sum by (le) (rate(d_bucket[5m]))) > 1"},
            {"alert": "C", "expr": "plain > 1"},
        )
    )
    assert [document for _, document in translation.types] == [
        {"name": "d-bucket", "key": "d_bucket", "counter": True, "dimensions": ["le"]},
        {"name": "x-total", "key": "x_total", "counter": True, "dimensions": ["code", "job"]},
    ]


def test_a_file_names_its_sources_and_is_valid() -> None:
    rules = rule_file(
        {"record": "job:x:sum", "expr": "sum by (job) (x)"},
        {"alert": "A", "expr": "job:x:sum\n  > 1"},
        {"alert": "A", "expr": "y > 1"},
    )
    text = translate_prometheus(rules).yaml()
    assert "# alerts.yml:4: sum by (job) (x)\n" in text
    assert "# alerts.yml:6: job:x:sum > 1\n" in text
    loaded = load_text(text)
    assert sorted(rule.name for rule in loaded.of_kind("event_rule")) == ["a", "a-2"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("groups: [", "alerts.yml:1:10: it is not YAML"),
        ("[]", "alerts.yml: it is not a Prometheus rule file: it has no 'groups'"),
        ("groups: 3", "it has no 'groups'"),
        ("[" * 5_000, "nested too deeply"),
    ],
)
def test_a_file_that_is_no_rule_file_is_refused(text: str, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem.replace("[", r"\[")):
        translate_prometheus({"alerts.yml": text})


def test_groups_and_rules_of_other_shapes_are_skipped() -> None:
    assert translate_prometheus({"a.yml": "groups: [3, {rules: 4}, {rules: [5]}]"}).rules == []


def test_aliases_that_multiply_a_text_stay_small() -> None:
    bomb = "x: &a [y, y]\n" + "".join(
        f"x{n}: &b{n} [*{'a' if not n else f'b{n - 1}'}, *{'a' if not n else f'b{n - 1}'}]\n"
        for n in range(60)
    )
    text = f"{bomb}groups: [{{rules: [{{alert: A, expr: *b59, annotations: {{summary: *b59}}}}]}}]"
    (rule,) = translate_prometheus({"a.yml": text}).rules
    assert "cannot be parsed" in rule.problem
