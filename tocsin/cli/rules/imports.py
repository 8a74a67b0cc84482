"""`tocsin import`: translates rules of other systems into documents. Needs no server.

The documents are printed, or written to a file. Each is preceded by comments that name its source and
what the translation assumes. What has no translation is listed on stderr, one
`file:line: name: reason` per line, and does not change the exit code unless `--strict` is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tocsin.cli.options import Json, check_output
from tocsin.cli.output import print_json, printable
from tocsin.core.errors import InvalidInput

if TYPE_CHECKING:
    from rules.importer import ImportedRule, Translation

MAX_FILE_BYTES = 10_000_000

Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="File to write; standard output by default.")
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Write nothing and exit with 1 if anything has no translation.")
]


def import_prometheus(
    files: Annotated[
        list[Path],
        typer.Argument(help="Prometheus rule files, or folders that hold them.", metavar="FILES..."),
    ],
    output: Output = None,
    owner_label: Annotated[
        str, typer.Option("--owner-label", help="Label of Prometheus that becomes the owner of a series.")
    ] = "instance",
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Translate alerting and recording rules of Prometheus into event_rules and calc_rules.

    \b
    Example:
      tocsin import prometheus alerts.yml -o alerts.tocsin.yaml
    """
    from rules.importer import translate_prometheus
    from tocsin.cli.session import command_settings

    command_settings()
    translation = translate_prometheus(_read(files, (".yaml", ".yml")), owner_label)
    _finish(translation, output, strict=strict, as_json=as_json)


def import_crontab(
    files: Annotated[
        list[Path], typer.Argument(help="Crontabs, or folders that hold them.", metavar="FILES...")
    ],
    output: Output = None,
    tz: Annotated[str, typer.Option("--tz", help="Timezone of the machine that runs the crontab.")] = "UTC",
    system: Annotated[
        bool, typer.Option("--system", help="The lines name a user, as those of /etc/crontab do.")
    ] = False,
    enabled: Annotated[
        bool, typer.Option("--enabled", help="Do not pause the schedules: cron no longer runs the jobs.")
    ] = False,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Translate a crontab into schedules whose events carry the commands.

    \b
    Example:
      tocsin import crontab crontab.txt --tz Europe/Amsterdam -o jobs.yaml
    """
    from rules.importer import translate_crontab
    from tocsin.cli.session import command_settings

    command_settings()
    translation = translate_crontab(_read(files, ()), tz=tz, has_user=system, enabled=enabled)
    _finish(translation, output, strict=strict, as_json=as_json)


def _read(paths: Sequence[Path], suffixes: tuple[str, ...]) -> dict[str, str]:
    """The texts of files by name; of a folder, those of its files with one of the suffixes."""
    files: list[Path] = []
    for path in paths:
        if not path.is_dir():
            files.append(path)
            continue
        found = sorted(file for file in path.rglob("*") if file.is_file() and _is_wanted(file, suffixes))
        if not found:
            raise InvalidInput(f"{path} has no files to import", remedy="name the files")
        files += found
    return {str(file): _text(file) for file in files}


def _is_wanted(file: Path, suffixes: tuple[str, ...]) -> bool:
    return not file.name.startswith(".") and (not suffixes or file.suffix in suffixes)


def _text(file: Path) -> str:
    try:
        if file.stat().st_size > MAX_FILE_BYTES:
            raise InvalidInput(f"{file} has more than {MAX_FILE_BYTES:,} bytes", remedy="split it")
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file} is not UTF-8 at byte {error.start}") from None


def _finish(translation: Translation, output: Path | None, *, strict: bool, as_json: bool) -> None:
    if output is not None:
        check_output(output, "--output")
    untranslated = translation.untranslated
    if as_json:
        print_json({"documents": translation.yaml(), "rules": [_json(rule) for rule in translation.rules]})
    for rule in untranslated if not as_json else ():
        typer.echo(printable(f"{rule.file}:{rule.line}: {rule.name}: {rule.problem}"), err=True)
    if strict and untranslated:
        raise typer.Exit(1)
    if output is not None:
        output.write_text(translation.yaml(), encoding="utf-8")
    elif not as_json:
        typer.echo(translation.yaml(), nl=False)
    if not as_json:
        typer.echo(_summary(translation), err=True)


def _summary(translation: Translation) -> str:
    rules, translated = len(translation.rules), len(translation.translated)
    documents = len(translation.types) + sum(len(rule.documents) for rule in translation.rules)
    noted = sum(bool(rule.notes) for rule in translation.translated)
    return (
        f"{translated:,} of {rules:,} translated into {documents:,} documents; "
        f"{noted:,} have notes in their comments"
    )


def _json(rule: ImportedRule) -> dict[str, object]:
    return {
        "name": rule.name,
        "file": rule.file,
        "line": rule.line,
        "source": rule.source,
        "documents": [document["name"] for _, document in rule.documents],
        "notes": list(rule.notes),
        "problem": rule.problem,
    }
