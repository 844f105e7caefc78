"""``einsum``: sums of products over named dimensions.

Every operand is brought to the dimensions of all names, the result's first; then operands are multiplied from left to
right, each time as one batched matrix product, and a name is summed over as soon as no later operand has it. The plain
product of two operands is planned once for each equation and shapes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, overload

from ._arguments import python_numbers
from ._C import Tensor
from ._overridable import hand_over_arranged

if TYPE_CHECKING:
    from types import EllipsisType

#: A name: a letter or a number of the sublist form, or the n-th last dimension that "..." stands for.
Name = Any


@overload
def einsum(equation: str, /, *operands: Tensor | Sequence[Tensor]) -> Tensor: ...
@overload
def einsum(operand: Tensor, /, *sublists: Tensor | Sequence[int | EllipsisType]) -> Tensor: ...
def einsum(*args: Any) -> Tensor:
    """Sums products of the elements of tensors over dimensions named by letters (Einstein's convention).

    Args:
        args: the equation and the operands: ``einsum("bij,bjk->bik", x, y)``; or each operand with a list of numbers
            for its dimensions, and at last the list of the result's: ``einsum(x, [0, 1], y, [1, 2], [0, 2])``.

    In an equation every operand has a letter for each dimension, a repeated letter takes the diagonal, ``...`` stands
    for the dimensions that are left and broadcast. Without ``->`` the result has the letters that occur once, in
    alphabetical order. Operands are multiplied from left to right.

    Raises:
        RuntimeError: the equation does not fit the operands, or sizes of one letter differ and neither is 1.

    Example::

        >>> import vesta
        >>> x = vesta.arange(6).reshape(2, 3)
        >>> vesta.einsum("ij->j", x)
        tensor([3, 5, 7])
        >>> vesta.einsum("ij,kj->ik", x, x)
        tensor([[ 5, 14],
                [14, 50]])
    """
    if not args:
        raise ValueError("einsum: expected an equation and at least one operand, got nothing.")
    if isinstance(args[0], str):
        operands = args[1] if len(args) == 2 and isinstance(args[1], (list, tuple)) else args[1:]
        if len(operands) == 2 and isinstance(operands[0], Tensor) and isinstance(operands[1], Tensor):
            left, right = operands
            plan = _product(args[0], tuple(left.shape), tuple(right.shape))
            if plan is not None:
                return plan.compute(left, right)
        inputs, output = _of_equation(args[0])
    else:
        operands, inputs, output = _of_sublists(args)
    for number, operand in enumerate(operands):
        if not isinstance(operand, Tensor):
            raise TypeError(f"einsum: expected Tensors as operands, got {type(operand).__name__} at operand {number}.")
    if not operands or len(inputs) != len(operands):
        raise RuntimeError(f"einsum: expected as many operands as subscripts, got {len(operands)} and {len(inputs)}.")
    named = [_expanded(names, operand.shape, number) for number, (names, operand) in enumerate(zip(inputs, operands))]
    return _evaluate(list(operands), named, _result_names(named, output))


def _spread(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns the arguments with operands one by one instead of in a list."""
    listed = len(args) == 2 and isinstance(args[0], str) and isinstance(args[1], (list, tuple))
    return (args[0], *args[1]) if listed else args


hand_over_arranged(einsum, _spread)


# ---- names ------------------------------------------------------------------------------------------------------


def _letters(text: str) -> list[Name]:
    names: list[Name] = []
    place = 0
    while place < len(text):
        if text.startswith("...", place):
            if Ellipsis in names:
                raise RuntimeError(f"einsum: expected '...' once in a subscript, got {text!r}.")
            names.append(Ellipsis)
            place += 3
            continue
        if not (text[place].isascii() and text[place].isalpha()):
            raise RuntimeError(f"einsum: expected letters of the alphabet and '...', got {text[place]!r} in {text!r}.")
        names.append(text[place])
        place += 1
    return names


def _of_equation(equation: str) -> tuple[list[list[Name]], list[Name] | None]:
    left, arrow, right = equation.replace(" ", "").partition("->")
    return [_letters(part) for part in left.split(",")], _letters(right) if arrow else None


def _of_sublists(args: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[list[Name]], list[Name] | None]:
    for names in (*args[1::2], *(args[-1:] if len(args) % 2 else ())):
        if not isinstance(names, (list, tuple)):
            raise TypeError(
                "einsum: expected an equation and operands, or each operand with a list of subscripts; "
                f"got {type(names).__name__} for a list."
            )
    args = tuple(python_numbers(list(arg)) if isinstance(arg, (list, tuple)) else arg for arg in args)
    output = args[-1] if len(args) % 2 else None
    pairs = args[: len(args) // 2 * 2]
    for names in (*pairs[1::2], *([output] if output is not None else [])):
        for name in names:
            if name is not Ellipsis and not (isinstance(name, int) and 0 <= name < 52):
                raise RuntimeError(f"einsum: expected subscripts in [0, 52) or Ellipsis, got {name!r}.")
    return pairs[::2], [list(names) for names in pairs[1::2]], output


def _expanded(names: list[Name], shape: Sequence[int], number: int) -> list[Name]:
    """Names the dimensions that "..." stands for, by their distance from its end."""
    rest = len(shape) - sum(name is not Ellipsis for name in names)
    if rest < 0 or (rest > 0 and Ellipsis not in names):
        raise RuntimeError(
            f"einsum: expected a subscript for each dimension, got {len(names)} subscripts for operand {number} of "
            f"shape {list(shape)}."
        )
    full: list[Name] = []
    for name in names:
        full += [(d,) for d in range(rest, 0, -1)] if name is Ellipsis else [name]
    return full


def _result_names(named: list[list[Name]], output: list[Name] | None) -> list[Name]:
    every = [name for names in named for name in names]
    hidden = sorted({name for name in every if isinstance(name, tuple)}, reverse=True)
    if output is None:
        plain = sorted({name for name in every if not isinstance(name, tuple)})
        return [*hidden, *(name for name in plain if every.count(name) == 1)]
    result: list[Name] = []
    for name in output:
        result += hidden if name is Ellipsis else [name]
    for name in result:
        if result.count(name) > 1:
            raise RuntimeError(
                f"einsum: expected a subscript once in the result, got {name!r} {result.count(name)} times."
            )
        if name not in every:
            raise RuntimeError(f"einsum: expected subscripts of operands in the result, got {name!r}, which none has.")
    return result


# ---- products ---------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Arranged:
    """How dimensions are permuted and then shaped; None where they stay."""

    order: list[int] | None
    shape: list[int] | None

    def arrange(self, x: Tensor) -> Tensor:
        """Permutes and shapes x."""
        x = x if self.order is None else x.permute(self.order)
        return x if self.shape is None else x.reshape(self.shape)


@dataclass(slots=True)
class _Product:
    """A product of two arranged operands, of matrices or of elements, whose result is shaped and then permuted."""

    left: _Arranged
    right: _Arranged
    of_elements: bool
    shape: list[int] | None = None
    order: list[int] | None = None

    def compute(self, left: Tensor, right: Tensor) -> Tensor:
        """Multiplies the operands and gives the product its dimensions."""
        a, b = self.left.arrange(left), self.right.arrange(right)
        product = a * b if self.of_elements else a @ b
        product = product if self.shape is None else product.reshape(self.shape)
        return product if self.order is None else product.permute(self.order)


@lru_cache(maxsize=1024)
def _product(equation: str, left: tuple[int, ...], right: tuple[int, ...]) -> _Product | None:
    """Plans two operands' product, summed over dimensions that both have, or returns None if it is not as plain.

    A plan is made once for an equation and two shapes: making one takes as long as a product of small matrices.
    """
    inputs, output = _of_equation(equation)
    if len(inputs) != 2:
        return None
    named = [_expanded(names, shape, number) for number, (names, shape) in enumerate(zip(inputs, (left, right)))]
    result = _result_names(named, output)
    of_left, of_right = (dict(zip(names, shape)) for names, shape in zip(named, (left, right)))
    inner = [name for name in of_left if name in of_right and name not in result]
    plain = len(of_left) == len(left) and len(of_right) == len(right)
    if not plain or any(of_left.get(name, size) != size for name, size in of_right.items()):
        return None
    if any(name not in (*result, *inner) for names in named for name in names):
        return None
    if not inner:

        def beside(sizes: dict[Name, int]) -> _Arranged:
            names = list(sizes)
            order = [names.index(name) for name in result if name in sizes]
            shape = [sizes.get(name, 1) for name in result]
            return _Arranged(None if order == sorted(order) else order, None if len(order) == len(shape) else shape)

        return _Product(beside(of_left), beside(of_right), of_elements=True)
    batch = [name for name in result if name in of_left and name in of_right]
    rows = [name for name in result if name not in of_right]
    columns = [name for name in result if name not in of_left]

    def arranged(sizes: dict[Name, int], *groups: list[Name]) -> _Arranged:
        names = list(sizes)
        order = [names.index(name) for group in groups for name in group]
        shape = [math.prod(sizes[name] for name in group) for group in groups if group or group is not batch]
        stays = shape == [sizes[names[d]] for d in order]
        return _Arranged(None if order == sorted(order) else order, None if stays else shape)

    made = [*batch, *rows, *columns]
    whole = len(rows) == len(columns) == 1 and len(batch) <= 1
    sizes = {**of_left, **of_right}
    return _Product(
        arranged(of_left, batch, rows, inner),
        arranged(of_right, batch, inner, columns),
        False,
        None if whole else [sizes[name] for name in made],
        None if made == result else [made.index(name) for name in result],
    )


def _diagonal(x: Tensor, names: list[Name]) -> tuple[Tensor, list[Name]]:
    """Takes the diagonal of dimensions with one name."""
    names = list(names)
    for name in dict.fromkeys(names):
        while names.count(name) > 1:
            first = names.index(name)
            second = names.index(name, first + 1)
            if x.shape[first] != x.shape[second]:
                raise RuntimeError(
                    f"einsum: expected one size for the repeated subscript {name!r}, got {x.shape[first]} and "
                    f"{x.shape[second]}."
                )
            x = x.diagonal(0, first, second)
            names = [n for d, n in enumerate(names) if d not in (first, second)] + [name]
    return x, names


def _evaluate(operands: list[Tensor], named: list[list[Name]], result: list[Name]) -> Tensor:
    parts = [_diagonal(x, names) for x, names in zip(operands, named)]
    order = [*result, *dict.fromkeys(name for _, names in parts for name in names if name not in result)]
    sizes: dict[Name, int] = {}
    for x, names in parts:
        for name, size in zip(names, x.shape):
            have = sizes.setdefault(name, size)
            if have != size and 1 not in (have, size):
                raise RuntimeError(f"einsum: expected one size for the subscript {name!r}, got {have} and {size}.")
            if have == 1:
                sizes[name] = size
    full = []
    for x, names in parts:
        there = [name for name in order if name in names]
        x = x.permute([names.index(name) for name in there])
        full.append(x.reshape([x.shape[there.index(name)] if name in there else 1 for name in order]))
    last = {name: max(n for n, (_, names) in enumerate(parts) if name in names) for name in order}
    left = full[0]
    for number, right in enumerate(full[1:], 1):
        over = [d for d, name in enumerate(order) if name not in result and last[name] == number]
        if number == 1:  # what the first operand alone has
            early = [d for d, name in enumerate(order) if name not in result and last[name] == 0 and left.shape[d] != 1]
            left = left.sum(early, keepdim=True) if early else left
        left = _pair(left, right, over)
    over = [d for d in range(len(result), len(order)) if left.shape[d] != 1 or len(full) == 1]
    left = left.sum(over, keepdim=True) if over else left
    return left.reshape([sizes[name] for name in result])


def _pair(left: Tensor, right: Tensor, over: list[int]) -> Tensor:
    """Multiplies two tensors that broadcast, summed over dimensions, which stay with size 1."""
    alone = [d for d in over if left.shape[d] == 1 or right.shape[d] == 1]  # in one of them only: summed there
    for d in alone:
        left = left.sum(d, keepdim=True) if left.shape[d] != 1 else left
        right = right.sum(d, keepdim=True) if right.shape[d] != 1 else right
    dims = range(left.dim())
    inner = [d for d in over if d not in alone]
    batch = [d for d in dims if d not in over and left.shape[d] != 1 and right.shape[d] != 1]
    of_left = [d for d in dims if d not in over and d not in batch and left.shape[d] != 1]
    of_right = [d for d in dims if d not in over and d not in batch and right.shape[d] != 1]
    rest = [d for d in dims if d not in (*inner, *batch, *of_left, *of_right)]
    if not inner:
        return left * right

    def matrix(x: Tensor, *groups: list[int]) -> Tensor:
        shape = [math.prod(x.shape[d] for d in group) for group in groups]
        return x.permute([*(d for group in groups for d in group), *others(groups)]).reshape(shape)

    def others(groups: tuple[list[int], ...]) -> list[int]:
        taken = [d for group in groups for d in group]
        return [d for d in dims if d not in taken]

    product = matrix(left, batch, of_left, inner) @ matrix(right, batch, inner, of_right)
    shape = [*(left.shape[d] for d in (*batch, *of_left)), *(right.shape[d] for d in of_right)]
    made = product.reshape([*shape, *(1 for _ in (*inner, *rest))])
    order = [*batch, *of_left, *of_right, *inner, *rest]
    return made.permute([order.index(d) for d in dims])
