"""Process groups: the default one, others, and their members. Collectives are in ``_collectives`` and ``_objects``.

Programs also look for private helpers in PyTorch's module of this name; those that are used have the same names here.
"""

from __future__ import annotations

import atexit
import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from vesta._C import (
    _DistBackendError as DistBackendError,
)
from vesta._C import (
    _DistNetworkError as DistNetworkError,
)
from vesta._C import (
    _DistributedError as DistributedError,
)
from vesta._C import (
    _DistStoreError as DistStoreError,
)
from vesta._C import (
    _QueueEmptyError as QueueEmptyError,
)
from vesta._C._distributed import (
    FileStore,
    HashStore,
    PrefixStore,
    ProcessGroup,
    ReduceOp,
    Store,
    TCPStore,
    Work,
    _make_premul_sum,
    _new_process_group,
    _set_package_root,
    _why_no_backend,
)

from .constants import default_pg_nccl_timeout, default_pg_timeout
from .rendezvous import check_rank, rendezvous

DistError = DistributedError
LONGEST_TIMEOUT = timedelta(days=3650)  # a longer one means forever, too

__all__ = [
    "Backend",
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "DistributedError",
    "FileStore",
    "GroupMember",
    "HashStore",
    "PrefixStore",
    "ProcessGroup",
    "QueueEmptyError",
    "ReduceOp",
    "Store",
    "TCPStore",
    "Work",
    "destroy_process_group",
    "get_backend",
    "get_backend_config",
    "get_default_backend_for_device",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_pg_count",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "is_available",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "reduce_op",
    "set_timeout",
]

_set_package_root(os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep)


class Backend(str):
    """The name of a backend in lower case: ``Backend("GLOO") == "gloo"``."""

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    UCC = "ucc"
    MPI = "mpi"
    XCCL = "xccl"
    backend_list = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI]
    default_device_backend_map = {"cpu": GLOO, "cuda": NCCL}
    _plugins: dict[str, Callable[..., ProcessGroup]] = {}

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string-ish, not {type(name)}")
        return super().__new__(cls, name.lower())

    @classmethod
    def register_backend(
        cls, name: str, func: Callable[..., ProcessGroup], extended_api: bool = False, devices: Any = None
    ) -> None:
        """Registers ``func(store, rank, size, timeout)``, which makes process groups of backend ``name``."""
        if name.lower() in cls._plugins or (name.lower() in cls.backend_list):
            raise ValueError(f"{name} c10d backend already exist")
        setattr(cls, name.upper(), name.lower())
        cls.backend_list = [*cls.backend_list, name.lower()]
        cls._plugins = {**cls._plugins, name.lower(): func}
        for device in [devices] if isinstance(devices, str) else devices or []:
            cls.default_device_backend_map = {**cls.default_device_backend_map, device: name.lower()}


class _NonGroupMember:
    """The value for a group that this process is not in."""

    def __repr__(self) -> str:
        return "GroupMember.NON_GROUP_MEMBER"


@dataclass
class _Group:
    """What is known about a group besides the group itself."""

    backend: Backend
    store: Store
    name: str
    ranks: list[int]
    description: str = ""


@dataclass
class _World:
    """All groups of this process."""

    default: ProcessGroup | None = None
    groups: dict[ProcessGroup, _Group] = field(default_factory=dict)
    count: int = 0
    excepthook: Any = None


_world = _World()


class _WorldMeta(type):
    """The metaclass that makes ``group.WORLD`` follow the default group."""

    @property
    def WORLD(cls) -> ProcessGroup | None:
        return _world.default

    @WORLD.setter
    def WORLD(cls, pg: ProcessGroup | None) -> None:
        _world.default = pg


class group(metaclass=_WorldMeta):
    """``group.WORLD`` is the default group."""


class GroupMember(metaclass=_WorldMeta):
    """``GroupMember.WORLD`` is the default group, ``NON_GROUP_MEMBER`` what new_group returns to processes outside
    it."""

    NON_GROUP_MEMBER = _NonGroupMember()


class _reduce_op:
    """The old name of ReduceOp."""

    SUM, PRODUCT, MIN, MAX = ReduceOp.SUM, ReduceOp.PRODUCT, ReduceOp.MIN, ReduceOp.MAX


reduce_op = _reduce_op()


def _make_nccl_premul_sum(factor: Any) -> ReduceOp:
    """Returns the operator that multiplies each rank's values by its own ``factor`` and adds them."""
    return _make_premul_sum(float(factor))


# ---- Availability ----


def is_available() -> bool:
    """Returns whether the package can be used: always True."""
    return True


def is_gloo_available() -> bool:
    """Returns whether groups on the CPU can be made: the plug-in and libgloo are there."""
    return _why_no_backend("gloo") is None


def is_nccl_available() -> bool:
    """Returns whether NCCL can be used."""
    return _why_no_backend("nccl") is None


def is_mpi_available() -> bool:
    """Returns whether there is an MPI backend: always False. Start with mpirun and use gloo."""
    return False


def is_ucc_available() -> bool:
    """Returns whether there is a UCC backend: always False."""
    return False


def is_xccl_available() -> bool:
    """Returns whether there is an XCCL backend: always False."""
    return False


def is_backend_available(backend: str) -> bool:
    """Returns whether groups of a backend can be made."""
    name = backend.lower()
    return name in Backend._plugins or (name.isidentifier() and _why_no_backend(name) is None)


def is_torchelastic_launched() -> bool:
    """Returns whether ``vesta.distributed.run`` (or torchrun) started this process."""
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def is_initialized() -> bool:
    """Returns whether the default group was made."""
    return _world.default is not None


# ---- Ranks ----


def _get_default_group() -> ProcessGroup:
    if _world.default is None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    return _world.default


def _group_or_default_group(group: ProcessGroup | None = None) -> ProcessGroup:
    if group is None or group is GroupMember.WORLD:
        return _get_default_group()
    if not isinstance(group, ProcessGroup) and not hasattr(group, "rank"):  # a plug-in's group may be of its own type
        raise TypeError(
            f"Invalid function argument. Expected a ProcessGroup, got {type(group).__name__} (group). Make one with "
            "new_group."
        )
    return group


def _get_default_store() -> Store:
    return _world.groups[_get_default_group()].store


def _known(group: ProcessGroup) -> _Group:
    found = _world.groups.get(group)
    if found is None:
        raise ValueError(f"Group {group} is not registered, please create group with vesta.distributed.new_group API")
    return found


def _rank_not_in_group(group: Any) -> bool:
    return group is not None and group is GroupMember.NON_GROUP_MEMBER


def _warn_not_in_group(op_name: str) -> None:
    rank = -1 if _world.default is None else _world.default.rank()
    warnings.warn(f"Running {op_name} on global rank {rank} which does not belong to the given group.", stacklevel=3)


def get_rank(group: ProcessGroup | None = None) -> int:
    """Returns this process's rank in a group, -1 outside it."""
    if _rank_not_in_group(group):
        return -1
    return _group_or_default_group(group).rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """Returns the number of processes in a group, -1 outside it."""
    if _rank_not_in_group(group):
        return -1
    return _group_or_default_group(group).size()


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """Translates a rank of the default group into one of ``group``."""
    if group is GroupMember.WORLD:
        return global_rank
    ranks = _known(group).ranks
    if global_rank not in ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return ranks.index(global_rank)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """Translates a rank of ``group`` into one of the default group."""
    if group is GroupMember.WORLD:
        return group_rank
    ranks = _known(group).ranks
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return ranks[group_rank]


_get_global_rank = get_global_rank


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """Lists the ranks of the default group that are in ``group``."""
    return list(_known(_group_or_default_group(group)).ranks)


def _canonicalize_group_rank(
    group: ProcessGroup, global_rank: int | None = None, group_rank: int | None = None, return_global: bool = False
) -> int:
    """Returns the global rank or the rank in the group, as requested, from the other one; exactly one is given."""
    if group_rank is not None:
        if global_rank is not None:
            raise ValueError("Can't specify both group_rank and global_rank")
        return get_global_rank(group, group_rank) if return_global else group_rank
    if global_rank is None:
        raise ValueError("Must specify global_rank or group_rank")
    return global_rank if return_global else get_group_rank(group, global_rank)


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """Returns the rank of this process on its machine, as given by the launcher (LOCAL_RANK)."""
    from . import _environment

    place = _environment.detect(os.environ)
    local = os.environ.get("LOCAL_RANK") or (place.local_rank if place else None)
    if local is not None:
        return int(local)
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to work, "
        "assuming you are not running in a multi-device context and want the code to run locally instead."
    )


def get_backend(group: ProcessGroup | None = None) -> str:
    """Returns a group's backend, such as ``gloo``."""
    if _rank_not_in_group(group):
        raise ValueError("Invalid process group specified")
    return _known(_group_or_default_group(group)).backend


def get_backend_config(group: ProcessGroup | None = None) -> str:
    """Returns a group's backends by device, such as ``cpu:gloo,cuda:gloo``."""
    backend = get_backend(group)
    if ":" in backend:
        return backend
    return f"cpu:{backend},cuda:{backend}" if backend == Backend.GLOO else f"cuda:{backend}"


def get_default_backend_for_device(device: Any) -> str:
    """Returns the default backend of a device type."""
    kind = device if isinstance(device, str) else device.type
    found = Backend.default_device_backend_map.get(kind.split(":")[0])
    if found is None:
        raise ValueError(f"Default backend not registered for device : {device}")
    return found


def get_pg_count() -> int:
    """Returns the number of this process's groups."""
    return len(_world.groups)


# ---- Making groups ----


def _choose_backend(backend: str | None, device_id: Any) -> Backend:
    """Returns a backend's full name: ``cpu:gloo,cuda:nccl`` is one per device; None means that one if both are
    available."""
    if backend is None or Backend(backend) == Backend.UNDEFINED:
        if kind := getattr(device_id, "type", None):
            return Backend(Backend.default_device_backend_map.get(kind, Backend.GLOO))
        known = {d: b for d, b in Backend.default_device_backend_map.items() if is_backend_available(b)}
        return Backend(",".join(f"{d}:{b}" for d, b in known.items()) if len(set(known.values())) > 1 else Backend.GLOO)
    name = Backend(backend)
    if ":" not in name:
        return name
    by_device: dict[str, str] = {}
    for pair in name.split(","):
        parts = pair.strip().split(":")
        if len(parts) != 2 or not all(parts):
            raise ValueError(f"Invalid device:backend pairing: {pair}. Expected <device>:<backend>,<device>:<backend>")
        if parts[0] in by_device:
            raise ValueError(f"Duplicate device type {parts[0]} in backend string: {backend}")
        by_device[parts[0]] = parts[1]
    kinds = set(by_device.values())
    if len(kinds) > 1 and not all(is_backend_available(kind) for kind in kinds):
        missing = ", ".join(sorted(kind for kind in kinds if not is_backend_available(kind)))
        raise DistBackendError(
            f"process group: no backend {missing} here for {backend!r}. Use 'gloo' for all devices: tensors of a "
            "device are copied through host memory."
        )
    return Backend(kinds.pop()) if len(kinds) == 1 else name


def _checked_timeout(timeout: timedelta | None, backend: str) -> timedelta:
    if timeout is None:
        return default_pg_nccl_timeout if backend == Backend.NCCL else default_pg_timeout
    if not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")
    if timeout <= timedelta(0):
        raise ValueError(f"Expected timeout argument to be positive, got {timeout}")
    return min(timeout, LONGEST_TIMEOUT)


def _make_group(
    backend: Backend, store: Store, ranks: list[int], rank: int, name: str, timeout: timedelta, description: str = ""
) -> ProcessGroup:
    """Makes a group and registers it in the world. ``rank`` is this process's in the group."""
    plugin = Backend._plugins.get(backend)
    if plugin is not None:
        pg = plugin(PrefixStore(name, store), rank, len(ranks), timeout)
    else:
        pg = _new_process_group(str(backend), store, rank, len(ranks), name, timeout, ranks)
    pg.group_desc = description or "undefined"
    _world.groups[pg] = _Group(backend, store, name, ranks, description)
    return pg


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
    enable_reconfigure: bool = False,
) -> None:
    """Makes the default group of all processes; every process calls it.

    Args:
        backend: ``gloo``, the default on the CPU.
        init_method: ``env://`` (the default: the launcher's environment variables), ``tcp://host:port`` or
            ``file:///path``.
        timeout: how long an operation may take; 30 minutes by default.
        world_size: the number of processes, if ``init_method`` does not give it.
        rank: this process's number.
        store: a store to meet in, instead of ``init_method``; needs ``rank`` and ``world_size``.
        group_name: ignored, as in PyTorch.
        pg_options: ignored.
        device_id: the device whose default backend is used if ``backend`` is None.
        enable_reconfigure: False: a group keeps its processes.

    Raises:
        NotImplementedError: ``enable_reconfigure`` is True.

    Example:
        >>> import vesta.distributed as dist
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> dist.get_world_size()
        1
        >>> dist.destroy_process_group()
    """
    if enable_reconfigure:
        raise NotImplementedError(
            "init_process_group: enable_reconfigure is not available: a group keeps its processes."
        )
    if _world.default is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None and init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    if store is not None:
        if not (world_size > 0 and rank >= 0):
            raise AssertionError("world_size must be positive and rank non-negative if using store")
        check_rank(rank, world_size)
    name = _choose_backend(backend, device_id)
    limit = _checked_timeout(timeout, name)
    if store is None:
        store, rank, world_size = next(rendezvous(init_method or "env://", rank, world_size, timeout=limit))
        store.set_timeout(limit)
    store = PrefixStore("default_pg", store)
    _world.default = _make_group(name, store, list(range(world_size)), rank, "default", limit, "default_pg")
    _install_excepthook(rank)


def _install_excepthook(rank: int) -> None:
    """Puts ``[rank3]:`` before every line of an uncaught exception's traceback."""
    if _world.excepthook is not None:
        return
    _world.excepthook = old = sys.excepthook

    def hook(kind: type[BaseException], value: BaseException, trace: Any) -> None:
        if old is not sys.__excepthook__ or _world.default is None:
            old(kind, value, trace)
            return
        lines = "".join(traceback.format_exception(kind, value, trace)).rstrip("\n").split("\n")
        sys.stderr.write("".join(f"[rank{rank}]: {line}\n" for line in lines))
        sys.stderr.flush()

    sys.excepthook = hook


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> Any:
    """Makes a group of some ranks; every process calls it in the same order, member or not.

    With ``use_local_synchronization`` only the members call it. A member's rank in the group is its place in
    ``ranks``, sorted unless ``sort_ranks=False``. Returns the group, or ``GroupMember.NON_GROUP_MEMBER`` outside it.
    """
    default = _get_default_group()
    home = _known(default)
    name = _choose_backend(backend, device_id) if backend else home.backend
    limit = _checked_timeout(timeout, name)
    members = [int(r) for r in ranks] if ranks is not None else list(range(default.size()))
    if sort_ranks:
        members.sort()
    if len(set(members)) != len(members):
        raise ValueError(f"ranks list must not contain duplicate entries, got {members}")
    if len(members) > default.size():
        raise ValueError(
            "the new group's world size should be less or equal to the world size set by init_process_group"
        )
    for r in members:
        if not 0 <= r < default.size():
            raise ValueError(
                f"Rank {r} is out of range. Valid ranks are 0 to {default.size() - 1} (world_size={default.size()})"
            )
    if use_local_synchronization:
        if default.rank() not in members:
            return GroupMember.NON_GROUP_MEMBER
        label = "local:" + ",".join(map(str, members))
        label += f":{sum(g.name.startswith(label + ':') for g in _world.groups.values())}"
    else:
        _world.count += 1
        label = str(_world.count)
        if default.rank() not in members:
            return GroupMember.NON_GROUP_MEMBER
    return _make_group(name, home.store, members, members.index(default.rank()), label, limit, group_desc or "")


def new_subgroups(
    group_size: int | None = None,
    group: ProcessGroup | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Splits a group into groups of ``group_size`` neighbours; returns this process's group and all of them."""
    parent = _group_or_default_group(group)
    members = get_process_group_ranks(parent)
    if group_size is None:
        raise ValueError("new_subgroups: expected a size of the groups, got None (group_size).")
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    if len(members) < group_size:
        raise ValueError(f"The arg 'group_size' ({group_size}) must not exceed the world size ({len(members)})")
    if len(members) % group_size:
        raise ValueError(f"The world size ({len(members)}) must be divisible by '{group_size=}'")
    cuts = [members[i : i + group_size] for i in range(0, len(members), group_size)]
    return new_subgroups_by_enumeration(cuts, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: list[list[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Makes groups of the given ranks, no rank in two; returns this process's group (or None) and all of them."""
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    seen: set[int] = set()
    for ranks in ranks_per_subgroup_list:
        for r in ranks:
            if r in seen:
                raise ValueError(f"Rank {r} has appeared in both subgroup")
            seen.add(r)
    mine, groups = None, []
    for ranks in ranks_per_subgroup_list:
        made = new_group(ranks, timeout, backend, pg_options, group_desc=group_desc)
        groups.append(made)
        if get_rank() in ranks:
            mine = made
    return mine, groups


def set_timeout(timeout: timedelta, group: ProcessGroup | None = None) -> None:
    """Sets how long the operations of a group may take."""
    _group_or_default_group(group)._timeout = _checked_timeout(timeout, "")


def _set_pg_timeout(timeout: timedelta, group: ProcessGroup | None = None) -> None:
    set_timeout(timeout, group)


# ---- The end of groups ----


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Waits for the operations given to a group and leaves it; for the default group, leaves all others too."""
    if group is GroupMember.NON_GROUP_MEMBER:
        return
    pg = _world.default if group is None else group
    if pg is None:
        raise AssertionError("Process group cannot be None")
    if pg not in _world.groups:
        raise ValueError("Invalid process group specified")
    if pg is not _world.default:
        del _world.groups[pg]
        pg.shutdown()
        return
    ending = list(reversed(_world.groups))  # the default group, made first, ends last
    _world.groups.clear()
    _world.default = None
    _world.count = 0
    if _world.excepthook is not None:
        sys.excepthook, _world.excepthook = _world.excepthook, None
    error = None
    for each in ending:
        try:
            each.shutdown()
        except DistributedError as failed:
            error = error or failed
    if error is not None:
        raise error


def _abort_process_group(group: ProcessGroup | None = None) -> None:
    """Ends a group's operations with errors, here and on the other ranks, and leaves it."""
    pg = _group_or_default_group(group)
    for each in list(_world.groups) if pg is _world.default else [pg]:
        each.abort("abort was called")
    destroy_process_group(pg)


#: Seconds that a process which ends without destroy_process_group gives its operations to end.
_LAST_OPERATIONS = 5.0


def _leave_at_exit() -> None:
    """Leaves the groups of a process that ends without destroy_process_group, so that no other rank hangs.

    An exception is told to the others at once. Without one, operations end first: a CUDA device may still compute a
    collective that the program has waited for, and what the others called is compared after that.
    """
    if _world.default is None:
        return
    error = getattr(sys, "last_value", None)  # the exception that ends the process
    deadline = time.monotonic() + _LAST_OPERATIONS
    for pg in list(_world.groups):
        while error is None and pg._busy() and time.monotonic() < deadline:
            time.sleep(0.001)
        if error is not None:
            pg.abort(f"its process ends with {type(error).__name__}: {error}")
        elif pg._busy():
            pg.abort("its process ends before the operation is done")
    destroy_process_group()


atexit.register(_leave_at_exit)


def _forget_in_child() -> None:
    """Drops the parent's groups in a forked child, which is not a member, without ending them."""
    _world.default = None
    _world.groups = {}
    _world.count = 0


os.register_at_fork(after_in_child=_forget_in_child)
