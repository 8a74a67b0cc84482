"""Every snippet in README and docs works: YAML loads, commands exist, SQL runs, links have a target."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from rules.documents.load import load_text
from rules.replay.rule_tests.rule_tests import RuleTests, load_tests
from tocsin.cli.app import SECTIONS
from tocsin.core.db import Connection
from tocsin.core.settings import OTHER_VARIABLE, read_settings

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "ARCHITECTURE.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
DEPLOYMENT_PAGES = sorted((ROOT / "deploy").rglob("*.md"))
_FENCED = re.compile(r"^```(\w+(?: \w+)?)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)]+)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_SETTING = re.compile(r"^\| `TOCSIN_([A-Z_]+)` \| (?:`([^`]*)`)? ?\|", re.MULTILINE)
_COMMAND = re.compile(r"(?:^|`)tocsin ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?", re.MULTILINE)


def snippets(language: str) -> Iterator[tuple[str, str]]:
    for page in PAGES:
        for found, text in _FENCED.findall(page.read_text()):
            if found == language:
                yield page.name, text


@pytest.mark.parametrize(("page", "text"), list(snippets("yaml")))
def test_every_yaml_snippet_loads_and_can_be_stored(page: str, text: str) -> None:
    loaded = load_text(text, file=page)
    assert loaded.documents
    for document in loaded.documents:
        assert type(document.model).model_validate(document.data) == document.model


@pytest.mark.parametrize(("page", "text"), list(snippets("yaml test")))
def test_every_rule_test_in_the_docs_passes(tmp_path: Path, page: str, text: str) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "docs" / page).with_suffix(".yaml").write_text(text)
    (test,) = load_tests([(tmp_path / "docs" / page).with_suffix(".yaml")])
    result = RuleTests().run(test)
    assert result.passed, (result.missing, result.unexpected, result.error)


def commands() -> list[str]:
    return sorted({match.group(1) for page in PAGES for match in _COMMAND.finditer(page.read_text())})


def test_every_command_named_in_the_docs_exists() -> None:
    shown = {name for section in SECTIONS.values() for name in section}
    assert set(commands()) - shown == set()


def test_the_page_about_the_command_line_has_every_command_in_its_section() -> None:
    page = (ROOT / "docs" / "command-line.md").read_text()
    listed = {
        section: re.findall(
            r"^\| `tocsin ([a-z-]+)", page.partition(f"\n## {section}\n")[2].partition("\n## ")[0], re.M
        )
        for section in SECTIONS
    }
    assert listed == {section: list(names) for section, names in SECTIONS.items()}


@pytest.mark.parametrize(
    ("page", "target"),
    [
        (page, target)
        for page in (*PAGES, *DEPLOYMENT_PAGES)
        for target in _LINK.findall(page.read_text())
        if "://" not in target
    ],
    ids=lambda value: value.name if isinstance(value, Path) else value,
)
def test_every_link_has_a_target(page: Path, target: str) -> None:
    path, _, anchor = target.partition("#")
    file = page.parent / path if path else page
    assert file.exists()
    assert not anchor or anchor in anchors(file)


def anchors(page: Path) -> set[str]:
    """Anchors of the headings, as GitHub and GitLab derive them."""
    headings = _HEADING.findall(page.read_text())
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(("page", "text"), list(snippets("sql")))
async def test_every_sql_snippet_runs(connection: Connection, page: str, text: str) -> None:
    cursor = await connection.execute(text.encode())
    assert cursor.rowcount >= 0, page


def test_every_setting_named_in_the_docs_exists() -> None:
    named = {name for page in PAGES for name in re.findall(r"TOCSIN_[A-Z_]+", page.read_text())}
    known = {f"TOCSIN_{name.upper()}" for name in type(read_settings()).model_fields}
    assert {name for name in named - known if not OTHER_VARIABLE.match(name)} == set()


def test_every_setting_is_documented_with_its_default() -> None:
    page = (ROOT / "docs" / "operating.md").read_text()
    fields = type(read_settings()).model_fields
    defaults = {name: field.default for name, field in fields.items()}
    shown = {
        name.upper(): f"{default:.12g}" if isinstance(default, int | float) else default
        for name, default in defaults.items()
    }
    assert dict(_SETTING.findall(page)) == shown


def test_every_log_message_named_in_the_docs_exists() -> None:
    named = {name for page in PAGES for name in re.findall(r"`([^`]+)` in the log", page.read_text())}
    packages = ("cdc", "clock", "rules", "timers", "tocsin")
    sources = "".join(path.read_text() for name in packages for path in (ROOT / name).rglob("*.py"))
    assert named
    assert [name for name in sorted(named) if f'"{name}"' not in sources] == []


_MODULE = re.compile(r"\b((?:clock|timers|cdc|rules|schemas|migrations|tocsin|docs|bench)(?:/[\w.-]+)+/?)")


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_every_module_that_a_page_names_exists(page: str) -> None:
    named = set(_MODULE.findall((ROOT / page).read_text()))
    assert named
    missing = [
        name
        for name in sorted(named)
        if not (ROOT / name).exists() and not (ROOT / name).with_suffix(".py").exists()
    ]
    assert missing == []
