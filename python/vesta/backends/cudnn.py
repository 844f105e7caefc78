"""Settings of convolutions on CUDA: ``vesta.backends.cudnn.enabled``, ``.allow_tf32`` and what scripts set besides."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from . import switch


class _Cudnn(ModuleType):
    enabled = switch.Switch(2, "Whether convolutions may go to cuDNN. True at first.")
    allow_tf32 = switch.Switch(1, "Whether float32 convolutions may use TF32. True at first.")

    @property
    def deterministic(self) -> bool:
        """Always True: algorithms whose bits change from run to run are never chosen. Setting it does nothing."""
        return True

    @deterministic.setter
    def deterministic(self, value: bool) -> None:
        _bool(value)

    @property
    def benchmark(self) -> bool:
        """Always False: the algorithm is the library's own first choice. Setting it does nothing."""
        return False

    @benchmark.setter
    def benchmark(self, value: bool) -> None:
        _bool(value)


def _bool(value: Any) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"expected a bool, got {type(value).__name__}. Pass True or False.")


switch.install(__name__, _Cudnn)
