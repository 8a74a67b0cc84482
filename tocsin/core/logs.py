"""Logs: a line for people on a terminal, a JSON object per line for machines.

Guarantees: logs go to stderr unless a file is given, so that stdout holds the answer of a command
and nothing else. What libraries log takes the same form. In JSON every value is plain: text,
number, boolean, null, list or object. An exception is `Type: message`, an instant is ISO 8601 in
UTC, a duration is its seconds, bytes are text.

A log shows no credentials: tracebacks have no local variables, and the passwords of the settings are
hidden in every line, whatever wrote it. No value can move the cursor of a terminal.

Log fields use the words of the glossary (`schedule`, `timer`, `epoch`, `seq`).
"""

from __future__ import annotations

import json
import logging
import math
import sys
import traceback
from collections.abc import Mapping, MutableMapping
from datetime import date, datetime, timedelta
from enum import Enum
from typing import Any, TextIO

import structlog

from tocsin.core.instant import instant_text
from tocsin.core.printable import plain_json, printable, printable_lines
from tocsin.core.redaction import Redactor
from tocsin.core.settings import Settings, credentials_of, unknown_variables

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


def configure_logs(settings: Settings, file: TextIO | None = None) -> None:
    """Log to `file`, or to stderr. The last call counts."""
    stream = file or sys.stderr
    console = settings.log_format == "console" or (settings.log_format == "auto" and stream.isatty())
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    # The console renders a traceback itself; in JSON it has to become a field first.
    renderers: list[Any] = (
        [
            _plain_values,
            _printable_values,
            structlog.dev.ConsoleRenderer(colors=stream.isatty(), exception_formatter=_write_traceback),
        ]
        if console
        else [
            structlog.processors.format_exc_info,
            _plain_values,
            structlog.processors.JSONRenderer(serializer=_json_line),
        ]
    )
    renderers.append(_Redaction(Redactor(credentials_of(settings))))
    structlog.configure(
        processors=[*shared, *renderers],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[settings.log_level]),
        logger_factory=structlog.WriteLoggerFactory(file=stream),
        cache_logger_on_first_use=False,
    )
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderers],
    )
    _handle_libraries(_LibraryHandler(file), formatter, settings)
    for variable, meant in unknown_variables().items():
        hint = f"did you mean {meant}?" if meant else "docs/operating.md lists the settings"
        structlog.get_logger().warning("unknown setting", variable=variable, hint=hint)


def configure_command_logs(settings: Settings) -> None:
    """Log warnings and errors only, as a command that answers and ends does, unless a level is set."""
    quiet = {} if "log_level" in settings.model_fields_set else {"log_level": "warning"}
    configure_logs(settings.model_copy(update=quiet))


class _LibraryHandler(logging.Handler):
    """Writes what libraries log through the standard library, warnings and errors only."""

    def __init__(self, file: TextIO | None) -> None:
        super().__init__()
        self._file = file

    def emit(self, record: logging.LogRecord) -> None:
        try:
            print(self.format(record), file=self._file or sys.stderr, flush=True)
        except Exception:
            self.handleError(record)


def _handle_libraries(handler: _LibraryHandler, formatter: logging.Formatter, settings: Settings) -> None:
    root = logging.getLogger()
    for earlier in root.handlers:
        if isinstance(earlier, _LibraryHandler):
            root.removeHandler(earlier)
            break
    handler.setFormatter(formatter)
    handler.setLevel(max(logging.WARNING, _LEVELS[settings.log_level]))
    root.addHandler(handler)


class _Redaction:
    """The last processor: hides credentials in the finished line."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def __call__(self, _: Any, __: str, line: str) -> str:
        return self._redactor.redact(line)


def _write_traceback(file: TextIO, exc_info: Any) -> None:
    """A traceback without local variables, which rich would show: they hold passwords."""
    lines = "".join(traceback.format_exception(*exc_info))
    file.write("\n" + printable_lines(lines.rstrip("\n")))


def _json_line(value: Any, **options: Any) -> str:
    return plain_json(json.dumps(value, ensure_ascii=False, **options))


def _printable_values(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """The console renderer quotes some values itself, but not the event, keys and single words."""
    return {
        printable(str(key)): printable(value) if isinstance(value, str) else value
        for key, value in event.items()
    }


def _plain_values(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for key, value in event.items():
        if key != "exc_info":
            event[key] = _plain(value)
    return event


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return _plain(value.value)
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(_plain(key)): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(inner) for inner in value]
    return _text_or_seconds(value)


def _text_or_seconds(value: Any) -> str | float:
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {value}"
    if isinstance(value, datetime) and value.tzinfo is not None:
        return instant_text(value)
    if isinstance(value, date):  # a datetime without an offset too
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode(errors="backslashreplace")
    return str(value)
