"""`tocsin plan` is readable, complete and changes nothing; `apply --prune` removes only with consent."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rules.apply.plan import StoredDocument, plan_changes
from rules.apply.preview import AlarmEnd, Preview
from rules.apply.schedules import NextFires
from rules.documents.load import load_text
from tests.cli.conftest import CommandLine
from tests.cli.terminal import TOCSIN, Terminal
from tests.paths import ROOT
from tests.rules.apply.apply_setup import T0, action, rule, schedule
from tests.rules.lanes.arrivals import hot
from tocsin.cli.rules.plan_text import plan_lines

_LONG = 'type == "noted" && owner.startsWith("plant-") && payload.count > 3 && payload.kind == "sensor" || seq > 9'


def lines(after: str, before: str = "", *, prune: bool = False) -> list[str]:
    known = load_text(before).documents if before else ()
    stored = [StoredDocument(document.kind, document.name, 1, document.data, True) for document in known]
    return list(plan_lines(Preview(plan_changes(load_text(after), stored, prune=prune), {}, (), {})))


def test_an_added_document_is_shown_without_defaults() -> None:
    assert lines(schedule("beat", extra="  payload: {a: [1, null]}\n")) == [
        "+ schedule beat",
        '    every: "10s"',
        '    payload: {"a": [1, null]}',
        "1 added",
    ]


def test_a_change_shows_old_and_new_by_key() -> None:
    before = schedule("beat", extra="  payload: {a: {b: 1}}\n  owner: x\n")
    after = schedule("beat", "20s", extra="  payload: {a: {b: 2}, c: 3}\n")
    assert lines(after, before) == [
        "~ schedule beat",
        '    every: "10s" -> "20s"',
        '    owner: "x" -> ""',
        "    payload.a.b: 1 -> 2",
        "    + payload.c: 3",
        "1 changed",
    ]


def test_a_long_condition_is_compared_clause_by_clause() -> None:
    base = action("tell")
    before, after = rule("each", "tell", _LONG), rule("each", "tell", _LONG.replace("> 3", "> 5"))
    assert lines(base + after, base + before) == [
        "~ action_rule each",
        "    when:",
        '        type == "noted"',
        '        && owner.startsWith("plant-")',
        "      - && payload.count > 3",
        "      + && payload.count > 5",
        '        && payload.kind == "sensor"',
        "        || seq > 9",
        "1 changed, 1 unchanged",
    ]


def test_a_text_of_several_lines_is_compared_line_by_line() -> None:
    def said(middle: str) -> str:
        return f"---\naction:\n  name: tell\n  log:\n    message: |\n      one\n      {middle}\n      three\n"

    assert lines(said("2"), said("two")) == [
        "~ action tell",
        "    log.message:",
        "        one",
        "      - two",
        "      + 2",
        "        three",
        "1 changed",
    ]


def test_a_removed_document_is_named_with_the_alarms_that_it_resolves() -> None:
    stored = [
        StoredDocument(document.kind, document.name, 1, document.data, True)
        for document in load_text(hot()).documents
    ]
    ends = (
        AlarmEnd("hot", "plant-7", T0, "resolved", "rule-removed"),
        AlarmEnd("hot", "", T0, "dropped", "rule-removed"),
        AlarmEnd("elsewhere", "a\x1b[2J", T0, "resolved", "rule-changed"),
    )
    found = list(plan_lines(Preview(plan_changes(load_text(action("x")), stored, prune=True), {}, ends, {})))
    assert found[2:] == [
        "- event_rule hot",
        "    resolves the alarm of plant-7 (since 2026-03-02 08:00:00Z): rule-removed",
        "    drops the pending alarm (since 2026-03-02 08:00:00Z): rule-removed",
        "resolves the alarm of a\\x1b[2J (since 2026-03-02 08:00:00Z): rule-changed",
        "1 added, 1 removed",
    ]


def test_the_plan_in_the_docs_is_real() -> None:
    def digest(hour: int) -> str:
        times = f'  cron: "0 {hour} * * MON-FRI"\n  tz: America/New_York\n'
        return f"---\nschedule:\n  name: daily-digest\n{times}"

    kept = "".join(action(f"a{number}") for number in range(12))
    known = load_text(digest(8) + hot(name="dsp-hot") + kept).documents
    stored = [StoredDocument(document.kind, document.name, 1, document.data, True) for document in known]
    days = [datetime(2026, 3, day, tzinfo=UTC) for day in (2, 3, 4)]
    old, new = (tuple(day + timedelta(hours=hour + 5) for day in days) for hour in (8, 9))
    seen = Preview(
        plan_changes(load_text(digest(9) + kept), stored, prune=True),
        {("schedule", "daily-digest"): NextFires("America/New_York", old, new)},
        (
            AlarmEnd(
                "dsp-hot", "plant-7", datetime(2026, 3, 1, 22, 10, tzinfo=UTC), "resolved", "rule-removed"
            ),
        ),
        {},
    )
    assert "\n".join(plan_lines(seen)) in (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")


def test_a_plan_without_changes() -> None:
    assert lines(action("tell"), action("tell")) == ["no changes: 1 unchanged"]


def _file(folder: Path, text: str, name: str = "rules.yaml") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_plan_shows_fires_and_applies_nothing(tocsin: CommandLine, tmp_path: Path) -> None:
    cron = "---\nschedule:\n  name: digest\n  cron: '{}'\n  tz: America/New_York\n"
    file = _file(tmp_path, cron.format("0 8 * * *"))
    added = tocsin("plan", file)
    assert added.lines[0] == "+ schedule digest"
    assert added.lines[3].startswith("    next fires: ")
    assert added.lines[3].count("08:00:00 E") == 3
    assert tocsin("schedules", "--json").json == []
    tocsin("apply", file)
    assert tocsin("plan", file).lines == ["no changes: 1 unchanged"]
    changed = tocsin("plan", _file(tmp_path, cron.format("0 9 * * *")))
    assert changed.lines[1] == '    cron: "0 8 * * *" -> "0 9 * * *"'
    assert changed.lines[2].count("09:00:00 E") == 3
    assert changed.lines[3].startswith("    instead of: ")
    assert changed.lines[3].count("08:00:00 E") == 3


def test_the_exit_code_shows_changes_if_asked_for(tocsin: CommandLine, tmp_path: Path) -> None:
    file = _file(tmp_path, action("tell"))
    tocsin("plan", file)
    tocsin("plan", file, "--exit-code", exit_code=3)
    tocsin("apply", file)
    tocsin("plan", file, "--exit-code")
    tocsin("plan", _file(tmp_path, "nonsense: {}", "bad.yaml"), "--exit-code", exit_code=1)


def test_plan_as_json_is_complete(tocsin: CommandLine, tmp_path: Path) -> None:
    tocsin("apply", _file(tmp_path, action("tell", "one") + schedule("gone")))
    found = tocsin("plan", _file(tmp_path, action("tell", "two") + action("new")), "--prune", "--json").json
    assert found["counts"] == {"added": 1, "changed": 1, "removed": 1}
    changed, added, removed = found["changes"]
    assert changed == {
        "kind": "action",
        "name": "tell",
        "outcome": "changed",
        "differences": [{"path": "log.message", "old": "one", "new": "two"}],
    }
    assert (added["outcome"], added["document"]["log"]["message"]) == ("added", "hello")
    assert (removed["kind"], removed["name"], removed["outcome"]) == ("schedule", "gone", "removed")
    assert (len(removed["fires"]["old"]), removed["fires"]["new"]) == (3, [])
    assert found["alarms"] == []


def test_nothing_is_removed_without_consent(tocsin: CommandLine, tmp_path: Path) -> None:
    tocsin("apply", _file(tmp_path, action("tell") + schedule("gone")))
    rest = _file(tmp_path, action("tell"))
    assert tocsin("apply", rest).lines == ["nothing changed"]
    refused = tocsin("apply", rest, "--prune", exit_code=1)
    assert refused.err == (
        "tocsin: this would remove schedule gone: look at `tocsin plan --prune`, then add --yes\n"
    )
    assert tocsin("schedules", "--json").json[0]["status"] == "active"
    done = tocsin("apply", rest, "--prune", "--yes")
    assert done.lines[1].split() == ["removed", "schedule", "gone"]
    assert done.lines[-1] == "applied at seq 2"
    assert tocsin("schedules", "--json").json[0]["status"] == "cancelled"
    assert tocsin("apply", rest, "--prune").lines == ["nothing changed"]


@pytest.mark.parametrize(
    ("key", "exit_code", "status"),
    [(b"y\n", 0, "cancelled"), (b"n\n", 1, "active"), (b"\x03", 130, "active")],
    ids=["y", "n", "Ctrl-C"],
)
def test_on_a_terminal_it_asks(
    tocsin: CommandLine, tmp_path: Path, key: bytes, exit_code: int, status: str
) -> None:
    tocsin("apply", _file(tmp_path, action("tell") + schedule("gone")))
    command = (*TOCSIN, "apply", _file(tmp_path, action("tell")), "--prune")
    with Terminal(command, tocsin.environment) as terminal:
        while "apply this? [y/N] " not in terminal.written:
            assert terminal.read()
        terminal.press(key)
        assert terminal.wait() == exit_code
    assert "- schedule gone" in terminal.written
    assert tocsin("schedules", "--json").json[0]["status"] == status


def test_with_prune_what_a_file_names_must_be_in_the_files(tocsin: CommandLine, tmp_path: Path) -> None:
    tocsin("apply", _file(tmp_path, action("tell")))
    file = _file(tmp_path, rule("each", "tell"))
    tocsin("plan", file)
    assert "unknown action 'tell'" in tocsin("plan", file, "--prune", exit_code=1).err
