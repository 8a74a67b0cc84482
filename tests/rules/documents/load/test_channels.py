"""Channels: one target each, secrets only as references, every problem with its position."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from pydantic import BaseModel

from rules.documents.load import RulesInvalid, load_text
from schemas.documents import ChannelDocument
from schemas.documents.probe import HttpProbe, TcpProbe
from schemas.documents.targets import (
    TARGET_KEYS,
    AppriseTarget,
    EmailTarget,
    SlackTarget,
    SmtpServer,
    WebhookTarget,
)
from schemas.export import text_of
from schemas.values.mail_address import parse_mailbox

MAIL = "smtp: {host: smtp.example.com}, from: tocsin@example.com, to: [ops@example.com]"


def only(text: str) -> ChannelDocument:
    (document,) = load_text(text).documents
    assert isinstance(document.model, ChannelDocument)
    assert ChannelDocument.model_validate(document.data) == document.model
    return document.model


@pytest.mark.parametrize(
    "keys",
    [
        "webhook: {url: 'https://hooks.example.com/x'}",
        "webhook: {url: {secret: url}, method: PUT, headers: {X-A: a, Authorization: {secret: a}}, timeout: 5s}",
        "webhook: {url: 'http://[2001:4860::1]:8080/x', secrets: [{secret: new}, {secret: old}]}",
        "slack: {url: {secret: slack-url}}",
        f"email: {{{MAIL}}}",
        "email: {smtp: {host: 10.0.0.1, port: 2525, security: none}, from: 'A B <a@b.example>', to: [c@d.example]}",
        "email: {smtp: {host: m.example, username: {secret: u}, password: {secret: p}}, from: a@b, to: [c@d.example]}",
        "apprise: {url: {secret: telegram}, timeout: 30s}",
    ],
)
def test_a_channel_has_one_target(keys: str) -> None:
    channel = only(f"channel: {{name: ops, {keys}, enabled: false, send_resolved: false}}")
    assert channel.target is getattr(channel, keys.partition(":")[0])
    assert (channel.enabled, channel.send_resolved) == (False, False)


def test_a_channel_is_enabled_and_gets_resolutions_by_default() -> None:
    channel = only("channel: {name: ops, slack: {url: {secret: url}}}")
    assert (channel.enabled, channel.send_resolved) == (True, True)


def test_a_stored_channel_has_references_and_no_secret() -> None:
    data: Any = load_text("channel: {name: ops, slack: {url: {secret: slack-url}}}").documents[0].data
    assert data["slack"] == {"url": {"secret": "slack-url"}, "timeout": "10s"}


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("enabled: true", "1:1: channel 'ops' needs one of webhook, slack, email, apprise or pagerduty"),
        (
            "slack: {url: {secret: u}}, apprise: {url: {secret: u}}",
            "1:49: channel 'ops' has both 'slack' and 'apprise': keep one of webhook, slack, email, apprise "
            "and pagerduty",
        ),
        (
            "slack: {url: 'https://hooks.slack.com/services/s3cret'}",
            "1:35: 'slack.url' of channel 'ops': a secret is never written down: "
            "write {secret: NAME}, the name of a secret of the worker",
        ),
        ("slack: {}", "1:22: missing key 'url' in 'slack' of channel 'ops'"),
        (
            "slack: {url: {evn: U}}",
            "1:35: 'slack.url' of channel 'ops': a reference to a secret has the key 'secret' alone: "
            "write {secret: NAME}, the name of a secret of the worker",
        ),
        (
            "webhook: {url: 'ftp://a.example/s3cret'}",
            "1:37: 'webhook.url' of channel 'ops': the url must start with https:// or http:// and a host",
        ),
        (
            "webhook: {url: 'https://u:s3cret@a.example/'}",
            "1:37: 'webhook.url' of channel 'ops': the url of a.example has credentials in it: "
            "write them as a header, with a reference to a secret",
        ),
        (
            "webhook: {url: 5}",
            "1:37: 'webhook.url' of channel 'ops': must be a text or a reference to a secret: "
            "write {secret: NAME}, the name of a secret of the worker",
        ),
        (
            "webhook: {url: 'https://a.example', method: GET}",
            "1:66: 'webhook.method' of channel 'ops' must be 'POST', 'PUT' or 'PATCH', not 'GET'",
        ),
        (
            "webhook: {url: 'https://a.example', headers: {Host: x}}",
            "1:67: 'webhook.headers' of channel 'ops': the header 'Host' is set by tocsin: leave it out",
        ),
        (
            'webhook: {url: "https://a.example", headers: {X-A: "s3cret\\r\\nX-B: 1"}}',
            "1:67: 'webhook.headers' of channel 'ops': the header 'X-A' has a value that cannot be sent: "
            "use printable characters, no line breaks",
        ),
        (
            "webhook: {url: 'https://a.example', headers: {'X A': x}}",
            "1:67: 'webhook.headers' of channel 'ops': 'X A' is not the name of a header",
        ),
        (
            "webhook: {url: 'https://a.example', timeout: 2m}",
            "1:67: 'webhook.timeout' of channel 'ops': the timeout must be longer than 0s and at most 60s",
        ),
        (
            "webhook: {url: 'https://a.example', secrets: [whsec_s3cret]}",
            "1:68: 'webhook.secrets.0' of channel 'ops': a secret is never written down: "
            "write {secret: NAME}, the name of a secret of the worker",
        ),
        (
            "email: {smtp: {host: m.example}, from: a@b.example, to: []}",
            "1:78: 'email.to' of channel 'ops' is too short: it needs at least 1",
        ),
        (
            "email: {smtp: {host: m.example}, from: a@b.example, to: [nomail]}",
            "1:79: 'email.to.0' of channel 'ops': 'nomail' is not a mail address: "
            "write ops@example.com or Name <ops@example.com>",
        ),
        (
            "email: {smtp: {host: m.example}, frm: a@b.example, to: [c@d.example]}",
            "1:55: unknown key 'frm' in channel 'ops', did you mean 'from'?",
        ),
        (
            "email: {smtp: {host: 'm.example:25'}, from: a@b.example, to: [c@d.example]}",
            "1:43: 'email.smtp.host' of channel 'ops': 'm.example:25' is not a host: "
            "write a name or an address, without a port",
        ),
        (
            "email: {smtp: {host: m.example, username: u}, from: a@b.example, to: [c@d.example]}",
            "1:36: 'email.smtp' of channel 'ops' needs both 'username' and 'password', or none of them",
        ),
        (
            "email: {smtp: {host: m.example, username: u, password: {secret: p}, security: none}, "
            "from: a@b.example, to: [c@d.example]}",
            "1:67: 'email.smtp' of channel 'ops' has a 'password' and 'security: none': "
            "a password is not sent unencrypted, use starttls or tls",
        ),
    ],
)
def test_an_invalid_channel_is_reported_with_its_position_and_without_a_secret(
    keys: str, problem: str
) -> None:
    with pytest.raises(RulesInvalid) as refused:
        load_text(f"channel: {{name: ops, {keys}}}", file="r.yaml")
    assert str(refused.value) == f"r.yaml:{problem}"
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    "address",
    [
        "a@b.example\r\nBcc: c@d.example",
        "a@b.example, c@d.example",
        "a b@c.example",
        "<a@b.example>",
        "a@",
        "@b",
        ".a@b.example",
        "a..b@c.example",
        "a@b..example",
        '"x" <a@b.example>',
        "=?utf-8?q?a=0d=0aBcc:?= <a@b.example>",
        "a@b.example>",
        "N\x00 <a@b.example>",
    ],
)
def test_a_text_that_is_not_one_mailbox_is_no_address(address: str) -> None:
    with pytest.raises(ValueError, match="is not a mail address"):
        parse_mailbox(address)


@pytest.mark.parametrize(
    ("target", "accepted"),
    [
        ({"slack": {"url": {"secret": "url"}}}, True),
        ({"slack": {"url": "https://hooks.slack.com/services/x"}}, False),
        ({"slack": {"url": {"env": "URL", "file": "/x"}}}, False),
        ({"webhook": {"url": "https://a.example", "headers": {"A": {"secret": "x"}, "B": "b"}}}, True),
        ({"webhook": {"url": "https://a.example", "headers": {"A": {"nope": "/x"}}}}, False),
        ({"email": {"smtp": {"host": "m"}, "from": "a@b", "to": ["c@d"]}}, True),
        ({"email": {"smtp": {"host": "m"}, "from": "a@b", "to": []}}, False),
    ],
)
def test_the_json_schema_accepts_valid_channels_and_rejects_invalid_ones(
    target: dict[str, Any], accepted: bool
) -> None:
    validator = jsonschema.Draft202012Validator(json.loads(text_of("rules")))
    assert validator.is_valid({"channel": {"name": "ops", **target}}) is accepted


def test_every_key_of_every_target_is_described_with_examples_that_are_valid() -> None:
    url: dict[str, Any] = {"secret": "url"}
    needed: dict[type[BaseModel], dict[str, Any]] = {
        WebhookTarget: {"url": url},
        SlackTarget: {"url": url},
        AppriseTarget: {"url": url},
        SmtpServer: {"host": "m.example", "username": "u", "password": url},
        EmailTarget: {"smtp": {"host": "m.example"}, "from": "a@b.example", "to": ["c@d.example"]},
        HttpProbe: {"url": "https://a.example"},
        TcpProbe: {"host": "a.example", "port": 1},
    }
    for model, keys in needed.items():
        for name, field in model.model_fields.items():
            assert field.description, (model, name)
            assert field.examples, (model, name)
            for example in field.examples:
                assert model.model_validate(keys | {field.alias or name: example})
    for name, field in ChannelDocument.model_fields.items():
        for example in field.examples or []:
            target: dict[str, Any] = {} if name in TARGET_KEYS else {"slack": {"url": url}}
            if name == "fallback_after":
                target["fallback"] = "mail"
            if name == "urgent":
                target["active_in"] = {"hours": ["08:00-20:00"]}
            assert ChannelDocument.model_validate({"name": "a"} | target | {name: example})
