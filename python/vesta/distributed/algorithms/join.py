"""``Join``: a training loop whose ranks may have different numbers of inputs.

Every iteration of a rank that has inputs begins with an ``all_reduce`` of ones (``notify_join_context``). A rank that
is done sends zeros instead and so learns how many are still at work; as long as there are any it runs the join hooks,
which mirror the others' communication.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import vesta

__all__ = ["Join", "JoinHook", "Joinable"]

WARN_THRESHOLD = 1000


class JoinHook:
    """The work of a rank without inputs: ``main_hook`` once per iteration of the others, ``post_hook`` at the end."""

    def main_hook(self) -> None:
        """Mirrors the communication of one iteration (forward, backward and optimizer step)."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Runs when all ranks are done; ``is_last_joiner`` is True on those that were done last."""


class _JoinConfig(NamedTuple):
    """What a ``Joinable`` knows about the context it is in."""

    enable: bool
    throw_on_early_termination: bool
    is_first_joinable: bool

    @staticmethod
    def construct_disabled_join_config() -> _JoinConfig:
        """Returns the config that applies outside of a context."""
        return _JoinConfig(enable=False, throw_on_early_termination=False, is_first_joinable=False)


class Joinable(ABC):
    """A class whose communication a rank without inputs can mirror."""

    @abstractmethod
    def __init__(self) -> None:
        self._join_config = _JoinConfig.construct_disabled_join_config()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Returns the hook that mirrors this object's communication; ``kwargs`` are those of ``Join``."""

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """The device of the tensors that ``Join`` sends."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """The group in which ``Join`` communicates."""


class NotifyWork(NamedTuple):
    """The ``all_reduce`` that counts the ranks at work, and the tensor that it fills."""

    work: Any
    join_count: Any

    def wait(self, *timeout: Any) -> Any:
        """Waits for the ``all_reduce``."""
        return self.work.wait(*timeout)


class Join:
    """A context around a training loop with uneven inputs: ``with Join([model]): for batch in mine: ...``.

    Arguments:
        joinables: the objects whose communication is mirrored, in the order of their calls in an iteration
        enable: False if all ranks have the same number of inputs, to save the counting
        throw_on_early_termination: raise on all ranks as soon as one is done
        kwargs: passed to each ``join_hook``
    """

    def __init__(
        self, joinables: list[Joinable], enable: bool = True, throw_on_early_termination: bool = False, **kwargs: Any
    ) -> None:
        if len(joinables) == 0:
            raise ValueError("The join context manager requires at least one joinable")
        self._joinables = joinables
        self._join_hooks = [joinable.join_hook(**kwargs) for joinable in joinables]
        self._enable = enable
        self._throw = throw_on_early_termination
        for i, joinable in enumerate(joinables):
            joinable._join_config = _JoinConfig(enable, throw_on_early_termination, is_first_joinable=i == 0)
        self._process_group = joinables[0].join_process_group
        self._device = joinables[0].join_device
        if any(joinable.join_process_group is not self._process_group for joinable in joinables):
            raise ValueError("Using join context manager with multiple process groups")
        self._rank = vesta.distributed.get_rank(self._process_group)

    def __enter__(self) -> None:
        """Begins the loop."""

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        """Mirrors the others until all are done; an exception passes through unchanged."""
        try:
            if self._enable and kind is None:
                self._mirror()
        finally:  # a model may be used without a context again
            for joinable in self._joinables:
                joinable._join_config = _JoinConfig.construct_disabled_join_config()

    def _mirror(self) -> None:
        iterations = 0
        while self._count(0.0) > 0:
            if self._throw:
                self._count(1.0)
                raise RuntimeError(f"Rank {self._rank} exhausted all inputs.")
            if iterations == WARN_THRESHOLD:
                warnings.warn(
                    f"Detected uneven input skew of greater than {WARN_THRESHOLD}. This means that rank {self._rank} "
                    f"has at least {WARN_THRESHOLD} fewer inputs than other currently-active ranks. This level of skew "
                    "could lead to performance degradation during training.",
                    stacklevel=3,
                )
            for hook in self._join_hooks:
                hook.main_hook()
            iterations += 1
        for hook in self._join_hooks:
            hook.post_hook(iterations == 0)

    def _count(self, mine: float) -> float:
        """Returns the sum of a number over the ranks."""
        total = vesta.full((1,), mine, device=self._device)
        vesta.distributed.all_reduce(total, group=self._process_group)
        return total.item()

    @staticmethod
    def notify_join_context(joinable: Joinable) -> NotifyWork | None:
        """Announces, at the beginning of an iteration, that this rank is still at work; returns None outside of a
        context.

        Of several joinables only the first one does so. Raises if ``throw_on_early_termination`` is set and some rank
        is done.
        """
        if not hasattr(joinable, "_join_config"):
            raise AssertionError(f"Check that the {type(joinable)} constructor calls the ``Joinable`` constructor")
        config = joinable._join_config
        if not config.is_first_joinable or not config.enable:
            return None
        group = joinable.join_process_group
        ones = vesta.ones(1, device=joinable.join_device)
        work = vesta.distributed.all_reduce(ones, group=group, async_op=True)
        if config.throw_on_early_termination:
            done = vesta.zeros(1, device=joinable.join_device)
            vesta.distributed.all_reduce(done, group=group)
            if done.item():
                raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
        return NotifyWork(work, ones)
