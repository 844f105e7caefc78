"""Whole Jacobians and Hessians of functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, overload

import vesta
from vesta import Tensor
from vesta._arguments import expect
from vesta.utils._pytree import tree_flatten, tree_unflatten

from .levels import leave
from .transforms import ArgNums, Linearization, chosen, leave_tree, vjp

if TYPE_CHECKING:
    from .signatures import A, B, C, OfAny, OfOne, OfThree, OfTwo


def _at(func: Callable[..., Any], args: tuple[Any, ...], numbers: tuple[int, ...], kwargs: Any) -> Callable[..., Any]:
    """Returns ``func`` as a function of the chosen arguments alone."""

    def call(*some: Any) -> Any:
        complete = list(args)
        for i, value in zip(numbers, some):
            complete[i] = value
        return func(*complete, **kwargs)

    return call


def _unit_vectors(like: Tensor) -> list[Tensor]:
    """Returns, for each element of a tensor, zeros of its shape with a one at the element."""
    n = like.numel()
    return list(vesta.eye(n, dtype=like.dtype, device=like.device).view(n, *like.shape).unbind(0))


def _check(name: str, func: Any, chunk_size: Any) -> None:
    expect(name, "func", func, Callable, "a function")
    if chunk_size is not None and (not isinstance(chunk_size, int) or chunk_size <= 0):
        raise ValueError(f"{name}: `chunk_size` should be greater than 0, got {chunk_size!r}.")


@overload
def jacrev(
    func: Callable[[A], Any], argnums: int = 0, *, has_aux: Literal[False] = False, chunk_size: int | None = None
) -> OfOne[A, A]: ...
@overload
def jacrev(
    func: Callable[[A, B], Any], argnums: int = 0, *, has_aux: Literal[False] = False, chunk_size: int | None = None
) -> OfTwo[A, B, A]: ...
@overload
def jacrev(
    func: Callable[[A, B, C], Any], argnums: int = 0, *, has_aux: Literal[False] = False, chunk_size: int | None = None
) -> OfThree[A, B, C, A]: ...
@overload
def jacrev(
    func: Callable[..., Any],
    argnums: ArgNums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> OfAny: ...
def jacrev(
    func: Callable[..., Any],
    argnums: ArgNums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """Returns a function that computes the Jacobian of ``func``, a row (an output's element) at a time.

    Args:
        func: returns a tensor or a tree of them; with ``has_aux`` the pair of it and anything else.
        argnums: by which arguments, which may be trees of tensors, as a number or a tuple of them.
        chunk_size: taken for PyTorch's sake; rows are computed one by one, in the least memory.

    Returns:
        A function of the same arguments that returns, in the structure of the output, for each output the
        derivatives by the argument (a tuple of such if ``argnums`` is one), each of shape
        ``[*output.shape, *input.shape]``; with ``has_aux`` the pair of it and aux.

    Example::

        >>> import vesta
        >>> vesta.func.jacrev(lambda x: x * x)(vesta.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    _check("jacrev", func, chunk_size)

    @wraps(func)
    def compute(*args: Any, **kwargs: Any) -> Any:
        numbers = chosen("jacrev", argnums, args)
        given = tuple(args[i] for i in numbers)
        output, vjp_fn, *aux = vjp(_at(func, args, numbers, kwargs), *given, has_aux=has_aux)
        outputs, output_spec = tree_flatten(output)
        inputs, input_spec = tree_flatten(given)
        zeros = [vesta.zeros_like(out) for out in outputs]
        made = []
        for k, out in enumerate(outputs):
            rows: list[list[Tensor]] = []
            for unit in _unit_vectors(out):
                vectors = tree_unflatten([*zeros[:k], unit, *zeros[k + 1 :]], output_spec)
                rows.append(tree_flatten(vjp_fn(vectors))[0])
            columns = [
                vesta.stack([row[i] for row in rows]).view((*out.shape, *x.shape))
                if rows
                else x.new_zeros((*out.shape, *x.shape))
                for i, x in enumerate(inputs)
            ]
            tree = tree_unflatten(columns, input_spec)
            made.append(tree if isinstance(argnums, tuple) else tree[0])
        result = tree_unflatten(made, output_spec)
        return (result, aux[0]) if has_aux else result

    return compute


@overload
def jacfwd(
    func: Callable[[A], Any], argnums: int = 0, has_aux: Literal[False] = False, *, randomness: str = "error"
) -> OfOne[A, A]: ...
@overload
def jacfwd(
    func: Callable[[A, B], Any], argnums: int = 0, has_aux: Literal[False] = False, *, randomness: str = "error"
) -> OfTwo[A, B, A]: ...
@overload
def jacfwd(
    func: Callable[[A, B, C], Any], argnums: int = 0, has_aux: Literal[False] = False, *, randomness: str = "error"
) -> OfThree[A, B, C, A]: ...
@overload
def jacfwd(
    func: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False, *, randomness: str = "error"
) -> OfAny: ...
def jacfwd(
    func: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable[..., Any]:
    """Returns a function that computes the Jacobian of ``func``, a column (an input's element) at a time.

    Arguments and results are those of ``jacrev``. A column is a derivative in forward mode (see ``jvp``): fewer calls
    than ``jacrev`` where there are more outputs than inputs.

    Example::

        >>> import vesta
        >>> vesta.func.jacfwd(lambda x: vesta.stack([x, x * x, x ** 3]))(vesta.tensor(2.0))
        tensor([ 1.,  4., 12.])
    """
    _check("jacfwd", func, None)

    @wraps(func)
    def compute(*args: Any, **kwargs: Any) -> Any:
        numbers = chosen("jacfwd", argnums, args)
        given = tuple(args[i] for i in numbers)
        at = Linearization("jacfwd", _at(func, args, numbers, kwargs), given, has_aux)
        zeros = [vesta.zeros_like(x) for x in at.given]
        blocks: list[list[Tensor]] = [[] for _ in at.outputs]  # for each output, for each input
        for k, x in enumerate(at.given):
            columns = [at.jvp([*zeros[:k], unit, *zeros[k + 1 :]]) for unit in _unit_vectors(x)]
            for i, out in enumerate(at.outputs):
                block = (
                    vesta.stack([column[i] for column in columns], -1) if columns else out.new_zeros((*out.shape, 0))
                )
                blocks[i].append(block.view((*out.shape, *x.shape)))
        made = []
        for block in blocks:
            tree = tree_unflatten(block, at.spec)
            made.append(tree if isinstance(argnums, tuple) else tree[0])
        result = at.tree(leave(made, True))
        return (result, leave_tree(at.aux, at.outer)) if has_aux else result

    return compute


@overload
def hessian(func: Callable[[A], Any], argnums: int = 0) -> OfOne[A, A]: ...
@overload
def hessian(func: Callable[[A, B], Any], argnums: int = 0) -> OfTwo[A, B, A]: ...
@overload
def hessian(func: Callable[[A, B, C], Any], argnums: int = 0) -> OfThree[A, B, C, A]: ...
@overload
def hessian(func: Callable[..., Any], argnums: ArgNums = 0) -> OfAny: ...
def hessian(func: Callable[..., Any], argnums: ArgNums = 0) -> Callable[..., Any]:
    """Returns a function that computes the Hessian of ``func``: ``jacfwd(jacrev(func))``.

    Example::

        >>> import vesta
        >>> vesta.func.hessian(lambda x: (x ** 3).sum())(vesta.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
