"""The HTTP protocol of uvicorn with limits that it does not have: time and bytes of a head, connections.

Guarantee: a client that connects and sends nothing, or its head byte by byte, is closed after
`HEAD_WITHIN_S`. A head has at most `MAX_HEAD_BYTES`. If all connections are taken, a new one replaces
one that has no request under way; if there is none, the new one is closed.

Why here: uvicorn bounds neither, and its `limit_concurrency` answers in plain text after it has read
the head.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_WITHIN_S = 10.0
MAX_HEAD_BYTES = 32_768


class BoundedProtocol(HttpToolsProtocol):
    max_connections = 1000
    head_within_s = HEAD_WITHIN_S

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        # Whatever a logger of uvicorn is set to: paths hold tokens.
        self.access_log = False
        self._head_timer: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        self._reads_head = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.max_connections and not self._replace_idle():
            transport.close()
            return
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._reads_head:
            self._head_bytes += len(data)
            if self._head_timer is None:
                self._expect_head()
        super().data_received(data)
        if self._reads_head and self._head_bytes > MAX_HEAD_BYTES:
            self._refuse_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._reads_head = True

    def on_headers_complete(self) -> None:
        self._reads_head = False
        self._head_bytes = 0
        self._stop_timer()
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        self._reads_head = True
        super().on_response_complete()

    @property
    def is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _replace_idle(self) -> bool:
        idle = next((c for c in self.connections if c is not self and getattr(c, "is_idle", False)), None)
        if idle is not None:
            self.connections.discard(idle)
            idle.transport.abort()
        return idle is not None

    def _expect_head(self) -> None:
        self._stop_timer()
        self._head_timer = self.loop.call_later(self.head_within_s, self._give_up_head)

    def _give_up_head(self) -> None:
        if not self.transport.is_closing():
            self.transport.abort()

    def _refuse_head(self) -> None:
        body = b"the head of the request is too large\n"
        self.transport.write(
            b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain; charset=utf-8\r\n"
            b"content-length: %d\r\nconnection: close\r\n\r\n%b" % (len(body), body)
        )
        self.transport.close()

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
