"""``vmap``: a function of examples becomes a function of batches.

The function is called for each example and the results are stacked. No op needs a rule, values can be looked at, and
gradients are those of the calls.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, overload

import vesta
from vesta import _C, Tensor
from vesta._arguments import expect
from vesta.autograd import repeats
from vesta.utils._pytree import tree_flatten, tree_unflatten

if TYPE_CHECKING:
    from .signatures import A, B, C, OfOne, OfSame, OfThree, OfTwo, P

R = TypeVar("R")

_RANDOMNESS = ("error", "different", "same")


def _spread(dims: Any, tree: Any) -> list[Any]:
    """Returns, for each leaf of ``tree``, its entry of ``dims``, a tree that may end early. ValueError: no match."""
    if dims is None or (isinstance(dims, int) and not isinstance(dims, bool)):
        return [dims] * len(tree_flatten(tree)[0])
    if isinstance(dims, dict):
        if not isinstance(tree, dict) or set(dims) != set(tree):
            raise ValueError("keys")
        return [dim for key in tree for dim in _spread(dims[key], tree[key])]
    if isinstance(dims, (tuple, list)):
        if not isinstance(tree, (tuple, list)) or len(dims) != len(tree):
            raise ValueError("length")
        return [dim for part, branch in zip(dims, tree) for dim in _spread(part, branch)]
    raise ValueError("type")


def _mapped(name: str, in_dims: Any, args: tuple[Any, ...]) -> tuple[list[Any], list[int | None], Any, int]:
    """Returns the leaves of the arguments, the dimension of each, their structure and the size of the batch."""
    where = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>)"
    if not isinstance(in_dims, (int, tuple, list)) or isinstance(in_dims, bool):
        raise ValueError(
            f"{where}: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, "
            f"got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(f"{where}: got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a "
                         "function with no inputs. The latter is unsupported.")  # fmt: skip
    leaves, spec = tree_flatten(args)
    try:
        dims = _spread(in_dims if isinstance(in_dims, int) else tuple(in_dims), args)
    except ValueError:
        raise ValueError(
            f"{where}: in_dims is not compatible with the structure of inputs. in_dims has structure "
            f"{tree_flatten(in_dims)[1]} but inputs has structure {spec}."
        ) from None
    found: list[int | None] = []
    for leaf, dim in zip(leaves, dims):
        if dim is None:
            found.append(None)
            continue
        if not isinstance(leaf, Tensor):
            raise ValueError(
                f"{where}: Got in_dim={dim} for an input but the input is of type {type(leaf)}. We cannot vmap over "
                "non-Tensor arguments, please use None as the respective in_dim."
            )
        if not -leaf.dim() <= dim < leaf.dim():
            raise ValueError(
                f"{where}: Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {leaf.dim()} "
                f"so expected in_dim to satisfy -{leaf.dim()} <= in_dim < {leaf.dim()}."
            )
        found.append(dim % leaf.dim())
    sizes = [leaf.size(dim) for leaf, dim in zip(leaves, found) if dim is not None]
    if not sizes:
        raise ValueError(f"{where}: expected at least one input to be mapped over, got in_dims of None alone.")
    if len(set(sizes)) > 1:
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the "
            "mapped dimension"
        )
    return leaves, found, spec, sizes[0]


def _tensors(name: str, output: Any) -> tuple[list[Tensor], Any]:
    leaves, spec = tree_flatten(output)
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise ValueError(
                f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(leaf)}. Did you mean to set "
                "out_dims= to None for output?"
            )
    return leaves, spec


def _check_randomness(name: str, randomness: str, before: Tensor | None) -> None:
    if randomness == "error" and before is not None and not vesta.equal(before, vesta.get_rng_state()):
        raise RuntimeError(
            f"vmap: called random operation while in randomness error mode, in {name}. Please either use the 'same' or "
            "'different' randomness flags on vmap or perform the randomness operation out of vmap"
        )


@overload
def vmap(
    func: Callable[[A], R],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> OfOne[A, R]: ...
@overload
def vmap(
    func: Callable[[A, B], R],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> OfTwo[A, B, R]: ...
@overload
def vmap(
    func: Callable[[A, B, C], R],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> OfThree[A, B, C, R]: ...
@overload
def vmap(
    func: Callable[P, R],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> OfSame[P, R]: ...
def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Returns a function that maps ``func`` over a dimension of its arguments.

    ``func`` is called for each index of the dimension, and its results are stacked: unlike PyTorch's, values may be
    looked at and any op may be called, and the time is that of the calls.

    Args:
        func: a function of tensors (or trees of them) that returns tensors (or a tree of them).
        in_dims: the dimension of each positional argument: one number for all, or a tuple, which may go on inside of
            trees. None: every call gets the whole. Keyword arguments are passed whole.
        out_dims: where the mapped dimension stands in the results: one number for all or a tree of them. None: the
            result does not depend on what is mapped, and is returned once.
        randomness: "error": raise RuntimeError if random numbers are drawn; "different": each call draws its own;
            "same": each call draws the same.
        chunk_size: taken for PyTorch's sake; calls are made one by one.

    Raises:
        ValueError: dimensions or structures that do not fit; results that are no tensors.

    Example::

        >>> import vesta
        >>> dots = vesta.vmap(vesta.dot)
        >>> dots(vesta.tensor([[1.0, 2.0], [3.0, 4.0]]), vesta.ones(2, 2))
        tensor([3., 7.])
    """
    expect("vmap", "func", func, Callable, "a function")
    if randomness not in _RANDOMNESS:
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if chunk_size is not None and (not isinstance(chunk_size, int) or chunk_size <= 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")
    name = getattr(func, "__name__", type(func).__name__)

    @wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        leaves, dims, spec, count = _mapped(name, in_dims, args)
        state = None if randomness == "different" else vesta.get_rng_state()
        # Where an example lies behind the first one: offsets in memory are told as those of the first.
        steps = [
            (i, leaf.stride(dim))
            for i, (leaf, dim) in enumerate(zip(leaves, dims))
            if count and dim is not None and leaf.layout is vesta.strided
        ]
        results: list[list[Tensor]] = []
        out_spec: Any = None
        for k in range(max(count, 1)):
            if count:
                some = [leaf if dim is None else leaf.select(dim, k) for leaf, dim in zip(leaves, dims)]
            else:  # no example: one of zeros tells the shapes of the results
                some = [
                    leaf if dim is None else leaf.new_zeros((*leaf.shape[:dim], *leaf.shape[dim + 1 :]))
                    for leaf, dim in zip(leaves, dims)
                ]
            if randomness == "same" and state is not None:
                vesta.set_rng_state(state)
            outer, repeats.going = repeats.going, repeats.going or k + 1 < count  # what one call saved the next needs
            _C._enter_examples([some[i] for i, _ in steps], [k * step for _, step in steps])
            try:
                output = func(*tree_unflatten(some, spec), **kwargs)
            finally:
                _C._leave_examples()
                repeats.going = outer
            found, found_spec = _tensors(name, output)
            if out_spec is not None and found_spec != out_spec:
                raise ValueError(
                    f"vmap({name}, ...): expected results of one structure, got {out_spec} and {found_spec}."
                )
            out_spec = found_spec
            results.append(found)
        _check_randomness(name, randomness, state)
        try:
            outs = _spread(out_dims, output)
        except ValueError:
            raise ValueError(
                f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of "
                f"outputs. out_dims has structure {tree_flatten(out_dims)[1]} but outputs has structure {out_spec}."
            ) from None
        made = []
        for i, dim in enumerate(outs):
            parts = [result[i] for result in results]
            if dim is None:
                made.append(parts[-1])
                continue
            if not -parts[0].dim() - 1 <= dim <= parts[0].dim():
                raise IndexError(
                    f"vmap({name}, ..., out_dims={out_dims}): expected a dimension of the result in the range of "
                    f"[{-parts[0].dim() - 1}, {parts[0].dim()}], got {dim}."
                )
            stacked = vesta.stack(parts, dim)
            made.append(stacked if count else stacked.narrow(dim % stacked.dim(), 0, 0))
        return tree_unflatten(made, out_spec)

    return mapped
