"""The internal names of PyTorch's loader that programs use; their contents are in the other modules."""

from __future__ import annotations

import sys

from vesta.utils.data import collate, information, seeding, transfer

MP_STATUS_CHECK_INTERVAL = 5.0  #: seconds between two checks of workers by PyTorch's loader; not used here

worker = information
pin_memory = transfer
for _name, _module in (("collate", collate), ("worker", worker), ("pin_memory", pin_memory)):
    sys.modules[f"{__name__}.{_name}"] = _module

__all__ = ["MP_STATUS_CHECK_INTERVAL", "collate", "pin_memory", "seeding", "worker"]
