"""The process in which apprise runs: one order on stdin, one answer on stdout.

Guarantee: the guard is an audit hook of the interpreter, which nothing can take away again. It sees every
connection and datagram at the moment it is made, with the address it goes to, and refuses internal ones,
sockets of this machine, other programs and the system's log. The process ends by itself soon after its
time, even when the worker that started it was killed.
"""

import ipaddress
import json
import logging
import os
import re
import resource
import signal
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any, NoReturn

from rules.delivery.addresses import why_internal
from tocsin.core.allow_list import AllowList

_MAX_MEMORY = 1_000_000_000
_MAX_TEXT = 2_000
_CONNECTS = frozenset(("socket.connect", "socket.sendto", "socket.sendmsg"))
_FORBIDDEN = ("subprocess.", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "syslog.")
_STATUS = re.compile(r"error=([0-9]{3})\b")


class Guard:
    def __init__(self, allow: AllowList) -> None:
        self._allow = allow
        self._names: dict[str, str] = {}
        self.refused = ""

    def install(self) -> None:
        resolve = socket.getaddrinfo

        def noting(host: Any, *arguments: Any, **named: Any) -> Any:
            found = resolve(host, *arguments, **named)
            for *_, sockaddr in found:
                self._names[str(sockaddr[0])] = str(host)
            return found

        socket.getaddrinfo = noting
        sys.addaudithook(self._hook)

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in _CONNECTS:
            self._check(arguments[1])
        elif event.startswith(_FORBIDDEN):
            self._refuse(f"it wants to use {event} of the worker's machine")

    def _check(self, address: Any) -> None:
        if address is None:  # a datagram on a socket whose connecting was checked
            return
        if not isinstance(address, tuple):
            self._refuse("it is a socket of the worker's machine")
        host, port = str(address[0]), int(address[1])
        try:
            parsed = ipaddress.ip_address(host.partition("%")[0])
        except ValueError:
            self._refuse(f"{host} was not resolved before")
        name = self._names.get(host, host)
        reason = None if self._allow.allows(name, parsed, port) else why_internal(parsed)
        if reason:
            shown = f"{name} is {reason}" if name == host else f"{name} resolves to {host}, {reason}"
            self._refuse(f"{shown}: it is not reached unless TOCSIN_EGRESS_ALLOW names it")

    def _refuse(self, why: str) -> NoReturn:
        self.refused = why
        raise PermissionError(why)


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def main() -> None:
    order = json.loads(sys.stdin.buffer.read())
    signal.alarm(int(order["timeout_s"]) + 2)
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY, _MAX_MEMORY))
    with tempfile.TemporaryDirectory() as folder:
        _trust(order["ca_file"], Path(folder))
        answer = _notify(order)
    sys.stdout.write(json.dumps(answer))


def _trust(ca_file: str, folder: Path) -> None:
    """Apprise takes one file of authorities: the public ones, and ours."""
    if ca_file:
        import certifi

        bundle = folder / "authorities.pem"
        bundle.write_text(Path(certifi.where()).read_text() + "\n" + Path(ca_file).read_text())
        os.environ["REQUESTS_CA_BUNDLE"] = os.environ["SSL_CERT_FILE"] = str(bundle)


def _notify(order: dict[str, Any]) -> dict[str, str]:
    import apprise
    import requests

    lines = _Lines()
    logging.getLogger("apprise").addHandler(lines)
    requests.Session.get_redirect_target = lambda *_: None  # type: ignore[method-assign]
    guard = Guard(AllowList.parse(order["allow"]))
    guard.install()
    asset = apprise.AppriseAsset(
        app_id="Tocsin",
        app_desc="Tocsin",
        async_mode=False,
        http_redirects=False,
        storage_mode="memory",
        pgp_autogen=False,
        pem_autogen=False,
        allow_templates=False,
        service_timeout=order["timeout_s"],
    )
    service = apprise.Apprise.instantiate(order["url"], asset=asset)
    if service is None and guard.refused:
        return _answer("permanent", "apprise", f"the service is not used: {guard.refused}")
    if service is None:
        return _answer("permanent", "apprise", "apprise does not know this url: see its list of services")
    name = str(service.service_name or type(service).__name__)
    if not service.verify_certificate:
        return _answer("permanent", name, "the url has verify=no: certificates are always verified")
    done = apprise.Apprise(asset=asset)
    done.add(service)
    if done.notify(body=order["text"], title=order["title"], body_format=apprise.NotifyFormat.TEXT):
        return _answer("delivered", name, f"{name} took the message")
    said = " ".join("; ".join(lines.lines).split())
    if guard.refused:
        return _answer("permanent", name, f"{name} is not used: {guard.refused}")
    return _answer(_state(said), name, f"{name} did not take the message: {said or 'apprise gave no reason'}")


def _state(said: str) -> str:
    found = _STATUS.search(said)
    status = int(found[1]) if found else 500
    return "retryable" if status >= 500 or status in (408, 425, 429) else "permanent"


def _answer(state: str, service: str, text: str) -> dict[str, str]:
    return {"state": state, "service": service, "text": text[:_MAX_TEXT]}


if __name__ == "__main__":
    main()
