"""Finds where a gradient goes wrong: errors in backward name the operation, and a NaN in a gradient raises."""

from __future__ import annotations

from vesta import _C

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class detect_anomaly:
    """A context in which backward names the operation an error came from; slow, for debugging.

    Args:
        check_nan: raise as soon as an operation's gradient holds a NaN.

    Example::

        >>> import vesta
        >>> x = vesta.tensor(0.0, requires_grad=True)
        >>> with vesta.autograd.detect_anomaly():
        ...     (x * 2).backward()
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(_C.is_anomaly_enabled())
        _C.set_anomaly_enabled(True, self.check_nan)

    def __exit__(self, *exc: object) -> None:
        _C.set_anomaly_enabled(self._before.pop(), self.check_nan)


class set_detect_anomaly:
    """A switch of anomaly detection: from the call on, or as a context manager, for its extent only.

    Example::

        >>> import vesta
        >>> vesta.autograd.set_detect_anomaly(False)
        <vesta.autograd.anomaly_mode.set_detect_anomaly object at 0x7f41da6cbd50>
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = _C.is_anomaly_enabled()
        self._check_nan = check_nan
        _C.set_anomaly_enabled(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        _C.set_anomaly_enabled(self._before, self._check_nan)
