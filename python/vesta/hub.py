"""Files of weights by URL: from the local disk, or from the cache in which PyTorch keeps its own.

Nothing is downloaded. A URL of the network is looked up in the cache; if the file is not there, the error says where to
put it.
"""

from __future__ import annotations

import hashlib
import os
import re
from typing import Any
from urllib.parse import unquote, urlparse
from urllib.request import url2pathname

import vesta

__all__ = ["download_url_to_file", "get_dir", "load_state_dict_from_url", "set_dir"]

#: The checksum in a name like ``resnet18-bf5a0cfb.pth``.
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
_hub_dir: str | None = None


def get_dir() -> str:
    """Returns the folder of the cache: what ``set_dir`` has set, else ``hub`` in ``$VESTA_HOME``, ``$TORCH_HOME`` or
    ``$XDG_CACHE_HOME/torch`` (``~/.cache/torch``), the first that is set.

    Example::

        >>> import os, vesta
        >>> os.path.basename(vesta.hub.get_dir())
        'hub'
    """
    if _hub_dir is not None:
        return _hub_dir
    cache = os.path.join(os.getenv("XDG_CACHE_HOME", "~/.cache"), "torch")
    home = os.getenv("VESTA_HOME") or os.getenv("TORCH_HOME") or cache
    return os.path.join(os.path.expanduser(home), "hub")


def _get_torch_home() -> str:
    """Returns the folder in which that of the cache is."""
    return os.path.dirname(get_dir())


def set_dir(d: str | os.PathLike[str]) -> None:
    """Sets the folder of the cache."""
    global _hub_dir
    _hub_dir = os.path.expanduser(os.fspath(d))


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Copies a file of the local disk, ``file:///...``, to ``dst``, at once.

    Args:
        hash_prefix: how the SHA-256 of the contents begins; RuntimeError if it does not.
        progress: accepted for PyTorch's sake.

    Raises:
        RuntimeError: the URL is one of the network, or the checksum is another.
    """
    from vesta.serialization.saving import replacing

    if urlparse(url).scheme != "file":
        raise RuntimeError(
            f"download_url_to_file: expected a URL of the local disk (file:///...), got {url!r} (url). Vesta downloads "
            f"nothing: fetch the file with another tool and put it to {os.path.expanduser(dst)}."
        )
    checksum = hashlib.sha256()
    with open(_path_of(url), "rb") as source, replacing(os.path.abspath(os.path.expanduser(dst))) as target:
        while block := source.read(1 << 20):
            checksum.update(block)
            target.write(block)
        if hash_prefix and not checksum.hexdigest().startswith(hash_prefix):
            raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{checksum.hexdigest()}")')


def _path_of(url: str) -> str:
    parts = urlparse(url)
    if parts.netloc not in ("", "localhost"):
        raise RuntimeError(f"expected a file of this machine, got {url!r} (url).")
    return url2pathname(parts.path)


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = True,
) -> dict[str, Any]:
    """Loads the object in the file that a URL names, from the cache or from the local disk.

    Args:
        url: ``file:///...``, which is read where it is; or any other, whose last part is the name in the cache.
        model_dir: the folder of the cache; default: ``checkpoints`` in ``vesta.hub.get_dir()``.
        map_location: as in ``vesta.load``.
        progress: accepted for PyTorch's sake.
        check_hash: whether the name ends with the beginning of the contents' SHA-256, which is then compared.
        file_name: the name in the cache, instead of the URL's.
        weights_only: as in ``vesta.load``. True by default, while PyTorch has False here.

    Raises:
        FileNotFoundError: the file is not in the cache; the message says where to put it.
        RuntimeError: the checksum is another.

    Example::

        >>> import pathlib, tempfile, vesta
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "weights.pt")
        ...     vesta.save({"w": vesta.ones(1)}, path)
        ...     vesta.hub.load_state_dict_from_url(path.as_uri())
        {'w': tensor([1.])}
    """
    model_dir = os.path.join(get_dir(), "checkpoints") if model_dir is None else os.fspath(model_dir)
    name = file_name or os.path.basename(unquote(urlparse(url).path))
    path = os.path.join(model_dir, name)
    if not os.path.exists(path):
        if urlparse(url).scheme != "file":
            raise FileNotFoundError(
                2,
                f"load_state_dict_from_url: expected a file in the cache, got {url!r}, which is not there. "
                "Vesta downloads nothing: fetch it with another tool and put it here",
                path,
            )
        path = _path_of(url)
    found = HASH_REGEX.search(name) if check_hash else None
    if found:
        _compare_hash(path, found.group(1))
    return vesta.load(path, map_location=map_location, weights_only=weights_only)


def _compare_hash(path: str, expected: str) -> None:
    checksum = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            checksum.update(block)
    if not checksum.hexdigest().startswith(expected):
        raise RuntimeError(f'invalid hash value (expected "{expected}", got "{checksum.hexdigest()}") ({path}).')


def __getattr__(name: str) -> Any:
    """Gives ``tqdm`` of the package of that name, which programs import from here; a bar that shows nothing without."""
    if name != "tqdm":
        raise AttributeError(f"module 'vesta.hub' has no attribute {name!r}")
    try:
        from tqdm import tqdm
    except ModuleNotFoundError:
        return _NoBar
    return tqdm


class _NoBar:
    """An iterable with the methods of a bar of tqdm, for environments without that package."""

    def __init__(self, iterable: Any = (), *args: Any, **kwargs: Any) -> None:
        self.iterable, self.n = iterable, 0

    def __iter__(self) -> Any:
        return iter(self.iterable)

    def update(self, n: int = 1) -> None:
        """Counts ``n`` more."""
        self.n += n

    def close(self) -> None:
        """Does nothing."""

    def __enter__(self) -> _NoBar:
        return self

    def __exit__(self, *error: object) -> None:
        return None
