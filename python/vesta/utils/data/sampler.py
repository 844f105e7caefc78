"""Samplers: in which order the samples of a dataset come."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import vesta

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

T_co = TypeVar("T_co", covariant=True)


def _positive(name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{name} should be a positive integer value, but got {name}={value}")


class Sampler(Generic[T_co]):
    """Base of samplers: give ``__iter__`` over numbers of samples, and ``__len__``."""

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__}: expected an __iter__ over sample numbers, found none.")


class SequentialSampler(Sampler[int]):
    """0, 1, 2, ....

    Args:
        data_source: what has the samples; only its length is used.
    """

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """All samples in a new random order each time, or ``num_samples`` of them.

    Args:
        data_source: what has the samples; only its length is used.
        replacement: draw each sample anew, so that one may come twice.
        num_samples: how many to give; all when missing. More than there are: several permutations in a row.
        generator: of the order; the default one when missing.

    Example::

        >>> import vesta
        >>> sorted(vesta.utils.data.RandomSampler(range(4)))
        [0, 1, 2, 3]
    """

    def __init__(
        self, data_source: Any, replacement: bool = False, num_samples: int | None = None, generator: Any = None
    ) -> None:
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        if num_samples is not None:
            _positive("num_samples", num_samples)
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator

    @property
    def num_samples(self) -> int:
        """How many samples one pass gives."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n = len(self.data_source)
        if n == 0:
            return iter(())
        if self.replacement:
            drawn = vesta.randint(0, n, (self.num_samples,), dtype=vesta.int64, generator=self.generator)
            return iter(drawn.tolist())
        passes = -(-self.num_samples // n)
        orders = (vesta.randperm(n, generator=self.generator).tolist() for _ in range(passes))
        return itertools.islice(itertools.chain.from_iterable(orders), self.num_samples)

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Given numbers in a new random order each time."""

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        return (self.indices[i] for i in vesta.randperm(len(self.indices), generator=self.generator).tolist())

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Draws ``num_samples`` numbers 0 to N - 1, each with probability proportional to its weight.

    With replacement by inverting the cumulative weights; without, by taking the largest log(u) / weight (Efraimidis and
    Spirakis, "Weighted random sampling with a reservoir", 2006).

    Args:
        weights: N numbers, not negative; they need not sum to 1.
        replacement: whether a number may come twice.

    Example::

        >>> import vesta
        >>> list(vesta.utils.data.WeightedRandomSampler([0.0, 1.0], 3))
        [1, 1, 1]
    """

    def __init__(
        self, weights: Sequence[float], num_samples: int, replacement: bool = True, generator: Any = None
    ) -> None:
        _positive("num_samples", num_samples)
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.weights = vesta.as_tensor(weights, dtype=vesta.float64)
        if self.weights.dim() != 1:
            raise ValueError(
                "weights should be a 1d sequence but given weights have shape " + str(tuple(self.weights.shape))
            )
        positive = sum(weight > 0 for weight in self.weights.tolist())
        if any(not weight >= 0 for weight in self.weights.tolist()) or positive == 0:
            raise ValueError("WeightedRandomSampler: expected weights >= 0 with one above, got others (weights).")
        if not replacement and num_samples > positive:
            raise ValueError(
                f"WeightedRandomSampler: expected num_samples <= {positive}, the number of positive weights, got "
                f"{num_samples} (num_samples). Pass replacement=True."
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        weights = self.weights.tolist()
        draws = self.num_samples if self.replacement else len(weights)
        uniform = vesta.rand((draws,), dtype=vesta.float64, generator=self.generator).tolist()
        if self.replacement:
            sums = list(itertools.accumulate(weights))
            last = max(i for i, weight in enumerate(weights) if weight > 0)  # where rounding may not go beyond
            return iter([min(bisect.bisect_right(sums, u * sums[-1]), last) for u in uniform])
        keys = [math.log(1.0 - u) / weight if weight > 0 else -math.inf for u, weight in zip(uniform, weights)]
        return iter(sorted(range(len(weights)), key=keys.__getitem__, reverse=True)[: self.num_samples])

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list]):
    """Lists of ``batch_size`` numbers from another sampler.

    Args:
        drop_last: leave out a last list that is shorter.

    Example::

        >>> import vesta
        >>> list(vesta.utils.data.BatchSampler(range(5), batch_size=2, drop_last=False))
        [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[Any], batch_size: int, drop_last: bool) -> None:
        _positive("batch_size", batch_size)
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list]:
        numbers = iter(self.sampler)
        while batch := list(itertools.islice(numbers, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield batch

    def __len__(self) -> int:
        full, rest = divmod(len(self.sampler), self.batch_size)  # type: ignore[arg-type]
        return full if self.drop_last or not rest else full + 1
