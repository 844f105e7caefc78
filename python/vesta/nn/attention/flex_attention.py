"""Attention whose scores and masks are functions of places.

A function of scores takes (score, batch, head, query, key) and returns a score, a function of masks takes (batch, head,
query, key) and returns a bool. They are called once, with all scores [B, H, Q, K] and with places [B, 1, 1, 1],
[1, H, 1, 1], [1, 1, Q, 1] and [1, 1, 1, K], so that what they compute for one place, they compute for all.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import vesta
import vesta.nn.functional as F
from vesta import Tensor
from vesta._arguments import expect
from vesta._names import listing
from vesta._types import Device

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]

MaskMod = Callable[[Any, Any, Any, Any], Any]

#: Queries and keys of a block, unless others are asked for.
_DEFAULT_SPARSE_BLOCK_SIZE = 128


class AuxRequest(NamedTuple):
    """What ``flex_attention`` is to return besides its output.

    Example::

        >>> import vesta
        >>> vesta.nn.attention.flex_attention.AuxRequest(lse=True).max_scores
        False
    """

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What ``flex_attention`` was asked for: log-sum-exp and largest score [B, H, Q], None where it was not asked for.

    Example::

        >>> import vesta
        >>> vesta.nn.attention.flex_attention.AuxOutput().lse is None
        True
    """

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """Returns True: nothing is masked out.

    Example::

        >>> import vesta
        >>> vesta.nn.attention.flex_attention.noop_mask(*[vesta.tensor(0)] * 4)
        tensor(True)
    """
    expect("noop_mask", "batch", batch, Tensor, "Tensor")
    return vesta.ones((), dtype=vesta.bool, device=batch.device)


def _combined(op: str, mask_mods: tuple[MaskMod, ...], both: Callable[[Any, Any], Any], start: bool) -> MaskMod:
    for mod in mask_mods:
        expect(op, "mask_mods", mod, Callable, "functions")

    def combined(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
        result = vesta.full((), start, device=token_q.device)
        for mod in mask_mods:
            result = both(result, mod(batch, head, token_q, token_kv))
        return result

    return combined


def and_masks(*mask_mods: MaskMod) -> MaskMod:
    """Returns the function of masks that is True where all are.

    Example::

        >>> import vesta
        >>> from vesta.nn.attention.flex_attention import and_masks, create_mask
        >>> create_mask(and_masks(lambda b, h, q, k: q >= k, lambda b, h, q, k: k > 0), 1, 1, 2, 2).tolist()
        [[[[False, False], [False, True]]]]
    """
    return _combined("and_masks", mask_mods, lambda a, b: a & b, True)


def or_masks(*mask_mods: MaskMod) -> MaskMod:
    """Returns the function of masks that is True where one is.

    Example::

        >>> import vesta
        >>> from vesta.nn.attention.flex_attention import create_mask, or_masks
        >>> create_mask(or_masks(lambda b, h, q, k: q > k, lambda b, h, q, k: k > 0), 1, 1, 2, 2).tolist()
        [[[[False, True], [True, True]]]]
    """
    return _combined("or_masks", mask_mods, lambda a, b: a | b, False)


def _places(batch: int, heads: int, queries: int, keys: int, device: Any) -> tuple[Tensor, ...]:
    sizes = (batch, heads, queries, keys)
    return tuple(
        vesta.arange(size, device=device).view([size if i == place else 1 for i in range(4)])
        for place, size in enumerate(sizes)
    )


def _size(op: str, name: str, value: Any, least: int = 0) -> int:
    expect(op, name, value, int, "int")
    if value < least:
        raise ValueError(f"{op}: expected a size of at least {least}, got {value} ({name}).")
    return value


def _samples(sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """Places at which a function of whole grids is compared with itself at single places: corners, and some others."""
    corners = itertools.product(*({0, size - 1} for size in sizes))
    draw = random.Random(0)
    return [*corners, *(tuple(draw.randrange(size) for size in sizes) for _ in range(16))]


def _evaluated(fn: Callable[..., Any], sizes: tuple[int, int, int, int], device: Any, *scores: Tensor) -> Any:
    """Returns a function of places, and of ``scores``, at every place [B, H, Q, K].

    It is called once with grids of all places. A function that reduces what it computes, or that takes a place for a
    number, gives something else then than at each place: it is compared with itself at some places, and called for each
    where it differs or raises.
    """

    def tensor_at(*arguments: Any) -> Tensor:
        value = fn(*arguments)
        return value if isinstance(value, Tensor) else vesta.tensor(value, device=device)

    if 0 in sizes:
        return fn(*scores, *_places(*sizes, device))
    try:
        result = fn(*scores, *_places(*sizes, device))
        with vesta.no_grad():
            grid = vesta.as_tensor(result, device=device).detach().expand(sizes)
            if all(
                vesta.allclose(
                    tensor_at(*(s[at] for s in scores), *(vesta.tensor(i, device=device) for i in at)).to(grid.dtype),
                    grid[at],
                    equal_nan=True,
                )
                if grid.dtype != vesta.bool
                else bool(tensor_at(*(vesta.tensor(i, device=device) for i in at))) == bool(grid[at])
                for at in _samples(sizes)
            ):
                return result
    except Exception:
        pass
    each: Callable[..., Any] = tensor_at
    for place in reversed(range(4)):
        dims = [0] * len(scores) + [0 if i == place else None for i in range(4)]
        each = vesta.vmap(each, tuple(dims))
    return each(*scores, *(vesta.arange(size, device=device) for size in sizes))


def _mask_of(op: str, mask_mod: MaskMod, sizes: tuple[int, int, int, int], device: Any) -> Tensor:
    mask = _evaluated(mask_mod, sizes, device)
    if isinstance(mask, bool):
        mask = vesta.tensor(mask, device=device)
    if not isinstance(mask, Tensor) or mask.dtype != vesta.bool:
        shown = f"a tensor of {mask.dtype}" if isinstance(mask, Tensor) else type(mask).__name__
        raise TypeError(f"{op}: expected a function of masks that returns bools, got {shown} from it.")
    return mask.expand(sizes)


def create_mask(
    mod_fn: Callable[..., Any], B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Device | None = None
) -> Tensor:
    """Returns the mask [B, H, Q_LEN, KV_LEN] of a function: True where a query sees a key.

    Args:
        mod_fn: a function of masks.
        B, H: sizes of batch and heads, None for 1.
        device: where the mask lies; default: the CPU.

    Example::

        >>> import vesta
        >>> from vesta.nn.attention.flex_attention import create_mask
        >>> create_mask(lambda b, h, q, k: q >= k, 1, 1, 2, 2).tolist()
        [[[[True, False], [True, True]]]]
    """
    expect("create_mask", "mod_fn", mod_fn, Callable, "a function")
    sizes = tuple(
        _size("create_mask", name, 1 if value is None else value)
        for name, value in (("B", B), ("H", H), ("Q_LEN", Q_LEN), ("KV_LEN", KV_LEN))
    )
    return _mask_of("create_mask", mod_fn, sizes, device or "cpu").contiguous()


def _ordered(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """Returns how many blocks of each row are set, and the places of all, set ones first."""
    return blocks.sum(-1).to(vesta.int32), blocks.int().argsort(dim=-1, descending=True, stable=True).to(vesta.int32)


def _dense(counts: Tensor, indices: Tensor) -> Tensor:
    """Undoes ``_ordered``."""
    first = vesta.arange(indices.size(-1), device=indices.device) < counts.unsqueeze(-1)
    return vesta.zeros_like(indices).scatter(-1, indices.long(), first.to(vesta.int32))


class BlockMask:
    """A function of masks with a table of the blocks that it leaves: made by ``create_block_mask``.

    Attributes:
        mask_mod: the function.
        shape: (B, H, Q, K).
        BLOCK_SIZE: queries and keys of a block.
        kv_num_blocks, kv_indices: [B, H, rows] and [B, H, rows, columns]: how many blocks of a row of blocks are
            partly masked, and the columns of all, these first; ``full_...``: those without anything masked out;
            ``q_...``: the same by columns.

    Example::

        >>> import vesta
        >>> from vesta.nn.attention.flex_attention import create_block_mask
        >>> mask = create_block_mask(lambda b, h, q, k: q >= k, 1, 1, 256, 256)
        >>> mask.shape, mask.sparsity()
        ((1, 1, 256, 256), 25.0)
    """

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        q_num_blocks: Tensor | None = None,
        q_indices: Tensor | None = None,
        full_q_num_blocks: Tensor | None = None,
        full_q_indices: Tensor | None = None,
        BLOCK_SIZE: tuple[int, int] = (_DEFAULT_SPARSE_BLOCK_SIZE, _DEFAULT_SPARSE_BLOCK_SIZE),
        mask_mod: MaskMod = noop_mask,
    ) -> None:
        for name, value in (("kv_num_blocks", kv_num_blocks), ("kv_indices", kv_indices)):
            expect("BlockMask", name, value, Tensor, "Tensor")
        if kv_indices.dim() < 2 or kv_num_blocks.shape != kv_indices.shape[:-1]:
            raise RuntimeError(
                "BlockMask must have at least 2 dimensions, and a count for each row, got "
                f"{tuple(kv_indices.shape)} (kv_indices) and {tuple(kv_num_blocks.shape)} (kv_num_blocks)"
            )
        expect("BlockMask", "mask_mod", mask_mod, Callable, "a function")
        self.seq_lengths = tuple(seq_lengths)
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices
        self.BLOCK_SIZE, self.mask_mod = tuple(BLOCK_SIZE), mask_mod

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
        mask_mod: MaskMod | None = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
    ) -> BlockMask:
        """Makes a mask from the blocks of each row; what is inside of them is up to ``mask_mod``."""
        size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
        rows, columns = kv_indices.shape[-2:]
        full = full_kv_num_blocks is not None and full_kv_indices is not None
        by_columns: list[Tensor | None] = [None] * 4
        if compute_q_blocks:
            by_columns[:2] = _ordered(_dense(kv_num_blocks, kv_indices).transpose(-2, -1))
            if full:
                by_columns[2:] = _ordered(_dense(full_kv_num_blocks, full_kv_indices).transpose(-2, -1))
        return cls(
            seq_lengths or (rows * size[0], columns * size[1]),
            kv_num_blocks,
            kv_indices,
            full_kv_num_blocks,
            full_kv_indices,
            *by_columns,
            BLOCK_SIZE=size,
            mask_mod=mask_mod or noop_mask,
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the mask, without padding to whole blocks."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """Returns how many elements the mask has."""
        total = 1
        for size in self.shape:
            total *= size
        return total

    def to_dense(self) -> Tensor:
        """Returns the table of blocks [B, H, rows, columns], int32: 1 where something is left."""
        blocks = _dense(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_num_blocks is not None and self.full_kv_indices is not None:
            blocks = blocks | _dense(self.full_kv_num_blocks, self.full_kv_indices)
        return blocks

    def sparsity(self) -> float:
        """Returns the percentage of blocks of which nothing is left."""
        blocks = self.to_dense()
        return 100.0 * (1.0 - int(blocks.sum()) / blocks.numel()) if blocks.numel() else 0.0

    def to_string(self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """Returns a picture of the table of blocks, for the first ``limit`` batches and heads."""
        blocks = self.to_dense()
        lines = []
        flat = blocks.reshape(-1, *blocks.shape[-2:])
        for place in range(min(limit, flat.size(0))):
            heads = blocks.size(1) if blocks.dim() == 4 else 1
            lines.append(str((place // heads, place % heads)))
            lines += ["".join("██" if one else "  " for one in row) for row in flat[place].tolist()]
        if flat.size(0) > limit:
            lines.append("...")
        return "\n".join(lines)

    def __str__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{self.to_string()}\n)"

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, BLOCK_SIZE={self.BLOCK_SIZE}, sparsity={self.sparsity():.2f}%)"

    def __getitem__(self, index: Any) -> BlockMask:
        """Returns the mask of some batches, heads and rows of blocks.

        Its ``mask_mod``, which would be asked at places of the part, raises a RuntimeError: set one that knows where
        the part begins.
        """
        expect("BlockMask", "index", index, (int, slice, tuple, Tensor), "an index of batch, head and row of blocks")
        parts = [part if not isinstance(part, int) else slice(part, part + 1 or None) for part in _as_tuple(index)]
        if len(parts) > 3:
            raise IndexError(f"BlockMask: expected at most 3 indices (batch, head, row), got {len(parts)}.")

        def of(t: Tensor | None) -> Tensor | None:
            return None if t is None else t[tuple(parts)]

        counts, indices = self.kv_num_blocks[tuple(parts)], self.kv_indices[tuple(parts)]
        lengths = self.seq_lengths
        if len(parts) == 3:
            lengths = (min(lengths[0], counts.size(-1) * self.BLOCK_SIZE[0]), lengths[1])
        full = of(self.full_kv_num_blocks), of(self.full_kv_indices)
        return BlockMask(lengths, counts, indices, *full, BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=_sliced)

    def as_tuple(self, flatten: bool = True) -> tuple[Any, ...]:
        """Returns the attributes in the order of the constructor's arguments."""
        lengths = self.seq_lengths if flatten else (self.seq_lengths,)
        size = self.BLOCK_SIZE if flatten else (self.BLOCK_SIZE,)
        return (*lengths, *(getattr(self, name) for name in _TABLES), *size, self.mask_mod)

    def to(self, device: Device) -> BlockMask:
        """Returns the mask with its tables on a device."""
        moved = [None if t is None else t.to(device) for t in (getattr(self, name) for name in _TABLES)]
        return BlockMask(self.seq_lengths, *moved, BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=self.mask_mod)


_TABLES = tuple(
    f"{prefix}{by}_{what}" for by in ("kv", "q") for prefix in ("", "full_") for what in ("num_blocks", "indices")
)


def _sliced(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
    raise RuntimeError("Cannot use mask_mod from a sliced BlockMask. Set its mask_mod to one that knows its places.")


def _as_tuple(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


def create_block_mask(
    mask_mod: MaskMod,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Device | None = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
    separate_full_blocks: bool = True,
    compute_dq_write_order: bool = False,
    dq_kv_order: Any = True,
) -> BlockMask:
    """Returns a function of masks with its table of blocks.

    Args:
        mask_mod: a function of masks.
        B, H: sizes of batch and heads; None for 1, whatever the queries have.
        device: where the tables lie; default: the CPU.
        BLOCK_SIZE: queries and keys of a block.
        separate_full_blocks: blocks without anything masked out have tables of their own.
        compute_dq_write_order, dq_kv_order: settings of PyTorch's kernels, which change nothing here.

    Example::

        >>> import vesta
        >>> from vesta.nn.attention.flex_attention import create_block_mask
        >>> create_block_mask(lambda b, h, q, k: q >= k, 1, 1, 256, 300)
        BlockMask(shape=(1, 1, 256, 300), BLOCK_SIZE=(128, 128), sparsity=50.00%)
    """
    op = "create_block_mask"
    expect(op, "mask_mod", mask_mod, Callable, "a function")
    expect(op, "BLOCK_SIZE", BLOCK_SIZE, (int, tuple), "an integer or two")
    size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    if len(size) != 2:
        raise ValueError(f"{op}: expected an integer or two, got {size} (BLOCK_SIZE).")
    size = tuple(_size(op, "BLOCK_SIZE", one, 1) for one in size)
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    padding = [-length % block for length, block in zip((Q_LEN, KV_LEN), size)]
    padded = F.pad(mask.int(), (0, padding[1], 0, padding[0]))
    rows, columns = padded.size(2) // size[0], padded.size(3) // size[1]
    counts = padded.reshape(*mask.shape[:2], rows, size[0], columns, size[1]).sum((3, 5))
    full = counts == size[0] * size[1]
    if not separate_full_blocks:
        full = vesta.zeros_like(full)
    partial = (counts > 0) & ~full
    tables: list[Tensor | None] = []
    for part in (partial, full, partial.transpose(-2, -1), full.transpose(-2, -1)):
        tables += _ordered(part)
    if not separate_full_blocks:
        tables[2:4], tables[6:8] = (None, None), (None, None)
    return BlockMask((Q_LEN, KV_LEN), *tables, BLOCK_SIZE=size, mask_mod=mask_mod)


def _check(query: Any, key: Any, value: Any, enable_gqa: bool) -> None:
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        expect("flex_attention", name, tensor, Tensor, "Tensor")
        if tensor.dim() != 4:
            raise ValueError(f"flex_attention: expected [B, H, L, E], got {tuple(tensor.shape)} ({name}).")
    if not query.dtype == key.dtype == value.dtype:
        raise ValueError(
            "Expected query, key, and value to have the same dtype, but got query.dtype: "
            f"{query.dtype}, key.dtype: {key.dtype}, and value.dtype: {value.dtype} instead."
        )
    if query.size(-1) != key.size(-1) or key.shape[1:3] != value.shape[1:3]:
        raise ValueError(
            "flex_attention: expected queries and keys of one size, as many keys as values, got "
            f"{tuple(query.shape)}, {tuple(key.shape)} and {tuple(value.shape)} (query, key, value)."
        )
    if key.size(0) not in (1, query.size(0)):
        raise ValueError(
            f"flex_attention: expected keys of the queries' batch size {query.size(0)} or 1, got {key.size(0)} (key)."
        )
    if query.size(1) != key.size(1) and not (enable_gqa and key.size(1) and query.size(1) % key.size(1) == 0):
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but got Hq={query.size(1)} and "
            f"Hkv={key.size(1)}. Try setting enable_gqa=True for GQA."
        )


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Callable[..., Any] | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Any = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Returns softmax(f(Q K^T * scale)) V, f being ``score_mod``, with what ``block_mask`` leaves.

    A query without any key gives 0. Without ``score_mod`` and further results the memory is that of the mask,
    with one of them that of all scores.

    Args:
        query: [B, Hq, Q, E]. key: [B, H, K, E]. value: [B, H, K, Ev].
        score_mod: a function of scores (see the module); None: the score itself.
        block_mask: what ``create_block_mask`` gives.
        scale: default: 1 / sqrt(E).
        enable_gqa: Hq may be a multiple of H; groups of queries share keys.
        return_lse: the log-sum-exp of each query's scores [B, Hq, Q] is returned too.
        kernel_options: settings of PyTorch's kernels, which change nothing here.
        return_aux: what else is to be returned.

    Raises:
        ValueError: shapes or dtypes do not fit.

    Example::

        >>> import vesta
        >>> from vesta.nn.attention.flex_attention import flex_attention
        >>> x = vesta.eye(2).view(1, 1, 2, 2)
        >>> flex_attention(x, x, x, lambda score, b, h, q, k: vesta.where(q >= k, score, -vesta.inf))[0, 0, 0]
        tensor([1., 0.])
    """
    _check(query, key, value, enable_gqa)
    expect("flex_attention", "score_mod", score_mod, (Callable, type(None)), "a function or None")
    expect("flex_attention", "block_mask", block_mask, (BlockMask, type(None)), "BlockMask or None")
    expect("flex_attention", "scale", scale, (int, float, type(None)), "a number or None")
    expect("flex_attention", "return_aux", return_aux, (AuxRequest, type(None)), "AuxRequest or None")
    if return_lse and return_aux is not None:
        raise ValueError("flex_attention: expected return_lse or return_aux, got both (return_aux).")
    sizes = (query.size(0), query.size(1), query.size(2), key.size(2))
    mask = None
    if block_mask is not None:
        for name, wanted, have in zip(("batch", "heads"), sizes, block_mask.shape):
            if have not in (1, wanted):
                raise ValueError(f"flex_attention: expected a mask of {wanted} {name} or 1, got {have} (block_mask).")
        if any(have < wanted for wanted, have in zip(sizes[2:], block_mask.seq_lengths)):
            raise ValueError(
                f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={sizes[2]} and "
                f"kv_len={sizes[3]}. Make one of these lengths with create_block_mask."
            )
        mask = _mask_of("flex_attention", block_mask.mask_mod, sizes, query.device)
    if score_mod is None and not return_lse and return_aux is None:
        return F.scaled_dot_product_attention(query, key, value, mask, scale=scale, enable_gqa=enable_gqa)
    groups = query.size(1) // key.size(1) if key.size(1) else 1
    if groups > 1:
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    computed = vesta.promote_types(query.dtype, vesta.float32)
    factor = scale if scale is not None else query.size(-1) ** -0.5
    scores = (query.to(computed) @ key.to(computed).transpose(-2, -1)) * factor
    if score_mod is not None:
        scores = _evaluated(score_mod, sizes, query.device, scores)
        expect("flex_attention", "score_mod", scores, Tensor, "a function that returns scores")
        scores = scores.expand(sizes).to(computed)
    if mask is not None:
        scores = vesta.where(mask, scores, -vesta.inf)
    # without a key all scores are -inf: their largest is taken as 0, and their sum as 1
    largest = scores.detach().amax(-1, keepdim=True) if sizes[3] else scores.new_full((*sizes[:3], 1), -vesta.inf)
    shift = vesta.where(largest == -vesta.inf, 0.0, largest)
    powers = (scores - shift).exp()
    total = powers.sum(-1, keepdim=True)
    empty = total == 0
    output = ((powers / vesta.where(empty, 1.0, total)) @ value.to(computed)).to(query.dtype)
    lse = vesta.where(empty, -vesta.inf, shift + vesta.where(empty, 1.0, total).log()).squeeze(-1)
    if return_aux is not None:
        asked = AuxOutput(lse if return_aux.lse else None, largest.squeeze(-1) if return_aux.max_scores else None)
        return output, asked
    return (output, lse) if return_lse else output


__dir__ = listing(globals())
