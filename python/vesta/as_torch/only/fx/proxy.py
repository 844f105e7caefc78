"""Stand-ins for values, which record what a program does with them.

Note [How a proxy hears of things]
Operators and attributes are methods here; functions of the library call ``__torch_function__``; modules and functions
that are wrapped are replaced while a program is traced (``_symbolic_trace.py``). What asks for a value (``if``,
``len``, ``int``) cannot be recorded, and raises.
"""

from __future__ import annotations

import dis
import enum
import functools
import operator
import sys
from collections.abc import Callable, Iterator
from typing import Any

import vesta
from vesta import Tensor

from .code import INFIX, PREFIX
from .graph import Graph
from .node import Node, Target, map_aggregate

__all__ = ["Attribute", "GraphAppendingTracer", "ParameterProxy", "Proxy", "TraceError", "TracerBase"]

#: Methods of tensors that a program may call by name; others are looked up by Python, which takes any answer for a yes.
_RECORDED = ("__setitem__", "__contains__", "__delitem__")
_PLAIN = (
    str,
    int,
    float,
    bool,
    complex,
    bytes,
    enum.Enum,
    vesta.dtype,
    vesta.device,
    vesta.layout,
    vesta.memory_format,
)


class TraceError(ValueError):
    """The error of a program that asks for a value which is not there while it is traced."""


class TracerBase:
    """What makes nodes and proxies of the calls of a program.

    Attributes:
        graph: where nodes are made.
        record_stack_traces: accepted for PyTorch's sake.
    """

    graph: Graph
    record_stack_traces: bool = False
    check_mutable_operations: bool = False
    trace_asserts: bool = False
    proxy_buffer_attributes: bool = False
    module_stack: Any = None

    def create_node(
        self,
        kind: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Makes a node of arguments that hold nodes; a tracer may override it."""
        made = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        if self.module_stack:
            made.meta["nn_module_stack"] = dict(self.module_stack)
        return made

    def proxy(self, node: Node) -> Proxy:
        """Returns a proxy for the result of a node; a tracer may override it."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Target,
        args: Any,
        kwargs: Any,
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """Makes a node of arguments that hold proxies, and returns a proxy for its result."""
        args, kwargs = self.create_arg(tuple(args)), self.create_arg(dict(kwargs))
        node = self.create_node(kind, target, args, kwargs, name, type_expr)
        return (proxy_factory_fn or self.proxy)(node)

    def create_arg(self, a: Any) -> Any:
        """Returns an argument with nodes in place of proxies; a tracer may override it."""
        if isinstance(a, (tuple, list)):
            parts = [self.create_arg(part) for part in a]
            if hasattr(a, "_fields"):
                return type(a)(*parts)
            return tuple(parts) if isinstance(a, tuple) else parts
        if isinstance(a, dict):
            return {self._key(key): self.create_arg(value) for key, value in a.items()}
        if isinstance(a, slice):
            return slice(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, range):
            return range(a.start, a.stop, a.step)
        if isinstance(a, Proxy):
            return a.node
        if isinstance(a, (Node, *_PLAIN)) or a is None or a is ... or callable(a):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    @staticmethod
    def _key(key: Any) -> Any:
        def refuse(part: Any) -> Any:
            if isinstance(part, (Node, Proxy)):
                shown = map_aggregate(key, lambda k: k.node if isinstance(k, Proxy) else k)
                raise RuntimeError(f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {shown}")
            return part

        return map_aggregate(key, refuse)

    def to_bool(self, obj: Proxy) -> bool:
        """Raises TraceError; a tracer may decide."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """Raises TraceError, unless the program unpacks a known number of values; a tracer may decide."""
        count = _unpacked(sys._getframe(2))
        if count is not None:
            return (obj[i] for i in range(count))
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or "
            "**kwargs function argument. See the torch.fx docs on pytorch.org for a more detailed explanation of what "
            "types of control flow can be traced, and check out the Proxy docstring for help troubleshooting Proxy "
            "iteration errors"
        )

    def keys(self, obj: Proxy) -> Any:
        """Returns what ``**obj`` takes the keys from."""
        return Attribute(obj, "keys")()


def _unpacked(frame: Any) -> int | None:
    """Returns how many values a frame unpacks at this moment; None if it does something else."""
    for step in dis.get_instructions(frame.f_code):
        if step.offset == frame.f_lasti:
            return step.argval if step.opname == "UNPACK_SEQUENCE" else None
    return None


@functools.cache
def _listen() -> None:
    """Lets the library's functions written in Python hand over calls with proxies: they do once one of C has."""

    class Probe:
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> None:
            return None

    vesta.relu(Probe())  # type: ignore[arg-type]


class GraphAppendingTracer(TracerBase):
    """A tracer for proxies that somebody makes of nodes by hand."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph


class Proxy:
    """A stand-in for the result of a node; what is done with it is recorded after it.

    Args:
        node: the node.
        tracer: makes the nodes; default: one that appends to the node's graph.
    """

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        _listen()
        self.tracer = tracer or GraphAppendingTracer(node.graph)
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        if k in ("tracer", "node") or (k.startswith("__") and k.endswith("__") and k not in _RECORDED):
            raise AttributeError(k)
        return Attribute(self, k)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        """Returns the keys, for ``**proxy``."""
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call "
            "torch.fx.wrap('len') at module scope"
        )

    def __abs__(self) -> Proxy:
        return self.tracer.create_proxy("call_function", abs, (self,), {})

    def __getitem__(self, key: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", operator.getitem, (self, key), {})

    @classmethod
    def __torch_function__(cls, orig_method: Any, types: Any, args: Any = None, kwargs: Any = None) -> Any:
        args, kwargs = args or (), kwargs or {}
        tracers: dict[TracerBase, None] = {}

        def look(part: Any) -> Any:
            if isinstance(part, Proxy):
                tracers.setdefault(part.tracer)
            return part

        map_aggregate((args, kwargs), look)
        if len(tracers) > 1:
            raise RuntimeError(f"Found multiple different tracers {list(tracers)} while trying to trace {orig_method}")
        (tracer,) = tracers
        if vesta.overrides.is_tensor_method_or_property(orig_method):
            name = orig_method.__name__
            if name == "__get__":  # a property
                return tracer.create_proxy("call_function", getattr, (*args, orig_method.__self__.__name__), {})
            return tracer.create_proxy("call_method", name, args, kwargs)
        return tracer.create_proxy("call_function", orig_method, args, kwargs, name=_name(orig_method))


def _name(function: Any) -> str | None:
    return getattr(function, "__name__", None)


class Attribute(Proxy):
    """An attribute of a proxy: a step of its own, unless it is called, which is the call of a method."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The step that takes the attribute, made when it is first needed."""
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """A parameter of a module that is traced; its sizes are those of the parameter where the tracer says so."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Tensor) -> None:
        super().__init__(node, tracer)
        self.name, self.param = name, param

    def __getattr__(self, k: str) -> Any:
        if k in ("shape", "size", "dim", "ndim", "numel") and getattr(self.tracer, "param_shapes_constant", False):
            return getattr(self.param, k)
        return super().__getattr__(k)

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"


def _define(name: str, target: Any, swapped: bool) -> None:
    def method(self: Proxy, *args: Any) -> Proxy:
        taken = (*args, self) if swapped else (self, *args)
        return self.tracer.create_proxy("call_function", target, taken, {})

    method.__name__ = f"__{'r' if swapped else ''}{name.strip('_')}__"
    setattr(Proxy, method.__name__, method)


for _operator in (*INFIX, *PREFIX):
    _define(_operator, getattr(operator, _operator), False)
for _operator in INFIX:
    if INFIX[_operator] not in ("==", "!=", "<", ">", "<=", ">="):
        _define(_operator, getattr(operator, _operator), True)
Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]
del _operator
