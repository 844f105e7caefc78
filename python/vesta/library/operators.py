"""Operators of users: their kernels by device, gradients, and the namespaces in which they are found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import vesta
from vesta import _C, Tensor
from vesta.autograd import Function

from .schema import OpSchema

__all__ = ["OWN", "Namespace", "OpOverload", "OpPacket", "Operator", "defined", "operator_of"]


class Operator:
    """One operator: schema, kernels, gradient. A call checks the arguments, records, and runs the device's kernel."""

    def __init__(self, namespace: str, schema: OpSchema) -> None:
        self.namespace = namespace
        self.schema = schema
        self.name = schema.name.partition(".")[0]
        self.kernels: dict[str | None, Callable[..., Any]] = {}
        self.disabled: set[str] = set()
        self.composite: Callable[..., Any] | None = None
        self.recorded: Callable[..., Any] | None = None
        self.fake: Callable[..., Any] | None = None
        self.casts: dict[str, Any] = {}
        self.backward: Callable[..., Any] | None = None
        self.setup_context: Callable[..., Any] | None = None
        self.custom = False  # whether custom_op made it: it may be made anew, and its results share no memory

    def become(self, other: Operator) -> None:
        """Takes over all that another operator is, for those that hold this one already."""
        self.__dict__.update(vars(other))

    @property
    def qualified(self) -> str:
        return f"{self.namespace}::{self.name}"

    def kernel_for(self, device: str) -> Callable[..., Any]:
        """Returns the kernel of a device. NotImplementedError: there is none."""
        kernel = None if device in self.disabled else self.kernels.get(device)
        kernel = kernel or (self.fake if device == "meta" else None) or self.kernels.get(None)
        if kernel is None:
            has = ", ".join(sorted(str(d) for d in self.kernels)) or "none"
            raise NotImplementedError(
                f"{self.qualified}: expected a kernel for device type {device}, got kernels for: {has}. Add one with "
                "register_kernel."
            )
        return kernel

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        values, named = self.schema.bind(args, kwargs)
        tensors = _tensors([*values, *named.values()])
        device = tensors[0].device.type if tensors else "cpu"
        if device in self.casts and vesta.is_autocast_enabled(device):
            dtype = self.casts[device]
            cast = lambda t: t.to(dtype) if t.is_floating_point() and t.device.type == device else t
            values, named = _map(cast, values), {k: _map(cast, v) for k, v in named.items()}
            with vesta.autocast(device, enabled=False):
                return self.run(device, values, named)
        return self.run(device, values, named)

    def run(self, device: str, values: list[Any], named: dict[str, Any]) -> Any:
        """Runs the operator on checked arguments."""
        if self.recorded is not None:
            return self.recorded(*values, **named)
        if self.composite is not None and device not in self.kernels and None not in self.kernels:
            return self.composite(*values, **named)
        kernel = self.kernel_for(device)
        everything = [*values, *named.values()]
        differentiable = any(kind.startswith("Tensor") for kind in self.schema.returns)
        if differentiable and vesta.is_grad_enabled() and any(t.requires_grad for t in _tensors(everything)):
            return self.record(kernel, values, named)
        return self.compute(kernel, values, named)

    def compute(self, kernel: Callable[..., Any], values: list[Any], named: dict[str, Any]) -> Any:
        """Runs a kernel without recording and checks that its results are its own."""
        with vesta.no_grad():
            result = kernel(*values, **named)
        given = {_place(t) for t in _tensors([*values, *named.values()]) if t.numel()}
        results: set[int] = set()
        for made in _tensors([result]):
            if made.numel() and _place(made) in given:
                raise RuntimeError(
                    f"{self.qualified}: expected results with memory of their own, got one that is an argument or "
                    "shares its memory. Return a clone."
                )
            if self.custom and made.numel():
                if _place(made) in results:
                    raise RuntimeError(
                        f"{self.qualified}: expected results with memory of their own, got two that are one tensor or "
                        "share their memory. Return a clone."
                    )
                results.add(_place(made))
        return result

    def record(self, kernel: Callable[..., Any], values: list[Any], named: dict[str, Any]) -> Any:
        """Runs a kernel as one node of the graph. Tensors in lists are arguments of the node, too."""
        flat, sizes = _flattened([*values, *named.values()])
        names = list(named)
        layout: list[bool] = []  # whether the kernel returned several results

        def grouped(args: Any) -> tuple[list[Any], dict[str, Any]]:
            everything = _grouped(args, sizes)
            return everything[: len(values)], dict(zip(names, everything[len(values) :]))

        def forward(ctx: Any, *args: Any) -> Any:
            inputs, keywords = grouped(args)
            result = self.compute(kernel, inputs, keywords)
            if self.setup_context is not None:
                keyword_inputs = {"keyword_only_inputs": keywords} if keywords else {}
                self.setup_context(ctx=ctx, inputs=tuple(inputs), output=result, **keyword_inputs)
            several = isinstance(result, (tuple, list))
            layout.append(several)
            ctx._list = type(result) if several else None
            return tuple(result) if several else result

        def backward(ctx: Any, *grads: Any) -> Any:
            if self.backward is None:
                raise RuntimeError(
                    f"Trying to backward through {self.namespace}.{self.name}.default but no autograd formula was "
                    "registered. Please use register_autograd to add one."
                )
            found = self.backward(ctx, list(grads)) if self.schema.returns_list else self.backward(ctx, *grads)
            found = list(found) if isinstance(found, (tuple, list)) else [found]
            if len(found) != len(values):
                raise RuntimeError(
                    f"{self.qualified}: expected a gradient or None for each of {len(values)} arguments, got "
                    f"{len(found)}."
                )
            parts: list[Any] = []
            for grad, size in zip(found, sizes):
                spread = [grad] if size is None else [None] * size if grad is None else list(grad)
                if size is not None and len(spread) != size:
                    raise RuntimeError(f"{self.qualified}: expected {size} gradients of a list, got {len(spread)}.")
                parts += spread
            return (*parts, *[None] * (len(flat) - len(parts)))

        title = f"GeneratedBackwardFor_{self.namespace}_{self.name}_default"
        node = type(title, (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})
        result = node.apply(*flat)
        return list(result) if layout[-1] and self.schema.returns_list else result


def _place(t: Tensor) -> int:
    """Returns what tensors over the same memory have in common."""
    return _C._storage_key(t)


def _tensors(values: Any) -> list[Tensor]:
    found = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += _tensors(value)
    return found


def _map(function: Callable[[Tensor], Any], value: Any) -> Any:
    if isinstance(value, Tensor):
        return function(value)
    return [_map(function, item) for item in value] if isinstance(value, (list, tuple)) else value


def _flattened(values: list[Any]) -> tuple[list[Any], list[int | None]]:
    """Returns the values with lists of tensors taken apart, and the length of each such list (else None)."""
    flat: list[Any] = []
    sizes: list[int | None] = []
    for value in values:
        if isinstance(value, (list, tuple)) and any(isinstance(item, Tensor) for item in value):
            flat += value
            sizes.append(len(value))
        else:
            flat.append(value)
            sizes.append(None)
    return flat, sizes


def _grouped(flat: Any, sizes: list[int | None]) -> list[Any]:
    values, place = [], 0
    for size in sizes:
        values.append(flat[place] if size is None else list(flat[place : place + size]))
        place += 1 if size is None else size
    return values


# ---- namespaces: vesta.ops.mylib.scaled.default ----


class OpOverload:
    """An operator, or a function of Vesta, under the name of an overload."""

    def __init__(self, qualified: str, overload: str, function: Callable[..., Any]) -> None:
        self._qualified, self._overload, self._function = qualified, overload, function

    @property
    def _schema(self) -> OpSchema:
        if isinstance(self._function, Operator):
            return replace(self._function.schema, name=self._qualified)
        raise AttributeError(f"{self}: operators of the library itself have no schema here; see help().")

    def name(self) -> str:
        """Returns ``namespace::name``."""
        return self._qualified

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __str__(self) -> str:
        return f"{self._qualified.replace('::', '.')}.{self._overload}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self._qualified.replace('::', '.')}', overload='{self._overload}')>"


class OpPacket:
    """What ``vesta.ops.NAMESPACE.NAME`` is: callable; its overloads (``default``, ``Tensor``, ...) are the same
    function."""

    def __init__(self, qualified: str, function: Callable[..., Any]) -> None:
        self._qualified, self._function = qualified, function

    @property
    def __name__(self) -> str:
        return self._qualified.partition("::")[2]

    def __getattr__(self, name: str) -> OpOverload:
        if name.startswith("_"):
            raise AttributeError(f"the operator {self._qualified} has no overload {name!r}")
        overload = OpOverload(self._qualified, name, self._function)
        setattr(self, name, overload)
        return overload

    def overloads(self) -> list[str]:
        """Returns the names of the overloads: one, for all of them."""
        return ["default"]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __str__(self) -> str:
        return self._qualified.replace("::", ".")

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"


def _own_function(name: str) -> Callable[..., Any]:
    """Returns the function of Vesta that ``aten`` has under a name; one that refuses if there is none: libraries name
    many, and call few."""
    if name in _ALIASES:
        return _ALIASES[name]
    for home in (vesta._C._ops, vesta._C._private, vesta._C._nn, Tensor, vesta.nn.functional, vesta):
        found = getattr(home, name, None)
        if callable(found) and not getattr(found, "__refuses__", False):  # as_torch answers for what is not there
            return found

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"ops.aten.{name} is not available: Vesta does not have it yet.")

    return refuse


class Namespace:
    """The operators of one namespace, as attributes; ``aten`` holds the functions of ``vesta`` itself."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._packets: dict[str, OpPacket] = {}

    def __getattr__(self, name: str) -> OpPacket:
        if name.startswith("__"):
            raise AttributeError(name)
        function: Any = defined.get(f"{self._name}::{name}")
        packet = self._packets.get(name)
        if function is None and self._name in OWN:
            function = packet._function if packet else _own_function(name)
        if function is None:
            raise AttributeError(f"'_OpNamespace' '{self._name}' object has no attribute '{name}'")
        if packet is None or packet._function is not function:
            packet = self._packets[name] = OpPacket(f"{self._name}::{name}", function)
        return packet

    def __dir__(self) -> list[str]:
        return sorted(q.partition("::")[2] for q in defined if q.startswith(f"{self._name}::"))

    def __repr__(self) -> str:
        return f"<namespace vesta.ops.{self._name}>"


#: Operators that the program has defined, by ``namespace::name``.
defined: dict[str, Operator] = {}
#: Functions of ``aten`` that are named otherwise here.
_ALIASES: dict[str, Callable[..., Any]] = {
    "_conj": vesta.conj,
    "_is_all_true": Tensor.all,
    "_local_scalar_dense": Tensor.item,
    "_unsafe_view": Tensor.view,
    "alias": lambda self: self.view_as(self),
    "sym_size": Tensor.size,
}
#: Namespaces that hold Vesta's own functions.
OWN = ("aten", "prims", "prim")


def operator_of(op: Any, what: str) -> Operator:
    """Returns the operator that a name, a packet, an overload or a definition stands for."""
    found = getattr(op, "_operator", None) or getattr(op, "_function", op)
    if isinstance(found, str):
        name = found.removesuffix(".default")
        if name not in defined:
            raise RuntimeError(f"{what}: expected the name of an operator, got {op!r}, which is not defined.")
        return defined[name]
    if not isinstance(found, Operator):
        raise ValueError(f"{what}: expected an operator or its name, got {type(op).__name__}.")
    return found
