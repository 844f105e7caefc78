"""The old name of ``vesta.hub``: ``load_url``."""

from __future__ import annotations

from vesta._names import listing
from vesta.hub import download_url_to_file as _download_url_to_file
from vesta.hub import load_state_dict_from_url as load_url
from vesta.hub import tqdm

__all__ = ["_download_url_to_file", "load_url", "tqdm"]


__dir__ = listing(globals())
