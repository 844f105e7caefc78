"""Processes that work together, with the names of torch.distributed: ``init_process_group``, collectives, stores."""

# ruff: noqa: F401, F403  (what is imported here is what the package offers)

from __future__ import annotations

from .._C import _ddp, _distributed  # first: they are made on first use, and then they are modules for all others
from .._C._ddp import BuiltinCommHookType, GradBucket
from . import _collectives, _objects, distributed_c10d
from ._collectives import *
from ._collectives import _all_gather_base, _coalescing_manager, _reduce_scatter_base
from ._objects import *
from .constants import default_pg_timeout
from .distributed_c10d import *
from .distributed_c10d import _get_default_group, _make_nccl_premul_sum, _rank_not_in_group
from .rendezvous import register_rendezvous_handler, rendezvous

# Programs also look for everything in distributed_c10d.
for _module in (_collectives, _objects):
    for _name in _module.__all__:
        setattr(distributed_c10d, _name, getattr(_module, _name))
distributed_c10d._coalescing_manager = _coalescing_manager
del _module, _name, annotations
