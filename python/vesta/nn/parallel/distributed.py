"""``DistributedDataParallel``: every process has a replica of the model and a part of each batch.

Gradients are averaged over the processes while backward goes on, by a reducer in C++ (``multiprocessing/ddp``). This
file has the arguments, the check that replicas are equal at the beginning, buffers, ``no_sync``, and moving inputs to
the device.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import vesta
from vesta import _C, Tensor
from vesta.distributed.algorithms.join import Join, Joinable, JoinHook
from vesta.nn.modules.module import Module
from vesta.nn.parallel.distributed_join import DDPJoinHook

__all__ = ["DistributedDataParallel"]

MIB = 1 << 20
DEFAULT_FIRST_BUCKET_BYTES = MIB
DEFAULT_BUCKET_CAP_MB = 25


def find_tensors(value: Any) -> Iterator[Tensor]:
    """Yields the tensors in nested lists, tuples, mappings and dataclasses, which a forward may return."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from find_tensors(item)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from find_tensors(item)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from find_tensors(getattr(value, field.name))


def moved(value: Any, device: Any) -> Any:
    """Returns nested inputs with their tensors on ``device``."""
    if isinstance(value, Tensor):
        return value.to(device)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(moved(item, device) for item in value))
    if isinstance(value, (list, tuple)):
        return type(value)(moved(item, device) for item in value)
    if isinstance(value, dict):
        return {key: moved(item, device) for key, item in value.items()}
    return value


def default_group() -> Any:
    """Returns the group that ``init_process_group`` made."""
    group = vesta.distributed.group.WORLD
    if group is None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    return group


class DistributedDataParallel(Module, Joinable):
    """A wrapper of ``module`` whose gradients are averages over all processes of ``process_group``.

    Each process calls it with its own part of the batch; after ``backward`` every ``grad`` is the same everywhere, and
    so are the parameters after the optimizer's step. The loss should be a mean over its part. All processes make the
    same calls in the same order; a parameter that differs in name, shape or position is an error on all of them.

    Arguments:
        module: the model, on one device
        device_ids: for a model on a GPU, its one device, to which inputs are moved; None does not move inputs
        broadcast_buffers, forward_sync_buffers: rank 0's buffers (running statistics) are sent to all ranks before each
            forward; ``broadcast_buffers=False`` also leaves them out at the beginning
        init_sync: False if the caller ensures that all ranks begin with the same values
        process_group: None is the default group
        bucket_cap_mb: gradients are sent in buckets of this size in MiB; None: 25, less at both ends.
            ``bucket_cap_mb_list`` gives the sizes one by one
        find_unused_parameters: some parameters may get no gradient in some iterations
        static_graph: every iteration is like the first; parameters may get several gradients in one, or none
        gradient_as_bucket_view: accepted; gradients always lie in the buckets, which does not show

    Example::

        >>> import vesta.distributed as dist  # doctest: +SKIP
        >>> dist.init_process_group("gloo")  # doctest: +SKIP
        >>> model = vesta.nn.parallel.DistributedDataParallel(vesta.nn.Linear(4, 2))  # doctest: +SKIP
        >>> model(vesta.randn(8, 4)).sum().backward()  # doctest: +SKIP
    """

    def __init__(
        self,
        module: Module,
        device_ids: Iterable[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: list[int] | None = None,
        batched_grad_copy: bool = False,
        forward_sync_buffers: bool | None = None,
        lazy_bucket_allocation: bool = False,
    ) -> None:
        super().__init__()
        Joinable.__init__(self)
        _refuse_what_is_not_there(
            delay_all_reduce_named_params=delay_all_reduce_named_params,
            param_to_hook_all_reduce=param_to_hook_all_reduce,
            mixed_precision=mixed_precision,
            device_mesh=device_mesh,
        )
        self.process_group = default_group() if process_group is None else process_group
        self.module = module
        self.dim = dim
        self.parameters_to_ignore = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        self._module_parameters = [p for n, p in module.named_parameters() if n not in self.parameters_to_ignore]
        if not any(p.requires_grad for p in self._module_parameters):
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a "
                "gradient."
            )
        self.device_ids, self.output_device = self._devices(device_ids, output_device)
        self.forward_sync_buffers = True
        for given in (broadcast_buffers, forward_sync_buffers):  # the later one is the newer name
            self.forward_sync_buffers = self.forward_sync_buffers if given is None else given
        self.find_unused_parameters = find_unused_parameters
        self.static_graph = static_graph
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.skip_all_reduce_unused_params = skip_all_reduce_unused_params
        self.require_backward_grad_sync = True
        self.require_forward_param_sync = True
        self.bucket_bytes_cap_list = [int(cap * MIB) for cap in bucket_cap_mb_list or ()]
        self.bucket_bytes_cap = int((DEFAULT_BUCKET_CAP_MB if bucket_cap_mb is None else bucket_cap_mb) * MIB)
        self.first_bucket_bytes_cap = DEFAULT_FIRST_BUCKET_BYTES if bucket_cap_mb is None else self.bucket_bytes_cap
        if min([self.bucket_bytes_cap, *self.bucket_bytes_cap_list]) <= 0:
            raise ValueError(f"DistributedDataParallel: expected a positive size, got {bucket_cap_mb} (bucket_cap_mb).")
        self._assign_modules_buffers()
        if init_sync:
            self._make_replicas(with_buffers=forward_sync_buffers is not None or broadcast_buffers is not False)
        self._make_reducer()

    def _devices(self, device_ids: Iterable[Any] | None, output_device: Any) -> tuple[list[Any] | None, Any]:
        """Checks that the model is on one device, and ``device_ids`` is None or that device."""
        ids = None if device_ids is None else list(device_ids)
        devices = {p.device for p in self._module_parameters}
        if len({d.type for d in devices}) != 1:
            kinds = {d.type for d in devices}
            raise ValueError(
                "DistributedDataParallel's input module must be on the same type of devices, but input module "
                f"parameters locate in {kinds}."
            )
        self.device = self._module_parameters[0].device
        self.device_type = self.device.type
        if ids is not None and len(ids) > 1:
            raise ValueError("device_ids can only be None or contain a single element.")
        if ids and (self.device_type == "cpu" or len(devices) > 1):
            raise ValueError(
                "DistributedDataParallel device_ids and output_device arguments only work with single-device GPU "
                f"modules, but got device_ids {ids}, output_device {output_device}, and module parameters {devices}."
            )
        if not ids:
            return None, None
        first = vesta.device("cuda", ids[0]) if isinstance(ids[0], int) else vesta.device(ids[0])
        return [first], first if output_device is None else output_device

    # ---- replicas

    def _named_trained(self) -> list[tuple[str, Tensor]]:
        return [
            (name, p)
            for name, p in self.module.named_parameters()
            if p.requires_grad and name not in self.parameters_to_ignore
        ]

    def _assign_modules_buffers(self) -> None:
        """Looks up the buffers again: a module may have replaced them."""
        named = [(n, b) for n, b in self.module.named_buffers() if n not in self.parameters_to_ignore]
        self.named_module_buffers = dict(named)
        self.modules_buffers = [buffer for _, buffer in named]

    def _make_replicas(self, with_buffers: bool) -> None:
        """Compares the ranks' parameters and gives all ranks the values of rank 0."""
        named = [(n, p) for n, p in self.module.named_parameters() if n not in self.parameters_to_ignore]
        _C._ddp.verify_replicas(self.process_group, named, "parameter", self.device)
        if with_buffers:
            buffers = list(self.named_module_buffers.items())
            _C._ddp.verify_replicas(self.process_group, buffers, "buffer", self.device)
        self._sync_module_states(0, with_buffers)

    def _sync_module_states(self, source: int, with_buffers: bool) -> None:
        buffers = self.modules_buffers if with_buffers else []
        _C._ddp.broadcast_tensors(self.process_group, [*self._module_parameters, *buffers], source)

    def _make_reducer(self) -> None:
        named = self._named_trained()
        self.reducer = _C._ddp.Reducer(
            [p for _, p in named],
            [n for n, _ in named],
            self.process_group,
            first_bucket_bytes=self.first_bucket_bytes_cap,
            bucket_bytes=self.bucket_bytes_cap,
            taper=self.first_bucket_bytes_cap < self.bucket_bytes_cap,
            bucket_limits=self.bucket_bytes_cap_list,
            find_unused_parameters=self.find_unused_parameters,
            static_graph=self.static_graph,
            skip_unused_buckets=self.skip_all_reduce_unused_params,
        )
        self._has_comm_hook = False

    def __getstate__(self) -> dict[str, Any]:
        if self.process_group is not vesta.distributed.group.WORLD:
            raise RuntimeError(
                "DDP Pickling/Unpickling are only supported when using DDP with the default process group. That is, "
                "when you have called init_process_group and have not passed process_group argument to DDP constructor"
            )
        state = copy.copy(self.__dict__)
        del state["process_group"], state["reducer"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.process_group = default_group()
        self._module_parameters = [p for n, p in self.module.named_parameters() if n not in self.parameters_to_ignore]
        self._make_reducer()

    # ---- a step

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Returns the module's result; see the class."""
        inputs, kwargs = self._pre_forward(inputs, kwargs)
        output = self.module(*inputs, **kwargs)
        recording = vesta.is_grad_enabled()
        sync = recording and self.require_backward_grad_sync
        if recording:
            walked = sync and self.find_unused_parameters and not self.static_graph
            self.reducer.prepare_for_backward(list(find_tensors(output)) if walked else [], sync)
        self.require_forward_param_sync = sync
        return output

    def _pre_forward(self, inputs: Any, kwargs: Any) -> tuple[Any, Any]:
        work = Join.notify_join_context(self)
        if work is not None:
            count = None if self._divide_by_initial_world_size else work.join_count
            self.reducer.set_forward_work(work.work, count)
        if vesta.is_grad_enabled():
            self.reducer.prepare_for_forward()
        if self.will_sync_module_buffers():
            self._sync_buffers()
        if self._join_config.enable:
            self._check_global_requires_backward_grad_sync(is_joined_rank=False)
        if self.device_ids:
            inputs, kwargs = moved(inputs, self.device_ids[0]), moved(kwargs, self.device_ids[0])
        return inputs, kwargs

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Leaves gradients local inside a ``with`` block: they add up in ``grad`` until the first forward and backward
        after it.

        The forward must be inside, too. Example::

            >>> with ddp.no_sync():  # doctest: +SKIP
            ...     ddp(first).sum().backward()
            >>> ddp(second).sum().backward()  # averages both  # doctest: +SKIP
        """
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    # ---- buffers

    @property
    def broadcast_buffers(self) -> bool:
        """Whether buffers are broadcast before each forward; PyTorch's older name of ``forward_sync_buffers``."""
        return self.forward_sync_buffers

    @broadcast_buffers.setter
    def broadcast_buffers(self, value: bool) -> None:
        self.forward_sync_buffers = value

    def will_sync_module_buffers(self) -> bool:
        """Returns whether the next forward begins with a broadcast of the buffers."""
        return self.require_forward_param_sync and self.forward_sync_buffers and len(self.modules_buffers) > 0

    def _sync_buffers(self) -> None:
        source = self._find_common_rank(self._distributed_rank, True) if self._join_config.enable else 0
        self._assign_modules_buffers()
        _C._ddp.refresh_tensors(self.process_group, self.modules_buffers, source)

    # ---- communication hooks

    def register_comm_hook(self, state: object, hook: Callable[[Any, Any], Any]) -> None:
        """Registers ``hook(state, bucket)``, which is called with each ready ``GradBucket`` instead of averaging it.

        The hook starts its communication and returns a future of the bucket's reduced gradients (one vector). It may be
        registered once, before the first backward. Predefined hooks: ``vesta.distributed.algorithms.ddp_comm_hooks``.
        """
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        bucket = inspect.signature(hook).parameters.get("bucket")
        kinds = (inspect.Parameter.empty, _C._ddp.GradBucket)
        if bucket is not None and bucket.annotation not in kinds and "GradBucket" not in str(bucket.annotation):
            raise ValueError("Communication hook: bucket annotation should be dist.GradBucket.")
        self.reducer.register_comm_hook(state, hook)
        self._has_comm_hook = True

    def _register_builtin_comm_hook(self, comm_hook_type: Any) -> None:
        """Registers one of ``BuiltinCommHookType``, which run in C++."""
        self.reducer.register_builtin_comm_hook(comm_hook_type)
        self._has_comm_hook = True

    # ---- uneven inputs

    def join(
        self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination: bool = False
    ) -> Join:
        """Returns a context around a training loop whose ranks may have different numbers of batches.

        A rank that leaves early takes part in the others' communication with zeros until all are done; then all get the
        model of the last rank. ``divide_by_initial_world_size=False`` divides by the number of ranks still at work.
        """
        return Join(
            [self], enable, throw_on_early_termination, divide_by_initial_world_size=divide_by_initial_world_size
        )

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Returns the hook that ``Join`` calls on a rank without inputs."""
        return DDPJoinHook(self, divide_by_initial_world_size=kwargs.get("divide_by_initial_world_size", True))

    @property
    def join_device(self) -> Any:
        """The device of the tensors that ``Join`` sends."""
        return self.device

    @property
    def join_process_group(self) -> Any:
        """The group in which ``Join`` communicates."""
        return self.process_group

    @property
    def _distributed_rank(self) -> int:
        return self.process_group.rank()

    def _check_global_requires_backward_grad_sync(self, is_joined_rank: bool) -> bool:
        """Tells ranks without inputs whether the next backward is averaged; they learn it by the same call."""
        wanted = not is_joined_rank and self.require_backward_grad_sync and vesta.is_grad_enabled()
        flag = vesta.full((1,), float(wanted), device=self.device)
        vesta.distributed.all_reduce(flag, group=self.process_group)
        return flag.item() != 0

    def _find_common_rank(self, input_rank: int, rank_cond: bool) -> int:
        """Returns the largest rank that fulfils ``rank_cond``."""
        rank = vesta.tensor([input_rank if rank_cond else -1], device=self.device)
        vesta.distributed.all_reduce(rank, op=vesta.distributed.ReduceOp.MAX, group=self.process_group)
        return int(rank.item())

    # ---- other functions of PyTorch

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(
        module: Module, params_and_buffers_to_ignore: Iterable[str]
    ) -> None:
        """Sets the names of parameters and buffers that stay local; call it before the module is wrapped."""
        module._ddp_params_and_buffers_to_ignore = list(params_and_buffers_to_ignore)

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        """Returns the reducer's data: the sizes of buckets, and the seconds spent waiting for communication."""
        group = self.process_group
        return {
            "world_size": group.size(),
            "rank": group.rank(),
            "module_name": type(self.module).__name__,
            "find_unused_parameters": self.find_unused_parameters,
            "static_graph": self.static_graph,
            "broadcast_buffers": self.forward_sync_buffers,
            "gradient_as_bucket_view": True,
            **self.reducer.stats(),
        }


def _refuse_what_is_not_there(**arguments: Any) -> None:
    for name, value in arguments.items():
        if value is not None:
            raise NotImplementedError(f"DistributedDataParallel: {name} does not exist here yet. Leave it out.")
