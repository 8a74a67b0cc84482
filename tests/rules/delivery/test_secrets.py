import base64
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from rules.delivery.secrets import Secrets
from schemas.values.secret import Secret, SecretRef, TextOrSecret, secret_ref
from tocsin.core.errors import InvalidInput

VALUE = 's3cret/"ü" & more'


class Document(BaseModel):
    password: Secret
    user: TextOrSecret = ""


def secrets(**environ: str) -> Secrets:
    return Secrets(environ)


def test_a_reference_is_revealed_from_the_environment() -> None:
    assert secrets(A=VALUE).reveal(SecretRef(env="A")) == VALUE


def test_a_reference_is_revealed_from_a_file_without_its_last_line_break(tmp_path: Path) -> None:
    for content in (VALUE, f"{VALUE}\n", f"{VALUE}\r\n"):
        (tmp_path / "s").write_bytes(content.encode())
        assert secrets().reveal(SecretRef(file=str(tmp_path / "s"))) == VALUE


def test_a_plain_text_is_unchanged_and_not_hidden() -> None:
    one = secrets()
    assert one.reveal("plain") == "plain"
    assert one.redact("plain") == "plain"


def test_a_missing_secret_is_named_by_its_reference(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "large").write_text("x" * 65_537)
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    for ref, said in (
        (SecretRef(env="B"), "the secret {env: B} is not set: set the variable for the worker"),
        (SecretRef(env="EMPTY"), "the secret {env: EMPTY} is empty"),
        (
            SecretRef(file=f"{tmp_path}/no"),
            f"the secret {{file: {tmp_path}/no}} cannot be read: no such file",
        ),
        (SecretRef(file=str(tmp_path)), "cannot be read: is a directory"),
        (SecretRef(file=f"{tmp_path}/empty"), "is empty"),
        (SecretRef(file=f"{tmp_path}/large"), "is larger than 65536 bytes"),
        (SecretRef(file=f"{tmp_path}/binary"), "is not text in UTF-8"),
    ):
        with pytest.raises(InvalidInput) as missing:
            secrets(EMPTY="").reveal(ref)
        assert said in str(missing.value)


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
def test_a_revealed_value_is_hidden_in_every_form(form: str) -> None:
    one = secrets(A=VALUE)
    one.reveal(SecretRef(env="A"))
    assert one.redact(f"before {form} after {form}") == "before *** after ***"
    assert one.redact_json({"k": [f"x{form}", 1, None]}) == {"k": ["x***", 1, None]}


def test_the_secret_parts_of_a_url_are_hidden_by_themselves() -> None:
    one = secrets(U="https://bot:pa55word@hooks.slack.com/services/T00000000/B00/abcdefgh123?token=tttttttt")
    one.reveal(SecretRef(env="U"))
    text = "POST /services/T00000000/B00/abcdefgh123 to hooks.slack.com: abcdefgh123, tttttttt, pa55word"
    assert one.redact(text) == "POST *** to hooks.slack.com: ***, ***, ***"


def test_the_tokens_of_an_apprise_url_are_hidden_by_themselves() -> None:
    one = secrets(U="tgram://123456789:abcdefghij/12345678901/?image=no")
    one.reveal(SecretRef(env="U"))
    text = "POST api.telegram.org/bot123456789:abcdefghij to 12345678901"
    assert one.redact(text) == "POST api.telegram.org/bot***:*** to ***"


def test_no_repr_shows_a_value() -> None:
    one = secrets(A=VALUE)
    one.reveal(SecretRef(env="A"))
    assert repr(one) == "Secrets()"
    assert repr(SecretRef(env="A")) == "SecretRef(env='A', file=None)"


def test_a_document_keeps_the_reference_as_it_was_written() -> None:
    data: dict[str, Any] = {"password": {"env": "A"}, "user": {"file": "/run/secrets/user"}}
    document = Document.model_validate(data)
    assert document.model_dump(mode="json") == data
    assert Document.model_validate(document.model_dump(mode="json")) == document
    assert Document.model_validate({"password": {"env": "A"}, "user": "plain"}).user == "plain"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("s3cret", "a secret is never written down: write {env: NAME} or {file: /path}"),
        (5, "a secret is never written down"),
        (None, "a secret is never written down"),
        (["s3cret"], "a secret is never written down"),
        ({"env": "A", "file": "/s3cret"}, "a reference to a secret has one key"),
        ({"value": "s3cret"}, "a reference to a secret has one key"),
        ({}, "a reference to a secret has one key"),
        ({"env": "s3cret!"}, "'env' must be the name of a variable"),
        ({"env": ""}, "'env' must be the name of a variable"),
        ({"env": 5}, "'env' must be the name of a variable"),
        ({"env": "TOCSIN_POSTGRES"}, "'TOCSIN_POSTGRES' is a setting of tocsin itself"),
        ({"env": "tocsin_nats"}, "'tocsin_nats' is a setting of tocsin itself"),
        ({"file": "s3cret"}, "'file' must be an absolute path"),
        ({"file": "/a/../s3cret"}, "'file' must be a path without '..'"),
        ({"file": "/a\0s3cret"}, "'file' must be a path without '..'"),
        ({"file": None}, "'file' must be an absolute path"),
    ],
)
def test_a_value_that_is_not_a_reference_is_rejected_without_repeating_it(value: Any, message: str) -> None:
    with pytest.raises(ValueError) as refused:
        secret_ref(value)
    assert message in str(refused.value)
    assert "s3cret" not in str(refused.value)
    with pytest.raises(ValidationError, match="env"):
        Document.model_validate({"password": {"env": "A"}, "user": {"nope": 1}})


@pytest.mark.parametrize("before", ["", "\0tocsin\0", "tocsin:"])
def test_a_value_inside_of_base64_is_hidden(before: str) -> None:
    """F25: a mail server that echoes `AUTH PLAIN`, or a receiver that echoes `Basic`."""
    one = secrets(A="correct-horse")
    one.reveal(SecretRef(env="A"))
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        echoed = encode(f"{before}correct-horse".encode()).decode()
        assert one.redact(f"535 {echoed} rejected") == "535 *** rejected"


def test_a_value_is_hidden_in_lower_case_in_hex_and_cut_short() -> None:
    one = secrets(A="Correct-Horse")
    one.reveal(SecretRef(env="A"))
    assert one.redact("bad: correct-horse") == "bad: ***"
    assert one.redact(b"Correct-Horse".hex()) == "***"
    assert one.redact("it echoed Correct-H...") == "it echoed ***..."
