"""`tocsin token`: printed once, listed without its text, revoked."""

from __future__ import annotations

from tests.cli.conftest import CommandLine
from tocsin.api.access.secret_text import is_secret


def test_a_token_is_printed_once_listed_and_revoked(tocsin: CommandLine) -> None:
    added = tocsin("token", "add", "grafana", "--grant", "viewer:*", "--expires", "90d")
    token = added.lines[0]
    assert is_secret(token, "api")
    listed = tocsin("token", "list").out
    assert "grafana" in listed
    assert token not in listed
    assert "viewer:*" in listed
    assert tocsin("token", "revoke", "grafana").out == "revoked the token of 'grafana'\n"
    assert "there is no token 'grafana'" in tocsin("token", "revoke", "grafana", exit_code=1).err
    assert [row["verb"] for row in tocsin("audit", "grafana", "--json").json] == ["add", "revoke"]


def test_a_wrong_grant_is_named(tocsin: CommandLine) -> None:
    refused = tocsin("token", "add", "x", "--grant", "root:*", exit_code=1)
    assert "'root:*' is not a grant" in refused.err
    assert tocsin("token", "list").out == "no tokens: `tocsin token add` makes one\n"


def test_a_login_link_is_printed(tocsin: CommandLine) -> None:
    link = tocsin("token", "login", "ann", "--grant", "responder:*").lines[0]
    address, _, code = link.partition("?code=")
    assert address == "http://127.0.0.1:8470/login"
    assert is_secret(code, "login")
