"""`tocsin token`: printed once, listed without its text, revoked."""

from __future__ import annotations

from pathlib import Path

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


def test_a_ping_url_names_its_heartbeat_and_may_only_send(tocsin: CommandLine, tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(
        "heartbeat: {name: backup, every: 1d}\n---\nheartbeat: {name: report, every: 1d, owners: [db-1, db-2]}"
    )
    tocsin("apply", str(rules))
    added = tocsin("token", "ping", "backup")
    address, _, rest = added.lines[0].partition("/ping/")
    token, _, name = rest.partition("/")
    assert (address, is_secret(token, "api"), name) == ("http://127.0.0.1:8470", True, "backup")
    assert "sender:backup" in tocsin("token", "list").out
    assert "several owners (db-1, db-2)" in tocsin("token", "ping", "report", exit_code=1).err
    assert tocsin("token", "ping", "report", "--owner", "db-2", "--json").json["name"] == "ping-db-2"
    assert "there is no heartbeat 'none'" in tocsin("token", "ping", "none", exit_code=1).err
    assert "tocsin token ping" in tocsin("heartbeats").err
