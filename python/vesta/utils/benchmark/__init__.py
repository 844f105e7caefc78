"""The time of a statement: ``torch.utils.benchmark``'s ``Timer`` and ``Measurement``."""

from __future__ import annotations

import math
import statistics
import textwrap
import timeit
from collections.abc import Callable, Iterable
from typing import Any

import vesta
from vesta._names import listing

__all__ = ["Measurement", "Timer"]


def _without_margin(text: str) -> str:
    """Returns a statement without the indentation that all its lines share, and empty lines around it."""
    return textwrap.dedent(text).strip("\n").rstrip()


class Measurement:
    """The times of blocks of runs, in seconds.

    Args:
        number_per_run: how many runs a block had.
        raw_times: the time of each block.
        timer: the Timer, whose labels are shown.
    """

    def __init__(self, number_per_run: int, raw_times: list[float], timer: Timer) -> None:
        self.number_per_run, self.raw_times, self.timer = number_per_run, raw_times, timer
        self.num_threads = timer.num_threads

    @property
    def times(self) -> list[float]:
        """The time of one run, for each block."""
        return [time / self.number_per_run for time in self.raw_times]

    @property
    def median(self) -> float:
        """The median time of a run."""
        return statistics.median(self.times)

    @property
    def mean(self) -> float:
        """The mean time of a run."""
        return statistics.fmean(self.times)

    @property
    def iqr(self) -> float:
        """The distance between the quartiles of the times."""
        times = sorted(self.times)
        return _quantile(times, 0.75) - _quantile(times, 0.25)

    @property
    def has_warnings(self) -> bool:
        """Whether the times spread so much, more than a tenth of the median, that they tell little."""
        return self.iqr > 0.1 * self.median

    @property
    def title(self) -> str:
        """The label, or the statement."""
        timer = self.timer
        name = timer.label or timer.stmt
        return name + (f": {timer.sub_label}" if timer.sub_label else "")

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Returns a measurement for each timer and number of runs, with the blocks of all."""
        found: dict[tuple[int, int], Measurement] = {}
        for one in measurements:
            key = (id(one.timer), one.number_per_run)
            merged = found.setdefault(key, Measurement(one.number_per_run, [], one.timer))
            merged.raw_times = merged.raw_times + one.raw_times
        return list(found.values())

    def __repr__(self) -> str:
        unit, scale = _unit(self.median)
        lines = [f"<vesta.utils.benchmark.Measurement of {self.title}>"]
        if self.timer.description:
            lines.append(self.timer.description)
        lines.append(f"  Median: {self.median / scale:.2f} {unit}")
        if len(self.raw_times) > 1:
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit}")
        threads = f"{self.num_threads} thread" + ("s" if self.num_threads > 1 else "")
        lines.append(f"  {len(self.raw_times)} measurements, {self.number_per_run} runs per measurement, {threads}")
        return "\n".join(lines)


def _quantile(times: list[float], part: float) -> float:
    """Returns a quantile of sorted times, between two by their distance."""
    place = part * (len(times) - 1)
    low = math.floor(place)
    high = min(low + 1, len(times) - 1)
    return times[low] + (times[high] - times[low]) * (place - low)


def _unit(time: float) -> tuple[str, float]:
    """Returns the unit in which a time is readable, and its length in seconds."""
    units = (("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0))
    return next(((name, scale) for name, scale in reversed(units) if time >= scale), units[0])


class Timer:
    """A statement to be timed.

    Args:
        stmt: the statement, as a text; the indentation that all lines share does not count, as in the setups.
        setup, global_setup: statements that run before the times are taken.
        timer: a function that returns seconds; by default a CUDA device's work is waited for.
        globals: the names that the statements see.
        label, sub_label, description, env: texts that are shown.
        num_threads: how many threads an operation may use.

    Raises:
        ValueError: ``stmt`` is not Python.

    Example::

        >>> import vesta
        >>> from vesta.utils.benchmark import Timer
        >>> timer = Timer("x + x", globals={"x": vesta.ones(8)})
        >>> timer.timeit(100).number_per_run
        100
    """

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] | None = None,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Any = "python",
    ) -> None:
        if str(language).lower() not in ("python", "py", "language.python"):
            raise ValueError(f"Timer: expected statements in Python, got {language!r} (language).")
        for text in (stmt, setup, global_setup):
            if not isinstance(text, str):
                raise ValueError(
                    f"Timer: expected statements as str, got {type(text).__name__}. Call it in a statement."
                )
        stmt, setup, global_setup = (_without_margin(text) for text in (stmt, setup, global_setup))
        self.stmt, self.label, self.sub_label, self.description, self.env = stmt, label, sub_label, description, env
        self.num_threads = num_threads
        names = {"vesta": vesta, "torch": vesta, **(globals or {})}
        clock = timer if timer is not None else _clock
        prepare = f"{global_setup}\n{setup}" if global_setup else setup
        self._timer = timeit.Timer(stmt, prepare, timer=clock, globals=names)

    def _measure(self, number: int) -> float:
        threads = vesta.get_num_threads()
        vesta.set_num_threads(self.num_threads)
        try:
            return self._timer.timeit(number)
        finally:
            vesta.set_num_threads(threads)

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """Returns the time of ``number`` runs, as one block, after some that are not counted."""
        self._measure(max(number // 100, 2))
        return Measurement(number, [self._measure(number)], self)

    def _block(self, least: float) -> int:
        """Returns how many runs take at least ``least`` seconds."""
        number = 1
        while self._measure(number) < least:
            number *= 2
        return number

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Returns the times of blocks that take ``min_run_time`` seconds together.

        Args:
            callback: called with the number of runs and the time of each block.
        """
        number = self._block(min_run_time / 1000)
        times: list[float] = []
        while sum(times) < min_run_time:
            times.append(self._measure(number))
            if callback is not None:
                callback(number, times[-1])
        return Measurement(number, times, self)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:
        """Returns the times of blocks, as many as it takes until their spread is below ``threshold`` of the median, or
        ``max_run_time`` seconds have passed."""
        number = self._block(min_run_time / 10)
        found = Measurement(number, [], self)
        while True:
            found.raw_times.append(self._measure(number))
            if callback is not None:
                callback(number, found.raw_times[-1])
            total = sum(found.raw_times)
            steady = len(found.raw_times) > 3 and found.iqr < threshold * found.median
            if (total >= min_run_time and steady) or total >= max_run_time:
                return found


def _clock() -> float:
    """Returns the time in seconds, after all work on the device is done."""
    if vesta.cuda.is_available():
        vesta.cuda.synchronize()
    return timeit.default_timer()


__dir__ = listing(globals())
