"""Chooses between the database and the API for one function of a command."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

from tocsin.cli.remote.address import api_url

P = ParamSpec("P")
Result = TypeVar("Result")
Work = Callable[P, Coroutine[Any, Any, Result]]


def over_http(name: str) -> Callable[[Work[P, Result]], Work[P, Result]]:
    """Do it by `tocsin.cli.remote.<name>` if TOCSIN_URL is set; `name` is `module.function`."""
    module, _, function = name.partition(".")

    def decorate(local: Work[P, Result]) -> Work[P, Result]:
        @wraps(local)
        async def run(*args: P.args, **kwargs: P.kwargs) -> Result:
            url = api_url()
            if url is None:
                return await local(*args, **kwargs)
            from tocsin.cli.remote.api_client import open_api

            remote = getattr(import_module(f"tocsin.cli.remote.{module}"), function)
            async with open_api(url) as api:
                result: Result = await remote(api, *args, **kwargs)
                return result

        return run

    return decorate
