"""What PyTorch's tensors can be asked about kinds that Vesta has not, their storages, and forms of older programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import FunctionType

from . import _C
from ._arguments import checked, is_whole_number
from ._C import Tensor
from ._overridable import overridable, overridable_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from vesta._C._types import Data, Device, MemoryFormat

    from .storage import TypedStorage, UntypedStorage
else:  # for get_type_hints()
    Any = Data = Device = MemoryFormat = TypedStorage = UntypedStorage = object

#: Kinds of tensors that there are not: attributes that are False.
_NO_KIND = ("is_hpu is_ipu is_maia is_mkldnn is_mps is_mtia is_nested is_vulkan is_xla is_xpu is_privateuseone").split()


def new(self: Tensor, *args: Data, device: Device | None = None) -> Tensor:
    """Returns a tensor of this one's dtype and device: of the given sizes, without values yet; or of a sequence's.

    Example::

        >>> import vesta
        >>> vesta.ones(1, dtype=vesta.float64).new([1, 2])
        tensor([1., 2.], dtype=vesta.float64)
        >>> vesta.ones(1).new(2, 3).shape
        vesta.Size([2, 3])
    """
    if self.is_sparse:
        from .sparse import sparse_coo_tensor

        return sparse_coo_tensor(*args, dtype=self.dtype, device=device or self.device)
    if len(args) == 1 and not isinstance(args[0], _C.Size) and not is_whole_number(args[0]):
        if isinstance(args[0], Tensor):
            return args[0].detach().to(self.dtype)
        return self.new_tensor(args[0], device=device)
    size = args[0] if args and isinstance(args[0], _C.Size) else args or (0,)
    return self.new_empty(size, device=device)


def untyped_storage(self: Tensor) -> UntypedStorage:
    """Returns the memory under the tensor, as bytes."""
    if self.layout is not _C.strided:
        raise NotImplementedError("untyped_storage: expected a dense tensor, got a sparse one. Use .to_dense().")
    from .storage import UntypedStorage

    return UntypedStorage._of(self.detach())


def storage(self: Tensor) -> TypedStorage:
    """Returns the memory under the tensor, as elements of its dtype."""
    from .storage import TypedStorage

    return TypedStorage(wrap_storage=untyped_storage(self), dtype=self.dtype)


def _no(self: Tensor) -> bool:
    """Returns False: no tensor is a lazy view that conjugates or negates.

    Example::

        >>> import vesta
        >>> vesta.ones(2).is_conj(), vesta.ones(2).is_neg()
        (False, False)
    """
    return False


def _none(self: Tensor) -> None:
    """Returns None: tensors have no name, and their hooks are not to be seen."""


def _no_kind(name: str) -> Callable[[Tensor], bool]:
    """Returns a method of this name that is ``_no``."""

    def method(self: Tensor) -> bool:
        return _no(self)

    method.__name__, method.__qualname__, method.__doc__ = name, f"Tensor.{name}", _no.__doc__
    return method


def storage_type(self: Tensor) -> type:
    """Returns the class of the storage.

    Example::

        >>> import vesta
        >>> vesta.ones(2).storage_type().__name__
        'TypedStorage'
    """
    return type(storage(self))


def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """Returns what a parameter is replaced by when ``other`` is loaded into it: a detached tensor with its values.

    Args:
        other: what a ``state_dict`` holds for this tensor.
        assign: whether ``other`` itself takes this one's place; else it is copied into this one.

    Example::

        >>> import vesta
        >>> vesta.zeros(2).module_load(vesta.ones(2))
        tensor([1., 1.])
    """
    if assign:
        return other.detach()
    with _not_recording():
        return self.copy_(other).detach()


def reinforce(self: Tensor, reward: Any) -> None:
    """Raises RuntimeError: it was removed. Use ``vesta.distributions``.

    Example::

        >>> import vesta
        >>> vesta.ones(1).reinforce(1)
        Traceback (most recent call last):
            ...
        RuntimeError: reinforce() was removed. Use vesta.distributions instead: -dist.log_prob(action) * reward.
    """
    raise RuntimeError("reinforce() was removed. Use vesta.distributions instead: -dist.log_prob(action) * reward.")


def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replaces each element by what a Python function makes of it; for tensors on the CPU, and slow.

    Raises:
        TypeError: the tensor is on another device; ``callable`` is no function.
        RuntimeError: the tensor requires grad.

    Example::

        >>> import vesta
        >>> vesta.tensor([1.0, 2.0]).apply_(lambda x: x + 1)
        tensor([2., 3.])
    """
    return _replace(self, "apply_", callable, self)


def map_(self: Tensor, other: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replaces each element by what a Python function makes of it and of ``other``'s element in its place.

    Raises:
        TypeError: a tensor is not on the CPU; ``callable`` is no function.
        RuntimeError: ``other`` does not broadcast to this tensor; one of them requires grad.

    Example::

        >>> import vesta
        >>> vesta.tensor([1.0, 2.0]).map_(vesta.tensor([3.0, 4.0]), lambda x, y: x * y)
        tensor([3., 8.])
    """
    return _replace(self, "map_", callable, self, other.expand(self.shape))


def _replace(self: Tensor, op: str, function: Callable[..., Any], *operands: Tensor) -> Tensor:
    if any(operand.device.type != "cpu" for operand in operands):
        raise TypeError(f"{op} is only implemented on CPU tensors")
    if not callable(function):
        raise TypeError(f"{op}: expected a function, got {type(function).__name__} (callable).")
    if any(operand.requires_grad for operand in operands):
        raise RuntimeError(f"{op}: can't be called on a tensor that requires grad. Use x.detach().{op}() instead.")
    values = [operand.detach().reshape(-1).tolist() for operand in operands]
    made = _C.tensor([function(*entry) for entry in zip(*values)], dtype=self.dtype).reshape(self.shape)
    with _not_recording():
        return self.copy_(made)


def _not_recording() -> Any:
    from .autograd import no_grad

    return no_grad()


def __reversed__(self: Tensor) -> Tensor:
    """Returns the rows (of the first dimension) in reverse order, as a copy."""
    return self.flip(0) if self.dim() else self


def dim_order(self: Tensor, *, ambiguity_check: bool | list[MemoryFormat] = False) -> tuple[int, ...]:
    """Returns the dimensions from the one with the largest stride to the one with the smallest.

    Example::

        >>> import vesta
        >>> vesta.zeros(2, 3).t().dim_order()
        (1, 0)
    """
    strides = self.stride()
    return tuple(sorted(range(self.dim()), key=lambda dim: -strides[dim]))


def stft(
    self: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """Returns ``vesta.stft`` of this signal.

    Example::

        >>> import vesta
        >>> vesta.ones(8).stft(4, window=vesta.ones(4), return_complex=True).shape
        vesta.Size([3, 9])
    """
    from ._spectral import stft

    return stft(
        self,
        n_fft,
        hop_length,
        win_length,
        window,
        center,
        pad_mode,
        normalized,
        onesided,
        return_complex,
        align_to_window,
    )


def istft(
    self: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """Returns ``vesta.istft`` of this transform.

    Example::

        >>> import vesta
        >>> vesta.ones(8).stft(4, window=vesta.ones(4), return_complex=True).istft(4, window=vesta.ones(4))
        tensor([1., 1., 1., 1., 1., 1., 1., 1.])
    """
    from ._spectral import istft

    return istft(self, n_fft, hop_length, win_length, window, center, normalized, onesided, length, return_complex)


def names(self: Tensor) -> tuple[None, ...]:
    """The names of the dimensions: None each, because dimensions have none here."""
    return (None,) * self.dim()


def rename(self: Tensor, *names: Any, **renamed: Any) -> Tensor:
    """Returns the tensor without names of dimensions: ``rename(None)``.

    Raises:
        NotImplementedError: a name.
    """
    if renamed or any(name is not None for name in names):
        raise NotImplementedError(
            "Tensor.rename: dimensions have no names here. Keep them in a comment or a variable: B, C, H, W = x.shape."
        )
    return self.view_as(self)


def _older(name: str) -> Callable[..., Any]:
    """Returns the function of a name that PyTorch's tensors had."""
    from . import _older_names

    return getattr(_older_names, name)


def cholesky(self: Tensor, upper: bool = False) -> Any:
    """An older name: see ``vesta.cholesky``."""
    return _older("cholesky")(self, upper)


def qr(self: Tensor, some: bool = True) -> Any:
    """An older name: see ``vesta.qr``."""
    return _older("qr")(self, some)


def symeig(self: Tensor, eigenvectors: bool = False) -> Any:
    """An older name: see ``vesta.symeig``."""
    return _older("symeig")(self, eigenvectors)


def solve(self: Tensor, other: Tensor) -> Any:
    """An older name: see ``vesta.solve``."""
    return _older("solve")(self, other)


def lstsq(self: Tensor, other: Tensor) -> Any:
    """An older name: see ``vesta.lstsq``."""
    return _older("lstsq")(self, other)


def eig(self: Tensor, eigenvectors: bool = False) -> Any:
    """An older name: see ``vesta.eig``."""
    return _older("eig")(self, eigenvectors)


def lu(self: Tensor, pivot: bool = True, get_infos: bool = False) -> Any:
    """An older name: see ``vesta.lu``."""
    return _older("lu")(self, pivot, get_infos)


def matrix_rank(self: Tensor, tol: float | None = None, symmetric: bool = False) -> Any:
    """An older name: see ``vesta.matrix_rank``."""
    return _older("matrix_rank")(self, tol, symmetric)


def histogram(
    self: Tensor,
    bins: int | Tensor = 100,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Any:
    """Returns ``vesta.histogram`` of this tensor's values.

    Example::

        >>> import vesta
        >>> vesta.tensor([1.0, 2.0, 1.0]).histogram(2, range=(0.0, 4.0)).hist
        tensor([2., 1.])
    """
    from ._numeric_functions import histogram

    return histogram(self, bins, range=range, weight=weight, density=density)


def _slots() -> Iterator[tuple[str, Any]]:
    for method in (  # a method may be called as a function, with anything as its tensor: Tensor.new(1)
        new,
        untyped_storage,
        storage,
        apply_,
        map_,
        __reversed__,
        dim_order,
        stft,
        istft,
        histogram,
        rename,
        cholesky,
        qr,
        symeig,
        solve,
        lstsq,
        eig,
        lu,
        matrix_rank,
    ):
        yield method.__name__, checked(method)
    yield "names", property(names)
    yield "__rdiv__", Tensor.__rtruediv__
    yield "typed_storage", checked(storage)
    yield "_typed_storage", checked(storage)
    for name in ("is_conj", "is_neg", "is_distributed"):
        yield name, _no_kind(name)
    for name in ("name", "_backward_hooks"):
        yield name, overridable_property(_none)
    for method in (storage_type, module_load, reinforce):
        yield method.__name__, checked(method)
    for name in _NO_KIND:
        yield name, overridable_property(_no)


def _enter_device(self: Any) -> Any:
    """Makes a device the default one of this thread: ``with vesta.device("cuda"):``."""
    from ._default_device import enter

    return enter(self)


def _leave_device(self: Any, *error: Any) -> None:
    from ._default_device import leave

    leave(self)


def _on_device(self: Any, fn: Any) -> Any:
    """Decorates a function so that it runs with the device as the default one."""
    from ._default_device import decorate

    return decorate(self, fn)


def install() -> None:
    """Puts these methods into ``Tensor``, where it has none of the name, and makes devices contexts."""
    for name, value in _slots():
        if not hasattr(Tensor, name):
            if isinstance(value, FunctionType):
                value.__name__, value.__qualname__ = name, f"Tensor.{name}"  # where pickles find it
            setattr(Tensor, name, value)
            if not name.startswith("_") or name == "__reversed__":
                overridable(value)
    _C.device.__enter__ = _enter_device  # type: ignore[attr-defined]
    _C.device.__exit__ = _leave_device  # type: ignore[attr-defined]
    _C.device.__call__ = _on_device  # type: ignore[attr-defined]
