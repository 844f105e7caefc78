"""Saving and loading an optimizer's state, in PyTorch's layout: parameters are numbers, in order."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from copy import deepcopy
from numbers import Real
from typing import Any, NoReturn

import vesta
from vesta import Tensor
from vesta.optim.state import State, as_state
from vesta.utils.hooks import RemovableHandle

__all__ = ["StateDictMixin"]


class StateDictMixin:
    """The part of ``Optimizer`` that saves and loads."""

    defaults: dict[str, Any]
    param_groups: list[dict[str, Any]]
    _state: State
    _shaped_like_param: tuple[str, ...] = ()  # names of state tensors that have their parameter's shape
    _scalars: tuple[str, ...] = ()  # names of state tensors of one float32 number, on the CPU
    _may_be_none: tuple[str, ...] = ()  # names of state that may be saved as None
    _numbers_known = False  # whether options must be numbers where the defaults are

    @property
    def state(self) -> State:
        """The state of each parameter. Another mapping that is assigned is copied into a ``State``."""
        return self._state

    @state.setter
    def state(self, given: Any) -> None:
        self._state = as_state(given, type(self).__name__)

    def _make_state_dict_hooks(self) -> None:
        self._optimizer_state_dict_pre_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self._optimizer_state_dict_post_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self._optimizer_load_state_dict_pre_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self._optimizer_load_state_dict_post_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()

    def register_state_dict_pre_hook(self, hook: Callable[..., None], prepend: bool = False) -> RemovableHandle:
        """Registers ``hook(optimizer)`` to run before ``state_dict``."""
        return store_hook(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Registers ``hook(optimizer, state_dict)``, which may return another one."""
        return store_hook(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Registers ``hook(optimizer, state_dict)`` to run before loading; it may return another one."""
        return store_hook(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., None], prepend: bool = False) -> RemovableHandle:
        """Registers ``hook(optimizer)`` to run after loading."""
        return store_hook(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    def state_dict(self) -> dict[str, Any]:
        """Returns ``{"state": {number: {...}}, "param_groups": [...]}``; tensors share memory with the optimizer.

        Example::

            >>> import vesta
            >>> layer = vesta.nn.Linear(2, 2)
            >>> vesta.optim.SGD(layer.parameters(), lr=0.1).state_dict()["param_groups"][0]["params"]
            [0, 1]
        """
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for param in group["params"]:
                numbers.setdefault(id(param), len(numbers))
            packed = {key: value for key, value in group.items() if key != "params"}
            groups.append({**packed, "params": [numbers[id(param)] for param in group["params"]]})
        state = {
            numbers[id(key)] if isinstance(key, Tensor) else key: dict(value) if isinstance(value, dict) else value
            for key, value in self.state.items()
        }
        result: dict[str, Any] = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            changed = hook(self, result)
            result = result if changed is None else changed
        return result

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restores a state that ``state_dict`` returned; checks all of it first, and changes nothing if anything is
        wrong.

        Where both optimizers were made of ``named_parameters()`` with the same names, state goes to the parameter of
        its name, in whatever order and group they stand; else it goes by place. Options go by group.

        Tensors are copied, and cast to the dtype and device of their parameter; ``step`` and other numbers become
        float32 on the CPU.

        Raises:
            ValueError: groups, numbers of parameters, names or shapes do not match.
            TypeError: ``state_dict`` is not such a dict.
        """
        if not isinstance(state_dict, Mapping) or not {"state", "param_groups"} <= set(state_dict):
            raise TypeError(
                f"{type(self).__name__}.load_state_dict: expected a dict with 'state' and 'param_groups', got "
                f"{sorted(state_dict) if isinstance(state_dict, Mapping) else type(state_dict).__name__} (state_dict)."
            )
        state_dict = dict(state_dict)
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        saved_groups = state_dict["param_groups"]
        self._check_groups(saved_groups)
        params = self._matched(saved_groups)
        if not isinstance(state_dict["state"], Mapping):
            self._refuse(TypeError, "a dict of parameters' numbers and their state", state_dict["state"], "state")
        self._check_state(state_dict["state"], params)
        state = {
            params.get(key, key): _loaded(value, params.get(key), keep=("step", *self._scalars))
            for key, value in state_dict["state"].items()
        }
        groups = [self._merged(own, _copied(saved)) for own, saved in zip(self.param_groups, saved_groups)]
        self.__setstate__({"state": State(state), "param_groups": groups})  # type: ignore[attr-defined]
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    def _merged(self, own: dict[str, Any], saved: dict[str, Any]) -> dict[str, Any]:
        """Returns a group's saved options over this optimizer's defaults, with this optimizer's parameters."""
        merged = {**saved, "params": own["params"]}  # in the order of the saved options, as in PyTorch
        for name, default in self.defaults.items():
            merged.setdefault(name, default)
        if "param_names" in own:
            merged["param_names"] = own["param_names"]
        return merged

    def _refuse(self, error: type[Exception], wanted: str, got: Any, where: str) -> NoReturn:
        found = got if isinstance(got, str) and " " in got else type(got).__name__
        raise error(f"{type(self).__name__}.load_state_dict: expected {wanted}, got {found} ({where}).")

    def _check_groups(self, saved_groups: Any) -> None:
        if not isinstance(saved_groups, (list, tuple)):
            self._refuse(TypeError, "a list of groups", saved_groups, "param_groups")
        if len(saved_groups) != len(self.param_groups):
            raise ValueError(
                "loaded state dict has a different number of parameter groups: "
                f"{len(saved_groups)} instead of {len(self.param_groups)}"
            )
        for i, (saved, own) in enumerate(zip(saved_groups, self.param_groups)):
            where = f"param_groups[{i}]"
            if not isinstance(saved, Mapping):
                self._refuse(TypeError, "a dict with 'params' and options", saved, where)
            if "params" not in saved:
                self._refuse(ValueError, "the key 'params'", f"the keys {sorted(map(str, saved))}", where)
            for name in ("params", "param_names"):
                if not isinstance(saved.get(name, []), (list, tuple)):
                    self._refuse(TypeError, "a list", saved[name], f"{where}['{name}']")
            for number in saved["params"]:
                if not isinstance(number, Hashable):
                    self._refuse(TypeError, "numbers of parameters", number, f"{where}['params']")
            if len(saved["params"]) != len(own["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of optimizer's group: "
                    f"{len(saved['params'])} instead of {len(own['params'])} in group {i}"
                )
            if self._numbers_known:
                for name, default in self.defaults.items():
                    if name in saved and not _same_kind(saved[name], default):
                        wanted = "a number" if isinstance(default, (Real, Tensor)) else f"{len(default)} numbers"
                        got = saved[name]
                        if isinstance(got, (Tensor, tuple, list)):
                            got = f"a {type(got).__name__} of {got.numel() if isinstance(got, Tensor) else len(got)}"
                        self._refuse(TypeError, wanted, got, f"{where}['{name}']")

    def _matched(self, saved_groups: list[Mapping[str, Any]]) -> dict[Any, Tensor]:
        """Returns the parameter of each saved number: that of its name, if both sides have the same names."""
        numbers = [number for saved in saved_groups for number in saved["params"]]
        params = [param for own in self.param_groups for param in own["params"]]
        if not all("param_names" in group for group in (*saved_groups, *self.param_groups)):
            return dict(zip(numbers, params))
        names = [name for saved in saved_groups for name in saved["param_names"]]
        own_names = [name for own in self.param_groups for name in own["param_names"]]
        if len(names) != len(numbers):
            raise ValueError(
                f"{type(self).__name__}.load_state_dict: expected a name for each of {len(numbers)} parameters, got "
                f"{len(names)} (param_names)."
            )
        if names == own_names:
            return dict(zip(numbers, params))
        if set(names) == set(own_names) and len(set(names)) == len(names):
            by_name = dict(zip(own_names, params))
            return {number: by_name[name] for number, name in zip(numbers, names)}
        saved_name, own_name = next(pair for pair in zip(names, own_names) if pair[0] != pair[1])
        warnings.warn(
            f"{type(self).__name__}.load_state_dict: the names differ, first {saved_name!r} (saved) and {own_name!r}; "
            "state is matched by place, as in PyTorch. Rename one if the order differs too.",
            UserWarning,
            stacklevel=3,
        )
        return dict(zip(numbers, params))

    def _check_state(self, saved_state: Mapping[Any, Any], params: dict[Any, Tensor]) -> None:
        for number, entries in saved_state.items():
            if number not in params:
                if isinstance(number, int):
                    raise ValueError(
                        f"{type(self).__name__}.load_state_dict: expected state for parameters 0 to {len(params) - 1}, "
                        f"got some for {number} (state_dict)."
                    )
                continue
            self._check_entries(entries, params[number], f"state[{number!r}]")

    def _check_entries(self, entries: Any, param: Tensor, where: str) -> None:
        """Checks what this class knows of the state of a parameter."""
        known = (*self._shaped_like_param, *self._scalars)
        if not isinstance(entries, Mapping):
            if known:
                self._refuse(TypeError, "a dict of a parameter's state", entries, where)
            return
        for name in self._shaped_like_param:
            value = entries.get(name)
            if name not in entries or (value is None and name in self._may_be_none):
                continue
            place = f"{where}['{name}']"
            if not isinstance(value, Tensor):
                self._refuse(TypeError, f"a tensor for {name} of {self._name_of(param)}", value, place)
            if value.layout != param.layout:
                self._refuse(ValueError, f"a tensor of layout {param.layout}", f"one of {value.layout}", place)
            if value.is_complex() and not param.is_complex():
                self._refuse(ValueError, "real numbers", f"a tensor of dtype {value.dtype}", place)
            if value.shape != param.shape:
                raise ValueError(
                    f"{type(self).__name__}.load_state_dict: expected {name} of {self._name_of(param)} "
                    f"with shape {list(param.shape)}, got {list(value.shape)} (state_dict). "
                    "Was it saved for another model?"
                )
        for name in ("step", *self._scalars) if known else ():
            if name in entries and not _is_number(entries[name]):
                value = entries[name]
                got = (
                    f"a tensor of shape {list(value.shape)} and dtype {value.dtype}"
                    if isinstance(value, Tensor)
                    else value
                )
                self._refuse(TypeError, "a number or a tensor of one", got, f"{where}['{name}']")

    def _name_of(self, param: Tensor) -> str:
        """Returns how messages refer to a parameter: by its name if the optimizer knows it, else by its position."""
        for i, group in enumerate(self.param_groups):
            for j, other in enumerate(group["params"]):
                if other is param:
                    return f"'{group['param_names'][j]}'" if "param_names" in group else f"parameter {j} of group {i}"
        return "a parameter"


def _loaded(value: Any, param: Tensor | None, key: str | None = None, *, keep: tuple[str, ...]) -> Any:
    """Copies a value of a state dict; its tensors get the parameter's device and dtype, unless ``keep`` names them."""
    if isinstance(value, Tensor):
        if key in keep and value.numel() == 1:
            return number_tensor(value.detach()).clone()
        if param is None:
            return value.detach().clone()
        dtype = param.dtype if param.is_floating_point() or param.is_complex() else value.dtype
        return value.detach().to(device=param.device, dtype=dtype).clone()
    if isinstance(value, dict):
        return {name: _loaded(entry, param, name, keep=keep) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        entries = [_loaded(entry, param, key, keep=keep) for entry in value]
        return type(value)(*entries) if hasattr(value, "_fields") else type(value)(entries)  # type: ignore[arg-type]
    return value


def _is_number(value: Any) -> bool:
    """Returns whether this is a real number, or a tensor of one."""
    if isinstance(value, Tensor):
        return value.numel() == 1 and value.layout == vesta.strided and not value.is_complex()
    return isinstance(value, Real)


def _same_kind(value: Any, default: Any) -> bool:
    """Returns whether an option is a number, or as many numbers, if its default is; None may be anything."""
    if isinstance(default, (tuple, list)):
        return isinstance(value, (tuple, list)) and len(value) == len(default) and all(map(_same_kind, value, default))
    return isinstance(default, bool) or not isinstance(default, (Real, Tensor)) or _is_number(value)


def number_tensor(value: Any) -> Tensor:
    """Returns a number of a parameter's state as the fused operations want it: one float32 element on the CPU.

    Checkpoints of other versions, of PyTorch and of other devices have plain numbers, other dtypes and places.
    """
    if not isinstance(value, Tensor):
        return vesta.tensor(float(value), dtype=vesta.float32, device="cpu")
    if value.dtype == vesta.float32 or value.is_meta:
        return value if value.is_meta or value.device.type == "cpu" else value.cpu()
    return value.to(device="cpu", dtype=vesta.float32)


def _copied(group: Mapping[str, Any]) -> dict[str, Any]:
    """Copies a saved group, so that a later change of it does not affect the optimizer."""
    return {key: deepcopy(value) for key, value in group.items() if key != "params"}


def store_hook(table: OrderedDict[int, Any], hook: Any, prepend: bool = False) -> RemovableHandle:
    """Puts a hook into its table and returns the handle that takes it out."""
    handle = RemovableHandle(table)
    table[handle.id] = hook
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle
