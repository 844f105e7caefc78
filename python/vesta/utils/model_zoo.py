"""The old name of ``vesta.hub.load_state_dict_from_url``: ``load_url``."""

from __future__ import annotations

from vesta.hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]
