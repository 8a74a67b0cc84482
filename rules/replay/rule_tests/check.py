"""Finds tests that prove nothing: they would pass, or fail, whatever the rules do.

Guarantee: every name of a test refers to a document of its rules, and everything that it gives and
expects lies between its start and its end. Each problem has its position. Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from itertools import chain

from pydantic import BaseModel

from rules.calc.rule_set import CalcRuleSet
from rules.documents.compiled_rules import CompiledRuleSet
from rules.documents.load.problems import RuleProblem, unknown_name
from rules.documents.load.yaml_tree import Path
from rules.documents.rule_book import RuleSet
from rules.language.cel import ExpressionInvalid, compile_matcher
from rules.replay.rule_tests.instants import absolute_instant, instant
from rules.replay.rule_tests.load import RuleTest
from rules.runbook import compile_runbook
from schemas.documents import (
    ActionDocument,
    CalcRuleDocument,
    ChannelDocument,
    DatapointTypeDocument,
    EventRuleDocument,
    HeartbeatDocument,
    SystemDocument,
)
from schemas.documents.rule_test import Given
from schemas.values.rule_ref import RuleRef

_ALARM_KEYS = ("acknowledge", "snooze", "unsnooze", "resolve", "opened", "changed", "resolved")
_ACTION_KEYS = ("fail", "report", "never_reported", "probe", "reply_to", "sent", "run")


def problems_of_test(test: RuleTest, rule_sets: Sequence[Sequence[BaseModel]]) -> list[RuleProblem]:
    """`rule_sets` are the documents of the rules, and of each later apply."""
    checker = _Checker(test, [RuleSet(documents) for documents in rule_sets])
    others = (checker.series_problems(), checker.matcher_problems())
    return sorted([*checker.time_problems(), *checker.name_problems(), *chain.from_iterable(others)])


class _Checker:
    def __init__(self, test: RuleTest, rule_sets: Sequence[RuleSet]) -> None:
        self._source, self._document = test.source, test.document
        self._start = absolute_instant(test.document.start)
        self._until = instant(test.document.until, self._start)
        self._compiled = [CompiledRuleSet(rules) for rules in rule_sets]
        self._calc = [CalcRuleSet(rules) for rules in rule_sets]
        self._steps: dict[str, set[str]] = {}
        self._rules, self._actions = set[str](), set[str]()
        self._systems, self._calc_rules = set[str](), set[str]()
        self._heartbeats = set[str]()
        for rules in rule_sets:
            self._add_names(rules)

    def _add_names(self, rules: RuleSet) -> None:
        for action in rules.of(ActionDocument).values():
            texts = {text for node in compile_runbook(action).nodes for text in (node.name, node.kind)}
            self._steps.setdefault(action.name, set()).update(texts)
        stale = (type for type in rules.of(DatapointTypeDocument).values() if type.on_stale == "alarm")
        self._rules |= {*rules.of(EventRuleDocument), *(str(RuleRef("stale", type.name)) for type in stale)}
        self._heartbeats |= set(rules.of(HeartbeatDocument))
        self._rules |= {str(RuleRef("heartbeat", name)) for name in self._heartbeats}
        self._actions |= {
            *rules.of(ActionDocument),
            *(f"notify-{channel}" for channel in rules.of(ChannelDocument)),
        }
        self._systems |= set(rules.of(SystemDocument))
        self._calc_rules |= set(rules.of(CalcRuleDocument))

    def time_problems(self) -> Iterator[RuleProblem]:
        document = self._document
        if not document.expect and not document.nothing_else:
            message = f"{self._source.title} expects nothing: add 'expect', or 'nothing_else: [opened]'"
            yield self._source.problem(self._source.validated.key, message)
        if self._until < self._start:
            yield self._problem(("until",), f"'until' of {self._source.title} lies before 'start'")
            return
        for index, given in enumerate(document.given):
            if self._is_after_end(given.at):
                yield self._problem(
                    ("given", index, "at"), self._place("given", index, "comes after 'until'")
                )
        for index, expected in enumerate(document.expect):
            if expected.at is not None and self._is_after_end(expected.at):
                text = self._place("expect", index, "expects something after 'until'")
                yield self._problem(("expect", index, "at"), text)

    def name_problems(self) -> Iterator[RuleProblem]:
        entries: list[tuple[Path, BaseModel]] = [
            *((("given", index), given) for index, given in enumerate(self._document.given)),
            *((("expect", index), expected) for index, expected in enumerate(self._document.expect)),
        ]
        for path, entry in entries:
            for keys, kind, known in (
                (_ALARM_KEYS, "rule", self._rules),
                (_ACTION_KEYS, "action", self._actions),
                (("health",), "system", self._systems),
                (("calculated",), "calc_rule", self._calc_rules),
                (("check_in",), "heartbeat", self._heartbeats),
            ):
                for key in keys:
                    yield from self._unknown((*path, key), kind, getattr(entry, key, None), known)
            if isinstance(entry, Given):
                yield from self._step_problems(path, entry)
        only = self._document.only
        if only is not None:
            for name in only.action:
                yield from self._unknown(("only", "action"), "action", name, self._actions)
            for name in only.rule:
                yield from self._unknown(("only", "rule"), "rule", name, self._rules)

    def series_problems(self) -> Iterator[RuleProblem]:
        for index, given in enumerate(self._document.given):
            key = given.series
            if key is None or any(rules.reads(key) for rules in self._calc):
                continue
            if not any(_covers(rules, given.owner, key) for rules in self._compiled):
                message = (
                    f"no rule, datapoint_type or system of {self._source.title} covers the series '{key}'"
                )
                yield self._problem(("given", index, "series"), message)

    def matcher_problems(self) -> Iterator[RuleProblem]:
        for index, given in enumerate(self._document.given):
            matchers = {
                ("silence", "where"): given.silence.where if given.silence is not None else None,
                ("expire",): given.expire,
            }
            for path, text in matchers.items():
                if text is not None:
                    try:
                        compile_matcher(text)
                    except ExpressionInvalid as invalid:
                        yield from self._source.problems_inside(("given", index, *path), invalid.errors)

    def _step_problems(self, path: Path, given: Given) -> Iterator[RuleProblem]:
        action = given.fail or given.report or given.probe or ""
        steps = self._steps.get(action)
        if given.step is not None and steps is not None:
            kind = f"step '{given.step}' of action '{action}'"
            for problem in self._unknown((*path, "step"), "step", given.step, steps):
                yield problem._replace(message=problem.message.replace(f"step '{given.step}'", kind, 1))

    def _unknown(
        self, path: Path, kind: str, name: str | None, known: Collection[str]
    ) -> Iterator[RuleProblem]:
        if name is not None and name not in known:
            yield self._problem(path, unknown_name(kind, name, self._source.title, known))

    def _is_after_end(self, at: str) -> bool:
        return self._instant(at) > self._until

    def _instant(self, text: str) -> datetime:
        return instant(text, self._start)

    def _place(self, key: str, index: int, text: str) -> str:
        return f"'{key}.{index}' of {self._source.title} {text}"

    def _problem(self, path: Path, message: str) -> RuleProblem:
        return self._source.problem(self._source.body.at(path), message)


def _covers(rules: CompiledRuleSet, owner: str, key: str) -> bool:
    is_read = rules.types.of(key) is not None or bool(rules.for_key(key))
    return is_read or bool(rules.members.of_series(owner, key, rules))
