"""The keys of PyTorch's dispatcher, by name: programs build sets of them, to run without autocast."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
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


class DispatchKeySet:
    """A set of keys; ``|``, ``&`` and ``-`` make new ones."""

    def __init__(self, key: Any) -> None:
        key = DispatchKey[key] if isinstance(key, str) else key
        if not isinstance(key, DispatchKey):
            raise TypeError(f"DispatchKeySet: expected a DispatchKey, got {type(key).__name__} (key).")
        self._keys = frozenset(() if key is DispatchKey["Undefined"] else [key])

    @classmethod
    def _of(cls, keys: Iterable[Any]) -> DispatchKeySet:
        made = cls.__new__(cls)
        made._keys = frozenset(keys)
        return made

    def has(self, key: Any) -> bool:
        """Tells whether the set holds a key."""
        return key in self._keys

    def add(self, key: Any) -> DispatchKeySet:
        """Returns the set with a key more."""
        return self._of(self._keys | {key})

    def remove(self, key: Any) -> DispatchKeySet:
        """Returns the set without a key."""
        return self._of(self._keys - {key})

    def highestPriorityTypeId(self) -> Any:
        """Returns the key whose kernel runs first."""
        return max(self._keys, key=lambda key: key.value, default=DispatchKey["Undefined"])

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return self._of(self._keys | other._keys)

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return self._of(self._keys & other._keys)

    def __sub__(self, other: DispatchKeySet) -> DispatchKeySet:
        return self._of(self._keys - other._keys)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and self._keys == other._keys

    def __hash__(self) -> int:
        return hash(self._keys)

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(key.name for key in sorted(self._keys, key=lambda key: key.value))})"


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
