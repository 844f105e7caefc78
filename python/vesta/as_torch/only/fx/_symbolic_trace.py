"""Tracing of programs.

Note [What is replaced while a program is traced]
``Module.__call__`` goes to ``Tracer.call_module``. Parameters of modules are read as proxies, by attributes of their
classes: a product of two of them is recorded as well. Functions of the modules in ``autowrap_modules`` (``math``),
those that a program has given to ``wrap``, and ``autowrap_functions`` record a call where an argument holds a
proxy. All of it is put back at the end, however the program ends. One thread traces at a time; what others run
meanwhile is not recorded.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import inspect
import math
import threading
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

import vesta
from vesta import Tensor, nn

from .graph import Graph
from .graph_module import GraphModule
from .node import Node, map_aggregate
from .proxy import ParameterProxy, Proxy, TracerBase

__all__ = ["PH", "Tracer", "symbolic_trace", "wrap"]


class _Placeholder:
    """The mark of an argument that ``concrete_args`` leaves open."""

    def __repr__(self) -> str:
        return "PH"


PH = _Placeholder()
#: The functions given to ``wrap``: the globals of a module, and a name in them.
_wrapped: dict[tuple[int, str], dict[str, Any]] = {}
_one_at_a_time = threading.RLock()
_tracing_thread: int | None = None


def is_fx_tracing() -> bool:
    """Returns whether a program is being traced."""
    return _tracing_thread is not None and _tracing_thread == threading.get_ident()


def wrap(fn_or_name: str | Callable[..., Any]) -> Any:
    """Makes calls of a function of the program's module steps of their own, instead of what is inside of it.

    Args:
        fn_or_name: the function, or its name; called at the top of the module, or as a decorator.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = inspect.currentframe()
    caller = frame.f_back if frame is not None else None
    if caller is None or caller.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped[id(caller.f_globals), name] = caller.f_globals
    return fn_or_name


def is_wrapped(function: Any) -> bool:
    """Returns whether a function was given to ``wrap``."""
    return any(table.get(name, getattr(builtins, name, None)) is function for (_, name), table in _wrapped.items())


def _proxy_in(args: Any, kwargs: Any) -> Proxy | None:
    """Returns a proxy that is somewhere in the arguments; None if there is none."""
    found: list[Proxy] = []
    map_aggregate((args, kwargs), lambda part: found.append(part) if isinstance(part, Proxy) else None)
    return found[0] if found else None


def _recording(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that records calls with proxies."""

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        proxy = _proxy_in(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        return proxy.tracer.create_proxy("call_function", function, args, kwargs)

    return called


class _Replaced:
    """Entries of dicts, and attributes, that are put back."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], Any]] = []
        self._seen: set[tuple[int, str]] = set()

    def entry(self, table: dict[str, Any], name: str, value: Any) -> None:
        if (id(table), name) in self._seen:
            return
        self._seen.add((id(table), name))
        if name in table:
            before = table[name]
            self._undo.append(lambda: table.__setitem__(name, before))
        else:
            self._undo.append(lambda: table.pop(name, None))
        table[name] = value

    def attribute(self, owner: Any, name: str, value: Any) -> None:
        before = getattr(owner, name)
        self._undo.append(lambda: setattr(owner, name, before))
        setattr(owner, name, value)

    def class_attribute(self, owner: type, name: str, value: Any) -> None:
        if name in vars(owner):
            return  # a property of the program's own
        self._undo.append(lambda: delattr(owner, name))
        setattr(owner, name, value)

    def put_back(self) -> None:
        for undo in reversed(self._undo):
            undo()


class _Read:
    """An attribute of a class that reads an object's own through a function."""

    def __init__(self, name: str, read: Callable[[Any], Any]) -> None:
        self.name, self.read = name, read

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        if owner is None:
            return self
        try:
            return self.read(vars(owner)[self.name])
        except KeyError:
            raise AttributeError(f"{type(owner).__name__!r} object has no attribute {self.name!r}") from None

    def __set__(self, owner: Any, value: Any) -> None:
        vars(owner)[self.name] = value


class Tracer(TracerBase):
    """Records what a module does as a graph; subclass it to decide what is recorded, and how.

    Args:
        autowrap_modules: modules whose functions are steps of their own.
        autowrap_functions: functions that are.
        param_shapes_constant: accepted for PyTorch's sake.
    """

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        super().__init__()
        self._autowrap_modules = tuple(autowrap_modules)
        self._autowrap_functions = tuple(autowrap_functions)
        self.param_shapes_constant = param_shapes_constant
        self.root: Any = None
        self.module_stack: dict[str, Any] = {}
        self._constants: dict[int, tuple[Tensor, str]] = {}
        self._paths: dict[int, str] = {}

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Returns whether a call of a module is a step of its own; default: whether it is one of ``torch.nn``."""
        home = m.__module__
        return home.startswith(("torch.nn", "torch.ao.nn", "vesta.nn")) and not isinstance(m, nn.Sequential)

    def path_of_module(self, mod: nn.Module) -> str:
        """Returns the name of a submodule of the root."""
        name = self._paths.get(id(mod))
        if name is not None:
            return name
        for name, module in self.root.named_modules():  # one that was added meanwhile
            if module is mod:
                return name
        raise NameError("module is not installed as a submodule")

    def call_module(
        self, m: nn.Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Does what a call of a submodule does: a step of its own, or ``forward``, which is recorded."""
        name = self.path_of_module(m)
        self.module_stack[name] = (name, type(m))
        try:
            if self.is_leaf_module(m, name):
                return self.create_proxy("call_module", name, args, kwargs)
            return forward(*args, **kwargs)
        finally:
            self.module_stack.pop(name, None)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """Returns the value of an attribute of a module."""
        return attr_val

    def create_arg(self, a: Any) -> Any:
        """Returns an argument with nodes in place of proxies; parameters and tensors are attributes of the root."""
        if isinstance(a, nn.Parameter):
            for name, parameter in self.root.named_parameters():
                if parameter is a:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("parameter is not a member of this module")
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return self.create_node("call_function", type(a), tuple(map(self.create_arg, a)), {})
        if isinstance(a, Tensor):
            for name, buffer in self.root.named_buffers():
                if buffer is a:
                    return self.create_node("get_attr", name, (), {})
            return self.create_node("get_attr", self._constant(a), (), {})
        if isinstance(a, nn.Module):
            return self.create_node("get_attr", self.path_of_module(a), (), {})
        return super().create_arg(a)

    def _constant(self, tensor: Tensor) -> str:
        """Returns the attribute of the root that holds a tensor, which is made for the first one."""
        known = self._constants.get(id(tensor))
        if known is not None:
            return known[1]
        number = 0
        while hasattr(self.root, f"_tensor_constant{number}"):
            number += 1
        name = f"_tensor_constant{number}"
        setattr(self.root, name, tensor)
        self._constants[id(tensor)] = (tensor, name)
        return name

    def create_args_for_root(
        self, root_fn: Callable[..., Any], is_module: bool, concrete_args: Any = None
    ) -> tuple[Callable[..., Any], list[Any]]:
        """Makes the inputs: returns the function, and the proxies that it is called with."""
        function = inspect.unwrap(root_fn)
        code: CodeType = function.__code__  # type: ignore[attr-defined]
        count = code.co_argcount + code.co_kwonlyargcount
        stars = [
            star for star, flag in (("*", inspect.CO_VARARGS), ("**", inspect.CO_VARKEYWORDS)) if code.co_flags & flag
        ]
        names = [*zip([""] * count, code.co_varnames), *zip(stars, code.co_varnames[count:])]
        defaults = {
            name: parameter.default
            for name, parameter in inspect.signature(function).parameters.items()
            if parameter.default is not inspect.Parameter.empty
        }
        hints, concrete = getattr(function, "__annotations__", {}), dict(concrete_args or {})
        args: list[Any] = [self.root] if is_module else []
        for star, name in names[len(args) :]:
            given, default = concrete.get(name, PH), defaults.get(name, PH)
            if name in concrete:
                args.append(self._fixed_input(name, given, () if name not in defaults else (defaults[name],)))
            else:
                hint = hints.get(name)
                hint = None if isinstance(hint, str) else hint
                args.append(
                    self.create_proxy(
                        "placeholder", star + name, () if default is PH else (default,), {}, type_expr=hint
                    )
                )
        return (_by_position(function) if stars or code.co_kwonlyargcount else function), args

    def _fixed_input(self, name: str, given: Any, default: tuple[Any, ...]) -> Any:
        """Makes an input that ``concrete_args`` names: returns its value, or a proxy where the value is left open."""
        if given is not PH and PH in vesta.utils._pytree.tree_leaves(given):
            raise NotImplementedError(
                f"symbolic_trace: PH is not available inside of a value (concrete_args[{name!r}])."
            )
        proxy = self.create_proxy("placeholder", f"{name}_1", default, {})
        if given is PH:
            return proxy
        told = f"{name} has been specialized to have value {given} but got another value"
        if given is None:
            self.create_proxy("call_function", _assert_is_none, (proxy, told), {})
        elif isinstance(given, (bool, int, float, str)):
            self.create_proxy("call_function", vesta._assert, (proxy == given, told), {})
        return given

    def trace(self, root: nn.Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> Graph:
        """Returns the graph of a module, or of a function.

        Args:
            root: the module or function.
            concrete_args: arguments that have a value instead of being inputs.
        """
        if isinstance(root, nn.Module):
            self.root, function, is_module = root, type(root).forward, True
            own = root.__dict__.get("forward")
            if own is not None:
                function, is_module = own, False
                if inspect.ismethod(own):
                    function, is_module = own.__func__, own.__self__ is root
        else:
            self.root, function, is_module = nn.Module(), root, False
        self.graph = Graph(tracer_cls=type(self))
        self._paths = {id(module): path for path, module in self.root.named_modules()}
        self._constants = {
            id(value): (value, f"{path}.{name}" if path else name)
            for path, module in self.root.named_modules()
            for name, value in vars(module).items()
            if isinstance(value, Tensor)
        }
        if not isinstance(inspect.unwrap(function), FunctionType):
            raise TypeError(f"trace: expected a module or a Python function, got {type(function).__name__} (root).")
        function, args = self.create_args_for_root(function, is_module, concrete_args)
        with _one_at_a_time, self._replacing(function):
            result = function(*args)
            hint = getattr(function, "__annotations__", {}).get("return")
            hint = None if isinstance(hint, str) else hint
            self.create_node("output", "output", (self.create_arg(result),), {}, type_expr=hint)
        return self.graph

    def _replace_parameters(self, replaced: _Replaced) -> None:
        """Lets parameters be read as proxies."""
        names = {id(parameter): name for name, parameter in self.root.named_parameters()}
        proxies: dict[str, Proxy] = {}

        def read(value: Any) -> Any:
            name = names.get(id(value))
            if name is None or not is_fx_tracing():
                return value
            if name not in proxies:
                make = functools.partial(_parameter_proxy, self, name, value)
                proxies[name] = self.create_proxy("get_attr", name, (), {}, proxy_factory_fn=make)
            return proxies[name]

        for module in self.root.modules():
            for name in module._parameters:
                if not isinstance(vars(type(module)).get(name), _Read):
                    replaced.class_attribute(type(module), name, _Read(name, read))

    @contextlib.contextmanager
    def _replacing(self, function: Callable[..., Any]) -> Iterator[None]:
        global _tracing_thread
        replaced, call = _Replaced(), nn.Module.__call__

        def module_call(mod: nn.Module, *args: Any, **kwargs: Any) -> Any:
            if not is_fx_tracing():
                return call(mod, *args, **kwargs)
            return self.call_module(mod, functools.partial(call, mod), args, kwargs)

        wanted = {id(f): f for f in self._autowrap_functions}
        for module in self._autowrap_modules:
            for name, value in list(vars(module).items()):
                if not name.startswith("_") and callable(value) and not isinstance(value, type):
                    wanted[id(value)] = value
        tables = [getattr(function, "__globals__", {}), *(vars(module) for module in self._autowrap_modules)]
        before, _tracing_thread = _tracing_thread, threading.get_ident()
        try:
            replaced.attribute(nn.Module, "__call__", module_call)
            self._replace_parameters(replaced)
            for table in tables:
                for name, value in list(table.items()):
                    if id(value) in wanted and wanted[id(value)] is value:
                        replaced.entry(table, name, _recording(value))
            for (_, name), table in _wrapped.items():
                value = table.get(name, getattr(builtins, name, None))
                if value is not None:
                    replaced.entry(table, name, _recording(value))
            yield
        finally:
            replaced.put_back()
            _tracing_thread = before


def _parameter_proxy(tracer: Tracer, name: str, parameter: Tensor, node: Node) -> ParameterProxy:
    return ParameterProxy(tracer, node, name, parameter)


def _assert_is_none(value: Any, msg: str) -> None:
    """Raises AssertionError unless a value is None."""
    if value is not None:
        raise AssertionError(msg)


def _by_position(function: Any) -> Callable[..., Any]:
    """Returns a function that takes all by position, its tuple and its dict of further arguments last."""
    code = function.__code__
    stars = [flag for flag in (inspect.CO_VARARGS, inspect.CO_VARKEYWORDS) if code.co_flags & flag]
    count = code.co_argcount + code.co_kwonlyargcount + len(stars)
    code = code.replace(co_argcount=count, co_kwonlyargcount=0, co_flags=code.co_flags & ~sum(stars))
    return FunctionType(code, function.__globals__, function.__name__, None, function.__closure__)


def symbolic_trace(root: nn.Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """Returns a module that runs what ``root`` does, recorded as a graph.

    Args:
        root: a module or a function.
        concrete_args: arguments that have a value instead of being inputs.

    Example::

        >>> import vesta.as_torch
        >>> vesta.as_torch.install()
        >>> import torch
        >>> traced = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1)
        >>> [node.name for node in traced.graph.nodes]
        ['x', 'relu', 'add', 'output']
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = root.__class__.__name__ if isinstance(root, nn.Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
