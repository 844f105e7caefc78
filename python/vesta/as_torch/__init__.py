"""Programs written for PyTorch run on Vesta, unmodified.

    python -m vesta.as_torch script.py [arguments]      also -m MODULE and -c CODE
    %load_ext vesta.as_torch                            in a notebook
    vesta.as_torch.install()                            inside a program, before it imports torch

After that ``import torch``, and every module below it, gives Vesta's modules themselves, in this process and in those
that it starts. ``docs/as_torch.md`` is the guide; ``README.md`` beside this file says how it works.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

import vesta
from vesta._names import listing

__all__ = ["install", "is_installed", "load_ipython_extension"]

#: The version of PyTorch whose names and semantics Vesta follows, and which ``torch.__version__`` says.
TORCH_VERSION = "2.15.0"
#: Vesta's own version, which ``vesta.__version__`` does not say any more once this is installed.
VESTA_VERSION = vesta.__version__
#: What child processes find on their path: a package ``torch`` that installs this one, and its metadata.
PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "path")
_finder: Any = None


def is_installed() -> bool:
    """Returns whether ``torch`` is Vesta in this process.

    Example::

        >>> import vesta.as_torch
        >>> vesta.as_torch.install()
        >>> vesta.as_torch.is_installed()
        True
    """
    return _finder is not None


def install() -> None:
    """Makes ``import torch`` give Vesta, in this process and in those that it starts from now on.

    Names that a program can see change from ``vesta`` to ``torch``: ``repr(vesta.float32)``, ``__module__`` of classes,
    what ``pickle`` writes. What Vesta refuses and PyTorch computes is computed, as far as ``docs/as_torch.md`` says.
    There is no way back within the process. A second call does nothing.

    Raises:
        RuntimeError: PyTorch itself is imported already.

    Example::

        >>> import vesta.as_torch
        >>> vesta.as_torch.install()
        >>> import torch
        >>> torch.ones(2, dtype=torch.float64)
        tensor([1., 1.], dtype=torch.float64)
    """
    global _finder
    if _finder is not None:
        return
    loaded = sys.modules.get("torch")
    if loaded is not None and os.path.dirname(os.path.dirname(getattr(loaded, "__file__", None) or "")) != PATH:
        raise RuntimeError(
            f"install: expected a process without PyTorch, got {loaded!r}. Call vesta.as_torch.install() before "
            "anything imports torch, or run the program by: python -m vesta.as_torch script.py"
        )
    from . import behaviour, naming
    from .finder import Finder, adopt, tell

    _finder = Finder()
    sys.meta_path.insert(0, _finder)
    naming.install(adopt)
    behaviour.install()
    sys.modules["torch"] = vesta
    tell()
    importlib.import_module("vesta.utils")  # PyTorch's is loaded with it, and programs rely on sys.modules
    _reach_children()


def _reach_children() -> None:
    """Puts the package ``torch`` of this folder on the path of processes that start from now on."""
    if PATH not in sys.path:
        sys.path.insert(min(1, len(sys.path)), PATH)  # spawned processes get sys.path, other children the environment
    path = os.environ.get("PYTHONPATH", "")
    if PATH not in path.split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (PATH, path)))


def load_ipython_extension(ipython: Any) -> None:
    """Does ``install()`` for ``%load_ext vesta.as_torch`` in a notebook."""
    install()


__dir__ = listing(globals())
