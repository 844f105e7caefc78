"""``FlopCounterMode``: the floating-point operations of a program, by module. ``torch.utils.flop_counter``'s names."""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from types import TracebackType
from typing import Any

from vesta._names import listing
from vesta.autograd.recording import Recording

__all__ = ["FlopCounterMode"]


class FlopCounterMode:
    """A context that counts the operations of matrix products, convolutions and attention inside, forward and backward,
    of all threads; a multiplication and an addition are two. As in PyTorch, other operations count as none. The counts
    are told from shapes by the formulas that profiles use.

    Args:
        mods: not needed any more: modules are known.
        depth: how many levels of modules the table shows.
        display: whether leaving the context prints the table.
        custom_mapping: not available: an operation of a plug-in states its cost in its schema.
        skip_unsupported: accepted; what has no formula counts as none.

    Raises:
        NotImplementedError: ``custom_mapping`` is given.

    Example::

        >>> import vesta
        >>> from vesta.utils.flop_counter import FlopCounterMode
        >>> with FlopCounterMode(display=False) as counter:
        ...     _ = vesta.nn.Linear(8, 16)(vesta.ones(4, 8))
        >>> counter.get_total_flops()
        1024
    """

    def __init__(
        self,
        mods: Any = None,
        depth: int = 2,
        display: bool = True,
        custom_mapping: dict[Any, Any] | None = None,
        skip_unsupported: bool = False,
    ) -> None:
        if mods is not None:
            warnings.warn("mods argument is not needed anymore, you can stop passing it", stacklevel=2)
        if custom_mapping:
            raise NotImplementedError(
                "FlopCounterMode: expected no custom_mapping, got some. An operation states its cost in its schema."
            )
        self.depth, self.display, self.skip_unsupported = depth, display, skip_unsupported
        self._recording: Recording | None = None
        self._runs = False

    def __enter__(self) -> FlopCounterMode:
        self._recording = Recording()
        self._recording.start()
        self._runs = True
        return self

    def __exit__(
        self, kind: type | None = None, value: BaseException | None = None, trace: TracebackType | None = None
    ) -> None:
        assert self._recording is not None
        self._recording.stop()
        self._runs = False
        if self.display:
            print(self.get_table(self.depth))

    def get_total_flops(self) -> int:
        """Returns the operations so far, of all modules.

        Example::

            >>> import vesta
            >>> with vesta.utils.flop_counter.FlopCounterMode(display=False) as counter:
            ...     _ = vesta.ones(2, 3) @ vesta.ones(3, 5)
            >>> counter.get_total_flops()
            60
        """
        return sum(self.get_flop_counts().get("Global", {}).values())

    def get_flop_counts(self) -> dict[str, dict[str, int]]:
        """Returns for ``"Global"`` and for each module (``"Net.encoder.0"``) the operations of each operation's name.

        Example::

            >>> import vesta
            >>> with vesta.utils.flop_counter.FlopCounterMode(display=False) as counter:
            ...     _ = vesta.ones(2, 3) @ vesta.ones(3, 5)
            >>> counter.get_flop_counts()
            {'Global': {'aten::matmul': 60}}
        """
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for event in self._recording.events() if self._recording is not None else ():
            if not event.is_product:
                continue
            parts = event.qualified_layer.split(".") if event.qualified_layer else []
            for name in ("Global", *(".".join(parts[: i + 1]) for i in range(len(parts)))):
                counts[name][event.key] += int(event.operations)
        return {name: dict(found) for name, found in counts.items()}

    def get_unsupported_ops(self) -> Counter[str]:
        """Returns nothing: an operation without a formula counts as none, as PyTorch's regular ones do."""
        return Counter()

    def get_table(self, depth: int | None = None) -> str:
        """Returns the counts as a table: modules, and the operations in each.

        Args:
            depth: how many levels of modules; None: that of the constructor.
        """
        counts = self.get_flop_counts()
        total = max(1, sum(counts.get("Global", {}).values()))
        depth = self.depth if depth is None else depth
        rows = []
        for name in sorted(counts, key=lambda name: (name != "Global", name)):
            level = 0 if name == "Global" else name.count(".") + 1
            if level > depth:
                continue
            rows.append((" " * level + name, sum(counts[name].values())))
            rows += [(" " * level + " - " + op, flops) for op, flops in counts[name].items()]
        width = max([6, *(len(name) for name, _ in rows)])
        out = [f"{'Module':<{width}}  {'FLOP':>10}  {'% Total':>8}", f"{'-' * width}  {'-' * 10}  {'-' * 8}"]
        out += [f"{name:<{width}}  {_short(flops):>10}  {flops / total * 100:>7.2f}%" for name, flops in rows]
        return "\n".join(out)


def _short(number: float) -> str:
    """Returns a number with the suffix of its size."""
    power = 0
    while number >= 1000 and power < 5:
        number, power = number / 1000, power + 1
    return f"{number:.3f}{('', 'K', 'M', 'B', 'T', 'Q')[power]}" if power else f"{number:.0f}"


__dir__ = listing(globals())
