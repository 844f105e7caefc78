"""How processes find each other: a URL becomes a store, a rank and a world size."""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import unquote, urlparse, urlunparse

from vesta._C._distributed import FileStore, Store, TCPStore

from . import _environment
from .constants import default_pg_timeout

__all__ = ["register_rendezvous_handler", "rendezvous"]

Handler = Callable[..., Iterator[tuple[Store, int, int]]]
_handlers: dict[str, Handler] = {}


def register_rendezvous_handler(scheme: str, handler: Handler) -> None:
    """Registers a generator ``handler(url, timeout=...)`` that yields (store, rank, world size) for ``scheme://``."""
    if scheme in _handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **kwargs: Any) -> Iterator[tuple[Store, int, int]]:
    """Returns an iterator whose first element is (store, rank, world size) for an init method such as ``env://``."""
    if not isinstance(url, (str, bytes)):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    if not isinstance(rank, numbers.Integral):
        raise RuntimeError(f"`rank` must be an integer. {rank}")
    if not isinstance(world_size, numbers.Integral):
        raise RuntimeError(f"`world_size` must be an integer. {world_size}")
    parts = urlparse(url)
    query = _query(parts.query)
    if rank != -1 or world_size != -1:
        if "rank" in query or "world_size" in query:
            raise AssertionError(f"The url: {url} has node-specific arguments(rank, world_size) already.")
        if rank != -1:
            query["rank"] = str(rank)
        if world_size != -1:
            query["world_size"] = str(world_size)
        url = urlunparse(parts._replace(query="&".join(f"{k}={v}" for k, v in query.items())))
    if parts.scheme not in _handlers:
        raise RuntimeError(f"No rendezvous handler for {parts.scheme}://")
    return _handlers[parts.scheme](url, **kwargs)


def _query(text: str) -> dict[str, str]:
    pairs = (pair.split("=", 1) for pair in text.split("&") if pair)
    return {pair[0]: pair[1] for pair in pairs}


def _error(what: str) -> ValueError:
    return ValueError("Error initializing vesta.distributed using " + what)


def check_rank(rank: int, size: int) -> None:
    """Raises if a process cannot have ``rank`` among ``size``."""
    if size < 1:
        raise ValueError(f"init_process_group: expected at least 1 process, got {size} (WORLD_SIZE, world_size).")
    if not 0 <= rank < size:
        raise ValueError(f"init_process_group: expected a rank from 0 to {size - 1}, got {rank} (RANK, rank).")


def _wanted(query: dict[str, str], scheme: str) -> tuple[int, int]:
    """Returns rank and world size of a URL, or the launcher's if the URL has none."""
    place = _environment.detect(os.environ)
    for name, text in (("rank", "rank"), ("world_size", "world size")):
        if name not in query and place is None:
            raise _error(f"{scheme}:// rendezvous: {text} parameter missing")
    rank = int(query["rank"]) if "rank" in query else place.rank  # type: ignore[union-attr]
    size = int(query["world_size"]) if "world_size" in query else place.world_size  # type: ignore[union-attr]
    check_rank(rank, size)
    return rank, size


def _file(url: str, timeout: timedelta = default_pg_timeout, **_: Any) -> Iterator[tuple[Store, int, int]]:
    parts = urlparse(url)
    if not parts.path:
        raise _error("file:// rendezvous: path missing")
    rank, size = _wanted(_query(parts.query), "file")
    yield FileStore(unquote(parts.path), size), rank, size
    raise RuntimeError("Unable to perform rerendezvous using file:// method")


def _tcp(url: str, timeout: timedelta = default_pg_timeout, **_: Any) -> Iterator[tuple[Store, int, int]]:
    parts = urlparse(url)
    if parts.port is None:
        raise _error("tcp:// rendezvous: port number missing")
    rank, size = _wanted(_query(parts.query), "tcp")
    yield _tcp_store(parts.hostname or "", parts.port, rank, size, timeout), rank, size
    raise RuntimeError("Unable to perform re-rendezvous using tcp:// method")


def _env(url: str, timeout: timedelta = default_pg_timeout, **_: Any) -> Iterator[tuple[Store, int, int]]:
    query = _query(urlparse(url).query)
    place = _environment.complete(os.environ, int(query.get("rank", -1)), int(query.get("world_size", -1)))
    if place.master_addr is None or place.master_port is None:
        raise _error("env:// rendezvous: MASTER_ADDR and MASTER_PORT expected")
    check_rank(place.rank, place.world_size)
    store = _tcp_store(place.master_addr, place.master_port, place.rank, place.world_size, timeout)
    yield store, place.rank, place.world_size
    raise RuntimeError("Unable to perform re-rendezvous using env:// method")


def _launcher_serves(host: str, port: int) -> bool:
    """Returns whether the launcher already runs the store at this place, so that rank 0 need not."""
    return (
        os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
        and os.environ.get("MASTER_ADDR") == host
        and os.environ.get("MASTER_PORT") == str(port)
    )


def _tcp_store(host: str, port: int, rank: int, size: int, timeout: timedelta) -> Store:
    if not 0 <= port < 2**16:
        raise ValueError(f"port must have value from 0 to 65535 but was {port}.")
    master = rank == 0 and not _launcher_serves(host, port)
    return TCPStore(host, port, size, master, timeout, wait_for_workers=False, multi_tenant=True)


register_rendezvous_handler("tcp", _tcp)
register_rendezvous_handler("env", _env)
register_rendezvous_handler("file", _file)
