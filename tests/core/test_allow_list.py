from ipaddress import ip_address

import pytest

from tocsin.core.allow_list import AllowList
from tocsin.core.errors import InvalidInput
from tocsin.core.settings import read_settings


@pytest.mark.parametrize(
    ("text", "host", "address", "port", "allowed"),
    [
        ("", "hooks.internal", "10.0.0.1", 80, False),
        ("hooks.internal", "hooks.internal", "10.0.0.1", 80, True),
        ("hooks.internal", "HOOKS.internal.", "10.0.0.1", 80, True),
        ("Hooks.Internal.", "hooks.internal", "10.0.0.1", 80, True),
        ("hooks.internal", "x.hooks.internal", "10.0.0.1", 80, False),
        ("hooks.internal:443", "hooks.internal", "10.0.0.1", 443, True),
        ("hooks.internal:443", "hooks.internal", "10.0.0.1", 80, False),
        ("10.0.0.0/8", "anything", "10.9.9.9", 80, True),
        ("10.0.0.0/8", "anything", "11.9.9.9", 80, False),
        ("10.0.0.7", "anything", "10.0.0.7", 80, True),
        ("10.0.0.7:25", "anything", "10.0.0.7", 25, True),
        ("10.0.0.7:25", "anything", "10.0.0.7", 26, False),
        ("fd00::/8", "anything", "fd00::1", 80, True),
        ("fd00::1", "anything", "fd00::1", 80, True),
        ("[fd00::1]:25", "anything", "fd00::1", 25, True),
        ("[fd00::1]:25", "anything", "fd00::1", 26, False),
        ("[fd00::1]", "anything", "fd00::1", 26, True),
        (" a , ,10.0.0.7 ,", "a", "10.0.0.1", 1, True),
    ],
)
def test_an_entry_allows_what_it_names(text: str, host: str, address: str, port: int, allowed: bool) -> None:
    assert AllowList.parse(text).allows(host, ip_address(address), port) is allowed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("10.0.0.1/8", "'10.0.0.1/8' is not a network: write 10.0.0.0/8"),
        ("https://a.b", "'https://a.b' cannot be allowed"),
        ("a b", "'a b' cannot be allowed"),
        ("a:0", "'a:0' cannot be allowed"),
        ("a:65536", "'a:65536' cannot be allowed"),
        ("10.1", "'10.1' cannot be allowed"),
        ("10.0.0.256", "'10.0.0.256' cannot be allowed"),
        ("10.0.0.0/33", "'10.0.0.0/33' cannot be allowed"),
        ("*", "'*' cannot be allowed"),
        ("*.internal", "'*.internal' cannot be allowed"),
        ("a,[::1", "'[::1' cannot be allowed"),
    ],
)
def test_an_invalid_entry_is_rejected_at_start_up(text: str, message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        AllowList.parse(text)
    assert message in str(refused.value)
    with pytest.raises(InvalidInput, match="TOCSIN_EGRESS_ALLOW="):
        read_settings(egress_allow=text)
