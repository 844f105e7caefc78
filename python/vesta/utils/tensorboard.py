"""``SummaryWriter``: logs for TensorBoard, written by the package tensorboardX where it is installed."""

from __future__ import annotations

from typing import Any

from vesta._names import listing

__all__ = ["SummaryWriter"]


def _package() -> Any:
    """Returns tensorboardX. ModuleNotFoundError: it is not installed."""
    try:
        import tensorboardX
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "vesta.utils.tensorboard: expected the package tensorboardX, found none. Install it: pip install "
            "tensorboardX"
        ) from error
    return tensorboardX


def _plain(value: Any) -> Any:
    """Returns a tensor as an array, also inside lists and dicts; anything else as it is."""
    from vesta import Tensor

    if isinstance(value, Tensor):
        host = value.detach().cpu()
        return host.float().numpy() if str(host.dtype).endswith("bfloat16") else host.numpy()
    if isinstance(value, (list, tuple)):
        return type(value)(map(_plain, value)) if type(value) in (list, tuple) else value
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    return value


class SummaryWriter:
    """A writer of scalars, images, histograms, texts and so on: the methods of ``tensorboardX.SummaryWriter``.

    Tensors among the arguments are given to it as arrays.

    Args:
        log_dir: the folder; by default ``runs/`` and the time and the host's name.
        comment, purge_step, max_queue, flush_secs, filename_suffix: as in PyTorch.

    Raises:
        ModuleNotFoundError: tensorboardX is not installed.
    """

    def __init__(
        self,
        log_dir: Any = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
    ) -> None:
        folder = None if log_dir is None else str(log_dir)
        self._writer = _package().SummaryWriter(folder, comment, purge_step, max_queue, flush_secs, filename_suffix)
        self.log_dir = self._writer.logdir
        self.purge_step, self.max_queue, self.flush_secs = purge_step, max_queue, flush_secs
        self.filename_suffix = filename_suffix

    def get_logdir(self) -> str:
        """Returns the folder of the logs."""
        return self.log_dir

    def add_graph(self, model: Any, input_to_model: Any = None, *args: Any, **kwargs: Any) -> None:
        """Raises NotImplementedError: a graph comes from tracing, which Vesta does not do."""
        raise NotImplementedError("add_graph: expected a traced model. Vesta does not record programs as graphs.")

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.__dict__.get("_writer") or _package().SummaryWriter, name)
        if not name.startswith("add_"):
            return method

        def add(*args: Any, **kwargs: Any) -> Any:
            return method(*map(_plain, args), **{key: _plain(value) for key, value in kwargs.items()})

        add.__name__, add.__doc__ = name, method.__doc__
        return add

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self._writer.close()


def __getattr__(name: str) -> Any:
    if name in ("FileWriter", "RecordWriter"):
        return getattr(_package(), name)
    raise AttributeError(f"module 'vesta.utils.tensorboard' has no attribute {name!r}")


__dir__ = listing(globals())
