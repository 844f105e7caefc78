"""The extension and the numbering of devices, for the modules of this package."""

from __future__ import annotations

import functools
import importlib
import warnings
from typing import Any

import vesta


def native() -> Any:
    """Returns the extension; raises DeviceError if this build has none, or one that cannot be loaded."""
    try:
        return importlib.import_module("vesta._C_cuda")
    except ModuleNotFoundError as error:
        message = "vesta.cuda: expected a build with CUDA, got one without. Install vesta-cuda."
        raise vesta._C.DeviceError(message) from error
    except ImportError as error:
        raise vesta._C.DeviceError(f"vesta.cuda: {error}") from error


@functools.cache
def if_there() -> Any:
    """Returns the extension, or None if this build has none; warns, once, if there is one that cannot be loaded."""
    try:
        return importlib.import_module("vesta._C_cuda")
    except ModuleNotFoundError:
        return None
    except ImportError as error:
        warnings.warn(f"vesta.cuda: CUDA cannot be used: {error}", RuntimeWarning, stacklevel=3)
        return None


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
