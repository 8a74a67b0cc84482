"""The doctor on a cluster of NATS servers: replicas, and a cluster without a majority."""

from __future__ import annotations

from contextlib import suppress

from nats.errors import Error as NatsError

from tests.cdc.published_records import append, publish_all, smaller
from tests.nats_cluster import nats_cluster
from tests.wait import eventually
from tocsin.core.bus import open_bus
from tocsin.core.db import Connection
from tocsin.core.settings import Settings
from tocsin.doctor.checks import Finding
from tocsin.doctor.nats_checks import check_nats


async def findings(settings: Settings) -> dict[str, Finding]:
    async with open_bus(settings, "test") as bus:
        return {finding.subject: finding for finding in await check_nats(bus, settings, None)}


async def test_one_replica_on_a_cluster_is_red_and_so_is_a_cluster_without_a_majority(
    settings: Settings, connection: Connection
) -> None:
    await append(connection, 2)
    with nats_cluster() as nodes:
        single = smaller(settings, nats=nodes[0].url)

        async def is_published() -> bool:
            with suppress(NatsError, TimeoutError):
                await publish_all(single)
                return True
            return False

        await eventually(is_published, "the cluster has elected a leader")
        replicas = (await findings(single))["replicas"]
        assert (replicas.state, f"{settings.stream} 1;" in replicas.text) == ("red", True)
        assert f"`nats stream edit {settings.stream} --replicas 3`" in replicas.remedy
        safe = smaller(single, namespace=f"{settings.namespace}_safe", stream_replicas=3)
        await publish_all(safe)
        assert (await findings(safe))["replicas"] == Finding("ok", "replicas", f"{safe.stream} 3")
        for node in nodes[1:]:
            node.stop()

        async def has_no_majority() -> bool:
            found = (await findings(single)).get("jetstream")
            return found is not None and "too few servers" in found.text

        await eventually(has_no_majority, "the doctor names the missing majority")
