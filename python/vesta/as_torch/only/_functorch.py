"""``torch._functorch``: nothing is transformed; its settings can be set."""

from __future__ import annotations

from vesta.as_torch.only._settings import Settings

__all__ = ["config"]

config = Settings("torch._functorch.config")
