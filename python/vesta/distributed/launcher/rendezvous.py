"""How the launchers of a job find each other: the number of each machine, how many there are, and where their processes
meet.

``static``: the command line says it. ``c10d``: they meet in a store at ``--rdzv-endpoint``, which the launcher there
serves. They come in any order, and each gets the next number. A *round* is one attempt: machines join it until
``--nnodes`` are there (of ``MIN:MAX``: MAX, or MIN and no other for a while), then it is closed. When a worker fails
anywhere, its launcher says so under the round's key, all end their workers, and those that have restarts left join the
next round. The first machine of a round serves the store of its processes, on its own port. Each increments a key while
it lives and checks that of the machine after it: so a lost machine is found, and its round fails, too.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta

from vesta._C import _DistNetworkError, _DistStoreError
from vesta._C._distributed import PrefixStore, Store, TCPStore

from .config import LaunchConfig

#: How often the store is queried while waiting for others.
PAUSE = 0.1
#: How often a machine whose workers run checks whether another one has failed.
LOOK_SECONDS = 1.0
#: How long one attempt to reach the store may take; signals are checked in between.
TRY = timedelta(seconds=2)
#: How long the launcher that serves the store waits at its end for the others to read how it ended.
LINGER_SECONDS = 5.0


class RendezvousError(Exception):
    """The error that the machines of a job did not find each other, or lost the store they meet in."""


class OtherMachineFailed(Exception):
    """The error that the workers here were ended because those of another machine failed."""


@dataclass
class Place:
    """This machine in one attempt; if ``served``, a launcher serves the store at ``master``."""

    node_rank: int
    nodes: int
    first_rank: int
    world_size: int
    master: tuple[str, int]
    served: bool
    attempt: int


class Static:
    """The rendezvous by the command line; on a single machine with a free port, this launcher serves the store."""

    def __init__(self, config: LaunchConfig) -> None:
        self._config = config

    @contextlib.contextmanager
    def place(self, attempt: int) -> Iterator[Place]:
        """Yields this machine's place in an attempt."""
        config = self._config
        master, served, store = (config.master_addr, config.master_port or 0), False, None
        if config.master_port is None:  # surely free, and the store outlives each process
            store = TCPStore(config.master_addr, 0, None, True, timedelta(minutes=5), False)
            master, served = (config.master_addr, store.port), True
        nproc, nodes = config.nproc_per_node, config.max_nodes
        yield Place(config.node_rank, nodes, config.node_rank * nproc, nodes * nproc, master, served, attempt)

    def look(self) -> str | None:
        """Returns a reason to end this machine's workers: always None."""
        return None

    def failed(self, why: str) -> None:
        """Does nothing: the others' processes notice."""

    def finished(self) -> str | None:
        """Returns which other machine failed after this one was done: always None, since nothing reports it."""
        return None

    def close(self) -> None:
        """Does nothing."""


class Dynamic:
    """The rendezvous in a store; see the module. ``check`` raises if a signal ends the launcher."""

    def __init__(self, config: LaunchConfig, check: Callable[[], None]) -> None:
        self._config, self._check = config, check
        self._host = socket.gethostname()
        self._deadline = time.monotonic() + config.join_timeout
        self._serves, first = self._open()
        first.set_timeout(timedelta(seconds=60))  # no answer of the store takes longer
        self._address = config.local_addr or self._own_address()
        self._store: Store = PrefixStore(f"vestarun/{config.run_id}", first)
        self._round, self._index, self._count, self._next_look, self._said = -1, 0, 0, 0.0, -1
        self._beat, self._heard = b"", 0.0  # the last beat of the machine after this one
        self._gone = False  # the store is gone: trying to reach it would only take time

    def _open(self) -> tuple[bool, TCPStore]:
        """Serves the store if the endpoint is on this machine and no other launcher serves it yet; else connects to
        it."""
        config = self._config
        if config.rdzv_is_host or (config.rdzv_is_host is None and is_this_machine(config.rdzv_host)):
            try:
                return True, TCPStore(config.rdzv_host, config.rdzv_port, None, True, TRY, False)
            except _DistNetworkError as error:  # another launcher on this machine was first
                if config.rdzv_is_host:
                    raise RendezvousError(f"cannot serve the rendezvous (--rdzv-conf is_host): {error}") from None
        while True:
            try:
                return False, TCPStore(config.rdzv_host, config.rdzv_port, None, False, TRY, False)
            except (_DistNetworkError, _DistStoreError) as error:
                if time.monotonic() < self._deadline:
                    self._check()
                    continue
                raise RendezvousError(
                    f"no rendezvous at {config.rdzv_host}:{config.rdzv_port} within {config.join_timeout:g} s "
                    f"(--rdzv-endpoint): {error} The launcher on that machine serves it; with --rdzv-conf is_host=1 "
                    "where it does not know itself by that name."
                ) from None

    def _own_address(self) -> str:
        """Returns the address used towards the rendezvous, which others can reach, too.

        On the machine of that name it may be 127.0.1.1 (as on Debian); the others know the name.
        """
        for family, kind, _, _, address in socket.getaddrinfo(
            self._config.rdzv_host, self._config.rdzv_port, type=socket.SOCK_DGRAM
        ):
            with contextlib.suppress(OSError), socket.socket(family, kind) as probe:
                probe.connect(address)
                found = probe.getsockname()[0]
                return (
                    found if not ipaddress.ip_address(found.partition("%")[0]).is_loopback else self._config.rdzv_host
                )
        return self._host

    # ---- a round

    @contextlib.contextmanager
    def place(self, attempt: int) -> Iterator[Place]:
        """Joins a round and yields this machine's place in it when the round is closed."""
        if self._gone:
            raise RendezvousError(
                f"the launcher at {self._config.rdzv_host}:{self._config.rdzv_port} is gone (--rdzv-endpoint); without "
                "it no round begins."
            )
        self._deadline = time.monotonic() + self._config.join_timeout
        index = self._index = self._join()
        self._beat, self._heard = b"", time.monotonic()
        config, served = self._config, None
        own = {"host": self._host, "nproc": config.nproc_per_node}
        if index == 0:
            served = TCPStore(self._address, 0, None, True, timedelta(minutes=5), False)
            own["master"] = [self._address, served.port]
        self._store.set(f"{self._round}/machine/{index}", json.dumps(own))
        machines = [json.loads(self._get(f"{self._round}/machine/{i}")) for i in range(self._count)]
        self._after = machines[(index + 1) % self._count]["host"]
        sizes = [machine["nproc"] for machine in machines]
        master = (machines[0]["master"][0], machines[0]["master"][1])
        yield Place(index, self._count, sum(sizes[:index]), sum(sizes), master, True, self._round)

    def _join(self) -> int:
        """Joins the open round, or the next one; returns this machine's number in it."""
        while True:
            self._round = max(self._round + 1, self._store.add("round", 0))
            index = self._store.add(f"{self._round}/joined", 1) - 1
            self._count = self._closed(index)
            if index < self._count:
                return index
            # The round began without this machine: a place may become free when it fails.
            while self._store.add("round", 0) <= self._round:
                self._wait_a_little("was full when this machine came; no round after it began")

    def _closed(self, index: int) -> int:
        """Waits until the round is closed, and closes it when it is time; returns the number of machines in it."""
        config, key = self._config, f"{self._round}/closed"
        known, since = 0, time.monotonic()
        while not self._store.check([key]):
            here = self._store.add(f"{self._round}/joined", 0)
            if here != known:
                known, since = here, time.monotonic()
            quiet = time.monotonic() - since >= config.last_call_timeout
            if index == 0 and (here >= config.max_nodes or (here >= config.min_nodes and quiet)):
                self._store.compare_set(key, "", str(min(here, config.max_nodes)))
                continue
            wanted = str(config.min_nodes)
            if config.max_nodes > config.min_nodes:
                wanted += f" to {config.max_nodes}"
            self._wait_a_little(f"expected {wanted} machines, {here} came (--nnodes, --rdzv-id {config.run_id})")
        return int(self._store.get(key))

    def _wait_a_little(self, complaint: str) -> None:
        if time.monotonic() >= self._deadline:
            raise RendezvousError(
                f"the rendezvous at {self._config.rdzv_host}:{self._config.rdzv_port} {complaint} within "
                f"{self._config.join_timeout:g} s."
            )
        self._check()
        time.sleep(PAUSE)

    def _get(self, key: str) -> str:
        while not self._store.check([key]):
            self._wait_a_little(f"closed round {self._round}, but a machine of it fell silent")
        return self._store.get(key).decode()

    # ---- while workers run, and afterwards

    def look(self) -> str | None:
        """Returns a reason to end this machine's workers (another machine failed, or the store is gone), or None."""
        now = time.monotonic()
        if now < self._next_look:
            return None
        self._next_look = now + LOOK_SECONDS
        try:
            return self._failure() or self._lost()
        except (_DistNetworkError, _DistStoreError):
            self._gone = True
            return f"the launcher at {self._config.rdzv_host}:{self._config.rdzv_port} is gone"

    def _failure(self) -> str | None:
        key = f"{self._round}/failed"
        if not self._store.check([key]):
            return None
        self._seen()
        return self._store.get(key).decode()

    def _lost(self) -> str | None:
        """Sends a heartbeat, and returns which machine sends none any more."""
        self._store.add(f"{self._round}/alive/{self._index}", 1)
        after = (self._index + 1) % self._count
        key = f"{self._round}/alive/{after}"
        beat = self._store.get(key) if self._store.check([key]) else b""
        if beat != self._beat or after == self._index:
            self._beat, self._heard = beat, time.monotonic()
        quiet = time.monotonic() - self._heard
        if quiet < self._config.keep_alive_timeout or self._store.check([f"{self._round}/left/{after}"]):
            return None
        self.failed(f"machine {after} ({self._after}) has given no sign of life for {quiet:.0f} s.")
        return self._failure()

    def _seen(self) -> None:
        """Records that this machine knows how the round ended."""
        if self._said != self._round:
            self._said = self._round
            self._store.add(f"{self._round}/seen", 1)

    def failed(self, why: str) -> None:
        """Tells the other machines that this round is over, and opens the next one."""
        if self._gone:
            return
        with contextlib.suppress(_DistNetworkError, _DistStoreError):
            self._store.compare_set(f"{self._round}/failed", "", f"{self._host}: {why}")
            self._seen()
            if self._store.add("round", 0) == self._round:
                self._store.compare_set("round", str(self._round), str(self._round + 1))

    def finished(self) -> str | None:
        """Waits until all machines are done, so that all can restart if one fails; returns which one failed."""
        deadline = time.monotonic() + self._config.exit_timeout
        with contextlib.suppress(_DistNetworkError, _DistStoreError):  # the serving launcher knows that all are done
            self._store.add(f"{self._round}/done", 1)
            while time.monotonic() < deadline and self._store.add(f"{self._round}/done", 0) < self._count:
                self._check()
                if (why := self._failure() or self._lost()) is not None:
                    return why
                time.sleep(PAUSE)
            self._store.set(f"{self._round}/left/{self._index}", "")
            self._seen()
        return None

    def close(self) -> None:
        """Leaves the store; the launcher that serves it waits a moment until the others know how the last round
        ended."""
        deadline = time.monotonic() + LINGER_SECONDS
        with contextlib.suppress(_DistNetworkError, _DistStoreError):
            while self._serves and self._count and time.monotonic() < deadline:
                if self._store.add(f"{self._round}/seen", 0) >= self._count:
                    break
                time.sleep(PAUSE)


def is_this_machine(host: str) -> bool:
    """Returns whether a name or address belongs to this machine."""
    if host in ("localhost", "127.0.0.1", "::1", socket.gethostname(), socket.getfqdn()):
        return True
    with contextlib.suppress(OSError):
        for family, kind, _, _, address in socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM):
            with contextlib.suppress(OSError), socket.socket(family, kind) as probe:
                probe.bind(address)
                return True
    return False
