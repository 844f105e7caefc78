"""The work of a ``DistributedDataParallel`` rank without inputs: the others' communication, with zeros."""

from __future__ import annotations

from typing import Any, Protocol

import vesta
from vesta import Tensor
from vesta.distributed.algorithms.join import JoinHook


class Replica(Protocol):
    """The part of ``DistributedDataParallel`` that a rank without inputs works with."""

    reducer: Any
    process_group: Any
    modules_buffers: list[Tensor]
    forward_sync_buffers: bool
    require_forward_param_sync: bool
    _divide_by_initial_world_size: bool

    @property
    def _distributed_rank(self) -> int: ...

    def will_sync_module_buffers(self) -> bool: ...
    def _assign_modules_buffers(self) -> None: ...
    def _sync_module_states(self, source: int, with_buffers: bool) -> None: ...
    def _find_common_rank(self, input_rank: int, rank_cond: bool) -> int: ...
    def _check_global_requires_backward_grad_sync(self, is_joined_rank: bool) -> bool: ...


class DDPJoinHook(JoinHook):
    """The hook that mirrors, call by call, what a forward and backward of the other ranks send."""

    def __init__(self, ddp: Replica, divide_by_initial_world_size: bool) -> None:
        super().__init__()
        self.ddp = ddp
        ddp._divide_by_initial_world_size = divide_by_initial_world_size

    def main_hook(self) -> None:
        """Takes part in one iteration of the others."""
        ddp = self.ddp
        ddp.reducer.prepare_for_forward()
        if ddp.will_sync_module_buffers():
            source = ddp._find_common_rank(ddp._distributed_rank, False)
            ddp._assign_modules_buffers()
            vesta._C._ddp.refresh_tensors(ddp.process_group, ddp.modules_buffers, source)
        sync = ddp._check_global_requires_backward_grad_sync(is_joined_rank=True)
        ddp.require_forward_param_sync = sync
        if sync:
            ddp.reducer.shadow_round()

    def post_hook(self, is_last_joiner: bool) -> None:
        """Gives all ranks the model of the last one."""
        ddp = self.ddp
        source = ddp._find_common_rank(ddp._distributed_rank, is_last_joiner)
        ddp._assign_modules_buffers()
        ddp._sync_module_states(source, ddp.forward_sync_buffers)
