"""Checks of settings whose values have a form of their own. Each returns the text, or raises `ValueError`."""

from __future__ import annotations

import re

from tocsin.core.allow_list import AllowList
from tocsin.core.errors import InvalidInput
from tocsin.core.secret_bindings import parse_bindings


def allow_list_setting(text: str) -> str:
    try:
        AllowList.parse(text)
    except InvalidInput as error:
        raise ValueError(str(error)) from None
    return text


def bindings_setting(text: str) -> str:
    try:
        parse_bindings(text)
    except InvalidInput as error:
        raise ValueError(str(error)) from None
    return text


def console_url_setting(text: str) -> str:
    if text and not re.fullmatch(r"https?://[^\s<>\"|]{1,500}", text):
        raise ValueError("write an address such as https://tocsin.example.com")
    return text.rstrip("/")
