import base64
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from schemas.values.secret import Secret, SecretRef, TextOrSecret, secret_ref
from tests.rules.delivery.named_secrets import named_secrets

VALUE = 's3cret/"ü" & more'


class Document(BaseModel):
    password: Secret
    user: TextOrSecret = ""


async def test_a_plain_text_is_unchanged_and_not_hidden() -> None:
    one = named_secrets()
    assert await one.reveal_to("host", "plain") == "plain"
    assert one.redact("plain") == "plain"


@pytest.mark.parametrize(
    "form",
    [
        's3cret/"ü" & more',
        "s3cret/%22%C3%BC%22%20%26%20more",
        "s3cret%2F%22%C3%BC%22%20%26%20more",
        "s3cret%2F%22%C3%BC%22+%26+more",
        's3cret/\\"ü\\" & more',
        's3cret/\\"\\u00fc\\" & more',
        "s3cret/&quot;ü&quot; &amp; more",
    ],
)
async def test_a_revealed_value_is_hidden_in_every_form(form: str) -> None:
    one = named_secrets(a=VALUE)
    await one.reveal_key(SecretRef(secret="a"))
    assert one.redact(f"before {form} after {form}") == "before *** after ***"
    assert one.redact_json({"k": [f"x{form}", 1, None]}) == {"k": ["x***", 1, None]}


async def test_the_secret_parts_of_a_url_are_hidden_by_themselves() -> None:
    one = named_secrets(
        u="https://bot:pa55word@hooks.slack.com/services/T00000000/B00/abcdefgh123?token=tttttttt"
    )
    await one.reveal_key(SecretRef(secret="u"))
    text = "POST /services/T00000000/B00/abcdefgh123 to hooks.slack.com: abcdefgh123, tttttttt, pa55word"
    assert one.redact(text) == "POST *** to hooks.slack.com: ***, ***, ***"


async def test_the_tokens_of_an_apprise_url_are_hidden_by_themselves() -> None:
    one = named_secrets(u="tgram://123456789:abcdefghij/12345678901/?image=no")
    await one.reveal_key(SecretRef(secret="u"))
    text = "POST api.telegram.org/bot123456789:abcdefghij to 12345678901"
    assert one.redact(text) == "POST api.telegram.org/bot***:*** to ***"


async def test_no_repr_shows_a_value() -> None:
    one = named_secrets(a=VALUE)
    await one.reveal_key(SecretRef(secret="a"))
    assert repr(one) == "Secrets()"
    assert repr(SecretRef(secret="a")) == "SecretRef(secret='a')"


def test_a_document_keeps_the_reference_as_it_was_written() -> None:
    data: dict[str, Any] = {"password": {"secret": "a"}, "user": {"secret": "user"}}
    document = Document.model_validate(data)
    assert document.model_dump(mode="json") == data
    assert Document.model_validate(document.model_dump(mode="json")) == document
    assert Document.model_validate({"password": {"secret": "a"}, "user": "plain"}).user == "plain"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("s3cret", "a secret is never written down: write {secret: NAME}"),
        (5, "a secret is never written down"),
        (None, "a secret is never written down"),
        (["s3cret"], "a secret is never written down"),
        ({"secret": "a", "file": "/s3cret"}, "has the key 'secret' alone"),
        ({"value": "s3cret"}, "has the key 'secret' alone"),
        ({}, "has the key 'secret' alone"),
        ({"env": "s3cret!"}, "'env' and 'file' are not read any more"),
        ({"secret": "s3cret!"}, "'secret' must be a name"),
        ({"secret": "S3cret"}, "'secret' must be a name"),
        ({"secret": "-s3cret"}, "'secret' must be a name"),
        ({"secret": ""}, "'secret' must be a name"),
        ({"secret": 5}, "'secret' must be a name"),
        ({"secret": "s3cret" * 20}, "'secret' must be a name"),
    ],
)
def test_a_value_that_is_not_a_reference_is_rejected_without_repeating_it(value: Any, message: str) -> None:
    with pytest.raises(ValueError) as refused:
        secret_ref(value)
    assert message in str(refused.value)
    assert "s3cret" not in str(refused.value)
    with pytest.raises(ValidationError, match="secret"):
        Document.model_validate({"password": {"secret": "a"}, "user": {"nope": 1}})


@pytest.mark.parametrize("before", ["", "\0tocsin\0", "tocsin:"])
async def test_a_value_inside_of_base64_is_hidden(before: str) -> None:
    """F25: a mail server that echoes `AUTH PLAIN`, or a receiver that echoes `Basic`."""
    one = named_secrets(a="correct-horse")
    await one.reveal_key(SecretRef(secret="a"))
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        echoed = encode(f"{before}correct-horse".encode()).decode()
        assert one.redact(f"535 {echoed} rejected") == "535 *** rejected"


async def test_a_value_is_hidden_in_lower_case_in_hex_and_cut_short() -> None:
    one = named_secrets(a="Correct-Horse")
    await one.reveal_key(SecretRef(secret="a"))
    assert one.redact("bad: correct-horse") == "bad: ***"
    assert one.redact(b"Correct-Horse".hex()) == "***"
    assert one.redact("it echoed Correct-H...") == "it echoed ***..."
