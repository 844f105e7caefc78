"""Files of weights by URL, and models of repositories: from the local disk, or from PyTorch's cache.

Nothing is downloaded. What a URL or the name of a repository stands for is looked up in the cache; if it is not there,
the error says where to put it.
"""

from __future__ import annotations

import builtins
import hashlib
import importlib.util
import os
import re
import sys
from types import ModuleType
from typing import Any
from urllib.parse import unquote, urlparse
from urllib.request import url2pathname

import vesta
from vesta._names import listing

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

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


# ---- repositories -------------------------------------------------------------------------------------------------


def load(
    repo_or_dir: str,
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: Any = "check",
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """Calls a function of a repository's ``hubconf.py``, which makes a model.

    Args:
        repo_or_dir: a folder, or ``owner/name[:ref]``, whose folder ``owner_name_ref`` is looked for in the cache; a
            ref that is not given is ``main`` or ``master``.
        model: the name of the function; ``args`` and ``kwargs`` go to it.
        source: ``"local"`` for a folder, ``"github"`` for a name.
        trust_repo, force_reload, verbose, skip_validation: accepted for PyTorch's sake: nothing is downloaded.

    Raises:
        FileNotFoundError: the repository is not in the cache; the message says where to put it.
        RuntimeError: there is no such function, or packages that it needs are missing.
        ValueError: ``source`` is neither.

    Example::

        >>> import pathlib, tempfile, vesta
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pathlib.Path(folder, "hubconf.py").write_text("from vesta.nn import Linear as layer")
        ...     vesta.hub.load(folder, "layer", 3, 1, source="local")
        Linear(in_features=3, out_features=1, bias=True)
    """
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    if not isinstance(model, str):
        raise ValueError("Invalid input: model should be a string of function name")
    folder = _repository(repo_or_dir) if source == "github" else os.path.expanduser(repo_or_dir)
    with _Importable(folder):
        return _entry(_hubconf(folder), model)(*args, **kwargs)


def list(
    github: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: Any = "check",
    verbose: bool = True,
) -> builtins.list[str]:
    """Returns the names of the functions of a repository in the cache that make models."""
    folder = _repository(github)
    with _Importable(folder):
        functions = vars(_hubconf(folder))
    return [name for name, value in functions.items() if callable(value) and not name.startswith("_")]


def help(
    github: str, model: str, force_reload: bool = False, skip_validation: bool = False, trust_repo: Any = "check"
) -> str | None:
    """Returns the docstring of a function of a repository in the cache."""
    folder = _repository(github)
    with _Importable(folder):
        return _entry(_hubconf(folder), model).__doc__


class _Importable:
    """A folder whose modules can be imported inside of the block."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __enter__(self) -> None:
        sys.path.insert(0, self.folder)

    def __exit__(self, *error: object) -> None:
        if self.folder in sys.path:
            sys.path.remove(self.folder)


def _repository(name: str) -> str:
    """Returns the folder of ``owner/name[:ref]`` in the cache."""
    parts = re.fullmatch(r"([^/:]+)/([^/:]+)(?::(.+))?", name)
    if parts is None:
        raise ValueError(f'hub: expected "owner/name[:ref]", got {name!r}. For a folder use source="local".')
    owner, repository, ref = parts.groups()
    refs = [ref.replace("/", "_")] if ref else ["main", "master"]
    folders = [os.path.join(get_dir(), f"{owner}_{repository}_{ref}") for ref in refs]
    for folder in folders:
        if os.path.exists(folder):
            return folder
    raise FileNotFoundError(
        2,
        f"hub: expected the repository in the cache, got {name!r}, which is not there. Vesta downloads nothing: fetch "
        "it with another tool and put it here",
        folders[0],
    )


def _hubconf(folder: str) -> ModuleType:
    path = os.path.join(folder, "hubconf.py")
    spec = importlib.util.spec_from_file_location("hubconf.py", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _entry(hubconf: ModuleType, name: str) -> Any:
    needed = getattr(hubconf, "dependencies", None) or ()
    missing = [package for package in needed if package not in ("torch", "vesta") and _is_missing(package)]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    function = getattr(hubconf, name, None)
    if not callable(function):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return function


def _is_missing(package: str) -> bool:
    return package not in sys.modules and importlib.util.find_spec(package) is None


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


__dir__ = listing(globals())
