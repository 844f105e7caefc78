"""The keys of PyTorch's dispatcher, by name: programs build sets of them, to run without autocast."""

from __future__ import annotations

import enum
import functools
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

__all__ = ["DispatchKey", "DispatchKeySet", "ExcludeDispatchKeyGuard"]

_BACKENDS = "CPU CUDA HIP XLA MPS IPU XPU HPU VE Lazy MTIA MAIA PrivateUse1 PrivateUse2 PrivateUse3 Meta".split()
_FUNCTIONS = (
    "Undefined CompositeExplicitAutogradNonFunctional CompositeExplicitAutograd CompositeImplicitAutogradNestedTensor "
    "CompositeImplicitAutograd AutogradNestedTensor AutogradOther Autograd Conjugate ZeroTensor Negative BackendSelect "
    "ADInplaceOrView PythonTLSSnapshot Python FuncTorchDynamicLayerFrontMode FuncTorchDynamicLayerBackMode "
    "FuncTorchBatchedDecomposition FuncTorchBatched FuncTorchVmapMode FuncTorchGradWrapper PythonDispatcher "
    "PreDispatch Functionalize AutocastCPU AutocastMPS AutocastXPU AutocastHPU AutocastIPU AutocastCUDA "
    "AutocastPrivateUse1"
).split()

#: The bit of each function in a set, beside those of backends, which are the first ones. Others have none.
_BITS = {
    name: int(bit)
    for name, _, bit in (
        entry.partition(":")
        for entry in (
            "Dense:16 Quantized:20 Sparse:23 SparseCsr:24 NestedTensor:25 BackendSelect:26 Python:28 "
            "FuncTorchDynamicLayerBackMode:29 Functionalize:30 Conjugate:31 Negative:32 ZeroTensor:33 "
            "ADInplaceOrView:34 AutogradOther:35 AutogradFunctionality:36 AutogradNestedTensor:37 AutocastCPU:39 "
            "AutocastXPU:42 AutocastIPU:43 AutocastHPU:44 AutocastMPS:46 AutocastCUDA:47 AutocastPrivateUse1:48 "
            "FuncTorchBatched:49 FuncTorchBatchedDecomposition:50 FuncTorchVmapMode:51 FuncTorchGradWrapper:54 "
            "PythonTLSSnapshot:56 FuncTorchDynamicLayerFrontMode:57 PreDispatch:60 PythonDispatcher:61"
        ).split()
    )
}
#: The functions that a backend has one of its own of, and how those begin.
_PER_BACKEND = {
    "Dense": "",
    "Quantized": "Quantized",
    "Sparse": "Sparse",
    "SparseCsr": "SparseCsr",
    "NestedTensor": "NestedTensor",
    "AutogradFunctionality": "Autograd",
}
_ALL_BACKENDS = (1 << len(_BACKENDS)) - 1


def _names() -> Iterator[str]:
    """Yields the names of all keys, the lowest priority first."""
    yield from _FUNCTIONS
    for whole, kind in (
        ("Dense", ""),
        ("Quantized", "Quantized"),
        ("Sparse", "Sparse"),
        ("SparseCsr", "SparseCsr"),
        ("NestedTensor", "NestedTensor"),
        ("AutogradFunctionality", "Autograd"),
    ):
        backends = f"{kind or 'Dense'}Backends" if kind != "Autograd" else "AutogradFunctionalityBackends"
        yield whole
        yield f"StartOf{backends}"
        yield from (kind + backend for backend in _BACKENDS)
        yield f"EndOf{backends}"


class _Key(enum.Enum):
    """A key of PyTorch's dispatcher."""

    def __str__(self) -> str:
        return f"DispatchKey.{self.name}"


DispatchKey = _Key("DispatchKey", list(_names()))  # type: ignore[call-overload]


@functools.cache
def _bits_of(key: Any) -> int:
    """Returns a key as a set: its function's bit and its backend's."""
    for whole, kind in _PER_BACKEND.items():
        if key.name.startswith(kind) and key.name.removeprefix(kind) in _BACKENDS:
            return 1 << _BITS[whole] | 1 << _BACKENDS.index(key.name.removeprefix(kind))
    return 1 << _BITS[key.name] if key.name in _BITS else 0


class DispatchKeySet:
    """A set of keys: every function in it goes with every backend in it. ``|``, ``&`` and ``-`` make new ones."""

    def __init__(self, key: Any) -> None:
        key = DispatchKey[key] if isinstance(key, str) else key
        if not isinstance(key, DispatchKey):
            raise TypeError(f"DispatchKeySet: expected a DispatchKey, got {type(key).__name__} (key).")
        self._bits = _bits_of(key)

    @classmethod
    def from_raw_repr(cls, bits: int) -> DispatchKeySet:
        """Returns the set of these bits."""
        made = cls.__new__(cls)
        made._bits = bits
        return made

    def raw_repr(self) -> int:
        """Returns the bits of the set."""
        return self._bits

    @property
    def _keys(self) -> list[Any]:
        """The keys in the set, the lowest priority first."""
        backends = [name for k, name in enumerate(_BACKENDS) if self._bits >> k & 1]
        found: list[Any] = []
        for name, bit in _BITS.items():
            if self._bits >> bit & 1:
                own = [_PER_BACKEND[name] + backend for backend in backends] if name in _PER_BACKEND else [name]
                found += [DispatchKey[key] for key in own]
        return found

    def has(self, key: Any) -> bool:
        """Tells whether the set holds a key."""
        bits = _bits_of(key)
        return bits != 0 and self._bits & bits == bits

    def add(self, key: Any) -> DispatchKeySet:
        """Returns the set with a key more."""
        return self.from_raw_repr(self._bits | _bits_of(key))

    def remove(self, key: Any) -> DispatchKeySet:
        """Returns the set without a key's function."""
        return self.from_raw_repr(self._bits & (~_bits_of(key) | _ALL_BACKENDS))

    def highestPriorityTypeId(self) -> Any:
        """Returns the key whose kernel runs first."""
        return self._keys[-1] if self._keys else DispatchKey["Undefined"]

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return self.from_raw_repr(self._bits | other._bits)

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return self.from_raw_repr(self._bits & other._bits)

    def __sub__(self, other: DispatchKeySet) -> DispatchKeySet:
        return self.from_raw_repr(self._bits & (~other._bits | _ALL_BACKENDS))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and self._bits == other._bits

    def __hash__(self) -> int:
        return hash(self._bits)

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(key.name for key in self._keys)})"


class ExcludeDispatchKeyGuard:
    """A context without autocast on the devices whose autocast keys are given; other keys are refused."""

    def __init__(self, keys: DispatchKeySet) -> None:
        other = [key.name for key in keys._keys if not key.name.startswith("Autocast")]
        if other:
            raise NotImplementedError(
                f"_ExcludeDispatchKeyGuard: expected keys of autocast, got {min(other)}. "
                "Vesta has no such step to leave out."
            )
        self._devices = [key.name.removeprefix("Autocast").lower() for key in keys._keys]
        self._entered: list[ExitStack] = []

    def __enter__(self) -> None:
        """Turns autocast off."""
        from vesta import autocast

        stack = ExitStack()
        for device in sorted({"cpu", "cuda"}.intersection(self._devices)):
            stack.enter_context(autocast(device, enabled=False))
        self._entered.append(stack)

    def __exit__(self, *exception: Any) -> None:
        """Restores what was."""
        self._entered.pop().close()
