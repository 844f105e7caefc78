"""Stands for PyTorch in the processes that a program under ``vesta.as_torch`` starts: installs it, and is replaced."""

import os
import sys

try:
    import vesta.as_torch
except ModuleNotFoundError:  # the parent had Vesta on a path of its own
    sys.path.append(os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 4)))
    import vesta.as_torch

vesta.as_torch.install()
