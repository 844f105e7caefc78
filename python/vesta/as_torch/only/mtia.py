"""``torch.mtia``: Meta's accelerators, on which Vesta does not compute."""

from __future__ import annotations

from vesta.as_torch.only._absent import *  # noqa: F403
