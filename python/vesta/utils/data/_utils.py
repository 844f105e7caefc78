"""The places where programs find the inner names of PyTorch's loader; what is there lives in the modules beside."""

from __future__ import annotations

import sys

from vesta.utils.data import collate, information, seeding, transfer

MP_STATUS_CHECK_INTERVAL = 5.0  #: seconds between two looks of PyTorch's loader at its workers; not used here

worker = information
pin_memory = transfer
for _name, _module in (("collate", collate), ("worker", worker), ("pin_memory", pin_memory)):
    sys.modules[f"{__name__}.{_name}"] = _module

__all__ = ["MP_STATUS_CHECK_INTERVAL", "collate", "pin_memory", "seeding", "worker"]
