"""Samplers: the order in which the samples of a dataset come."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

import vesta
from vesta import Tensor
from vesta._arguments import checked
from vesta.utils.data.seeding import draw_seed

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

T_co = TypeVar("T_co", covariant=True)

_CHUNK = 1 << 16  # numbers made at once


def _check_positive(name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{name} should be a positive integer value, but got {name}={value}")


def _listed(numbers: Tensor, start: int = 0) -> Iterator[int]:
    """Returns an iterator over the integers of a tensor [N] from ``start`` on, without a list of all of them."""
    firsts = range(start, numbers.size(0), _CHUNK)
    return itertools.chain.from_iterable(numbers[first : first + _CHUNK].tolist() for first in firsts)


class Sampler(Generic[T_co]):
    """The base of samplers: define ``__iter__`` over sample numbers, and ``__len__``.

    A loader that resumes in the middle of a pass iterates anew over a user's sampler and drops what came already,
    unless the sampler has ``state_dict()`` and ``load_state_dict(state)``, which are used then.
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__}: expected an __iter__ over sample numbers, found none.")


class SeekableSampler(Sampler[T_co]):
    """A sampler whose order depends on one seed alone, so that a pass can continue anywhere.

    Subclasses define ``_from(seed, start)``: the elements from ``start`` on. ``_random`` says whether a seed is drawn
    at all.
    """

    generator: Any = None
    _random = True

    def __iter__(self) -> Iterator[T_co]:
        return self._from(self._begin(), 0)

    def _begin(self) -> int:
        """Draws the seed of a pass."""
        return draw_seed(self.generator) if self._random else 0

    def _from(self, seed: int, start: int) -> Iterator[T_co]:
        raise NotImplementedError


def seekable(sampler: Any) -> bool:
    """Returns whether an order follows from ``_begin`` and ``_from``: not if a subclass has its own ``__iter__``."""
    if type(sampler) is BatchSampler:
        return seekable(sampler.sampler)
    return isinstance(sampler, SeekableSampler) and type(sampler).__iter__ is SeekableSampler.__iter__


class SequentialSampler(SeekableSampler[int]):
    """0, 1, 2, ....

    Args:
        data_source: the dataset; only its length is used.
    """

    _random = False

    @checked
    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def _from(self, seed: int, start: int) -> Iterator[int]:
        return iter(range(start, len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(SeekableSampler[int]):
    """All samples in a new random order each time, or ``num_samples`` of them.

    Args:
        data_source: the dataset; only its length is used.
        replacement: draw each sample anew, so that one may come twice.
        num_samples: how many to give; default: all. More than there are: several permutations in a row.
        generator: the generator of the order; default: the default generator. One number is drawn from it for each
            pass.

    Example::

        >>> import vesta
        >>> sorted(vesta.utils.data.RandomSampler(range(4)))
        [0, 1, 2, 3]
    """

    @checked
    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: vesta.Generator | None = None,
    ) -> None:
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        _check_positive("num_samples", self.num_samples)

    @property
    def num_samples(self) -> int:
        """The number of samples in one pass."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def _from(self, seed: int, start: int) -> Iterator[int]:
        return itertools.chain.from_iterable(self._parts(seed, start))

    def _parts(self, seed: int, start: int) -> Iterator[Iterator[int]]:
        n = len(self.data_source)
        own = vesta.Generator()
        part = _CHUNK if self.replacement else n  # numbers of one draw; draw i is seeded by seed + i
        for first in range(start // part * part, self.num_samples, part) if n else ():
            own.manual_seed((seed + first // part) % (1 << 64))
            count = min(part, self.num_samples - first)
            if self.replacement:
                drawn = vesta.randint(0, n, (count,), dtype=vesta.int64, generator=own)
            else:
                drawn = vesta.randperm(n, generator=own)[:count]
            yield _listed(drawn, max(0, start - first))

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(SeekableSampler[int]):
    """The given numbers in a new random order each time.

    Example::

        >>> import vesta
        >>> sorted(vesta.utils.data.SubsetRandomSampler([3, 1, 2]))
        [1, 2, 3]
    """

    @checked
    def __init__(self, indices: Sequence[int], generator: vesta.Generator | None = None) -> None:
        if not (hasattr(indices, "__len__") and hasattr(indices, "__getitem__")):
            given = type(indices).__name__
            raise TypeError(f"SubsetRandomSampler: expected a sequence of ints, got {given} (indices).")
        self.indices = indices
        self.generator = generator

    def _from(self, seed: int, start: int) -> Iterator[int]:
        order = vesta.randperm(len(self.indices), generator=vesta.Generator().manual_seed(seed))
        return (self.indices[i] for i in _listed(order, start))

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(SeekableSampler[int]):
    """``num_samples`` numbers 0 to N - 1, each drawn with probability proportional to its weight.

    Draws with replacement invert the cumulative weights; draws without take the largest log(u) / weight (Efraimidis and
    Spirakis, "Weighted random sampling with a reservoir", 2006).

    Args:
        weights: N numbers, not negative; they need not sum to 1.
        replacement: whether a number may come twice.

    Example::

        >>> import vesta
        >>> list(vesta.utils.data.WeightedRandomSampler([0.0, 1.0], 3))
        [1, 1, 1]
    """

    @checked
    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: vesta.Generator | None = None,
    ) -> None:
        _check_positive("num_samples", num_samples)
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.weights = vesta.as_tensor(weights, dtype=vesta.float64)
        if self.weights.dim() != 1:
            raise ValueError(
                "weights should be a 1d sequence but given weights have shape " + str(tuple(self.weights.shape))
            )
        positive = int((self.weights > 0).sum().item())
        if positive == 0 or not bool(((self.weights >= 0) & (self.weights < math.inf)).all().item()):
            raise ValueError("WeightedRandomSampler: expected finite weights >= 0, not all 0, got others (weights).")
        if not replacement and num_samples > positive:
            raise ValueError(
                f"WeightedRandomSampler: expected num_samples <= {positive}, the number of positive weights, got "
                f"{num_samples} (num_samples). Pass replacement=True."
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def _from(self, seed: int, start: int) -> Iterator[int]:
        weights = self.weights.tolist()
        draws = self.num_samples if self.replacement else len(weights)
        own = vesta.Generator().manual_seed(seed)
        uniform = vesta.rand((draws,), dtype=vesta.float64, generator=own).tolist()
        if self.replacement:
            sums = list(itertools.accumulate(weights))
            last = max(i for i, weight in enumerate(weights) if weight > 0)  # rounding must not go beyond it
            return (min(bisect.bisect_right(sums, u * sums[-1]), last) for u in uniform[start:])
        keys = [math.log(1.0 - u) / weight if weight > 0 else -math.inf for u, weight in zip(uniform, weights)]
        return iter(sorted(range(len(weights)), key=keys.__getitem__, reverse=True)[start : self.num_samples])

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

    @checked
    def __init__(self, sampler: Iterable[Any], batch_size: int, drop_last: bool) -> None:
        _check_positive("batch_size", batch_size)
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list]:
        return self._lists(iter(self.sampler))

    def _lists(self, numbers: Iterator[Any]) -> Iterator[list]:
        while batch := list(itertools.islice(numbers, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield batch

    def _begin(self) -> int:
        """Draws the seed of a pass of the inner sampler, which must be seekable."""
        return self.sampler._begin()  # type: ignore[attr-defined]

    def _from(self, seed: int, start: int) -> Iterator[list]:
        return self._lists(self.sampler._from(seed, start * self.batch_size))  # type: ignore[attr-defined]

    def __len__(self) -> int:
        full, rest = divmod(len(self.sampler), self.batch_size)  # type: ignore[arg-type]
        return full if self.drop_last or not rest else full + 1
