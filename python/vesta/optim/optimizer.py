"""``Optimizer``: parameter groups, state, and a step that passes whole lists of tensors to one fused operation.

Note [Plans]
A fused step needs lists: parameters, gradients, moments. Collecting the moments through ``state[p]["exp_avg"]`` costs
more in Python than the update of a small model, so each group keeps a plan: the lists as they were at the last step. A
plan is used again while the group holds the same parameters (by identity), the same ones have a gradient, and the
options that decide about state are the same. Gradients are collected every time. The plans lie in ``state``, which
drops them when somebody writes into it: what was replaced there is freed at once.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, Union, overload

import vesta
from vesta import _C, Tensor, _tensor_lists
from vesta._arguments import convert_hint, expect
from vesta.autograd.profiler import record_function
from vesta.autograd.recording import running
from vesta.optim.state import State
from vesta.optim.state_dict import StateDictMixin, store_hook
from vesta.utils.hooks import RemovableHandle

__all__ = [
    "Optimizer",
    "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook",
    "required",
]

#: What an optimizer takes: tensors, tensors with their names, or groups of them with options of their own.
ParamsT = Union[Iterable[Tensor], Iterable[tuple[str, Tensor]], Iterable[dict[str, Any]]]
R = TypeVar("R")


class _RequiredParameter:
    """The mark of a hyperparameter without a default."""

    def __repr__(self) -> str:
        return "<required parameter>"


required: Any = _RequiredParameter()

_global_pre_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
_global_post_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Registers ``hook(optimizer, args, kwargs)`` to run before every optimizer's step."""
    return store_hook(_global_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Registers ``hook(optimizer, args, kwargs)`` to run after every optimizer's step."""
    return store_hook(_global_post_hooks, hook)


class _Bucket:
    """Parameters of one dtype and device that one call updates, with their state."""

    __slots__ = ("device", "dtype", "first", "params", "places", "states")

    def __init__(
        self,
        places: list[int],
        params: list[Tensor],
        states: tuple[list[Tensor], ...],
        first: bool,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self.places, self.params, self.states, self.first = places, params, states, first
        self.device, self.dtype = device, dtype

    def left(self, param: Tensor) -> bool:
        """Returns whether one of the parameters is no longer what the bucket was made of."""
        return bool(param.dtype != self.dtype or param.device != self.device)


def _real(bucket: _Bucket) -> _Bucket:
    """Returns a bucket of complex tensors as one of pairs of real numbers, which share their memory."""

    def pairs(tensors: list[Tensor]) -> list[Tensor]:
        return [vesta.view_as_real(t) if t.is_complex() else t for t in tensors]

    states = tuple(pairs(tensors) for tensors in bucket.states)
    return _Bucket(bucket.places, pairs(bucket.params), states, bucket.first)


class _Plan:
    """What a group's last step found, kept for the next one."""

    __slots__ = ("buckets", "options", "params", "present")

    def __init__(self, params: list[Tensor], present: list[bool], options: Any, buckets: list[_Bucket]) -> None:
        self.params, self.present, self.options, self.buckets = params, present, options, buckets


_NO_PLAN = _Plan([], [], None, [])


#: Options that are several numbers.
_LINES = ("betas", "etas", "ns_coefficients", "step_sizes")


class Optimizer(StateDictMixin):
    """The base of all optimizers.

    Args:
        params: tensors, (name, tensor) pairs, or dicts that each hold such an iterable under ``"params"`` beside their
            own options.
        defaults: the options of groups that do not give them.

    Raises:
        TypeError: ``params`` is a tensor, a group's a set, or holds something that is not a tensor.
        ValueError: ``params`` is empty, names a tensor twice, or holds one that is not a leaf.

    A subclass implements either ``step``, as in PyTorch, or the three parts of the fused step: ``_options``,
    ``_states`` and ``_fused``; see ``sgd.py``.
    """

    _opt_called = False
    _in_step = False  # whether hooks run around this step already

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        expect("Optimizer", "defaults", defaults, Mapping, "a dict")
        self.defaults = defaults
        self._state = State()
        self.param_groups: list[dict[str, Any]] = []
        self._make_runtime()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                f"{type(params).__name__}. Put it in a list."
            )
        if not isinstance(params, Iterable):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                f"{type(params).__name__}."
            )
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in vars(cls):  # a user's own step gets its hooks here
            cls.step = _with_hooks(cls.step)  # type: ignore[method-assign]
        check_options = getattr(vars(cls).get("__init__"), "check_options", None)
        if check_options is not None:  # see hyperparameters
            cls._check_options = check_options  # type: ignore[method-assign]
            cls._numbers_known = True

    def _make_runtime(self) -> None:
        """Creates what is neither saved nor copied: hooks."""
        self._optimizer_step_pre_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self._optimizer_step_post_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self._make_state_dict_hooks()
        self._in_step = False

    def _patch_step_function(self) -> None:
        """Creates hooks where there are none: PyTorch's name, which wrappers that skip the constructor call."""
        if "_optimizer_step_pre_hooks" not in self.__dict__:
            self._make_runtime()

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        if "state" in state or "_state" not in self.__dict__:
            self.state = state.pop("state", {})
        self.__dict__.update(state)
        if "_in_step" not in self.__dict__:
            self._make_runtime()
        self.defaults = self.__dict__.setdefault("defaults", {})

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines += ["", f"Parameter Group {i}"] if i else ["Parameter Group 0"]
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])

    # ---- groups ----

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group of parameters with its own options, such as layers that are unfrozen later.

        Raises:
            TypeError, ValueError: as for the constructor; the optimizer is unchanged then.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        if "params" not in param_group:
            raise ValueError(f"param_group: expected the key 'params', got {sorted(map(str, param_group))}.")
        group = dict(param_group)
        group["params"], names = _listed(group["params"], bool(self.defaults.get("differentiable")))
        if names is not None:
            group["param_names"] = names
        for name, default in self.defaults.items():
            if default is required and name not in group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            group.setdefault(name, default)
        if any(name in param_group for name in self.defaults):
            group = with_tuples(group)
            self._check_options(group)
        if len({id(param) for param in group["params"]}) != len(group["params"]):
            _refuse_duplicates(
                "optimizer contains a parameter group with duplicate parameters: a step would update them twice. "
                "Remove the repeated ones."
            )
        others = {id(param) for other in self.param_groups for param in other["params"]}
        if any(id(param) in others for param in group["params"]):
            raise ValueError("some parameters appear in more than one parameter group")
        if self.param_groups and ("param_names" in self.param_groups[0]) != (names is not None):
            raise ValueError(
                "all optimizer param groups should be with/without names. cannot add param group with names to the "
                "optimizer with no names, or the other way round"
            )
        self.param_groups.append(group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clears the gradients of all parameters; ``set_to_none=False`` fills them with zeros instead."""
        if running:
            with record_function(f"Optimizer.zero_grad#{type(self).__name__}.zero_grad"):
                return self._clear(set_to_none)
        return self._clear(set_to_none)

    def _clear(self, set_to_none: bool) -> None:
        grads = []
        for group in self.param_groups:
            for param in group["params"]:
                if set_to_none:
                    param.grad = None
                elif param.grad is not None:
                    grad = param.grad  # it stays the same object, without its history
                    grads.append(grad.requires_grad_(False) if grad.is_leaf else grad.detach_())
        _tensor_lists.zero_(grads)

    # ---- the step ----

    @overload
    def step(self, closure: None = None) -> None: ...
    @overload
    def step(self, closure: Callable[[], R]) -> R: ...
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates every parameter that has a gradient.

        Args:
            closure: a function that computes the loss and its gradients anew; it is called first.

        Returns:
            the result of ``closure``.
        """
        if closure is not None:
            expect("step", "closure", closure, Callable, "a function or None")
        if running:
            with record_function(f"Optimizer.step#{type(self).__name__}.step"):
                return self._step_with_hooks(closure)
        return self._step_with_hooks(closure)

    def _step_with_hooks(self, closure: Callable[[], Any] | None) -> Any:
        if self._optimizer_step_pre_hooks or self._optimizer_step_post_hooks or _global_pre_hooks or _global_post_hooks:
            return _run_with_hooks(self, type(self)._step, (closure,) if closure is not None else (), {})
        return self._step(closure)

    def _step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = None
        if closure is not None:
            with vesta.enable_grad():
                loss = closure()
        recording = _C.is_grad_enabled()
        recorded = bool(self.defaults.get("differentiable"))  # gradients flow through the step
        _C.set_grad_enabled(recorded)
        try:
            for group in self.param_groups:
                if recorded:
                    _check_recorded(group)
                self._update(group)
            if len(self._state.plans) > len(self.param_groups):  # a group was removed
                self._state.plans.clear()
        finally:
            _C.set_grad_enabled(recording)
        self._opt_called = True
        return loss

    def _update(self, group: dict[str, Any]) -> None:
        """Updates one group: finds or makes its plan, and runs the fused operation on each of its buckets."""
        params, plans = group["params"], self._state.plans
        plan = plans.get(id(group), _NO_PLAN)
        grads, same = _C._grads_of(params, plan.params, plan.present)
        if plan is _NO_PLAN or not same or plan.options != self._options(group):
            present = [grad is not None for grad in grads]
            places = [i for i, there in enumerate(present) if there]
            plan = _Plan(list(params), present, self._options(group), self._buckets(group, params, places))
            plans[id(group)] = plan  # after what _buckets wrote into the state
        for i, bucket in enumerate(plan.buckets):
            try:
                self._update_bucket(group, bucket, grads)
            except (RuntimeError, ValueError, TypeError):  # before anything of this bucket was changed
                if not any(map(bucket.left, bucket.params)):
                    for param in bucket.params:
                        self._follow(param)  # it may know better what is wrong
                    raise
                plans.pop(id(group), None)
                places = sorted(place for other in plan.buckets[i:] for place in other.places)
                for other in self._buckets(group, params, places):
                    self._update_bucket(group, other, grads)
                return

    def _update_bucket(self, group: dict[str, Any], bucket: _Bucket, grads: list[Any]) -> None:
        """Runs the fused operation on one bucket; ``grads`` are those of the whole group."""
        chosen = grads if len(bucket.places) == len(grads) else [grads[i] for i in bucket.places]
        parts = bucket
        if bucket.params[0].is_complex():  # the formulas are those of real and imaginary parts
            if any(grad.is_sparse for grad in chosen):
                self._update_sparse(group, bucket, chosen)
                bucket.first = False
                return
            parts, chosen = _real(bucket), [vesta.view_as_real(grad) for grad in chosen]
        try:
            self._fused(group, parts, chosen)
        except NotImplementedError:  # before anything was changed
            if not any(grad.is_sparse for grad in chosen):
                raise
            self._update_sparse(group, bucket, chosen)
        bucket.first = False

    def _update_sparse(self, group: dict[str, Any], bucket: _Bucket, grads: list[Tensor]) -> None:
        """Updates one bucket with gradients of which some are sparse."""
        name = type(self).__name__
        raise RuntimeError(f"{name} does not support sparse gradients, please consider SparseAdam instead")

    def _buckets(self, group: dict[str, Any], params: list[Tensor], places: list[int]) -> list[_Bucket]:
        """Returns the parameters at some places of a group in buckets, whose state is created where it is missing."""
        keys: dict[Any, list[int]] = {}
        for i in places:
            self._follow(params[i])
            keys.setdefault((params[i].device, params[i].dtype, self._is_new(params[i])), []).append(i)
        buckets = []
        for (device, dtype, first), where in keys.items():
            chosen = [params[i] for i in where]
            buckets.append(_Bucket(where, chosen, self._states(group, chosen), first, device, dtype))
        return buckets

    def _follow(self, param: Tensor) -> None:
        """Converts a parameter's state to the dtype it got since the last step, as by ``module.double()``.

        Raises:
            ValueError: the state has another shape, or lies on another device.
        """
        entries = self._state.get(param)
        if not entries:
            return
        for name in self._shaped_like_param:
            value = entries.get(name)
            if not isinstance(value, Tensor):
                continue
            if value.shape != param.shape or value.device != param.device:
                raise ValueError(
                    f"{type(self).__name__}: expected {name} of {self._name_of(param)} with shape {list(param.shape)} "
                    f"on {param.device}, got {list(value.shape)} on {value.device} (state). Was the parameter replaced "
                    "or moved after a step? Load the state_dict() of before, or delete its entry of optimizer.state."
                )
            if value.dtype != param.dtype and not (value.is_complex() and not param.is_complex()):
                entries[name] = value.to(param.dtype)

    def _is_new(self, param: Tensor) -> bool:
        """Returns whether ``param`` was never updated, since some rules start differently."""
        return not self.state.get(param)

    def _check_options(self, options: Mapping[str, Any]) -> None:
        """Raises for options of a group that the constructor refuses; what it does not know is not checked."""

    def _prepare(self) -> None:
        """Makes the states that are there before the first step."""

    def _options(self, group: dict[str, Any]) -> Any:
        """Returns the options of a group that decide which state its parameters have."""
        return None

    def _states(self, group: dict[str, Any], params: list[Tensor]) -> tuple[list[Tensor], ...]:
        """Returns the state of ``params`` as lists, one for each kind, and creates missing state."""
        raise NotImplementedError

    def _fused(self, group: dict[str, Any], bucket: _Bucket, grads: list[Tensor]) -> None:
        """Updates the parameters and states of one bucket."""
        raise NotImplementedError(f"{type(self).__name__}: expected a step() method, found none. Define step(self).")

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Registers ``hook(optimizer, args, kwargs)`` to run before ``step``; it may return new (args, kwargs).

        The first of ``args`` is the optimizer.
        """
        return store_hook(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Registers ``hook(optimizer, args, kwargs)`` to run after ``step``."""
        return store_hook(self._optimizer_step_post_hooks, hook)


_UNORDERED = (
    "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets will change "
    "between runs. Please use a list instead."
)


def _listed(params: Any, differentiable: bool) -> tuple[list[Tensor], list[str] | None]:
    """Returns the tensors of a group as a list, and their names if they came with names."""
    if isinstance(params, Tensor):
        params = [params]
    if isinstance(params, (set, frozenset)):
        raise TypeError(_UNORDERED)
    if not isinstance(params, Iterable):
        raise TypeError(f"optimizer: expected an iterable of tensors, got {type(params).__name__} (params).")
    entries = list(params)
    named = [isinstance(entry, tuple) for entry in entries]
    if any(named) and not all(named):
        raise ValueError("all optimizer params should be with/without names. Some param names are missing")
    tensors = [entry[1] for entry in entries] if any(named) else entries
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            kind = type(tensor).__name__
            hint = convert_hint(tensor)
            raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {kind}.{hint}")
        if not (differentiable or tensor.is_leaf or tensor.retains_grad):
            raise ValueError("can't optimize a non-leaf Tensor")
    return tensors, [entry[0] for entry in entries] if any(named) else None


def _refuse_duplicates(message: str) -> None:
    """Raises ValueError; ``vesta.as_torch`` warns instead, as PyTorch does."""
    raise ValueError(message)


def _with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a subclass's ``step`` so that hooks run around it."""

    @functools.wraps(step)
    def wrapper(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        return _run_with_hooks(self, step, args, kwargs)

    return wrapper


def _run_with_hooks(
    optimizer: Optimizer, step: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """Runs ``step`` once between the hooks: a step that calls its base class's step is still one step."""
    if optimizer._in_step:
        return step(optimizer, *args, **kwargs)
    if (
        "_optimizer_step_pre_hooks" not in optimizer.__dict__
    ):  # a wrapper of another optimizer, without its own __init__
        optimizer._make_runtime()
    optimizer._in_step = True
    try:
        args = (optimizer, *args)  # hooks see the optimizer among the arguments, as in PyTorch
        for hook in (*_global_pre_hooks.values(), *optimizer._optimizer_step_pre_hooks.values()):
            changed = hook(optimizer, args, kwargs)
            if changed is None:
                continue
            if not (isinstance(changed, tuple) and len(changed) == 2):
                raise RuntimeError(f"{step} must return None or a tuple of (new_args, new_kwargs), but got {changed}.")
            args, kwargs = changed
        result = step(*args, **kwargs)
        optimizer._opt_called = True
        for hook in (*optimizer._optimizer_step_post_hooks.values(), *_global_post_hooks.values()):
            hook(optimizer, args, kwargs)
        return result
    finally:
        optimizer._in_step = False


def check(name: str, value: Any, valid: bool, what: str | None = None) -> None:
    """Raises ``ValueError`` with PyTorch's message unless a hyperparameter is valid; NaN never is."""
    if not valid:
        raise ValueError(f"Invalid {what or name + ' value'}: {value}")


def refuse(name: str, given: Any) -> None:
    """Raises for an option of PyTorch's that has no counterpart here, instead of ignoring it."""
    if given:
        raise NotImplementedError(f"optimizer: expected {name}=False, got {given} ({name}). It is not available.")


def with_tuples(options: dict[str, Any]) -> dict[str, Any]:
    """Returns options with arrays and tensors of betas and the like as tuples of Python's numbers."""
    lines = {name: options[name] for name in _LINES if getattr(options.get(name), "ndim", None) == 1}
    return {**options, **{name: tuple(line.tolist()) for name, line in lines.items()}} if lines else options


def number(value: Any) -> float:
    """Returns a hyperparameter, which may be a 0-d tensor, as a Python number."""
    return value.item() if isinstance(value, Tensor) else value


def _check_recorded(group: dict[str, Any]) -> None:
    """Refuses numbers that want a gradient in a step that is recorded: it would end at them silently."""
    for name, value in group.items():
        if isinstance(value, Tensor) and value.requires_grad:
            raise NotImplementedError(
                f"optimizer: expected {name} without a gradient, got a tensor that requires one ({name}). A recorded "
                "step is differentiated by parameters, gradients and states only. Use .detach()."
            )
