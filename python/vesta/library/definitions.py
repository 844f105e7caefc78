"""The functions that define operators and register their kernels, gradients and casts."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, overload

import vesta
from vesta import Tensor
from vesta._arguments import expect
from vesta._deprecated import deprecated

from .operators import OWN, Operator, _tensors, defined, operator_of
from .schema import OpSchema, parse_schema, read_function

__all__ = [
    "CustomOpDef",
    "Library",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "get_ctx",
    "impl",
    "impl_abstract",
    "opcheck",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
    "triton_op",
    "wrap_triton",
]


def _qualified(what: str, name: Any) -> tuple[str, str]:
    """Splits ``namespace::name``."""
    expect(what, "name", name, str, "text such as 'mylib::scaled'")
    namespace, _, rest = name.partition("::")
    if not namespace.isidentifier() or not rest.partition(".")[0].isidentifier():
        raise ValueError(f"{what}: expected a name such as 'mylib::scaled', got {name!r} (name).")
    return namespace, rest


def _devices(what: str, types: Any) -> list[str | None]:
    """Returns device types as a list; ``default`` and None are all devices."""
    if types is None or types == "default":
        return [None]
    listed = [types] if isinstance(types, str) else list(types)
    for device in listed:
        expect(what, "device_types", device, str, "names of device types")
        vesta.device(device)  # which refuses what is no device
    return [vesta.device(device).type for device in listed]


def _define(namespace: str, schema: OpSchema, custom: bool = False) -> Operator:
    operator = Operator(namespace, schema)
    operator.custom = custom
    before = defined.get(operator.qualified)
    if before is not None and before.custom and custom:  # such as a cell of a notebook that runs again
        before.become(operator)
        return before
    if before is not None:
        raise RuntimeError(f"define: expected a new name, got {operator.qualified!r}, which is an operator already.")
    if namespace in OWN:
        raise ValueError(f"define: expected a namespace of your own, got {namespace!r}, which holds Vesta's functions.")
    defined[operator.qualified] = operator
    return operator


class CustomOpDef:
    """What ``custom_op`` returns: the operator, to be called and to be given kernels and a gradient."""

    def __init__(self, operator: Operator, function: Callable[..., Any]) -> None:
        self._operator = operator
        self._init_fn = function
        functools.update_wrapper(self, function)

    @property
    def _name(self) -> str:
        return self._operator.name

    @property
    def _qualname(self) -> str:
        return self._operator.qualified

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._operator(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def register_kernel(self, device_types: Any, fn: Callable[..., Any] | None = None, /) -> Any:
        """Gives the operator a kernel for device types (None: for all others); also a decorator."""
        return register_kernel(self, device_types, fn)

    def register_autograd(self, backward: Callable[..., Any], /, *, setup_context: Any = None) -> None:
        """Gives the operator a gradient; see ``vesta.library.register_autograd``."""
        register_autograd(self, backward, setup_context=setup_context)

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Gives the operator a function that says which results it has; ``opcheck`` compares it with the kernel."""
        return register_fake(self, fn)

    def register_autocast(self, device_type: str, cast_inputs: Any) -> None:
        """Casts the operator's floating-point arguments to a dtype under autocast of a device type."""
        register_autocast(self, device_type, cast_inputs)

    def register_vmap(self, func: Any = None) -> Any:
        """Takes a function for vmap, without effect: Vesta's vmap calls the operator for each example."""
        return register_vmap(self, func)

    def register_torch_dispatch(self, torch_dispatch_class: Any, fn: Any = None, /) -> Any:
        """Takes a function for a dispatch mode, without effect: Vesta has none."""
        return register_torch_dispatch(self, torch_dispatch_class, fn)

    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Any:
        """Switches the kernel of a device type off or on; off, the one for all devices runs. A context manager too."""
        return _Switch(self._operator, device_type, enabled)


class _Switch:
    """The state of a kernel, until the end of a ``with`` if there is one."""

    def __init__(self, operator: Operator, device: str, enabled: bool) -> None:
        self._operator, self._device = operator, device
        self._before = device in operator.disabled
        self._set(not enabled)

    def _set(self, disabled: bool) -> None:
        (self._operator.disabled.add if disabled else self._operator.disabled.discard)(self._device)

    def __enter__(self) -> _Switch:
        return self

    def __exit__(self, *_: object) -> None:
        self._set(self._before)


@overload
def custom_op(
    name: str,
    fn: None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Any = None,
) -> Callable[[Callable[..., Any]], CustomOpDef]: ...
@overload
def custom_op(
    name: str,
    fn: Callable[..., Any],
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Any = None,
) -> CustomOpDef: ...
def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Makes an operator of a function; a decorator, unless ``fn`` is given.

    Args:
        name: ``"namespace::name"``.
        mutates_args: names of the tensors that the function writes into; ``"unknown"``: all of them.
        device_types: the devices that the function is a kernel for; None: all.
        schema: its schema, if not from its annotations: ``"(Tensor x, float by=2) -> Tensor"``.
        tags: accepted for PyTorch's sake; makes no difference.

    Returns:
        a ``CustomOpDef``: callable, with ``register_kernel``, ``register_autograd`` and so on.

    Raises:
        ValueError: no such name, or annotations that no schema has.
        RuntimeError: an operator of this name exists that ``custom_op`` has not made; one that it has made is replaced.

    The function runs without recording; its results must not share memory with its arguments, nor with each
    other.

    Example::

        >>> import vesta
        >>> @vesta.library.custom_op("docs::doubled", mutates_args=())
        ... def doubled(x: vesta.Tensor) -> vesta.Tensor:
        ...     return x * 2
        >>> doubled(vesta.ones(2))
        tensor([2., 2.])
    """
    namespace, short = _qualified("custom_op", name)

    def decorate(function: Callable[..., Any]) -> CustomOpDef:
        if not callable(function):
            raise TypeError(f"custom_op: expected a function, got {type(function).__name__} (fn).")
        if schema is None:
            found = read_function(function, short, mutates_args)
        else:
            found = parse_schema(short + schema.strip())
        operator = _define(namespace, found, custom=True)
        for device in _devices("custom_op", device_types):
            operator.kernels[device] = function
        return CustomOpDef(operator, function)

    return decorate if fn is None else decorate(fn)


def _decorator(register: Callable[[Callable[..., Any]], None], function: Callable[..., Any] | None) -> Any:
    """Registers a function, or returns a decorator that does."""

    def decorate(given: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(given):
            raise TypeError(f"register: expected a function, got {type(given).__name__} (func).")
        register(given)
        return given

    return decorate if function is None else decorate(function)


def register_kernel(op: Any, device_types: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None) -> Any:
    """Gives an operator a kernel for device types (None: for all others); also a decorator.

    Example::

        >>> import vesta
        >>> vesta.library.define("docs::tripled", "(Tensor x) -> Tensor")
        >>> @vesta.library.register_kernel("docs::tripled", "cpu")
        ... def on_cpu(x):
        ...     return x * 3
        >>> vesta.ops.docs.tripled(vesta.ones(2))
        tensor([3., 3.])
    """
    operator = operator_of(op, "register_kernel")
    devices = _devices("register_kernel", device_types)
    return _decorator(lambda given: operator.kernels.update(dict.fromkeys(devices, given)), func)


def register_autograd(
    op: Any, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None, lib: Any = None
) -> None:
    """Gives an operator a gradient.

    Args:
        backward: ``backward(ctx, *grads)`` returns a gradient or None for each positional argument; a list of them for
            an argument that is a list of tensors.
        setup_context: ``setup_context(ctx, inputs, output)`` keeps for it what it needs, by ``ctx.save_for_backward``
            and attributes; with ``keyword_only_inputs`` as well where there are such.
    """
    operator = operator_of(op, "register_autograd")
    for name, function in (("backward", backward), ("setup_context", setup_context)):
        if not callable(function) and not (name == "setup_context" and function is None):
            raise TypeError(f"register_autograd: expected a function, got {type(function).__name__} ({name}).")
    if any(argument.is_mutated for argument in operator.schema.arguments):
        raise RuntimeError(
            f"Cannot register autograd formula for non-functional operator {operator.qualified} with schema "
            f"{operator.schema}. Please create a functional operator and register an autograd formula for that."
        )
    operator.backward, operator.setup_context = backward, setup_context


def register_fake(
    op: Any,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Any = None,
    _stacklevel: int = 1,
    allow_override: bool = True,
) -> Any:
    """Gives an operator a function that makes results of the right shapes and dtypes; also a decorator.

    It is the operator's kernel on the meta device; ``opcheck`` compares it with the others.
    """
    operator = _declared(op)
    return _decorator(lambda given: setattr(operator, "fake", given) if operator else None, func)


def _declared(op: Any) -> Operator | None:
    """Returns the operator that gets a fake function; None where nobody needs it (``vesta.as_torch.behaviour``)."""
    return operator_of(op, "register_fake")


@deprecated("vesta.library.impl_abstract", "vesta.library.register_fake")
def impl_abstract(qualname: Any, func: Any = None, *, lib: Any = None, _stacklevel: int = 1) -> Any:
    """The old name of ``register_fake``."""
    return register_fake(qualname, func)


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Any = None) -> None:
    """Casts an operator's floating-point arguments to ``cast_inputs``, a dtype, under autocast of a device type."""
    operator = operator_of(op, "register_autocast")
    expect("register_autocast", "cast_inputs", cast_inputs, vesta.dtype, "dtype")
    operator.casts[vesta.device(device_type).type] = cast_inputs


def register_vmap(op: Any, func: Any = None, /, *, lib: Any = None) -> Any:
    """Takes the operator's function for vmap and does nothing with it: Vesta's calls the operator for each example.

    Also a decorator.
    """
    operator_of(op, "register_vmap")
    return _decorator(lambda given: None, func)


def register_torch_dispatch(op: Any, torch_dispatch_class: Any, func: Any = None, /, *, lib: Any = None) -> Any:
    """Takes the operator's function for a dispatch mode and does nothing with it: Vesta has none. Also a decorator."""
    operator_of(op, "register_torch_dispatch")
    return _decorator(lambda given: None, func)


def triton_op(name: str, fn: Any = None, /, *, mutates_args: Any, schema: str | None = None) -> Any:
    """Does the same as ``custom_op``: the function runs as it is written, and its kernels by Triton itself."""
    return custom_op(name, fn, mutates_args=mutates_args, schema=schema)


def wrap_triton(triton_kernel: Any, /) -> Any:
    """Returns its argument: nothing is traced."""
    return triton_kernel


def get_ctx() -> Any:
    """Refuses: operators run at once, and there is no tracing whose context this would be."""
    raise RuntimeError("get_ctx: expected to be called while a program is traced, and Vesta does not trace.")


def fallthrough_kernel() -> None:
    """Stands for no kernel in ``Library.impl``."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


def define(qualname: str, schema: str, *, lib: Any = None, tags: Any = ()) -> None:
    """Defines an operator by its schema: ``define("mylib::scaled", "(Tensor x, float by=2) -> Tensor")``."""
    namespace, short = _qualified("define", qualname)
    expect("define", "schema", schema, str, "text")
    _define(namespace, parse_schema(short + schema.strip()))


def impl(qualname: Any, types: Any, func: Any = None, *, lib: Any = None) -> Any:
    """Gives an operator a kernel for device types (``"default"``: all); also a decorator.

    ``impl(library, name, dispatch_key)`` is a decorator that calls ``library.impl``.
    """
    if isinstance(qualname, Library):
        library, name, key = qualname, types, func or ""
        return _decorator(lambda given: library.impl(name, given, key), None)
    return register_kernel(qualname, types, func)


#: Keys of devices and layers that Vesta has not: functions for them are taken and never called.
_WITHOUT_EFFECT = frozenset(
    """ADInplaceOrView AutocastCPU AutocastCUDA BackendSelect BatchedNestedTensor FuncTorchBatched Functionalize HPU IPU
    MPS MTIA MkldnnCPU NestedTensorCPU NestedTensorCUDA PrivateUse1 Python QuantizedCPU QuantizedCUDA SparseCPU
    SparseCUDA SparseCsrCPU SparseCsrCUDA XLA XPU ZeroTensor""".split()
)


class Library:
    """A namespace in which operators are defined, or given kernels: ``Library("mylib", "DEF")``.

    Args:
        ns: the namespace.
        kind: ``"DEF"`` (once in PyTorch, as often as you like here), ``"IMPL"`` or ``"FRAGMENT"``.
        dispatch_key: what ``impl`` takes where it is given none.

    Example::

        >>> import vesta
        >>> lib = vesta.library.Library("docs", "FRAGMENT")
        >>> lib.define("halved(Tensor x) -> Tensor")
        'halved'
        >>> lib.impl("halved", lambda x: x / 2, "CPU")
        >>> vesta.ops.docs.halved(vesta.ones(2))
        tensor([0.5000, 0.5000])
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        expect("Library", "ns", ns, str, "text")
        if kind not in ("DEF", "IMPL", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        if kind != "IMPL" and not ns.isidentifier():
            raise ValueError(f"Library: expected a namespace such as 'mylib', got {ns!r} (ns).")
        if ns == "aten":
            raise NotImplementedError("Library: Vesta's own functions (aten) take no kernels from outside.")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._defined: list[str] = []

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Defines an operator by its schema, ``"scaled(Tensor x, float by=2) -> Tensor"``; returns its name."""
        expect("Library.define", "schema", schema, str, "text")
        if self.kind == "IMPL":
            raise RuntimeError("Library.define: expected a library of kind DEF or FRAGMENT, got IMPL.")
        operator = _define(self.ns, parse_schema(schema))
        self._defined.append(operator.qualified)
        return operator.name

    def impl(
        self,
        op_name: Any,
        fn: Callable[..., Any],
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = True,
    ) -> None:
        """Gives an operator a function for a key.

        Keys: ``CPU`` and ``CUDA``, kernels of these devices; ``CompositeExplicitAutograd``, one for all devices;
        ``CompositeImplicitAutograd``, made of other operations, whose gradients it has (also without a key);
        ``Autograd``, what runs before the kernels and records; ``Meta``, as ``register_fake``. Keys of devices that
        Vesta does not know have no effect.
        """
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        name = op_name if isinstance(op_name, str) else operator_of(op_name, "Library.impl").name
        short = name.rpartition("::")[2].partition(".")[0]
        operator = operator_of(f"{self.ns}::{short}", "Library.impl")
        key = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        if fn is fallthrough_kernel:
            return
        if key == "CompositeImplicitAutograd":
            operator.composite = fn
        elif key == "CompositeExplicitAutograd":
            operator.kernels[None] = fn
        elif key in ("CPU", "CUDA"):
            operator.kernels[key.lower()] = fn
        elif key in ("Autograd", "AutogradCPU", "AutogradCUDA"):
            operator.recorded = fn
        elif key == "Meta":
            operator.fake = fn
        elif key not in _WITHOUT_EFFECT:
            raise RuntimeError(
                "Library.impl: expected a dispatch key such as CPU, CUDA, CompositeExplicitAutograd, "
                f"CompositeImplicitAutograd, Autograd or Meta, got {key!r} (dispatch_key)."
            )

    def fallback(self, fn: Any, dispatch_key: str = "", *, with_keyset: bool = False) -> None:
        """Takes a function for all operators of a key, without effect: Vesta's own take none from outside."""

    def _register_fake(self, op_name: str, fn: Callable[..., Any], *_: Any, **__: Any) -> None:
        self.impl(op_name, fn, "Meta")

    def _destroy(self) -> None:
        """Removes the operators that this library has defined."""
        for qualified in self._defined:
            defined.pop(qualified, None)
        self._defined.clear()

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"


# ---- checks ----

_CHECKS = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")


def opcheck(
    op: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = _CHECKS,
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, Any]:
    """Checks an operator on arguments: that it writes only what it says, has the gradient that it is asked for, and
    that what ``register_fake`` says of its results is true.

    Returns:
        ``"SUCCESS"`` or the exception for each check; with ``raise_exception`` the first failure is raised.

    Example::

        >>> import vesta
        >>> @vesta.library.custom_op("docs::negated", mutates_args=())
        ... def negated(x: vesta.Tensor) -> vesta.Tensor:
        ...     return -x
        >>> vesta.library.opcheck(negated, (vesta.ones(2),), test_utils="test_schema")
        {'test_schema': 'SUCCESS'}
    """
    operator = operator_of(op, "opcheck")
    wanted = [test_utils] if isinstance(test_utils, str) else list(test_utils)
    results: dict[str, Any] = {}
    for check in wanted:
        if check not in _CHECKS:
            raise ValueError(f"opcheck: expected checks of {_CHECKS}, got {check!r} (test_utils).")
        try:
            _run_check(check, operator, args, kwargs or {})
            results[check] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise
            results[check] = error.with_traceback(None)  # which holds the tensors of the call
    return results


def _copied(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    return [_copied(item) for item in value] if isinstance(value, (list, tuple)) else value


def _run_check(check: str, operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    values, named = operator.schema.bind([_copied(a) for a in args], {k: _copied(v) for k, v in kwargs.items()})
    names = [a.name for a in operator.schema.arguments if not a.keyword_only]
    given = dict(zip(names, values)) | named
    if check == "test_schema":
        before = {name: _copied(value) for name, value in given.items()}
        with vesta.no_grad():
            operator(*values, **named)
        mutated = {a.name for a in operator.schema.arguments if a.is_mutated}
        for name, value in given.items():
            for new, old in zip(_tensors([value]), _tensors([before[name]])):
                if name not in mutated and not vesta.equal(vesta.nan_to_num(new), vesta.nan_to_num(old)):
                    raise RuntimeError(
                        f"opcheck(op, ...): test_schema failed: Argument {name} is not defined as mutable but was "
                        "mutated"
                    )
    elif check == "test_autograd_registration":
        if not any(t.requires_grad for t in _tensors(given.values())):
            return
        made = operator(*values, **named)
        recorded = any(t.requires_grad for t in _tensors([made]))
        if recorded and operator.backward is None and operator.recorded is None and operator.composite is None:
            raise RuntimeError(
                f"opcheck(op, ...): test_autograd_registration failed: {operator.qualified} has no gradient. Add one "
                "with register_autograd."
            )
    elif operator.fake is not None:  # what it says of the results
        with vesta.no_grad():
            made, said = operator(*values, **named), operator.fake(*values, **named)
        real, fake = _tensors([made]), _tensors([said])
        if [(t.shape, t.dtype) for t in real] != [(t.shape, t.dtype) for t in fake]:
            raise RuntimeError(
                f"opcheck(op, ...): {check} failed: expected results of {[(t.shape, t.dtype) for t in fake]} as "
                f"register_fake says, got {[(t.shape, t.dtype) for t in real]}."
            )
