"""Named results of ops: ``vesta.max(x, 0)`` is a ``vesta.return_types.max`` with ``values`` and ``indices``."""

from typing import TYPE_CHECKING

from ._C import _return_types

if TYPE_CHECKING:
    from ._C._return_types import *  # noqa: F403

globals().update({name: value for name, value in vars(_return_types).items() if not name.startswith("_")})
