"""Writes pages: Jinja templates with everything escaped, and the headers that every page has.

Guarantee: a template cannot print text that was not escaped, except what `filters.py` and the pictures
build from escaped parts. The content security policy allows scripts and styles of this host only, no inline ones, and
no other host at all. Only htmx may create HTML from text (Trusted Types), and only on elements with the
nonce of the page.
"""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from tocsin.console import filters
from tocsin.console.static_files import asset, vendor
from tocsin.core.printable import printable


def policy(nonce: str) -> str:
    """The content security policy of a page."""
    return (
        f"default-src 'none'; script-src 'self' 'nonce-{nonce}'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types htmx"
    )


def page_headers(nonce: str) -> dict[str, str]:
    return {
        "content-security-policy": policy(nonce),
        "cache-control": "no-store",
        # Not `no-referrer`: with it, browsers send our own forms with `Origin: null`.
        "referrer-policy": "same-origin",
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    }


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("tocsin.console", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.globals.update(asset=asset, vendor=vendor)
    environment.filters.update(filters.FILTERS)
    return environment


def _visible(value: Any) -> Any:
    """Control characters escaped, also those that turn the direction of a text: a name could imitate another."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return "\n".join(printable(line) for line in value.split("\n"))


_templates = _environment()


def render(template: str, facts: dict[str, Any]) -> str:
    return _templates.get_template(template).render(facts)
