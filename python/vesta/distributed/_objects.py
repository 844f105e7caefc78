"""Collectives on Python objects, pickled and sent as bytes: use them only with ranks that you trust."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any

import vesta
from vesta import Tensor
from vesta._C._distributed import _bytes_of_tensor, _tensor_of_bytes

from . import _collectives
from .distributed_c10d import (
    Backend,
    ProcessGroup,
    _canonicalize_group_rank,
    _group_or_default_group,
    _rank_not_in_group,
    _warn_not_in_group,
    get_backend,
    get_global_rank,
)

__all__ = [
    "all_gather_object",
    "broadcast_object_list",
    "gather_object",
    "recv_object_list",
    "scatter_object_list",
    "send_object_list",
]


def _staged(collective: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a collective accept host tensors in a group that has no backend for them: they go through the current
    GPU."""

    def moved(arg: Any) -> Any:
        if isinstance(arg, Tensor):
            return arg.cuda()
        return [part.cuda() for part in arg] if isinstance(arg, list) else arg

    def run(*args: Any, **named: Any) -> Any:
        group = named.get("group") or next((arg for arg in args if isinstance(arg, ProcessGroup)), None)
        if get_backend(group) != Backend.NCCL:
            return collective(*args, **named)
        there = [moved(arg) for arg in args]
        result = collective(*there, **named)
        for here, gpu in zip(args, there):
            pairs = zip(here, gpu) if isinstance(here, list) else [(here, gpu)] if isinstance(here, Tensor) else []
            for to, from_ in pairs:
                to.copy_(from_)
        return result

    return run


all_gather, broadcast, gather = map(_staged, (_collectives.all_gather, _collectives.broadcast, _collectives.gather))
scatter, send, recv = map(_staged, (_collectives.scatter, _collectives.send, _collectives.recv))


def _pickled(obj: Any) -> Tensor:
    return _tensor_of_bytes(pickle.dumps(obj, protocol=pickle.HIGHEST_PROTOCOL))


def _unpickled(tensor: Tensor, size: int, weights_only: bool = False) -> Any:
    return pickle.loads(_bytes_of_tensor(tensor)[:size])


def _refuse_weights_only(weights_only: bool) -> None:
    if weights_only:
        raise NotImplementedError("object collectives: weights_only=True is not supported. Send tensors instead.")


def _sizes(*sizes: int) -> Tensor:
    return vesta.tensor(list(sizes), dtype=vesta.int64)


def _padded(tensor: Tensor, size: int) -> Tensor:
    whole = vesta.zeros(size, dtype=vesta.uint8)
    whole[: tensor.numel()] = tensor
    return whole


def _all_sizes(size: int, group: Any) -> list[int]:
    pg = _group_or_default_group(group)
    parts = [_sizes(0) for _ in range(pg.size())]
    all_gather(parts, _sizes(size), group)
    return [int(part.item()) for part in parts]


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None, weights_only: bool = False) -> None:
    """Fills ``object_list[i]`` with rank i's ``obj``, which must be picklable."""
    _refuse_weights_only(weights_only)
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_gather_object")
    mine = _pickled(obj)
    sizes = _all_sizes(mine.numel(), group)
    parts = [vesta.empty(max(sizes), dtype=vesta.uint8) for _ in sizes]
    all_gather(parts, _padded(mine, max(sizes)), group)
    for i, (part, size) in enumerate(zip(parts, sizes)):
        object_list[i] = _unpickled(part, size)


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
    weights_only: bool = False,
) -> None:
    """Fills ``object_gather_list[i]`` of rank ``dst`` (default 0) with rank i's ``obj``."""
    _refuse_weights_only(weights_only)
    if _rank_not_in_group(group):
        return _warn_not_in_group("gather_object")
    pg = _group_or_default_group(group)
    root = _canonicalize_group_rank(pg, 0 if dst is None and group_dst is None else dst, group_dst)
    if (pg.rank() == root) != (object_gather_list is not None):
        side = "be specified on destination rank" if pg.rank() == root else "NOT be specified on non-destination ranks"
        raise ValueError(f"Argument ``object_gather_list`` must {side}.")
    mine = _pickled(obj)
    sizes = _all_sizes(mine.numel(), group)
    parts = [vesta.empty(max(sizes), dtype=vesta.uint8) for _ in sizes] if pg.rank() == root else None
    gather(_padded(mine, max(sizes)), parts, group=group, group_dst=root)
    if parts is not None and object_gather_list is not None:
        for i, (part, size) in enumerate(zip(parts, sizes)):
            object_gather_list[i] = _unpickled(part, size)


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
    weights_only: bool = False,
) -> None:
    """Copies the objects of rank ``src`` (default 0) into ``object_list`` of all ranks; the lengths must agree."""
    _refuse_weights_only(weights_only)
    if _rank_not_in_group(group):
        return _warn_not_in_group("broadcast_object_list")
    pg = _group_or_default_group(group)
    root = _canonicalize_group_rank(pg, 0 if src is None and group_src is None else src, group_src)
    parts = [_pickled(obj) for obj in object_list] if pg.rank() == root else []
    sizes = _sizes(*(p.numel() for p in parts)) if parts else vesta.zeros(len(object_list), dtype=vesta.int64)
    broadcast(sizes, group=group, group_src=root)
    lengths = [int(n) for n in sizes.tolist()]
    whole = vesta.cat(parts) if parts else vesta.empty(sum(lengths), dtype=vesta.uint8)
    broadcast(whole, group=group, group_src=root)
    if pg.rank() != root:
        _unpack(object_list, whole, lengths)


def _unpack(object_list: list[Any], whole: Tensor, lengths: Sequence[int]) -> None:
    data, at = _bytes_of_tensor(whole), 0
    for i, length in enumerate(lengths):
        object_list[i] = pickle.loads(data[at : at + length])
        at += length


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: Sequence[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
    weights_only: bool = False,
) -> None:
    """Puts object i of rank ``src``'s list (default 0) into ``scatter_object_output_list[0]`` of rank i."""
    _refuse_weights_only(weights_only)
    if _rank_not_in_group(group):
        return _warn_not_in_group("scatter_object_list")
    pg = _group_or_default_group(group)
    root = _canonicalize_group_rank(pg, 0 if src is None and group_src is None else src, group_src)
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    if pg.rank() == root and scatter_object_input_list is None:
        raise ValueError("source rank must provide non-None scatter_object_input_list")
    parts = [_pickled(obj) for obj in scatter_object_input_list or []] if pg.rank() == root else None
    if parts is not None and len(parts) != pg.size():
        raise ValueError(f"scatter_object_list: expected an object for each of {pg.size()} ranks, got {len(parts)}.")
    longest = _sizes(max(p.numel() for p in parts) if parts else 0)
    broadcast(longest, group=group, group_src=root)
    mine, size = vesta.empty(int(longest.item()), dtype=vesta.uint8), _sizes(0)
    padded = [_padded(p, mine.numel()) for p in parts] if parts else None
    scatter(mine, padded, group=group, group_src=root)
    scatter(size, [_sizes(p.numel()) for p in parts] if parts else None, group=group, group_src=root)
    scatter_object_output_list[0] = _unpickled(mine, int(size.item()))


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: Any = None,
    device: Any = None,
    group_dst: int | None = None,
    use_batch: bool = False,
    weights_only: bool = False,
) -> None:
    """Sends objects to rank ``dst``, which calls ``recv_object_list`` with a list of the same length."""
    _refuse_weights_only(weights_only)
    if _rank_not_in_group(group):
        return _warn_not_in_group("send_object_list")
    pg = _group_or_default_group(group)
    to = _canonicalize_group_rank(pg, dst, group_dst)
    parts = [_pickled(obj) for obj in object_list]
    send(_sizes(*(p.numel() for p in parts)), group=group, group_dst=to)
    send(vesta.cat(parts), group=group, group_dst=to)


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
    use_batch: bool = False,
    weights_only: bool = False,
) -> int:
    """Fills ``object_list`` from rank ``src``, or any; returns the sender's rank."""
    _refuse_weights_only(weights_only)
    if _rank_not_in_group(group):
        _warn_not_in_group("recv_object_list")
        return -1
    pg = _group_or_default_group(group)
    sizes = vesta.zeros(len(object_list), dtype=vesta.int64)
    sender = recv(sizes, src, group, group_src=group_src)
    if src is None and group_src is not None:
        sender = get_global_rank(pg, group_src)
    lengths = [int(n) for n in sizes.tolist()]
    whole = vesta.empty(sum(lengths), dtype=vesta.uint8)
    recv(whole, sender, group)
    _unpack(object_list, whole, lengths)
    return sender
