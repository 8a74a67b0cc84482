"""F22: credentials as text in headers and urls."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from schemas.documents.probe import HttpProbe
from schemas.documents.targets import WebhookTarget


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Authorization", "Bearer S3CRET"),
        ("authorization", "S3CRET"),
        ("X-Api-Key", "S3CRET"),
        ("Api-Key", "S3CRET"),
        ("apikey", "S3CRET"),
        ("Cookie", "session=S3CRET"),
        ("X-Auth-Token", "S3CRET"),
        ("PRIVATE-TOKEN", "S3CRET"),
        ("X-Vault-Token", "S3CRET"),
        ("X-Hub-Signature", "S3CRET"),
        ("DD-API-KEY", "S3CRET"),
        ("X-Custom", "Bearer S3CRET"),
        ("X-Custom", "ghp_" + "S3CRET" * 6),
        ("X-Custom", "eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.S3CRET"),
    ],
)
def test_a_credential_in_a_header_is_rejected_and_not_repeated(name: str, value: str) -> None:
    for model in (WebhookTarget, HttpProbe):
        data: dict[str, Any] = {"url": "https://a.example/", "headers": {name: value}}
        with pytest.raises(ValidationError, match="is a credential and is never written down") as refused:
            model.model_validate(data)
        assert "S3CRET" not in str(refused.value.errors()[0]["msg"])
        model.model_validate({**data, "headers": {name: {"secret": "name"}}})


@pytest.mark.parametrize(
    "url",
    [
        "https://a.example/hook?token=S3CRET",
        "https://a.example/hook?x=1&api_key=S3CRET",
        "https://a.example/hook?key=S3CRET",
        "https://a.example/hook?accessToken=S3CRET",
        "https://a.example/hook?sig=S3CRET",
        "https://a.example/hook#access_token=S3CRET",
        "https://hooks.slack.com/services/T0/B0/S3CRET",
        "https://discord.com/api/webhooks/1/S3CRET",
        "https://api.telegram.org/bot1:S3CRET/sendMessage",
        "https://acme.webhook.office.com/webhookb2/S3CRET",
    ],
)
def test_a_token_in_a_url_is_rejected_and_not_repeated(url: str) -> None:
    with pytest.raises(ValidationError, match="has a token in it, and is never written down") as refused:
        WebhookTarget.model_validate({"url": url})
    assert "S3CRET" not in str(refused.value.errors()[0]["msg"])


@pytest.mark.parametrize(
    ("url", "headers"),
    [
        ("https://a.example/hook?site=plant-7&keyboard=de", {"X-Site": "plant-7", "Accept": "a/b"}),
        ("https://discord.com/about", {"X-Keyboard": "de", "X-Author": "ann", "X-Monkey": "a"}),
        ("https://a.example/tokens/basic", {"X-Design": "basic", "Accept-Language": "de"}),
    ],
)
def test_ordinary_headers_and_urls_are_accepted(url: str, headers: dict[str, str]) -> None:
    WebhookTarget.model_validate({"url": url, "headers": headers})
