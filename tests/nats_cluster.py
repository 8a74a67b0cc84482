"""Three NATS servers that form a cluster, each on a data directory of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.ports import free_ports
from tocsin.embedded import Nats

_NODES = 3


class Node(Nats):
    """An embedded server with routes to the others."""

    def __init__(self, data_dir: Path, number: int, ports: list[int]) -> None:
        super().__init__(data_dir)
        self._number = number
        self._ports_of_routes = ports

    @property
    def server_name(self) -> str:
        return self._server_name

    def _kept_password(self) -> str:
        """One password for all nodes: a client sends the same to each of them."""
        return "0" * 48

    def _write_config(self, port: int) -> None:
        super()._write_config(port)
        routes = "\n".join(f"    nats://127.0.0.1:{other}" for other in self._ports_of_routes)
        with self._config_path.open("a") as config:
            config.write(
                f"cluster {{\n  name: tests\n  listen: 127.0.0.1:{self._ports_of_routes[self._number]}\n"
                f"  routes: [\n{routes}\n  ]\n}}\n"
            )


@contextmanager
def nats_cluster() -> Iterator[list[Node]]:
    with ExitStack() as stack:
        ports = free_ports(_NODES)
        nodes = []
        for number in range(_NODES):
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="tocsin-"))
            nodes.append(Node(Path(folder), number, ports))
        for node in nodes:
            node.start()
            stack.callback(node.close)
        yield nodes
