"""Crontabs become schedules whose events carry the command.

Tocsin runs no commands of a crontab: a service that reads the record stream does. Until cron no longer
runs a job, both would, so an imported schedule is paused unless the caller asks otherwise.

`CRON_TZ` and `TZ` set the timezone of the lines below them, as in cronie. A `%` of a command ends it,
and the rest is its standard input, unless a backslash stands before it (crontab(5)).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from rules.importer.names import Names
from rules.importer.translation import (
    ImportedDocument,
    ImportedRule,
    Translation,
    Untranslatable,
    check_documents,
)
from tocsin.core.errors import InvalidInput

MAX_LINES = 10_000
_VARIABLE = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)")
_SHORTHAND = re.compile(r"(@[a-z]+)\s+(.*)")
_FIELDS = re.compile(r"((?:\S+\s+){5})(.*)")
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_SHORTHANDS = {"@annually": "@yearly", "@midnight": "@daily"}
_PERCENT = re.compile(r"(?<!\\)%")
# Words of a command that do not name what it does.
_WRAPPERS = {
    "bin",
    "usr",
    "local",
    "opt",
    "etc",
    "sh",
    "bash",
    "env",
    "cd",
    "nice",
    "ionice",
    "flock",
    "test",
}
_NAME_WORDS = 3


class _Job(NamedTuple):
    line: int
    text: str
    cron: str
    command: str
    tz: str
    user: str


def translate_crontab(
    files: Mapping[str, str], *, tz: str = "UTC", has_user: bool = False, enabled: bool = False
) -> Translation:
    """Translate crontabs, given by name.

    `tz` is the timezone of the machine. `has_user`: the lines name a user, as those of /etc/crontab do.
    """
    names, rules = Names(), []
    for file, text in files.items():
        lines = text.splitlines()
        if len(lines) > MAX_LINES:
            raise InvalidInput(
                f"{file}: it has {len(lines):,} lines, and a crontab has at most {MAX_LINES:,}"
            )
        for job in _jobs(lines, tz, has_user):
            rules.append(_translated(file, job, names, enabled))
    return Translation(rules)


def _jobs(lines: list[str], tz: str, has_user: bool) -> Iterator[_Job]:
    for number, text in enumerate(lines, 1):
        line = text.strip()
        if not line or line.startswith("#"):
            continue
        shorthand, fields = _SHORTHAND.fullmatch(line), _FIELDS.fullmatch(line)
        variable = _VARIABLE.fullmatch(line)
        if shorthand is None and variable is not None:
            if variable[1] in ("CRON_TZ", "TZ"):
                tz = variable[2].strip("\"' ")
            continue
        cron, rest = (line, "")
        if shorthand is not None:
            cron, rest = _SHORTHANDS.get(shorthand[1], shorthand[1]), shorthand[2]
        elif fields is not None:
            cron, rest = " ".join(fields[1].split()), fields[2]
        user, command = "", rest
        if has_user:
            user, _, command = rest.partition(" ")
        yield _Job(number, line, cron, command.strip(), tz, user)


def _translated(file: str, job: _Job, names: Names, enabled: bool) -> ImportedRule:
    command, *standard_input = _PERCENT.split(job.command, maxsplit=1)
    command = command.replace("\\%", "%").strip()
    located = (command[:60] or job.text[:60], file, job.line, job.text)
    try:
        if not command:
            raise Untranslatable("it has no command: a line has five fields and a command")
        if job.cron == "@reboot":
            raise Untranslatable("'@reboot' is not a time")
        document = _schedule(job, command, names, enabled)
        if standard_input:
            document["payload"]["stdin"] = _PERCENT.sub("\n", standard_input[0]).replace("\\%", "%")
        documents = [ImportedDocument("schedule", document)]
        check_documents(documents)
    except Untranslatable as problem:
        return ImportedRule(*located, problem=str(problem))
    notes = [] if enabled else ["paused until cron no longer runs it: remove 'enabled: false' then"]
    return ImportedRule(*located, documents, notes)


def _schedule(job: _Job, command: str, names: Names, enabled: bool) -> dict[str, Any]:
    payload: dict[str, Any] = {"command": command}
    if job.user:
        payload["user"] = job.user
    document: dict[str, Any] = {"name": names.take(_name(command)), "cron": job.cron, "tz": job.tz}
    return {**document, "payload": payload, **({} if enabled else {"enabled": False})}


def _name(command: str) -> str:
    """The first words of a command that say what it does."""
    words = [word for word in _WORD.findall(command) if word.lower() not in _WRAPPERS]
    return "-".join(words[:_NAME_WORDS]) or "job"
