"""Sequences of different lengths: padded to one length, or packed without padding.

A packed sequence holds the batch step by step: first the first elements of all sequences, then the second elements of
those that have one, and so on. With sequences in the order of their lengths, longest first, step ``t`` is the first
``batch_sizes[t]`` of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import vesta
from vesta import Tensor
from vesta._arguments import expect, python_number
from vesta._names import listing

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class PackedSequence_(NamedTuple):
    """The fields of ``PackedSequence``."""

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(PackedSequence_):
    """A batch of sequences without padding; made by ``pack_padded_sequence`` and ``pack_sequence``.

    Attributes:
        data: [total, *], all elements, step by step.
        batch_sizes: [T], int64, on the CPU: how many sequences have a step.
        sorted_indices, unsorted_indices: [N]: where each sequence was, and where to find it; or None.

    Example::

        >>> import vesta
        >>> packed = vesta.nn.utils.rnn.pack_sequence([vesta.tensor([1, 2]), vesta.tensor([3])])
        >>> packed.data, packed.batch_sizes
        (tensor([1, 3, 2]), tensor([2, 1]))
    """

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        expect("PackedSequence", "batch_sizes", batch_sizes, (Tensor, type(None)), "Tensor or None")
        if batch_sizes is not None and batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. "
                "They should be instantiated by functions like pack_sequence and pack_padded_sequence in "
                f"nn.utils.rnn. Got batch_sizes on {batch_sizes.device}."
            )
        if batch_sizes is None:  # the old form: both in one pair
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise TypeError(f"PackedSequence: expected batch_sizes, got {data!r} without (data).")
            data, batch_sizes = data
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def pin_memory(self) -> PackedSequence:
        """Returns a copy in pinned memory."""
        moved = (None if x is None else x.pin_memory() for x in (self.sorted_indices, self.unsorted_indices))
        return type(self)(self.data.pin_memory(), self.batch_sizes, *moved)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Moves and casts ``data`` as ``Tensor.to`` does; the indices move along."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        moved = (None if x is None else x.to(data.device) for x in (self.sorted_indices, self.unsorted_indices))
        return type(self)(data, self.batch_sizes, *moved)

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Moves to a GPU (default: the current one)."""
        return self.to(*args, **{"device": "cuda", **kwargs}) if not args else self.to(*args, **kwargs)

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Moves to the CPU."""
        return self.to(*args, **{**kwargs, "device": "cpu"})

    def double(self) -> PackedSequence:
        """Casts ``data`` to float64."""
        return self.to(dtype=vesta.float64)

    def float(self) -> PackedSequence:
        """Casts ``data`` to float32."""
        return self.to(dtype=vesta.float32)

    def half(self) -> PackedSequence:
        """Casts ``data`` to float16."""
        return self.to(dtype=vesta.float16)

    def long(self) -> PackedSequence:
        """Casts ``data`` to int64."""
        return self.to(dtype=vesta.int64)

    def int(self) -> PackedSequence:
        """Casts ``data`` to int32."""
        return self.to(dtype=vesta.int32)

    def short(self) -> PackedSequence:
        """Casts ``data`` to int16."""
        return self.to(dtype=vesta.int16)

    def char(self) -> PackedSequence:
        """Casts ``data`` to int8."""
        return self.to(dtype=vesta.int8)

    def byte(self) -> PackedSequence:
        """Casts ``data`` to uint8."""
        return self.to(dtype=vesta.uint8)

    @property
    def is_cuda(self) -> bool:
        """Whether ``data`` is on a GPU."""
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        """Returns whether ``data`` is in pinned memory."""
        return self.data.is_pinned()


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Returns the permutation [N] that undoes another one; None for None.

    Example::

        >>> import vesta
        >>> vesta.nn.utils.rnn.invert_permutation(vesta.tensor([2, 0, 1]))
        tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    expect("invert_permutation", "permutation", permutation, Tensor, "Tensor or None")
    return vesta.argsort(permutation)


def _steps(batch_sizes: list[int]) -> Iterator[tuple[int, int, int]]:
    """Yields (first step, end, sequences) for each run of steps that as many sequences have."""
    start = 0
    for step in range(1, len(batch_sizes) + 1):
        if step == len(batch_sizes) or batch_sizes[step] != batch_sizes[start]:
            yield start, step, batch_sizes[start]
            start = step


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Packs padded sequences: what is behind the end of each is left out. Gradients flow back.

    Args:
        input: [T, N, *], or [N, T, *] if ``batch_first``; T is the longest length.
        lengths: [N], integers greater than 0; a list or a tensor on the CPU.
        enforce_sorted: the sequences are in the order of their lengths, longest first; if not, they are sorted here.

    Raises:
        RuntimeError: a length is not positive, does not fit, or the order is wrong.

    Example::

        >>> import vesta
        >>> padded = vesta.tensor([[1, 2], [3, 0]])
        >>> vesta.nn.utils.rnn.pack_padded_sequence(padded, [2, 1], batch_first=True).data
        tensor([1, 3, 2])
    """
    expect("pack_padded_sequence", "input", input, Tensor, "Tensor")
    expect("pack_padded_sequence", "lengths", lengths, (Tensor, Iterable), "a list of integers or a Tensor")
    if isinstance(lengths, Tensor) and lengths.device.type != "cpu":
        raise RuntimeError(
            f"'lengths' argument should be a 1D CPU int64 tensor, but got {lengths.dim()}D {lengths.device} tensor"
        )
    lengths = vesta.as_tensor(list(lengths) if isinstance(lengths, range) else lengths, dtype=vesta.int64)
    if lengths.dim() != 1:
        raise RuntimeError(f"'lengths' argument should be a 1D CPU int64 tensor, but got {lengths.dim()}D tensor")
    if input.dim() < 2:
        raise RuntimeError(f"pack_padded_sequence: expected an input [T, N, *], got {list(input.shape)} (input).")
    batch = input.size(0 if batch_first else 1)
    if lengths.numel() != batch:  # said before sequences without a length are left out
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {lengths.numel()} (batch_size={batch})"
        )
    sorted_indices = None
    if not enforce_sorted:
        lengths, order = vesta.sort(lengths, descending=True, stable=True)
        sorted_indices = order.to(input.device)
        input = input.index_select(0 if batch_first else 1, sorted_indices)
    if batch_first:
        input = input.transpose(0, 1)
    counts = lengths.tolist()
    if not counts:
        raise RuntimeError("Cannot pack empty tensors.")
    if min(counts) <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if any(longer < shorter for longer, shorter in zip(counts, counts[1:])):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement."
        )
    if counts[0] > input.size(0):
        raise RuntimeError(
            f"pack_padded_sequence: expected lengths of at most {input.size(0)}, got {counts[0]} (lengths)."
        )
    sizes = [sum(length > step for length in counts) for step in range(counts[0])]
    pieces = [input[start:end, :count].reshape(-1, *input.shape[2:]) for start, end, count in _steps(sizes)]
    return PackedSequence(vesta.cat(pieces), vesta.tensor(sizes), sorted_indices, None)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Undoes ``pack_padded_sequence``: returns the padded batch and the lengths [N], in the original order.

    Args:
        batch_first: the batch is [N, T, *] instead of [T, N, *].
        padding_value: what is behind the end of a sequence.
        total_length: T; default: the longest length.

    Example::

        >>> import vesta
        >>> packed = vesta.nn.utils.rnn.pack_sequence([vesta.tensor([1, 2]), vesta.tensor([3])])
        >>> vesta.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
        (tensor([[1, 2],
                [3, 0]]), tensor([2, 1]))
    """
    expect("pad_packed_sequence", "sequence", sequence, PackedSequence, "PackedSequence")
    sizes = sequence.batch_sizes.tolist()
    longest, batch = len(sizes), sizes[0]
    if total_length is not None:
        expect("pad_packed_sequence", "total_length", total_length, int, "int or None")
        if total_length < longest:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {longest}"
            )
    padding_value = python_number(padding_value)
    expect("pad_packed_sequence", "padding_value", padding_value, (int, float), "a number")
    data, rest, pieces, place = sequence.data, sequence.data.shape[1:], [], 0
    for start, end, count in _steps(sizes):
        steps = end - start
        piece = data[place : place + steps * count].reshape(steps, count, *rest)
        place += steps * count
        if count < batch:
            piece = vesta.cat([piece, data.new_full((steps, batch - count, *rest), padding_value)], 1)
        pieces.append(piece)
    if total_length is not None and total_length > longest:
        pieces.append(data.new_full((total_length - longest, batch, *rest), padding_value))
    padded = vesta.cat(pieces)
    if batch_first:
        padded = padded.transpose(0, 1)
    lengths = vesta.tensor([sum(size > i for size in sizes) for i in range(batch)])
    if sequence.unsorted_indices is not None:
        padded = padded.index_select(0 if batch_first else 1, sequence.unsorted_indices)
        lengths = lengths[sequence.unsorted_indices.cpu()]
    return padded, lengths


def pad_sequence(
    sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Returns sequences [L, *] of different lengths as one batch [T, N, *], or [N, T, *] if ``batch_first``.

    Args:
        padding_value: what fills the places behind the end, or before the start if ``padding_side`` is ``"left"``.

    Example::

        >>> import vesta
        >>> vesta.nn.utils.rnn.pad_sequence([vesta.tensor([1, 2]), vesta.tensor([3])], batch_first=True)
        tensor([[1, 2],
                [3, 0]])
    """
    if isinstance(sequences, Tensor):
        sequences = sequences.unbind(0)
    elif not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    sequences = list(sequences)
    padding_value = python_number(padding_value)
    expect("pad_sequence", "padding_value", padding_value, (int, float), "a number")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    for sequence in sequences:
        expect("pad_sequence", "sequences", sequence, Tensor, "Tensors")
        if sequence.dim() < 1:
            raise RuntimeError("pad_sequence: expected sequences [L, *], got a 0-d tensor (sequences).")
    longest, rest = max(sequence.size(0) for sequence in sequences), sequences[0].shape[1:]
    padded = []
    for sequence in sequences:
        if sequence.shape[1:] != rest:
            raise RuntimeError(
                f"pad_sequence: expected sequences of the same sizes but the first, got {list(sequence.shape)} and "
                f"{list(sequences[0].shape)} (sequences)."
            )
        if sequence.size(0) < longest:
            fill = sequence.new_full((longest - sequence.size(0), *rest), padding_value)
            sequence = vesta.cat([sequence, fill] if padding_side == "right" else [fill, sequence])
        padded.append(sequence)
    return vesta.stack(padded, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """Undoes ``pad_sequence``: returns the first ``lengths[i]`` elements of each sequence i.

    Example::

        >>> import vesta
        >>> padded = vesta.tensor([[1, 2], [3, 0]])
        >>> vesta.nn.utils.rnn.unpad_sequence(padded, vesta.tensor([2, 1]), batch_first=True)
        [tensor([1, 2]), tensor([3])]
    """
    expect("unpad_sequence", "padded_sequences", padded_sequences, Tensor, "Tensor")
    expect("unpad_sequence", "lengths", lengths, Tensor, "Tensor")
    if lengths.dim() != 1 or padded_sequences.dim() < 2:
        raise ValueError(
            "unpad_sequence: expected padded sequences of 2 or more dimensions and a length for each, got "
            f"{tuple(padded_sequences.shape)} (padded_sequences) and {tuple(lengths.shape)} (lengths)."
        )
    batch = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [sequence[:length] for sequence, length in zip(batch.unbind(0), lengths.tolist())]


def pack_sequence(sequences: list[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Packs a list of sequences [L, *]; they are in the order of their lengths, longest first, if ``enforce_sorted``.

    Example::

        >>> import vesta
        >>> vesta.nn.utils.rnn.pack_sequence([vesta.tensor([1, 2]), vesta.tensor([3])]).data
        tensor([1, 3, 2])
    """
    expect("pack_sequence", "sequences", sequences, (list, tuple), "a list of Tensors")
    padded = pad_sequence(sequences)
    return pack_padded_sequence(padded, [len(sequence) for sequence in sequences], enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Undoes ``pack_sequence``.

    Example::

        >>> import vesta
        >>> packed = vesta.nn.utils.rnn.pack_sequence([vesta.tensor([1, 2]), vesta.tensor([3])])
        >>> vesta.nn.utils.rnn.unpack_sequence(packed)
        [tensor([1, 2]), tensor([3])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


__dir__ = listing(globals())
