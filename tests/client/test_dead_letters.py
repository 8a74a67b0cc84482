"""A dead letter fits into a message, also for the largest record."""

from __future__ import annotations

from nats.aio.msg import Msg

from tests.client.service import dead_letters
from tocsin.client._dead_letters import dead_stream, send_dead_letter
from tocsin.client._streams import create_missing
from tocsin.core.bus import connect_bus
from tocsin.core.settings import Settings

REPLY = "$JS.ACK.tocsin.billing.5.4711.9.1700000000000000000.0"


async def test_the_largest_record_leaves_its_body_in_the_stream(settings: Settings) -> None:
    bus = await connect_bus(settings, "test")
    await create_missing(bus, dead_stream(settings.namespace, 1))
    for size in (100, bus.max_payload - 256):
        message = Msg(_client=bus, subject="t.v1.event.x", reply=REPLY, data=b"x" * size)
        await send_dead_letter(bus, settings.namespace, f"c{size}", message, 5, "y" * 100_000)
    await bus.close()
    small, large = await dead_letters(settings)
    assert (len(small.body), len(large.body)) == (100, 0)
    assert (large.headers["Tocsin-Seq"], large.headers["Tocsin-Attempts"]) == ("4711", "5")
    assert len(large.headers["Tocsin-Reason"]) == 2000
