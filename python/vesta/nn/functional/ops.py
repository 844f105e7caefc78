"""The ops that functions here are made of, wherever their line in the op list puts them."""

from __future__ import annotations

from typing import Any

import vesta
from vesta import _C

__all__ = ["ops"]


class _Ops:
    """Finds an op by its name in ``_C._private``, ``_C._nn`` and ``vesta``, once; afterwards it is an attribute."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        for home in (_C._private, _C._nn, vesta):
            found = vars(home).get(name)  # under as_torch, getattr of a missing name gives what refuses
            if found is not None:
                setattr(self, name, found)
                return found
        raise NotImplementedError(f"{name}: expected an op of this name, found none in this build.")


ops: Any = _Ops()
