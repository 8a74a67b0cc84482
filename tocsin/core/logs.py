"""Logs: a line for people on a terminal, a JSON object per line for machines.

Log fields use the words of the vocabulary (`schedule`, `timer`, `epoch`, `seq`). Logs go to stderr, so
that a command's output stays clean on stdout.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog

from tocsin.core.settings import Settings

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


def configure_logs(settings: Settings) -> None:
    console = settings.log_format == "console" or (settings.log_format == "auto" and sys.stderr.isatty())
    # The console renders a traceback by itself; in JSON it has to become a field first.
    renderers: list[Any] = (
        [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())]
        if console
        else [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(ensure_ascii=False)]
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _one_line_errors,
            *renderers,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[settings.log_level]),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=False,
    )


def _one_line_errors(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    error = event.get("error")
    if isinstance(error, BaseException):
        event["error"] = f"{type(error).__name__}: {error}"
    return event
