"""The routes that `tocsin run api` and `tocsin up` serve: the console, and the API behind it."""

from __future__ import annotations

from tocsin.api.routes import GROUPS
from tocsin.console.routes import CONSOLE

SERVED = (CONSOLE, *GROUPS)
