"""``Module``: the base class of layers and models.

A module owns parameters, buffers and submodules under names. To a call of ``forward`` it adds only one test for hooks
and, while an error is on its way up, the name of the layer it came from. State dicts are in ``state_dict.py``, hooks in
``hooks.py``, the tables behind the names in ``registry.py`` (read its Note first).
"""

from __future__ import annotations

import functools
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar, overload

import vesta
from vesta import _C, Tensor, _tensor_lists
from vesta._arguments import convert_hint, expect, pytorch
from vesta._types import Device, DType
from vesta.nn.modules.hooks import (
    HooksMixin,
    any_global,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
)
from vesta.nn.modules.registry import Registry, Table, own_table
from vesta.nn.modules.state_dict import IncompatibleKeys as _IncompatibleKeys  # noqa: F401 (PyTorch has it here)
from vesta.nn.modules.state_dict import StateDictMixin
from vesta.nn.modules.unwinding import name_module
from vesta.nn.parameter import Buffer, Parameter, is_lazy
from vesta.utils.hooks import RemovableHandle

__all__ = [
    "Module",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

if TYPE_CHECKING:
    from typing import ParamSpec, Protocol

    P = ParamSpec("P")
    R_co = TypeVar("R_co", covariant=True)

    class _Forward(Protocol[P, R_co]):
        """A module as a type checker sees a call of it: arguments and result are those of its ``forward``."""

        def forward(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...


T = TypeVar("T", bound="Module")
_parameter_registration_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
_buffer_registration_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
_module_registration_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
_MISSING = object()
_TABLES = ("_parameters", "_buffers", "_modules")
_HOOK_TABLES = (
    "_backward_pre_hooks",
    "_backward_hooks",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_state_dict_pre_hooks",
    "_state_dict_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


def _pytorchs_members() -> tuple[type, ...]:
    """Returns the classes of PyTorch's modules and parameters, where it runs beside Vesta."""
    nn = getattr(pytorch(), "nn", None)
    return (nn.Module, nn.Parameter) if hasattr(nn, "Module") else ()  # it may be in the middle of its import


class Module(HooksMixin, StateDictMixin):
    """The base of all layers and models: subclass it, create layers in ``__init__``, compute in ``forward``.

    Example::

        >>> import vesta
        >>> class Twice(vesta.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.layer = vesta.nn.Linear(4, 4)
        ...     def forward(self, x):
        ...         return self.layer(self.layer(x))
        >>> Twice()(vesta.zeros(2, 4)).shape
        vesta.Size([2, 4])
    """

    training: bool
    dump_patches: bool = False  # of old programs
    call_super_init: bool = False  # whether the constructor goes on to the next base class
    if not TYPE_CHECKING:
        _parameters, _buffers, _modules = Table(), Table(), Table()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init and (args or kwargs):
            what = f"an unexpected keyword argument '{next(iter(kwargs))}'" if kwargs else f"{len(args) + 1} arguments"
            raise TypeError(f"{type(self).__name__}.__init__() got {what}: expected none (Module.__init__).")
        state = self.__dict__
        state["training"] = True
        state["_has_hooks"] = False
        state["_non_persistent_buffers_set"] = set()
        for table in _HOOK_TABLES:
            state[table] = OrderedDict()
        for table in _TABLES:
            state[table] = Registry(self)
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    if TYPE_CHECKING:  # subclasses have arguments and results of their own
        forward: Callable[..., Any]

        def __call__(self: _Forward[P, R_co], *args: P.args, **kwargs: P.kwargs) -> R_co: ...

        # what no class declares: buffers, parametrizations. Not Any, which would hide every slip
        def __getattr__(self, name: str) -> Tensor | Module: ...

    else:

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            """Computes the module's output; every subclass implements it."""
            raise NotImplementedError(
                f'Module [{type(self).__name__}] is missing the required "forward" function. '
                "Define forward(self, ...) in the class."
            )

        def __call__(self, input: Any = _MISSING, /, *args: Any, **kwargs: Any) -> Any:
            try:
                if args or kwargs or self._has_hooks or any_global or input is _MISSING:
                    if input is not _MISSING:
                        args = (input, *args)
                    if self._has_hooks or any_global:
                        return self._call_with_hooks(args, kwargs)
                    return self.forward(*args, **kwargs)
                return self.forward(input)  # one argument, no hooks: nearly always
            except Exception as error:
                name_module(error, self)
                raise

        _call_impl = _wrapped_call_impl = __call__  # PyTorch's names, for programs that call or replace them

        def __getattr__(self, name: str) -> Any:
            """Finds what is in a table: for subclasses whose own ``__getattr__`` calls this one.

            Attributes are found without it (``registry.py``), and classes that define none do not go through it.
            """
            for table in _TABLES:
                entries = self.__dict__.get(table, ())
                if name in entries:
                    return entries[name]
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

        def __init_subclass__(cls, **kwargs: Any) -> None:
            super().__init_subclass__(**kwargs)
            _C._look_up_plainly(cls, Module.__getattr__)
            if "__setstate__" in cls.__dict__:
                cls.__setstate__ = _with_tables(cls.__setstate__)

    # ---- names ----

    def _table(self, table: str) -> Any:
        """Returns one of the three tables; raises, with advice, if ``__init__`` has not made them yet."""
        try:
            return own_table(self, table)
        except KeyError:
            kind = {"_parameters": "parameters", "_buffers": "buffer", "_modules": "module"}[table]
            raise AttributeError(
                f"cannot assign {kind} before Module.__init__() call. Call super().__init__() first."
            ) from None

    def _checked_name(self, kind: str, name: Any, table: Any) -> str:
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {type(name).__name__}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if hasattr(self, name) and name not in table:
            raise KeyError(f"attribute '{name}' already exists")
        return name

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Adds a parameter, or ``None`` for one that the layer could have but does not.

        Example::

            >>> import vesta
            >>> module = vesta.nn.Module()
            >>> module.register_parameter("scale", vesta.nn.Parameter(vesta.ones(3)))
            >>> module.scale.shape
            vesta.Size([3])
        """
        table = self._table("_parameters")
        self._checked_name("parameter", name, table)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{vesta.typename(param)}' object "
                f"to parameter '{name}' ({_home()}.nn.Parameter or None required)"
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. To "
                f"express '{name}' as a function of another Tensor, compute the value in the forward() method."
            )
        table[name] = _told(_parameter_registration_hooks, self, name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a tensor that moves and is saved with the module but is not trained.

        Args:
            persistent: whether it is part of ``state_dict``.

        Example::

            >>> import vesta
            >>> module = vesta.nn.Module()
            >>> module.register_buffer("mean", vesta.zeros(3))
            >>> [name for name, _ in module.named_buffers()]
            ['mean']
        """
        table = self._table("_buffers")
        self._checked_name("buffer", name, table)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{vesta.typename(tensor)}' object "
                f"to buffer '{name}' ({_home()}.Tensor or None required)"
            )
        table[name] = _told(_buffer_registration_hooks, self, name, tensor)
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Adds a submodule under ``name``.

        Example::

            >>> import vesta
            >>> model = vesta.nn.Module()
            >>> model.add_module("act", vesta.nn.ReLU())
            >>> model.act
            ReLU()
        """
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{vesta.typename(module)} is not a Module subclass.{convert_hint(module)}")
        table = self._table("_modules")
        self._checked_name("module", name, table)
        table[name] = _told(_module_registration_hooks, self, name, module)

    register_module = add_module

    def __setattr__(self, name: str, value: Any) -> None:
        state = self.__dict__
        if isinstance(value, Parameter):
            self._table("_parameters")
            self._forget(name, "_parameters")
            self.register_parameter(name, value)
        elif name in state.get("_parameters", ()):
            if value is not None:
                raise TypeError(
                    f"cannot assign '{vesta.typename(value)}' "
                    f"as parameter '{name}' ({_home()}.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            self._table("_modules")
            self._forget(name, "_modules")
            self._table("_modules")[name] = _told(_module_registration_hooks, self, name, value)
        elif name in state.get("_modules", ()):
            if value is not None:
                raise TypeError(
                    f"cannot assign '{vesta.typename(value)}' "
                    f"as child module '{name}' ({_home()}.nn.Module or None expected)"
                )
            self._table("_modules")[name] = value
        elif isinstance(value, Buffer):
            self._table("_buffers")
            self._forget(name, "_buffers")
            self.register_buffer(name, value, value.persistent)
        elif name in state.get("_buffers", ()):
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"cannot assign '{vesta.typename(value)}' "
                    f"as buffer '{name}' ({_home()}.Tensor or None expected)"
                )
            self._table("_buffers")[name] = value
        elif isinstance(value, _pytorchs_members()):
            raise TypeError(
                f"{type(self).__name__}.{name}: expected a member of Vesta's, got a {vesta.typename(value)}, "
                f"which would be none.{convert_hint(value)} To keep it as it is, put it into a list."
            )
        else:
            object.__setattr__(self, name, value)
            if name == "__dict__":  # of another module, or one that was pickled
                self._own_tables()

    def _own_tables(self) -> None:
        for table in _TABLES:
            if table in self.__dict__:
                own_table(self, table)

    def __delattr__(self, name: str) -> None:
        for table in _TABLES:
            if name in self.__dict__.get(table, ()):
                del self._table(table)[name]
                self._non_persistent_buffers_set.discard(name)
                self.__dict__.pop(name, None)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        return sorted(name for name in super().__dir__() if not name[:1].isdigit())

    def _forget(self, name: str, keep: str) -> None:
        """Removes ``name`` from wherever it is stored, except from the table ``keep``."""
        for table in _TABLES:
            if table != keep and name in self.__dict__.get(table, ()):
                del self._table(table)[name]
        if keep != "_buffers":
            self.__dict__.get("_non_persistent_buffers_set", set()).discard(name)
        if name not in self.__dict__.get(keep, ()):
            self.__dict__.pop(name, None)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # names are interned, as pickle itself does: each is written once when the module is saved again
        self.__dict__.update({sys.intern(name): value for name, value in state.items()})
        for table in _HOOK_TABLES:
            self.__dict__.setdefault(table, OrderedDict())
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_has_hooks", True)  # the first call checks it
        for table in _TABLES:  # tables are pickled as plain dicts
            self.__dict__[table] = Registry(self, state.get(table, {}))

    # ---- walking ----

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Yields (qualified name, module) for this module ("") and all below, parents first, each module once.

        Example::

            >>> import vesta
            >>> [name for name, _ in vesta.nn.Sequential(vesta.nn.ReLU()).named_modules()]
            ['', '0']
        """
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                below = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, below, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """Yields this module and all below it."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Yields (name, module) for the direct submodules, each module once."""
        memo: set[Module] = set()
        for name, module in self._modules.items():
            if module is not None and module not in memo:
                memo.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """Yields the direct submodules."""
        for _, module in self.named_children():
            yield module

    def _named_members(
        self,
        get_members_fn: Callable[[Module], Any],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        memo: set[int] = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for module_prefix, module in modules:
            for name, value in get_members_fn(module):
                if value is None or id(value) in memo:
                    continue
                if remove_duplicate:
                    memo.add(id(value))
                yield (f"{module_prefix}.{name}" if module_prefix else name), value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Yields (qualified name, parameter); a shared parameter once, under its first name, if ``remove_duplicate``.

        Example::

            >>> import vesta
            >>> [name for name, _ in vesta.nn.Linear(2, 2).named_parameters()]
            ['weight', 'bias']
        """
        return self._named_members(lambda module: module._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yields the parameters, for an optimizer."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yields (qualified name, buffer)."""
        return self._named_members(lambda module: module._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yields the buffers."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def get_submodule(self, target: str) -> Module:
        """Returns the submodule with a qualified name such as ``"encoder.layers.3"``; itself for ``""``.

        Example::

            >>> import vesta
            >>> vesta.nn.Sequential(vesta.nn.ReLU()).get_submodule("0")
            ReLU()
        """
        expect("get_submodule", "target", target, str, "str")
        module: Any = self
        for name in target.split(".") if target else []:
            if not hasattr(module, name):
                raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Puts ``module`` at a qualified name; ``strict`` requires that a module is there already."""
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        if not name:
            raise ValueError("Cannot set the submodule without a target name!")
        parent = self.get_submodule(path)
        if strict and name not in parent._modules:
            raise AttributeError(f"{type(parent).__name__} has no attribute `{name}`")
        if hasattr(parent, name) and name not in parent._modules:
            raise AttributeError(f"`{name}` is not an nn.Module")
        parent._table("_modules")[name] = module

    def get_parameter(self, target: str) -> Parameter:
        """Returns the parameter with a qualified name."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
        if not isinstance(getattr(module, name), Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return getattr(module, name)

    def get_buffer(self, target: str) -> Tensor:
        """Returns the buffer with a qualified name."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return getattr(module, name)

    # ---- changing everything below ----

    def apply(self: T, fn: Callable[[Module], Any]) -> T:
        """Calls ``fn`` on every submodule, children first, then on this module; returns the module.

        Example::

            >>> import vesta
            >>> model = vesta.nn.Sequential(vesta.nn.Linear(2, 2), vesta.nn.ReLU())
            >>> _ = model.apply(lambda module: print(type(module).__name__))
            Linear
            ReLU
            Sequential
        """
        expect("apply", "fn", fn, Callable, "a function of a module")
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self: T, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> T:
        """Replaces values of parameters, gradients and buffers by ``fn`` of them; parameters keep their identity."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for parameter in self._parameters.values():
            if parameter is None:
                continue
            grad = parameter.grad
            with vesta.no_grad():
                changed = fn(parameter)
                if changed is not parameter:
                    parameter.grad = None  # dtype and device of value and gradient must agree at all times
                    parameter.data = changed
                if grad is not None:
                    changed_grad = fn(grad)
                    parameter.grad = grad if changed_grad is grad else changed_grad.requires_grad_(grad.requires_grad)
        for name, buffer in self._buffers.items():
            if buffer is None:
                continue
            if is_lazy(buffer):
                buffer.data = fn(buffer)
            else:
                self._table("_buffers")[name] = fn(buffer)
        return self

    @overload
    def to(
        self: T,
        device: Device | None = None,
        dtype: DType | None = None,
        non_blocking: bool = False,
        *,
        memory_format: vesta.memory_format | None = None,
    ) -> T: ...
    @overload
    def to(
        self: T, dtype: DType, non_blocking: bool = False, *, memory_format: vesta.memory_format | None = None
    ) -> T: ...
    @overload
    def to(
        self: T, tensor: Tensor, non_blocking: bool = False, *, memory_format: vesta.memory_format | None = None
    ) -> T: ...
    def to(self: T, *args: Any, **kwargs: Any) -> T:
        """Moves and casts in place: ``to(device)``, ``to(dtype)``, ``to(device, dtype)`` or ``to(tensor)``.

        With ``memory_format=vesta.channels_last`` parameters of 4 dimensions (``channels_last_3d``: of 5) get this
        layout; the others do not change.

        Args:
            device: the new device of parameters and buffers.
            dtype: a floating or complex dtype; integer buffers keep theirs.
            non_blocking: whether a copy from pinned memory may be asynchronous.
            memory_format: the memory layout of parameters and buffers; a keyword.

        Example::

            >>> import vesta
            >>> vesta.nn.Linear(2, 2).to(vesta.float64).weight.dtype
            vesta.float64
        """
        memory_format = kwargs.pop("memory_format", None)
        device, dtype, non_blocking = _parse_to(*args, **kwargs)
        dims = {vesta.channels_last: 4, vesta.channels_last_3d: 5}.get(memory_format) if memory_format else None
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
            )

        def convert(tensor: Tensor) -> Tensor:
            target: dict[str, Any] = {"non_blocking": True} if non_blocking else {}
            if device is not None:
                target["device"] = device
            if dtype is not None and (tensor.is_floating_point() or tensor.is_complex()):
                target["dtype"] = dtype
            if memory_format is not None and dims in (None, tensor.dim()):
                target["memory_format"] = memory_format
            return tensor.to(**target) if target else tensor

        return self._apply(convert)

    def _cast_floating(self: T, dtype: Any) -> T:
        return self._apply(lambda tensor: tensor.to(dtype) if tensor.is_floating_point() else tensor)

    def float(self: T) -> T:
        """Casts floating parameters and buffers to float32 in place."""
        return self._cast_floating(vesta.float32)

    def double(self: T) -> T:
        """Casts floating parameters and buffers to float64 in place."""
        return self._cast_floating(vesta.float64)

    def half(self: T) -> T:
        """Casts floating parameters and buffers to float16 in place."""
        return self._cast_floating(vesta.float16)

    def bfloat16(self: T) -> T:
        """Casts floating parameters and buffers to bfloat16 in place."""
        return self._cast_floating(vesta.bfloat16)

    def type(self: T, dst_type: DType | str) -> T:
        """Casts all parameters and buffers, integer ones too, to a dtype in place."""
        return self._apply(lambda tensor: tensor.to(dst_type))

    def share_memory(self: T) -> T:
        """Moves parameters, gradients and buffers to shared memory in place (see ``Tensor.share_memory_``)."""
        return self._apply(lambda tensor: tensor.share_memory_())

    def cpu(self: T) -> T:
        """Moves parameters and buffers to the CPU in place."""
        return self._apply(lambda tensor: tensor.cpu())

    def cuda(self: T, device: Device | None = None) -> T:
        """Moves parameters and buffers to a GPU (default: the current one) in place."""
        return self._apply(lambda tensor: tensor.cuda(device))

    def to_empty(self: T, *, device: Device | None, recurse: bool = True) -> T:
        """Moves parameters and buffers to ``device`` without copying their values."""
        return self._apply(lambda tensor: vesta.empty_like(tensor, device=device), recurse=recurse)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Does nothing: a module runs as it is. Arguments are accepted for PyTorch's sake."""

    def train(self: T, mode: bool = True) -> T:
        """Sets this module and all below it to training (or evaluation): dropout and batch norm behave differently."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self: T) -> T:
        """Sets evaluation mode; ``train(False)``."""
        return self.train(False)

    def requires_grad_(self: T, requires_grad: bool = True) -> T:
        """Freezes or unfreezes all parameters in place."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clears all gradients; ``set_to_none=False`` fills them with zeros instead."""
        grads = []
        for parameter in self.parameters():
            if parameter.grad is None:
                continue
            if set_to_none:
                parameter.grad = None
            else:
                grad = parameter.grad  # it stays the same object, without its history
                grads.append(grad.requires_grad_(False) if grad.is_leaf else grad.detach_())
        _tensor_lists.zero_(grads)

    def _replicate_for_data_parallel(self) -> Any:
        """Returns a copy for one forward pass on a device: with tables of its own, without parameters."""
        own = {*_TABLES, *(name for table in _TABLES for name in getattr(self, table))}
        replica = self.__class__.__new__(self.__class__)
        replica.__dict__.update({k: v for k, v in self.__dict__.items() if k not in own})
        for table in _TABLES:
            replica.__dict__[table] = Registry(replica, () if table == "_parameters" else getattr(self, table))
        replica._is_replica = True
        return replica

    # ---- printing ----

    def _get_name(self) -> str:
        return self.__class__.__name__

    def extra_repr(self) -> str:
        """Returns the arguments to show in ``repr``; may span lines."""
        return ""

    def _repr_html_(self) -> str | None:
        """Returns how a notebook shows the module: a tree of its parts (``vesta.notebook``)."""
        from vesta.notebook import rendered
        from vesta.notebook.modules import module_html

        return rendered(module_html, self)

    def __repr__(self) -> str:
        extra = self.extra_repr()
        extra_lines = extra.split("\n") if extra else []
        child_lines = [f"({name}): {_indented(repr(module))}" for name, module in self._modules.items()]
        if len(extra_lines) == 1 and not child_lines:
            return f"{self._get_name()}({extra})"
        lines = extra_lines + child_lines
        body = "\n  " + "\n  ".join(lines) + "\n" if lines else ""
        return f"{self._get_name()}({body})"


_C._look_up_plainly(Module, Module.__getattr__)


def _with_tables(setstate: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a class's own ``__setstate__``, after which the object makes tables of what is pickled as dicts."""

    @functools.wraps(setstate)
    def set_state(self: Module, *args: Any, **kwargs: Any) -> Any:
        result = setstate(self, *args, **kwargs)
        self._own_tables()
        return result

    return set_state


def _told(hooks: OrderedDict[int, Callable[..., Any]], module: Module, name: str, value: Any) -> Any:
    """Runs the registration hooks; returns what is to be registered."""
    for hook in hooks.values():
        changed = hook(module, name, value)
        value = value if changed is None else changed
    return value


def _store(table: OrderedDict[int, Callable[..., Any]], hook: Callable[..., Any]) -> RemovableHandle:
    handle = RemovableHandle(table)
    table[handle.id] = hook
    return handle


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Registers ``hook(module, name, param)`` to run when any module gets a parameter; it may return another one."""
    return _store(_parameter_registration_hooks, hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Registers ``hook(module, name, buffer)`` to run when any module gets a buffer; it may return another one."""
    return _store(_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Registers ``hook(module, name, submodule)`` to run when any module gets a submodule; it may return another
    one."""
    return _store(_module_registration_hooks, hook)


def _indented(text: str) -> str:
    """Indents every line but the first by two columns."""
    return text.replace("\n", "\n  ")


def _home() -> str:
    """Returns what the package is called: "torch" in a PyTorch program."""
    return Parameter.__module__.partition(".")[0]


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool]:
    """Sorts the arguments of ``Module.to`` into (device, dtype, non_blocking)."""
    tensor = kwargs.pop("tensor", None)
    device, dtype, non_blocking = (
        kwargs.pop("device", None),
        kwargs.pop("dtype", None),
        kwargs.pop("non_blocking", False),
    )
    if kwargs:
        raise TypeError(f"to() got an unexpected keyword argument {next(iter(kwargs))!r}")
    rest = list(args)
    if rest and isinstance(rest[0], Tensor):
        tensor = rest.pop(0)
    if tensor is not None:
        device, dtype = tensor.device, tensor.dtype
    else:
        if rest and not isinstance(rest[0], vesta.dtype):
            device = rest.pop(0)
        if rest and (rest[0] is None or isinstance(rest[0], vesta.dtype)):
            dtype = rest.pop(0)
    if rest:
        non_blocking = rest.pop(0)
    if rest or not isinstance(non_blocking, bool):
        raise TypeError(
            "to() received an invalid combination of arguments. "
            "Expected to(device), to(dtype), to(device, dtype) or to(tensor), each with non_blocking=False."
        )
    return (vesta.device(device) if isinstance(device, (str, int)) else device), dtype, bool(non_blocking)
