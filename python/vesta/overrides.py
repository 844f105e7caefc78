"""Taking calls over: the protocol ``__torch_function__`` for modes, for subclasses of Tensor and for other classes.

A class with a ``__torch_function__(func, types, args, kwargs)`` is asked in place of every operation that gets one of
its objects, a ``TorchFunctionMode`` in place of every operation inside its ``with`` block. Modes are asked first, the
innermost before the others; then the arguments' classes, subclasses before their bases; until one answers something
else than NotImplemented. That holds for the package's functions written in Python too, and for a program's own that say
so with ``wrap_torch_function``; any other function of Python is asked for by the operations that it is made of.
"""

from __future__ import annotations

import contextlib
import functools
import types as python_types
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import vesta
from vesta import _C, Tensor
from vesta._arguments import expect
from vesta._names import listing
from vesta._overridable import is_overridable

if TYPE_CHECKING:
    from typing_extensions import Self
else:
    Self = Any  # for get_type_hints()

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "enable_reentrant_dispatch",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]


class TorchFunctionMode:
    """The base of modes: inside ``with mode:`` its ``__torch_function__`` takes all operations of this thread over.

    While it runs the mode is off, so that it can call the function itself.

    Example::

        >>> import vesta
        >>> class Names(vesta.overrides.TorchFunctionMode):
        ...     def __torch_function__(self, func, types, args=(), kwargs=None):
        ...         print(func.__name__)
        ...         return func(*args, **(kwargs or {}))
        >>> with Names():
        ...     x = vesta.ones(2).exp()
        ones
        exp
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError(f"{type(self).__name__}: has no __torch_function__ of its own.")

    def __enter__(self) -> Self:
        _C._push_torch_function_mode(self)
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        _C._pop_torch_function_mode()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Self:
        """Returns a mode of these arguments, for a ``with`` statement."""
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that calls every function as it is.

    Example::

        >>> import vesta
        >>> with vesta.overrides.BaseTorchFunctionMode():
        ...     vesta.ones(2)
        tensor([1., 1.])
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_function_mode() -> TorchFunctionMode | None:
    modes = _C._torch_function_modes()
    return modes[-1] if modes else None


def _get_current_function_mode_stack() -> list[TorchFunctionMode]:
    return _C._torch_function_modes()


@contextlib.contextmanager
def _pop_mode_temporarily() -> Iterator[TorchFunctionMode]:
    mode = _C._pop_torch_function_mode()
    try:
        yield mode
    finally:
        _C._push_torch_function_mode(mode)


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Returns whether a mode is on, or one of the objects is of a class that takes calls over.

    Example::

        >>> import vesta
        >>> vesta.overrides.has_torch_function((vesta.ones(2), 1))
        False
    """
    expect("has_torch_function", "relevant_args", relevant_args, Iterable, "an iterable of arguments")
    given = tuple(relevant_args)
    return _C._has_torch_function(()) or bool(_get_overloaded_args(given))


def has_torch_function_unary(tensor: Any) -> bool:
    """Returns ``has_torch_function((tensor,))``.

    Example::

        >>> import vesta
        >>> vesta.overrides.has_torch_function_unary(vesta.ones(2))
        False
    """
    return has_torch_function((tensor,))


def has_torch_function_variadic(*args: Any) -> bool:
    """Returns ``has_torch_function(args)``.

    Example::

        >>> import vesta
        >>> vesta.overrides.has_torch_function_variadic(vesta.ones(2), 1)
        False
    """
    return has_torch_function(args)


def _takes_over(kind: type) -> bool:
    function = getattr(kind, "__torch_function__", None)
    return kind is not Tensor and function is not None and function is not _C._disabled_torch_function_impl


def _get_overloaded_args(relevant_args: Iterable[Any]) -> list[Any]:
    """Returns one object of each class that takes calls over, subclasses before their bases."""
    if not _C._set_torch_function_enabled(True):
        _C._set_torch_function_enabled(False)
        return []
    found: list[Any] = []
    for object in relevant_args:
        kind = type(object)
        if not _takes_over(kind) or any(type(other) is kind for other in found):
            continue
        place = next((i for i, other in enumerate(found) if issubclass(kind, type(other))), len(found))
        found.insert(place, object)
    return found


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Lets a mode, or the class of one of the arguments, take a call of a Python function over.

    Args:
        public_api: the function that the user called.
        relevant_args: the arguments whose classes are asked.
        args, kwargs: those of the call.

    Raises:
        TypeError: all answered NotImplemented.

    Example::

        >>> import vesta
        >>> from vesta.overrides import handle_torch_function, has_torch_function
        >>> def double(x):
        ...     if has_torch_function((x,)):
        ...         return handle_torch_function(double, (x,), x)
        ...     return 2 * x
        >>> double(vesta.ones(2))
        tensor([2., 2.])
    """
    expect("handle_torch_function", "relevant_args", relevant_args, Iterable, "an iterable of arguments")
    overloaded = _get_overloaded_args(tuple(relevant_args))
    kinds = tuple(map(type, overloaded))
    if _C._has_torch_function(()):
        with _pop_mode_temporarily() as mode:
            result = mode.__torch_function__(public_api, kinds, args, kwargs)
        if result is not NotImplemented:
            return result
    for object in overloaded:
        result = object.__torch_function__(public_api, kinds, args, kwargs)
        if result is not NotImplemented:
            return result
    name = f"{getattr(public_api, '__module__', '')}.{getattr(public_api, '__name__', public_api)}"
    asked = [kind.__name__ for kind in kinds]
    raise TypeError(f"no implementation found for '{name}' on types that implement __torch_function__: {asked}")


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[Any], Any]:
    """Makes a decorator by which a Python function can be taken over.

    Args:
        dispatcher: gets the arguments of a call and returns those whose classes are asked.

    Example::

        >>> import vesta
        >>> @vesta.overrides.wrap_torch_function(lambda x: (x,))
        ... def double(x):
        ...     return 2 * x
        >>> double(vesta.ones(2))
        tensor([2., 2.])
    """
    expect("wrap_torch_function", "dispatcher", dispatcher, Callable, "a function")

    def decorate(function: Any) -> Any:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return decorate


def is_tensor_like(inp: Any) -> bool:
    """Returns whether an object is a tensor or of a class with a ``__torch_function__``.

    Example::

        >>> import vesta
        >>> vesta.overrides.is_tensor_like(vesta.ones(2)), vesta.overrides.is_tensor_like([1.0, 1.0])
        (True, False)
    """
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


@functools.cache
def _tensor_methods() -> set[Any]:
    found = set()
    for name in dir(Tensor):
        member = getattr(Tensor, name, None)
        if callable(member) and not name.startswith("__init") and not isinstance(member, type):
            found.add(member)
    return found


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Returns whether a function is a method of Tensor, or reads or writes one of its attributes.

    Example::

        >>> import vesta
        >>> [vesta.overrides.is_tensor_method_or_property(f) for f in (vesta.Tensor.add, vesta.add)]
        [True, False]
    """
    expect("is_tensor_method_or_property", "func", func, Callable, "a function")
    return getattr(func, "__name__", "") in ("__get__", "__set__", "__delete__") or func in _tensor_methods()


def _namespaces() -> Iterator[tuple[str, Any]]:
    package = Tensor.__module__.partition(".")[0]  # "torch" under vesta.as_torch
    yield package, vesta
    yield f"{package}.nn.functional", vesta.nn.functional
    yield f"{package}.nn.init", vesta.nn.init
    yield f"{package}.Tensor", Tensor
    for name in ("linalg", "fft", "special"):
        yield f"{package}.{name}", getattr(vesta, name)


def _is_operation(member: Any) -> bool:
    return (
        is_overridable(member)
        or isinstance(member, (python_types.BuiltinFunctionType, python_types.MethodDescriptorType))
        or type(member).__name__ in ("wrapper_descriptor", "getset_descriptor")
    )


@functools.cache
def _overridable() -> dict[Any, list[Any]]:
    ignored = get_ignored_functions()
    found: dict[Any, list[Any]] = {}
    for _, space in _namespaces():
        names = [name for name in dir(space) if not name.startswith("_")]
        members = [getattr(space, name) for name in names]
        found[space] = [m for m in members if _is_operation(m) and m not in ignored]
    return found


def get_overridable_functions() -> dict[Any, list[Any]]:
    """Returns the functions of each namespace that modes and classes take over.

    Example::

        >>> import vesta
        >>> vesta.add in vesta.overrides.get_overridable_functions()[vesta]
        True
    """
    return {space: list(functions) for space, functions in _overridable().items()}


@functools.cache
def _ignored() -> frozenset[Any]:
    settings = (
        "can_cast get_default_dtype get_num_threads is_grad_enabled is_inference_mode_enabled promote_types "
        "set_default_dtype set_num_threads set_grad_enabled save load is_tensor is_storage manual_seed seed "
        "initial_seed get_rng_state set_rng_state compile typename"
    ).split()
    return frozenset(getattr(vesta, name) for name in settings if hasattr(vesta, name))


def get_ignored_functions() -> set[Any]:
    """Returns functions that nothing takes over: settings, questions about dtypes, files.

    Example::

        >>> import vesta
        >>> vesta.manual_seed in vesta.overrides.get_ignored_functions()
        True
    """
    return set(_ignored())


def get_default_nowrap_functions() -> set[Any]:
    """Returns the readers of attributes whose results a subclass of Tensor does not wrap.

    Example::

        >>> import vesta
        >>> len(vesta.overrides.get_default_nowrap_functions()) > 0
        True
    """
    return {getattr(Tensor, name).__get__ for name in ("_base", "grad") if hasattr(Tensor, name)}


def resolve_name(f: Callable[..., Any]) -> str | None:
    """Returns the qualified name of an operation, None for what is none.

    Example::

        >>> import vesta
        >>> vesta.overrides.resolve_name(vesta.Tensor.add)
        'vesta.Tensor.add'
        >>> vesta.overrides.resolve_name(vesta.Tensor.shape.__get__)
        'vesta.Tensor.shape.__get__'
    """
    name = getattr(f, "__name__", None)
    if name in ("__get__", "__set__", "__delete__"):
        property = getattr(f, "__self__", None)
        attribute = next((key for key in dir(Tensor) if getattr(Tensor, key, None) is property), None)
        return attribute and f"{Tensor.__module__.partition('.')[0]}.Tensor.{attribute}.{name}"
    for prefix, space in _namespaces():
        if isinstance(name, str) and getattr(space, name, None) is f:
            return f"{prefix}.{name}"
    return None


@contextlib.contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """Does nothing: functions that take calls over may call operations.

    Example::

        >>> import vesta
        >>> with vesta.overrides.enable_reentrant_dispatch():
        ...     x = vesta.ones(2)
    """
    yield


__dir__ = listing(globals())
