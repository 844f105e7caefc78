"""The extension and the numbering of devices, for the modules of this package."""

from __future__ import annotations

from typing import Any

import vesta


def native() -> Any:
    """Returns the extension; raises DeviceError if this build has none."""
    try:
        from vesta import _C_cuda
    except ImportError as error:
        message = "vesta.cuda: expected a build with CUDA, got one without. Install vesta-cuda."
        raise vesta._C.DeviceError(message) from error
    return _C_cuda


def index(device: Any = None, optional: bool = True) -> int:
    """Returns the number of a device given as a device, a number, a str or None (the current device)."""
    if device is None and optional:
        return native().current_device()
    if isinstance(device, int) and not isinstance(device, bool):
        return native().current_device() if device < 0 and optional else device
    named = vesta.device(device)
    if named.type != "cuda":
        raise ValueError(f"cuda: expected a cuda device, got {named}")
    return native().current_device() if named.index is None else named.index
