"""The collectives on tensors, with PyTorch's arguments: thin calls of the group's methods."""

from __future__ import annotations

import contextlib
import numbers
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import vesta
from vesta import Tensor
from vesta._C._distributed import ProcessGroup, ReduceOp, Work, _all_of
from vesta._deprecated import deprecated
from vesta.futures import Future

from .distributed_c10d import (
    _canonicalize_group_rank,
    _group_or_default_group,
    _rank_not_in_group,
    _warn_not_in_group,
    get_global_rank,
    get_group_rank,
)

__all__ = [
    "P2POp",
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_gather_single",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "gather",
    "irecv",
    "isend",
    "monitored_barrier",
    "recv",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "scatter",
    "send",
]

Group = Any  # ProcessGroup, None for the default one, or GroupMember.NON_GROUP_MEMBER


def _check_single_tensor(param: Any, name: str) -> None:
    if not isinstance(param, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type vesta.Tensor, got {type(param).__name__}."
        )


def _check_tensor_list(param: Any, name: str) -> None:
    kind = type(param).__name__
    if isinstance(param, (list, tuple)):
        wrong = [type(t).__name__ for t in param if not isinstance(t, Tensor)]
        if not wrong:
            return
        kind += f" with {wrong[0]}"
    raise TypeError(f"Invalid function argument. Expected parameter `{name}` of type List[vesta.Tensor], got {kind}.")


def _ensure_same_dtype(*tensors: Any) -> None:
    dtypes = {t.dtype for group in tensors for t in (group if isinstance(group, (list, tuple)) else [group])}
    if len(dtypes) > 1:
        raise ValueError(f"Invalid usage of tensors with different dtypes. Found {sorted(map(str, dtypes))}")


def _check_complex(tensor: Tensor, op: ReduceOp, name: str) -> None:
    if tensor.is_complex() and op.name not in ("SUM", "AVG", "PREMUL_SUM", "PRODUCT"):
        raise ValueError(f"{name} does not support {op} on complex tensors")


def _finish(work: Work, async_op: bool) -> Work | None:
    if async_op:
        return work
    if not _collecting:
        work.wait()
    return None


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: Group = None, async_op: bool = False) -> Work | None:
    """Combines ``tensor`` with those of all ranks, in place; the result has the same bits everywhere."""
    _check_single_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_reduce")
    _check_complex(tensor, op, "all_reduce")
    return _finish(_group_or_default_group(group).allreduce([tensor], op), async_op)


@deprecated("vesta.distributed.all_reduce_coalesced", "vesta.distributed.all_reduce")
def all_reduce_coalesced(
    tensors: list[Tensor], op: ReduceOp = ReduceOp.SUM, group: Group = None, async_op: bool = False
) -> Future | None:
    """Combines several tensors of one dtype as one operation."""
    if isinstance(tensors, Tensor):
        tensors = [tensors]
    _check_tensor_list(tensors, "tensors")
    _ensure_same_dtype(tensors)
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_reduce_coalesced")
    for tensor in tensors:
        _check_complex(tensor, op, "all_reduce")
    work = _finish(_group_or_default_group(group).allreduce(list(tensors), op), async_op)
    return get_future(work) if work is not None else None


def broadcast(
    tensor: Tensor, src: int | None = None, group: Group = None, async_op: bool = False, group_src: int | None = None
) -> Work | None:
    """Copies ``tensor`` of rank ``src`` to all ranks of the group."""
    _check_single_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        return _warn_not_in_group("broadcast")
    pg = _group_or_default_group(group)
    return _finish(pg.broadcast([tensor], _canonicalize_group_rank(pg, src, group_src)), async_op)


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: ReduceOp = ReduceOp.SUM,
    group: Group = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Combines the tensors of all ranks into that of rank ``dst``; the other ranks' tensors are unchanged."""
    _check_single_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        return _warn_not_in_group("reduce")
    _check_complex(tensor, op, "reduce")
    pg = _group_or_default_group(group)
    return _finish(pg.reduce(tensor, _canonicalize_group_rank(pg, dst, group_dst), op), async_op)


def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: Group = None, async_op: bool = False) -> Work | None:
    """Fills ``tensor_list[i]`` with rank i's ``tensor``."""
    _check_tensor_list(tensor_list, "tensor_list")
    _check_single_tensor(tensor, "tensor")
    _ensure_same_dtype(tensor_list, tensor)
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_gather")
    return _finish(_group_or_default_group(group).allgather(list(tensor_list), tensor), async_op)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Group = None, async_op: bool = False
) -> Work | None:
    """Fills ``output_tensor`` with the inputs of all ranks in rank order (along the first dimension, or a new one)."""
    _check_single_tensor(input_tensor, "input_tensor")
    _check_single_tensor(output_tensor, "output_tensor")
    _ensure_same_dtype(output_tensor, input_tensor)
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_gather_into_tensor")
    return _finish(_group_or_default_group(group)._allgather_base(output_tensor, input_tensor), async_op)


all_gather_single = all_gather_into_tensor
_all_gather_base = all_gather_into_tensor


@deprecated("vesta.distributed.all_gather_coalesced", "vesta.distributed.all_gather")
def all_gather_coalesced(
    output_tensor_lists: list[list[Tensor]],
    input_tensor_list: list[Tensor],
    group: Group = None,
    async_op: bool = False,
) -> Future | None:
    """Gathers several tensors: ``output_tensor_lists[i][j]`` is filled with rank i's ``input_tensor_list[j]``."""
    if not isinstance(output_tensor_lists, list):
        raise TypeError("Invalid function argument: output_tensor_lists should be a list")
    for outputs in output_tensor_lists:
        _check_tensor_list(outputs, "output_tensor_lists")
    _check_tensor_list(input_tensor_list, "input_tensor_list")
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_gather_coalesced")
    pg = _group_or_default_group(group)
    works = [
        pg.allgather([outputs[j] for outputs in output_tensor_lists], tensor)
        for j, tensor in enumerate(input_tensor_list)
    ]
    work = _finish(_all_of(works), async_op)
    return get_future(work) if work is not None else None


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: Group = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Fills ``gather_list[i]`` of rank ``dst`` (default 0) with rank i's ``tensor``."""
    _check_single_tensor(tensor, "tensor")
    if gather_list:
        _check_tensor_list(gather_list, "gather_list")
        _ensure_same_dtype(tensor, gather_list)
    if _rank_not_in_group(group):
        return _warn_not_in_group("gather")
    pg = _group_or_default_group(group)
    root = _canonicalize_group_rank(pg, 0 if dst is None and group_dst is None else dst, group_dst)
    _validate_list(root, pg.rank(), gather_list, "gather_list", "destination")
    return _finish(pg.gather(list(gather_list or []), tensor, root), async_op)


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: Group = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Fills rank i's ``tensor`` with ``scatter_list[i]`` of rank ``src`` (default 0)."""
    _check_single_tensor(tensor, "tensor")
    if scatter_list:
        _check_tensor_list(scatter_list, "scatter_list")
        _ensure_same_dtype(tensor, scatter_list)
    if _rank_not_in_group(group):
        return _warn_not_in_group("scatter")
    pg = _group_or_default_group(group)
    root = _canonicalize_group_rank(pg, 0 if src is None and group_src is None else src, group_src)
    _validate_list(root, pg.rank(), scatter_list, "scatter_list", "source")
    return _finish(pg.scatter(tensor, list(scatter_list or []), root), async_op)


def _validate_list(root: int, me: int, tensors: Sequence[Tensor] | None, name: str, side: str) -> None:
    if root == me and not tensors:
        raise ValueError(f"Argument ``{name}`` must be specified on {side} rank.")
    if root != me and tensors:
        raise ValueError(f"Argument ``{name}`` must NOT be specified on non-{side} ranks.")


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: ReduceOp = ReduceOp.SUM,
    group: Group = None,
    async_op: bool = False,
) -> Work | None:
    """Combines ``input_list[i]`` of all ranks into rank i's ``output``."""
    _check_single_tensor(output, "output")
    _check_tensor_list(input_list, "input_list")
    _ensure_same_dtype(output, input_list)
    if _rank_not_in_group(group):
        return _warn_not_in_group("reduce_scatter")
    _check_complex(output, op, "reduce_scatter")
    return _finish(_group_or_default_group(group).reduce_scatter(output, list(input_list), op), async_op)


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: ReduceOp = ReduceOp.SUM, group: Group = None, async_op: bool = False
) -> Work | None:
    """Combines the inputs of all ranks and gives rank i the i-th part."""
    _check_single_tensor(output, "output")
    _check_single_tensor(input, "input")
    _ensure_same_dtype(output, input)
    if _rank_not_in_group(group):
        return _warn_not_in_group("reduce_scatter_tensor")
    _check_complex(output, op, "reduce_scatter_tensor")
    return _finish(_group_or_default_group(group)._reduce_scatter_base(output, input, op), async_op)


reduce_scatter_single = reduce_scatter_tensor
_reduce_scatter_base = reduce_scatter_tensor


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: Group = None,
    async_op: bool = False,
) -> Work | None:
    """Sends the i-th rows of ``input`` to rank i and fills the i-th rows of ``output`` from it."""
    _check_single_tensor(output, "output")
    _check_single_tensor(input, "input")
    _ensure_same_dtype(output, input)
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_to_all_single")
    pg = _group_or_default_group(group)
    work = pg.alltoall_base(output, input, list(output_split_sizes or []), list(input_split_sizes or []))
    return _finish(work, async_op)


def all_to_all(
    output_tensor_list: list[Tensor], input_tensor_list: list[Tensor], group: Group = None, async_op: bool = False
) -> Work | None:
    """Sends ``input_tensor_list[i]`` to rank i and fills ``output_tensor_list[i]`` from it."""
    _check_tensor_list(output_tensor_list, "output_tensor_list")
    _check_tensor_list(input_tensor_list, "input_tensor_list")
    _ensure_same_dtype(output_tensor_list, input_tensor_list)
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_to_all")
    pg = _group_or_default_group(group)
    return _finish(pg.alltoall(list(output_tensor_list), list(input_tensor_list)), async_op)


def barrier(
    group: Group = None, async_op: bool = False, device_ids: Any = None, timeout: timedelta | None = None
) -> Work | None:
    """Returns when all ranks have called it."""
    if _rank_not_in_group(group):
        return _warn_not_in_group("barrier")
    if device_ids is not None and not isinstance(device_ids, list):
        raise TypeError("Invalid function argument: device_ids type should be List[int]")
    return _finish(_group_or_default_group(group).barrier(timeout), async_op)


def monitored_barrier(
    group: Group = None, timeout: timedelta | float | None = None, wait_all_ranks: bool = False
) -> None:
    """Returns when all ranks have called it; otherwise raises, naming the ranks that have not, as every barrier
    does."""
    if _rank_not_in_group(group):
        return _warn_not_in_group("monitored_barrier")
    if isinstance(timeout, numbers.Real):
        timeout = timedelta(seconds=float(timeout))
    barrier(group, timeout=timeout)


# ---- Between two ranks ----


def isend(
    tensor: Tensor, dst: int | None = None, group: Group = None, tag: int = 0, group_dst: int | None = None
) -> Work | None:
    """Sends ``tensor`` to rank ``dst``; it must not be changed before the Work is done."""
    _check_single_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        return _warn_not_in_group("isend")
    pg = _group_or_default_group(group)
    return pg.send(tensor, _canonicalize_group_rank(pg, dst, group_dst), tag)


def irecv(
    tensor: Tensor, src: int | None = None, group: Group = None, tag: int = 0, group_src: int | None = None
) -> Work | None:
    """Receives into ``tensor`` from rank ``src``, or from any rank if none is given."""
    _check_single_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        return _warn_not_in_group("irecv")
    pg = _group_or_default_group(group)
    source = -1 if src is None and group_src is None else _canonicalize_group_rank(pg, src, group_src)
    return pg.recv(tensor, source, tag)


def _check_not_self(pg: ProcessGroup, rank: int, side: str) -> None:
    if pg.rank() == rank:
        raise ValueError(f"Invalid {side} rank: {side} rank should not be the same as the rank of the current process.")


def send(
    tensor: Tensor, dst: int | None = None, group: Group = None, tag: int = 0, group_dst: int | None = None
) -> None:
    """Sends ``tensor`` to rank ``dst`` and returns when the tensor may be changed."""
    if not _rank_not_in_group(group):
        pg = _group_or_default_group(group)
        _check_not_self(pg, _canonicalize_group_rank(pg, dst, group_dst), "destination")
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


def recv(
    tensor: Tensor, src: int | None = None, group: Group = None, tag: int = 0, group_src: int | None = None
) -> int:
    """Receives into ``tensor``; returns the sender's rank."""
    if not _rank_not_in_group(group) and (src is not None or group_src is not None):
        pg = _group_or_default_group(group)
        _check_not_self(pg, _canonicalize_group_rank(pg, src, group_src), "source")
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    if src is not None:
        return src
    return get_global_rank(_group_or_default_group(group), work.source_rank())


class P2POp:
    """A send or a receive for ``batch_isend_irecv``: ``P2POp(dist.isend, tensor, peer)``."""

    def __init__(
        self,
        op: Any,
        tensor: Tensor,
        peer: int | None = None,
        group: ProcessGroup | None = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``vesta.distributed.isend`` or "
                "``vesta.distributed.irecv``."
            )
        _check_single_tensor(tensor, "tensor")
        self.op = op
        self.tensor = tensor
        self.group = _group_or_default_group(group)
        self.peer = _canonicalize_group_rank(self.group, peer, group_peer, return_global=True)
        self.group_peer = get_group_rank(self.group, self.peer)
        self.tag = tag

    def __repr__(self) -> str:
        return f"P2POp({self.op.__name__}, peer={self.peer}, {tuple(self.tensor.shape)}, {self.tensor.dtype})"


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Starts sends and receives, in any order, and returns their Works."""
    if not isinstance(p2p_op_list, list) or not all(isinstance(op, P2POp) for op in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to to be of type ``vesta.distributed.P2POp``.")
    if not p2p_op_list:
        raise ValueError("batch_isend_irecv: expected at least one operation, got an empty list.")
    if any(op.group is not p2p_op_list[0].group for op in p2p_op_list):
        raise ValueError("All ops need to use the same group.")
    works = [op.op(op.tensor, op.peer, op.group, op.tag) for op in p2p_op_list]
    return [work for work in works if work is not None]


# ---- Several calls as one ----

_collecting: list[ProcessGroup] = []


class _CoalescingManager:
    """The result of ``with _coalescing_manager(async_ops=True) as cm``: ``cm.wait()`` waits for all calls inside."""

    def __init__(self) -> None:
        self.works: list[Work] = []

    def append(self, work: Work | None = None) -> None:
        """Adds a Work."""
        if work is not None:
            self.works.append(work)

    def wait(self) -> None:
        """Waits for all Works."""
        for work in self.works:
            work.wait()


@contextlib.contextmanager
def _coalescing_manager(
    group: ProcessGroup | None = None, device: Any = None, async_ops: bool = False
) -> Iterator[_CoalescingManager]:
    """Starts the collectives inside it without waiting for each; waits at its end unless ``async_ops``."""
    pg = _group_or_default_group(group)
    manager = _CoalescingManager()
    pg._start_coalescing()
    _collecting.append(pg)
    try:
        yield manager
    finally:
        _collecting.pop()
        work = pg._end_coalescing()
    manager.append(work)
    if not async_ops:
        manager.wait()


def get_future(work: Work) -> Future:
    """Returns a future of a Work's output tensors.

    For a Work on a device, ``wait`` (also of futures made from it by ``then``) orders the current stream after it; if
    nobody waits, callbacks run when the operation has ended, on the stream that is current now.
    """
    future, outputs = Future(), work.result()
    home = vesta.cuda.current_stream(outputs[0].device) if outputs and outputs[0].is_cuda else None

    def ordered() -> None:
        try:
            work.synchronize()
        except Exception as error:
            future._settle(None, error)
        else:
            future._settle(outputs, None)

    def done(_: list[Tensor], error: BaseException | None) -> None:
        with vesta.cuda.stream(home) if home else contextlib.nullcontext():
            future._settle(None if error else outputs, error)

    if work._on_device():
        future._hasten = ordered
    work._then(done)
    return future


Work.get_future = get_future
Work.get_future.__doc__ = "Returns a future of the output tensors."
