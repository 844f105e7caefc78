"""Randomness of a sample: the states of generators before each ``dataset[i]``.

Note [Randomness that does not depend on workers]
Each sample starts from states that are a function of two numbers: the seed of the pass, drawn once from the loader's
generator (so that every epoch has its own), and the position of the sample in the pass. Which process makes the sample,
and what it made before, does not matter. The position, not the index, is used: an index that comes twice in a pass gets
two augmentations, and positions do not depend on the size of batches. A dataset with ``__getitems__`` is seeded once
per batch, by the position of its first sample; a user's ``collate_fn`` once more, by that with ``_COLLATE`` added.

The seeded generators are the default generator of the CPU, that of module ``random``, that of ``numpy.random`` once
NumPy has been imported, and PyTorch's for the CPU where it runs beside Vesta; generators that the user makes
(``numpy.random.default_rng()``) belong to the user. In the calling process the states are restored after each batch,
so that training draws what it would draw without a loader.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.machinery
import random
import struct
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import vesta
from vesta import _C
from vesta._arguments import pytorch

__all__ = ["CallersStates", "Seeds", "draw_seed"]

_COLLATE = 1 << 62  # added to a position: the collation of the batch that starts there
_STREAM = 1 << 48  # positions of worker i's stream start at i times this
_WORDS = 624  # of a Mersenne Twister
_PYTHON, _NUMPY = 1, 2
_LEGACY = "numpy.random.mtrand"


def draw_seed(generator: Any = None) -> int:
    """Draws a seed of 63 bits from a generator; default: the default generator."""
    return int(vesta.empty((), dtype=vesta.int64).random_(generator=generator).item())


def _words_of_random() -> Any:
    """Finds position and words of module ``random``'s generator; None if they are not where expected."""
    twister = random._inst  # type: ignore[attr-defined]
    size = 4 * (_WORDS + 1)
    if type(twister) is not random.Random or random.Random.__basicsize__ < object.__basicsize__ + size:
        return None
    memory = (ctypes.c_uint32 * (_WORDS + 1)).from_address(id(twister) + object.__basicsize__)
    words = twister.getstate()[1]
    return memory if list(memory) == [words[-1], *words[:-1]] else None


def _is_twister(mtrand: Any) -> bool:
    """Returns whether NumPy's legacy functions draw from their default generator."""
    return type(mtrand._rand._bit_generator).__name__ == "MT19937"


def _legacy_numpy() -> Any:
    """Returns the module of NumPy's legacy functions once it is imported, else None."""
    return sys.modules.get(_LEGACY)


class _Watch:
    """A finder that reports when NumPy's legacy functions are imported; it is in ``sys.meta_path`` until then."""

    def __init__(self, then: Callable[[], None]) -> None:
        self._then = then

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Finds that module as without this finder, and makes it call back when it is complete."""
        if name != _LEGACY:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        execute = getattr(getattr(spec, "loader", None), "exec_module", None)
        if spec is None or execute is None:
            return spec

        def executed(module: Any) -> None:
            execute(module)
            self._then()

        with contextlib.suppress(AttributeError):
            spec.loader.exec_module = executed  # type: ignore[union-attr]
        return spec


def _words_of_numpy(mtrand: Any) -> tuple[Any, Any]:
    """Finds the words and position of NumPy's legacy generator, and where it keeps its second normal number."""
    state = mtrand._rand
    if not _is_twister(mtrand):
        return None, None
    kind, key, position, has, normal = state.get_state()
    memory = (ctypes.c_uint32 * (_WORDS + 1)).from_address(state._bit_generator.ctypes.state_address)
    if list(memory) != [*key.tolist(), position]:
        return None, None
    words = (ctypes.c_uint64 * (type(state).__basicsize__ // 8)).from_address(id(state))
    mark = struct.unpack("Q", struct.pack("d", 0.7182818284590452))[0]
    try:
        state.set_state((kind, key, position, 1, 0.7182818284590452))
        places = [i for i in range(3, len(words)) if words[i] == mark and words[i - 1] & 0xFFFFFFFF == 1]
    finally:
        state.set_state((kind, key, position, has, normal))
    if len(places) != 1:
        return None, None
    address = id(state) + 8 * (places[0] - 1)
    return memory, (ctypes.c_uint64 * 2).from_address(address)


class Seeds:
    """The seeding of this process's generators for one sample after the other.

    Args:
        place: a writable buffer of 8 bytes, into which the position of the current sample is written.
        direct: write states in place. If False, or if they are not found, through ``setstate``, 100 times slower.

    Example::

        >>> import random
        >>> from vesta.utils.data.seeding import Seeds
        >>> seeds = Seeds()
        >>> seeds.begin(7)
        >>> with seeds.kept():
        ...     draws = [seeds.seed(3) or random.random() for _ in range(2)]
        >>> draws[0] == draws[1]
        True
    """

    def __init__(self, place: Any = None, direct: bool = True) -> None:
        self._place = place
        self._base = 0
        self._direct = direct
        self._words = _words_of_random() if direct else None
        self._native = _C._SampleSeeds()
        self._attach()
        #: Seeds for the sample at a position; the call whose speed matters.
        self.seed = self._native.seed

    def _attach(self) -> None:
        """Tells the native part where states are, including NumPy's if there is one now."""
        self._numpy = _legacy_numpy()
        self._held = self._numpy._rand._bit_generator if self._numpy else None  # its memory is written to
        words, normal = _words_of_numpy(self._numpy) if self._numpy and self._direct else (None, None)
        self._pytorch = pytorch()
        self._slow = (self._words is None, self._numpy is not None and words is None and _is_twister(self._numpy))
        twister = random._inst if self._words is not None else None  # type: ignore[attr-defined]
        this = weakref.ref(self)
        rest = lambda position: this()._seed_slowly(position)  # type: ignore[union-attr]
        self._native.__init__(  # type: ignore[misc]
            twister, self._words, words, normal, self._place, rest if True in self._slow or self._pytorch else None
        )
        self._native.begin(self._base)

    def _follow(self) -> None:
        """Checks whether NumPy or PyTorch has been imported meanwhile, or NumPy given another generator."""
        numpy = _legacy_numpy()
        late = numpy is not None and (self._numpy is None or numpy._rand._bit_generator is not self._held)
        if late or pytorch() is not self._pytorch:
            self._attach()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Seeds NumPy for the current sample when it is imported inside."""
        self._follow()
        if self._numpy is not None:
            yield
            return
        watch = _Watch(self._late)
        sys.meta_path.insert(0, watch)  # type: ignore[arg-type]
        try:
            yield
        finally:
            sys.meta_path.remove(watch)  # type: ignore[arg-type]

    def _late(self) -> None:
        if self._numpy is None and _legacy_numpy() is not None:
            self._attach()
            self._native.seed_late()

    def _seed_slowly(self, position: int) -> None:
        """Seeds what the native part cannot."""
        for slow, which in zip(self._slow, (_PYTHON, _NUMPY)):
            if not slow:
                continue
            words = struct.unpack(f"{_WORDS}I", self._native.words_at(position, which))
            if which == _PYTHON:
                random.setstate((3, (*words, _WORDS), None))
            else:
                self._numpy._rand.set_state(("MT19937", words, _WORDS, 0, 0.0))
        if self._pytorch:
            low, high = struct.unpack("2I", self._native.words_at(position, _PYTHON)[:8])
            self._pytorch.default_generator.manual_seed(high >> 1 << 32 | low)

    def begin(self, base: int) -> None:
        """Starts a pass: every sample's states depend on ``base`` and its position."""
        self._follow()
        self._base = base & 0xFFFFFFFFFFFFFFFF
        self._native.begin(self._base)

    def leave(self) -> None:
        """Records that no sample is being made any more."""
        if self._place is not None:
            self._place[:] = b"\xff" * 8

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Restores the generators' initial states at the end."""
        self._follow()
        python, numpy = self._slow
        saved = self._native.save(), random.getstate() if python else None
        known = self._numpy._rand.get_state() if numpy else None
        torch = self._pytorch
        pytorchs = torch.get_rng_state() if torch else None
        try:
            with self.watching():
                yield
        finally:
            self._native.restore(saved[0])
            if python:
                random.setstate(saved[1])
            if known is not None:
                self._numpy._rand.set_state(known)
            if torch:
                torch.set_rng_state(pytorchs)


class CallersStates(Seeds):
    """No seeding: samples draw from the caller's generators, one after the other, as in PyTorch without workers."""

    def __init__(self) -> None:
        self._place = None
        self.seed = lambda position: None

    def begin(self, base: int) -> None:
        """Does nothing."""

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Leaves the generators as samples leave them."""
        yield
