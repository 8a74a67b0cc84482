"""Recognises credentials that were written into a document as text.

The names of headers and of url parameters decide first, then the forms of well-known tokens. A
credential with an innocent name and no known form is not recognised.
"""

import re
from urllib.parse import parse_qsl, unquote, urlsplit

_NAME = re.compile(
    r"(^|[-_.])(authorization|auth|cookie|token|secret|password|passwd|passphrase|pwd|credentials?|session"
    r"|sig|signature|hmac|apikey|appkey|accesskey|(api|app|access|private|auth|routing|integration|service)[-_.]?key)"
    r"([-_.]|$)",
    re.IGNORECASE,
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_VALUE = re.compile(
    r"(?i:^(bearer|basic|token|digest|apikey|negotiate|splunk)\s+\S)"
    r"|\b(gh[pousr]_[A-Za-z0-9]{20}|github_pat_\w{20}|glpat-[\w-]{16}|xox[abposr]-[\w-]{10}|sk[-_](live|test|proj|ant)[-_]\w{8}"
    r"|AKIA[0-9A-Z]{16}|AIza[\w-]{30}|eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.|whsec_[A-Za-z0-9+/=]{16}|SG\.[\w-]{16,}\.)"
)
# Services whose urls are credentials by their path.
_SECRET_PATHS = (
    ("hooks.slack.com", "/"),
    ("discord.com", "/api/webhooks/"),
    ("discordapp.com", "/api/webhooks/"),
    ("webhook.office.com", "/"),
    ("api.telegram.org", "/bot"),
    ("chat.googleapis.com", "/v1/spaces/"),
    ("hooks.zapier.com", "/hooks/"),
    ("maker.ifttt.com", "/trigger/"),
    ("hc-ping.com", "/"),
)


def is_credential_name(name: str) -> bool:
    """Whether a header or a parameter is named as a credential: `X-Api-Key`, `accessToken`."""
    return bool(_NAME.search(_CAMEL.sub("-", name)) or _NAME.search(name))


def looks_like_credential(text: str) -> bool:
    return bool(_VALUE.search(text))


def url_has_credential(url: str) -> bool:
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    for known, path in _SECRET_PATHS:
        if (
            (host == known or host.endswith(f".{known}"))
            and parts.path.startswith(path)
            and len(parts.path) > len(path)
        ):
            return True
    pairs = [*parse_qsl(parts.query, keep_blank_values=True), *parse_qsl(parts.fragment)]
    if any(value and (is_credential_name(name) or name.lower() == "key") for name, value in pairs):
        return True
    return looks_like_credential(unquote(url))
