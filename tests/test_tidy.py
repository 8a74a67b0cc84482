"""Style rules that a test can check. CONTRIBUTING.md has the others."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.replaced_words import REPLACED_WORDS, find_replaced_words, read_replacements

ROOT = Path(__file__).parents[1]
PACKAGES = ("tocsin", "clock", "timers", "cdc", "rules", "schemas", "migrations")
ALL = (*PACKAGES, "bench", "tests", "examples", "docs", "deploy", ".ci")
LONGEST_FILE = 400
LONGEST_FUNCTION = 60
VAGUE_NAMES = {"utils", "common", "helpers", "base", "util", "helper", "misc"}
# A noun that ends like a gerund, and the name of a command.
NOT_A_GERUND = {"ingest_mapping", "recording", "testing", "upcoming"}
VAGUE_BEGINNINGS = {"What", "Which", "How", "Where", "When", "Who", "Of", "By", "As"}
READS_A_CLOCK = {
    "datetime.now",
    "datetime.utcnow",
    "datetime.today",
    "date.today",
    "time.time",
    "time.time_ns",
}
SQL_READS_A_CLOCK = re.compile(
    r"\b(now\s*\(|current_timestamp|current_date|current_time\b|clock_timestamp|statement_timestamp"
    r"|transaction_timestamp|localtimestamp)",
    re.IGNORECASE,
)
# The one SQL function that reads a clock, and the table that exists before it; the schema has both.
MAY_READ_IN_SQL = {
    "migrations/versions/0001_time_settings_and_audit.sql": 1,
    "migrations/versions/0019_locks_guards_and_time.sql": 1,
    "migrations/sql/set_time_by_session.sql": 1,
    "migrations/sql/create_migration_table.sql": 1,
    "migrations/schema.sql": 2,
}
# The place of a statement's name in the arguments of a call.
NAMED_STATEMENT = {
    "statement": 0,
    "fetch_one": 1,
    "fetch_all": 1,
    "fetch_value": 1,
    "fetch_dict": 1,
    "fetch_dicts": 1,
}
LOOKS_LIKE_SQL = re.compile(
    r"\s*(select\s.+|insert\s+into\s.+|update\s+\S+\s+set\s.+|delete\s+from\s.+|create\s+(table|index|function|schema"
    r"|type|database|unique)\s.+|alter\s+(table|index|function)\s.+|with\s+\w+\s+as\s*\(.+)",
    re.IGNORECASE | re.DOTALL,
)
# See `tocsin.core.cancellation`.
SWALLOWS_CANCELLATIONS = {"asyncio.wait_for", "wait_for", "nats.connect", "AsyncConnectionPool"}
MAY_SLEEP = {"tests/wait.py", "tests/streams.py"}
MACHINE_PATHS = tuple("/" + name + "/" for name in ("root", "work", "home"))
# The lists of the replaced words, and a text by others.
LISTS_REPLACED_WORDS = {"docs/glossary.md", "tests/replaced_words.py", "tests/test_tidy.py", "LICENSE"}
# The old key of a document, which an error message names, and an account of the operating system.
MAY_USE_WORD = {
    ("rules/documents/load/validation.py", "edges"),
    ("tests/rules/documents/load/test_loader.py", "edges"),
    ("tocsin/embedded/account.py", "nobody"),
    ("tests/embedded/test_account.py", "nobody"),
}
UNFINISHED = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK")) + r")\b")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def files(*folders: str, ending: str = "") -> list[Path]:
    return sorted(
        path
        for folder in folders
        for path in (ROOT / folder).rglob(f"*{ending}")
        if path.is_file() and not {"__pycache__", "vendor"} & set(path.parts)
    )


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def python() -> list[Path]:
    return files(*PACKAGES, "bench", "tests", "examples", ending=".py")


def product() -> list[Path]:
    return files(*PACKAGES, ending=".py")


def texts() -> Iterator[tuple[Path, str]]:
    """Every text file, generated or not."""
    roots = [path for path in ROOT.iterdir() if path.is_file() and path.name != ".git"]
    for path in [*files(*ALL), *roots]:
        try:
            yield path, path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


def calls(module: ast.Module) -> Iterator[tuple[ast.Call, str]]:
    for node in ast.walk(module):
        if isinstance(node, ast.Call):
            yield node, ast.unparse(node.func)


def functions(module: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def docstrings(module: ast.Module) -> set[int]:
    """The string nodes that are docstrings and not data."""
    return {id(node.value) for node in ast.walk(module) if isinstance(node, ast.Expr)}


def test_no_file_is_too_long() -> None:
    long = {name_of(path): len(path.read_text().splitlines()) for path in python()}
    assert {name: lines for name, lines in long.items() if lines > LONGEST_FILE} == {}


def test_no_function_is_too_long() -> None:
    long = [
        f"{name_of(path)}:{function.lineno} {function.name}"
        for path in python()
        for function in functions(tree(path))
        if (function.end_lineno or 0) - function.lineno + 1 > LONGEST_FUNCTION
    ]
    assert long == []


def test_only_the_clock_reads_a_clock() -> None:
    readers = [
        f"{name_of(path)}:{call.lineno} {called}"
        for path in files(*(name for name in PACKAGES if name != "clock"), "tests", ending=".py")
        for call, called in calls(tree(path))
        if ".".join(called.split(".")[-2:]) in READS_A_CLOCK
    ]
    assert readers == []


def test_sql_reads_no_clock_of_its_own() -> None:
    readers = []
    for path in files(*PACKAGES, ending=".sql"):
        lines = [line for line in path.read_text().splitlines() if not line.lstrip().startswith("--")]
        found = [line for line in lines if SQL_READS_A_CLOCK.search(line.partition(" -- ")[0])]
        if name_of(path) in MAY_READ_IN_SQL:
            assert len(found) == MAY_READ_IN_SQL[name_of(path)], found
        else:
            readers += [f"{name_of(path)}: {line.strip()}" for line in found]
    assert readers == []


def test_sql_lives_in_files() -> None:
    strings = []
    for path in product():
        prose = docstrings(tree(path))
        strings += [
            f"{name_of(path)}:{node.lineno} {node.value[:60]!r}"
            for node in ast.walk(tree(path))
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in prose
            and LOOKS_LIKE_SQL.fullmatch(node.value)
        ]
    assert strings == []


def test_every_statement_has_its_file_and_every_file_its_statement() -> None:
    there = {
        f"{'.'.join(path.parent.parent.relative_to(ROOT).parts)}/{path.stem}"
        for path in files(*PACKAGES, "bench", ending=".sql")
        if path.parent.name == "sql"
    }
    used: set[str] = set()
    for path in files(*PACKAGES, "bench", ending=".py"):
        for call, called in calls(tree(path)):
            place = NAMED_STATEMENT.get(called.split(".")[-1])
            if place is not None and len(call.args) > place:
                used |= set(named_statements(call.args[place], there))
    assert used - there == set(), "no such file"
    assert there - used == set(), "not used"


def named_statements(argument: ast.expr, there: set[str]) -> Iterator[str]:
    """The names in the argument; for an f-string, all files that begin with its fixed part."""
    if isinstance(argument, ast.JoinedStr):
        begins = argument.values[0]
        assert isinstance(begins, ast.Constant)
        yield from (name for name in there if name.startswith(str(begins.value)))
        return
    for node in ast.walk(argument):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "/" in node.value:
            yield node.value


def test_every_sql_file_begins_with_its_purpose() -> None:
    without_header = [
        name_of(path)
        for path in files(*PACKAGES, "bench", ending=".sql")
        if not path.read_text(encoding="utf-8").startswith("--")
    ]
    assert without_header == []


def test_tests_wait_for_signals_and_not_for_seconds() -> None:
    sleeping = [
        f"{name_of(path)}:{call.lineno}"
        for path in files("tests", ending=".py")
        if name_of(path) not in MAY_SLEEP
        for call, called in calls(tree(path))
        if called in ("time.sleep", "asyncio.sleep", "sleep")
    ]
    assert sleeping == []


def test_no_test_module_is_imported_by_another() -> None:
    """Helpers live in support modules, so that a test file can be read, moved and deleted alone."""
    importing = [
        f"{name_of(path)} {module}"
        for path in files("tests", ending=".py")
        for module in imported_modules(tree(path))
        if module.startswith("tests.") and any(part.startswith("test_") for part in module.split("."))
    ]
    assert importing == []


def imported_modules(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_no_wait_of_the_product_can_swallow_a_cancellation() -> None:
    """The product waits with `asyncio.timeout`, and connects with `connect_bus` and `CancellablePool`."""
    found = [
        f"{name_of(path)}:{call.lineno} {called}"
        for path in product()
        for call, called in calls(tree(path))
        if called in SWALLOWS_CANCELLATIONS
    ]
    assert found == []


def test_every_module_of_the_product_has_a_docstring() -> None:
    assert [name_of(path) for path in product() if not ast.get_docstring(tree(path))] == []


@pytest.mark.parametrize("folder", [*PACKAGES, "bench", "tests"])
def test_every_folder_of_code_is_a_regular_package(folder: str) -> None:
    """Otherwise `tests/clock` would shadow `clock`."""
    folders = {path.parent for path in files(folder, ending=".py")}
    assert [name_of(path) for path in sorted(folders) if not (path / "__init__.py").is_file()] == []


def test_every_package_is_typed() -> None:
    assert [name for name in PACKAGES if not (ROOT / name / "py.typed").is_file()] == []


def test_no_module_has_a_vague_name() -> None:
    named = {path.stem for path in python()} | {path.parent.name for path in python()}
    assert named & VAGUE_NAMES == set()


def test_no_module_is_named_by_a_gerund() -> None:
    """A module is named by a noun (its content) or a verb (its work)."""
    named = {part for path in product() for part in path.relative_to(ROOT).with_suffix("").parts}
    assert {name for name in named if name.endswith("ing")} - NOT_A_GERUND == set()


def test_each_class_name_exists_once() -> None:
    """`grep "class X"` finds one class."""
    classes = Counter(
        node.name for path in product() for node in tree(path).body if isinstance(node, ast.ClassDef)
    )
    assert [name for name, count in classes.items() if count > 1] == []


def test_module_docstrings_begin_with_a_noun_or_a_verb() -> None:
    vague = [
        name_of(path)
        for path in product()
        if (ast.get_docstring(tree(path)) or "-").split()[0].strip(",:") in VAGUE_BEGINNINGS
    ]
    assert vague == []


def test_decisions_have_a_number_each() -> None:
    numbers = [path.name.partition("-")[0] for path in sorted((ROOT / "docs" / "decisions").glob("*.md"))]
    assert numbers == [f"{number:04d}" for number in range(1, len(numbers) + 1)]


def test_imports_are_absolute() -> None:
    relative = [
        f"{name_of(path)}:{node.lineno}"
        for path in python()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert relative == []


def test_nothing_is_left_unfinished() -> None:
    assert [name_of(path) for path, text in texts() if UNFINISHED.search(text)] == []


def test_replaced_words_are_not_used() -> None:
    """In code, docs, help, errors and tests. The exceptions are a file and a word each."""
    replacements = read_replacements()
    assert set(REPLACED_WORDS) - set(replacements) == set(), "not in the last table of docs/glossary.md"
    excepted: set[tuple[str, str]] = set()
    used = []
    for path, text in texts():
        name = name_of(path)
        for line, word, entry in find_replaced_words(text) if name not in LISTS_REPLACED_WORDS else ():
            if (name, word.lower()) in MAY_USE_WORD:
                excepted.add((name, word.lower()))
            else:
                used.append(f"{name}:{line}: {word!r}, write instead: {replacements[entry]}")
    assert not used, "\n".join(used)
    assert excepted == MAY_USE_WORD, "an exception is no longer needed"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a\nverdict", [(2, "verdict", "verdict")]),
        ("class CalmHouse", [(1, "Calm", "calm"), (1, "House", "house")]),
        ("def wait_for_ever() -> None", [(1, "for ever", "for ever")]),
        ("test_nobody_hears", [(1, "nobody", "nobody"), (1, "hears", "hear")]),
        ("room.temperature, knowledge, outstanding, recommend, amended", []),
    ],
)
def test_replaced_words_are_recognised(text: str, words: list[tuple[int, str, str]]) -> None:
    assert list(find_replaced_words(text)) == words


def test_no_file_contains_a_path_of_a_machine() -> None:
    found = [
        f"{name_of(path)}: {machine}"
        for path, text in texts()
        for machine in MACHINE_PATHS
        if machine in text
    ]
    assert found == []


@pytest.mark.parametrize(
    ("text", "is_sql"),
    [
        ("select 1", True),
        ("  INSERT into x values (1)", True),
        ("update tocsin.timer set x = 1", True),
        ("with a as (select 1) select 2", True),
        ("create table x ()", True),
        ("delete from x", True),
        ("update the schedule", False),
        ("select", False),
        ("created", False),
        ("delete everything", False),
        ("with care", False),
    ],
)
def test_sql_is_recognised(text: str, is_sql: bool) -> None:
    assert bool(LOOKS_LIKE_SQL.fullmatch(text)) is is_sql
