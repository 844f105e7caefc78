"""``grad``, ``vjp`` and ``jvp``: functions that compute derivatives of a function."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, overload

import vesta
from vesta import Tensor
from vesta._arguments import expect
from vesta.utils._pytree import tree_flatten, tree_map, tree_unflatten

from .levels import enter, gradients, is_outer, leave, points

if TYPE_CHECKING:
    from .signatures import A, B, C, OfAny, OfOne, OfThree, OfTwo

ArgNums = Union[int, tuple[int, ...]]
R = TypeVar("R")


def chosen(name: str, argnums: ArgNums, args: tuple[Any, ...]) -> tuple[int, ...]:
    """Returns the positions of the arguments to differentiate by. RuntimeError, TypeError: not such positions."""
    numbers = argnums if isinstance(argnums, tuple) else (argnums,)
    if not numbers:
        raise RuntimeError(f"{name}: argnums must be non-empty")
    made = []
    for number in numbers:
        if not isinstance(number, int) or isinstance(number, bool):
            raise TypeError(f"{name}: argnums must be int or tuple of ints, got {type(number).__name__}.")
        if not -len(args) <= number < len(args):
            raise RuntimeError(
                f"{name}: Got argnum={number}, but only {len(args)} positional inputs. Give what is differentiated by "
                "position."
            )
        made.append(number % len(args))
    if len(set(made)) != len(made):
        raise RuntimeError(f"{name}: argnums elements must be unique, got {argnums}.")
    return tuple(made)


def split_aux(name: str, result: Any, has_aux: bool) -> tuple[Any, Any]:
    """Returns what is differentiated and what only is returned. RuntimeError: ``result`` is not such a pair."""
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise RuntimeError(
            f"{name}: output of function f should be a tuple: (output, aux) if has_aux is True, got "
            f"{type(result).__name__}."
        )
    return result


def leave_tree(tree: Any, outer: bool) -> Any:
    """Returns a tree of results as the caller gets them."""
    leaves, spec = tree_flatten(tree)
    return tree_unflatten(leave(leaves, outer), spec)


def _check_function(name: str, func: Any) -> None:
    expect(name, "func", func, Callable, "a function")


@overload
def grad_and_value(
    func: Callable[[A], Any], argnums: int = 0, has_aux: Literal[False] = False
) -> OfOne[A, tuple[A, Tensor]]: ...
@overload
def grad_and_value(
    func: Callable[[A, B], Any], argnums: int = 0, has_aux: Literal[False] = False
) -> OfTwo[A, B, tuple[A, Tensor]]: ...
@overload
def grad_and_value(
    func: Callable[[A, B, C], Any], argnums: int = 0, has_aux: Literal[False] = False
) -> OfThree[A, B, C, tuple[A, Tensor]]: ...
@overload
def grad_and_value(func: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False) -> OfAny: ...
def grad_and_value(func: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Returns a function that computes the gradient of ``func`` and its value.

    Args:
        func: returns one tensor of one element and no dimensions; with ``has_aux`` the pair of it and anything else.
        argnums: by which arguments, which may be trees of tensors, as a number or a tuple of them.
        has_aux: whether ``func`` returns something besides.

    Returns:
        A function of the same arguments. It returns ``(gradient, value)``, or ``(gradient, (value, aux))``. The
        gradient has the structure of the argument, or is a tuple of such if ``argnums`` is one.

    Example::

        >>> import vesta
        >>> vesta.func.grad_and_value(lambda x: (x ** 2).sum())(vesta.tensor([1.0, 2.0]))
        (tensor([2., 4.]), tensor(5.))
    """
    _check_function("grad_and_value", func)

    @wraps(func)
    def compute(*args: Any, **kwargs: Any) -> Any:
        numbers = chosen("grad", argnums, args)
        recording = vesta.is_grad_enabled()
        with vesta.enable_grad():
            trees = [points("grad", args[i], "the arguments to differentiate by") for i in numbers]
            given = [tensor for leaves, _ in trees for tensor in leaves]
            own = enter(given)
            replaced, rest = list(args), iter(own)
            for i, (leaves, spec) in zip(numbers, trees):
                replaced[i] = tree_unflatten([next(rest) for _ in leaves], spec)
            output, aux = split_aux("grad_and_value", func(*replaced, **kwargs), has_aux)
            if not isinstance(output, Tensor):
                raise RuntimeError(
                    "grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got an output of type "
                    f"{type(output).__name__}."
                )
            if output.dim() != 0:
                raise RuntimeError(
                    "grad_and_value(f)(*args): Expected f(*args) to return a scalar tensor, got tensor with "
                    f"{output.dim()} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
                )
            outer = is_outer([output], given, own, recording)
            found = leave(gradients([output], own, [vesta.ones_like(output)], outer, retain_graph=outer), outer)
        rest, made = iter(found), []
        for leaves, spec in trees:
            made.append(tree_unflatten([next(rest) for _ in leaves], spec))
        value = leave([output], outer)[0]
        result = tuple(made) if isinstance(argnums, tuple) else made[0]
        return (result, (value, leave_tree(aux, outer))) if has_aux else (result, value)

    return compute


@overload
def grad(func: Callable[[A], Any], argnums: int = 0, has_aux: Literal[False] = False) -> OfOne[A, A]: ...
@overload
def grad(func: Callable[[A, B], Any], argnums: int = 0, has_aux: Literal[False] = False) -> OfTwo[A, B, A]: ...
@overload
def grad(func: Callable[[A, B, C], Any], argnums: int = 0, has_aux: Literal[False] = False) -> OfThree[A, B, C, A]: ...
@overload
def grad(func: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False) -> OfAny: ...
def grad(func: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Returns a function that computes the gradient of ``func``; arguments as of ``grad_and_value``.

    The arguments' own ``.grad`` and ``requires_grad`` take no part. Gradients of gradients nest:
    ``grad(grad(f))``.

    Returns:
        A function of the same arguments that returns the gradient, or ``(gradient, aux)``.

    Example::

        >>> import vesta
        >>> vesta.func.grad(vesta.sin)(vesta.tensor(0.0))
        tensor(1.)
    """
    both = grad_and_value(func, argnums, has_aux)

    @wraps(func)
    def compute(*args: Any, **kwargs: Any) -> Any:
        gradient, value = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return compute


def _outputs(name: str, output: Any) -> tuple[list[Tensor], Any]:
    leaves, spec = tree_flatten(output)
    if not leaves:
        raise RuntimeError(f"{name}: Expected f to be a function that has non-empty output (got output = {output})")
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(
                f"{name}: Expected f to return only tensors, got an output of type {type(leaf).__name__}."
            )
    return leaves, spec


def _matched(name: str, what: str, value: Any, like: list[Tensor], spec: Any) -> list[Tensor]:
    """Returns the tensors of a tree that must have the structure and shapes of ``like``."""
    leaves, own = tree_flatten(value)
    if own != spec and not (len(leaves) == len(like) == 1):
        raise RuntimeError(f"{name}: Expected {what} to have the structure {spec}, got {own}.")
    for leaf, other in zip(leaves, like):
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"{name}: Expected {what} to contain only tensors, got {type(leaf).__name__}.")
        if leaf.shape != other.shape:
            raise RuntimeError(f"{name}: Expected {what} of shape {list(other.shape)}, got {list(leaf.shape)}.")
    return leaves


@overload
def vjp(
    func: Callable[[A], R], primal: A, /, *, has_aux: Literal[False] = False
) -> tuple[R, Callable[..., tuple[A, ...]]]: ...
@overload
def vjp(
    func: Callable[[A, B], R], primal: A, other: B, /, *, has_aux: Literal[False] = False
) -> tuple[R, Callable[..., tuple[A, ...]]]: ...
@overload
def vjp(func: Callable[..., R], *primals: Any, has_aux: Literal[False] = False) -> tuple[R, Callable[..., Any]]: ...
@overload
def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool) -> Any: ...
def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Computes ``func(*primals)``, and returns a function for products of a vector with its Jacobian.

    Args:
        func: returns a tensor or a tree of them; with ``has_aux`` the pair of it and anything else.
        primals: trees of tensors.

    Returns:
        ``(output, vjp_fn)`` or ``(output, vjp_fn, aux)``. ``vjp_fn(cotangents)``, of the structure and shapes of the
        output, returns a tuple with the product for each of ``primals``; it can be called again.

    Example::

        >>> import vesta
        >>> output, vjp_fn = vesta.func.vjp(lambda x: x * x, vesta.tensor([1.0, 2.0]))
        >>> vjp_fn(vesta.ones(2))
        (tensor([2., 4.]),)
    """
    _check_function("vjp", func)
    recording = vesta.is_grad_enabled()
    with vesta.enable_grad():
        given, spec = points("vjp", primals, "primals")
        own = enter(given)
        output, aux = split_aux("vjp", func(*tree_unflatten(own, spec)), has_aux)
        outputs, output_spec = _outputs("vjp", output)
        outer = is_outer(outputs, given, own, recording)

    def vjp_fn(*cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> tuple[Any, ...]:
        tree = cotangents[0] if len(cotangents) == 1 else cotangents
        vectors = _matched("vjp", "cotangents", tree, outputs, output_spec)
        recorded = any(v.requires_grad for v in vectors) and vesta.is_grad_enabled()
        graph = (outer or recorded) if create_graph is None else create_graph
        with vesta.enable_grad():
            found = gradients(outputs, own, vectors, graph, retain_graph or graph)
        return tree_unflatten(leave(found, graph), spec)

    result = tree_unflatten(leave(outputs, outer), output_spec)
    return (result, vjp_fn, leave_tree(aux, outer)) if has_aux else (result, vjp_fn)


class Linearization:
    """A function at a point, ready for products of its Jacobian with vectors: v^T J as a function of v."""

    def __init__(self, name: str, func: Callable[..., Any], primals: Any, has_aux: bool) -> None:
        self.recording = vesta.is_grad_enabled()
        with vesta.enable_grad():
            self.given, self.spec = points(name, primals, "primals")
            self.own = enter(self.given)
            output, self.aux = split_aux(name, func(*tree_unflatten(self.own, self.spec)), has_aux)
            self.outputs, self.output_spec = _outputs(name, output)
            self.outer = is_outer(self.outputs, self.given, self.own, self.recording)
            self.seeds = [vesta.zeros_like(out).requires_grad_() for out in self.outputs]
            self.products = gradients(self.outputs, self.own, self.seeds, True)

    def jvp(self, tangents: list[Tensor]) -> list[Tensor]:
        """Returns J v for each output."""
        outer = self.outer or (self.recording and any(t.requires_grad for t in tangents))
        with vesta.enable_grad():
            alike = [t.to(x.dtype) if x.is_complex() else t for t, x in zip(tangents, self.own)]
            return leave(gradients(self.products, self.seeds, alike, outer), outer)

    def tree(self, outputs: list[Any]) -> Any:
        """Returns values, one for each output, in the structure of the output."""
        return tree_unflatten(outputs, self.output_spec)


def jvp(
    func: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...], *, strict: bool = False,
    has_aux: bool = False,
) -> Any:  # fmt: skip
    """Computes ``func(*primals)`` and the product of its Jacobian with ``tangents``.

    It is the derivative of v^T J with respect to v ("double vjp"): ``func`` must be differentiable twice.

    Args:
        func: returns a tensor or a tree of them; with ``has_aux`` the pair of it and anything else.
        primals: a tuple of arguments, trees of tensors.
        tangents: of the structure and shapes of ``primals``.
        strict: taken for PyTorch's sake; an output that does not depend on the inputs has a product of zeros.

    Returns:
        ``(output, product)`` or ``(output, product, aux)``.

    Example::

        >>> import vesta
        >>> x = vesta.tensor([1.0, 2.0])
        >>> vesta.func.jvp(lambda x: x * x, (x,), (vesta.tensor([1.0, 0.0]),))
        (tensor([1., 4.]), tensor([2., 0.]))
    """
    _check_function("jvp", func)
    if not isinstance(primals, tuple) or not primals:
        raise RuntimeError(
            f"jvp: Expected primals to be a tuple of at least one argument, got {type(primals).__name__}. "
            "E.g. it should be valid to call f(*primals)."
        )
    if not isinstance(tangents, tuple):
        raise RuntimeError(f"jvp: Expected tangents to be a tuple, got {type(tangents).__name__}.")
    at = Linearization("jvp", func, primals, has_aux)
    found = at.tree(at.jvp(_matched("jvp", "tangents", tangents, at.given, at.spec)))
    output = at.tree(leave(at.outputs, at.outer))
    return (output, found, leave_tree(at.aux, at.outer)) if has_aux else (output, found)


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """Computes ``func(*primals)``, and returns a function for products of its Jacobian with vectors.

    Args:
        func: returns a tensor or a tree of them.
        primals: trees of tensors.

    Returns:
        ``(output, jvp_fn)``; ``jvp_fn(*tangents)`` costs no evaluation of ``func``.

    Example::

        >>> import vesta
        >>> output, jvp_fn = vesta.func.linearize(vesta.sin, vesta.tensor(0.0))
        >>> jvp_fn(vesta.tensor(3.0))
        tensor(3.)
    """
    _check_function("linearize", func)
    at = Linearization("linearize", func, primals, False)

    def jvp_fn(*tangents: Any) -> Any:
        return at.tree(at.jvp(_matched("linearize", "tangents", tangents, at.given, at.spec)))

    return at.tree(leave(at.outputs, at.outer)), jvp_fn


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """Returns a function that computes what ``func`` does; PyTorch's makes one without writes in place.

    Vesta records no programs, so there is no list of ops that writes would have to be taken out of.

    Args:
        remove: "mutations" or "mutations_and_views".

    Example::

        >>> import vesta
        >>> vesta.func.functionalize(lambda x: x.clone().add_(1))(vesta.ones(2))
        tensor([2., 2.])
    """
    _check_function("functionalize", func)
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            "functionalize(f, remove='mutations'): Valid options for inner argument 'remove' are: 'mutations' and "
            f"'mutations_and_views', got {remove!r}."
        )

    @wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        return tree_map(lambda value: value, func(*args, **kwargs))

    return call
