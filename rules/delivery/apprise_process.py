"""The process in which apprise runs: reads one request from stdin and writes one reply to stdout.

Guarantee: the guard is an audit hook of the interpreter, which cannot be removed. It sees every
connection and datagram at the moment it is made, with its address, and rejects internal addresses,
Unix sockets, other programs and the system's log. The process ends soon after its timeout, even if
the worker that started it was killed.
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
        self.rejected = ""

    def install(self) -> None:
        resolve = socket.getaddrinfo

        def resolve_and_note(host: Any, *arguments: Any, **named: Any) -> Any:
            results = resolve(host, *arguments, **named)
            for *_, sockaddr in results:
                self._names[str(sockaddr[0])] = str(host)
            return results

        socket.getaddrinfo = resolve_and_note
        sys.addaudithook(self._hook)

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in _CONNECTS:
            self._check(arguments[1])
        elif event.startswith(_FORBIDDEN):
            self._reject(f"it wants to use {event} of the worker's machine")

    def _check(self, address: Any) -> None:
        if address is None:  # a datagram on a connected socket, whose connection was checked
            return
        if not isinstance(address, tuple):
            self._reject("it is a socket of the worker's machine")
        host, port = str(address[0]), int(address[1])
        try:
            parsed = ipaddress.ip_address(host.partition("%")[0])
        except ValueError:
            self._reject(f"{host} was not resolved before")
        name = self._names.get(host, host)
        reason = None if self._allow.allows(name, parsed, port) else why_internal(parsed)
        if reason:
            target = f"{name} is {reason}" if name == host else f"{name} resolves to {host}, {reason}"
            self._reject(f"{target}: allow it with TOCSIN_EGRESS_ALLOW")

    def _reject(self, reason: str) -> NoReturn:
        self.rejected = reason
        raise PermissionError(reason)


class _LogLines(logging.Handler):
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
    """Write one file with the public authorities and ours: apprise accepts only one."""
    if ca_file:
        import certifi

        bundle = folder / "authorities.pem"
        bundle.write_text(Path(certifi.where()).read_text() + "\n" + Path(ca_file).read_text())
        os.environ["REQUESTS_CA_BUNDLE"] = os.environ["SSL_CERT_FILE"] = str(bundle)


def _notify(order: dict[str, Any]) -> dict[str, str]:
    import apprise
    import requests

    log = _LogLines()
    logging.getLogger("apprise").addHandler(log)
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
    if service is None and guard.rejected:
        return _answer("permanent", "apprise", f"the service is not used: {guard.rejected}")
    if service is None:
        return _answer("permanent", "apprise", "apprise does not know this url: see its list of services")
    name = str(service.service_name or type(service).__name__)
    if not service.verify_certificate:
        return _answer("permanent", name, "the url has verify=no: certificates are always verified")
    sender = apprise.Apprise(asset=asset)
    sender.add(service)
    if sender.notify(body=order["text"], title=order["title"], body_format=apprise.NotifyFormat.TEXT):
        return _answer("delivered", name, f"{name} took the message")
    reason = " ".join("; ".join(log.lines).split())
    if guard.rejected:
        return _answer("permanent", name, f"{name} is not used: {guard.rejected}")
    return _answer(
        _state(reason), name, f"{name} did not take the message: {reason or 'apprise gave no reason'}"
    )


def _state(reason: str) -> str:
    match = _STATUS.search(reason)
    status = int(match[1]) if match else 500
    return "retryable" if status >= 500 or status in (408, 425, 429) else "permanent"


def _answer(state: str, service: str, text: str) -> dict[str, str]:
    return {"state": state, "service": service, "text": text[:_MAX_TEXT]}


if __name__ == "__main__":
    main()
