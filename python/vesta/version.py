"""Versions, with ``torch.version``'s names: Vesta's own, and None for what it was not built with."""

from __future__ import annotations

from vesta import __version__
from vesta._names import listing

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "xpu"]

debug = False
#: The version of CUDA that the library was compiled for, as "12.4"; None without the CUDA library.
cuda: str | None = None
#: None: there is no backend for AMD's devices.
hip: str | None = None
#: None: there is no backend for Intel's GPUs.
xpu: str | None = None
#: The commit of the sources; not recorded.
git_version = "Unknown"

__dir__ = listing(globals())
