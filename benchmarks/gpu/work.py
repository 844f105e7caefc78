"""The parts of a case: the device it runs on, and the work it prepares there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable


@dataclass
class Work:
    """A function to be timed, and the minimum of work it must do.

    Args:
        run: the function; its result is dropped.
        moves: bytes of memory traffic on the device, with each input read once and each output written once.
        flops: floating-point operations.
        unit: the dtype whose matrix rate is the ceiling of ``flops``; "" for none.
        on_host: whether the host's time is measured, not the device's.
        items: samples per run, of a model.
    """

    run: Callable[[], Any]
    moves: int = 0
    flops: int = 0
    unit: str = ""
    on_host: bool = False
    items: int = 0


Case = Callable[["Gpu"], Work]
CASES: dict[str, dict[str, Case]] = {}


def case(family: str, name: str) -> Callable[[Case], Case]:
    """Registers a case in the table: a function of ``Gpu`` that prepares its data and returns the ``Work``."""

    def enter(function: Case) -> Case:
        CASES.setdefault(family, {})[name] = function
        return function

    return enter


class Gpu:
    """A library (``vesta`` or ``torch``) and the device its cases run on; ``tiny`` is for rehearsals."""

    def __init__(self, lib: Any, device: str, tiny: bool) -> None:
        self.lib, self.device, self.tiny = lib, device, tiny

    def size(self, full: int, tiny: int = 24) -> int:
        """Returns ``full``, or ``tiny`` in a rehearsal."""
        return tiny if self.tiny else full

    def dtype(self, name: str) -> Any:
        return getattr(self.lib, name)

    def normal(self, *shape: int, dtype: str = "float32") -> Any:
        """Returns normal random numbers, drawn on the device, or on the host if the library cannot do that."""
        try:
            x = self.lib.randn(*shape, device=self.device)
        except (NotImplementedError, RuntimeError):
            x = self.lib.randn(*shape).to(self.device)
        return x.to(self.dtype(dtype))

    def integers(self, high: int, *shape: int) -> Any:
        """Returns random integers of [0, high), as int64."""
        return self.lib.randint(0, high, shape).to(self.device)


def size_of(*tensors: Any) -> int:
    """Returns the total bytes of some tensors."""
    return sum(t.numel() * t.element_size() for t in tensors)


def is_missing(error: Exception) -> bool:
    """Returns whether an error says that the library does not yet have such an op, or a CUDA kernel for it."""
    text = str(error)
    absent = isinstance(error, (AttributeError, ImportError, NotImplementedError))
    return absent or "no CUDA kernel" in text or "unexpected keyword" in text
