"""Products with derivatives of a function, and whole Jacobians and Hessians: ``torch.autograd.functional``'s names.

For a function f and a point x: ``vjp`` is v^T J, ``jvp`` is J v by differentiating v^T J with respect to v (the
"double-vjp" construction), ``jacobian`` has one ``vjp`` for each output element, ``hvp`` and ``vhp`` are H v and v^T H.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import vesta
from vesta import Tensor
from vesta._arguments import checked
from vesta._names import listing

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def _tuple(value: Any, name: str, op: str) -> tuple[Tensor, ...]:
    """Returns one tensor or a sequence of them as a tuple. TypeError: anything else."""
    parts = value if isinstance(value, (tuple, list)) else (value,)
    for i, part in enumerate(parts):
        if not isinstance(part, Tensor):
            raise TypeError(
                f"{op}: expected a Tensor or a tuple of them, got {type(part).__name__} ({name}[{i}]). "
                f"The {name} must be given as tensors."
            )
    return tuple(parts)


def _leaves(inputs: tuple[Tensor, ...], create_graph: bool) -> tuple[Tensor, ...]:
    """Returns the inputs as what is differentiated by: themselves, as a step of the graph, if it goes on."""
    if create_graph:
        return tuple(x.view_as(x) if x.requires_grad else x.detach().requires_grad_() for x in inputs)
    return tuple(x.detach().requires_grad_() for x in inputs)


def _vectors(v: Any, like: tuple[Tensor, ...], op: str) -> tuple[Tensor, ...]:
    """Returns the vector of a product, checked; ones if there is none and one element. RuntimeError: a wrong one."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(
                f"{op}: expected v, got None. The vector v can only be None if the user-provided function returns a "
                "single Tensor with a single element."
            )
        return (vesta.ones_like(like[0]),)
    parts = _tuple(v, "v", op)
    if len(parts) != len(like):
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(parts)}.")
    for part, other in zip(parts, like):
        if part.shape != other.shape:
            raise RuntimeError(f"v has invalid size: should be {other.shape} but got {part.shape}.")
    return parts


def _grads(
    outputs: tuple[Tensor, ...],
    inputs: tuple[Tensor, ...],
    vectors: tuple[Tensor | None, ...],
    create_graph: bool,
    strict: bool,
    op: str,
) -> tuple[Tensor, ...]:
    """Returns the gradients, zeros where there are none; RuntimeError for those if ``strict``."""
    used = [(out, v) for out, v in zip(outputs, vectors) if out.requires_grad]
    found: tuple[Tensor | None, ...] = (None,) * len(inputs)
    if used:
        given = [v for _, v in used]
        keep = True
        found = vesta.autograd.grad(
            [out for out, _ in used], inputs, given, retain_graph=keep, create_graph=create_graph, allow_unused=True
        )
    if strict and any(g is None for g in found):
        index = next(i for i, g in enumerate(found) if g is None)
        raise RuntimeError(
            f"{op}: an output of the user-provided function is independent of input {index}. This is not allowed in "
            "strict mode."
        )
    return tuple(vesta.zeros_like(x) if g is None else g for g, x in zip(found, inputs))


def _finish(parts: tuple[Tensor, ...], single: bool, create_graph: bool) -> Any:
    made = parts if create_graph else tuple(part.detach() for part in parts)
    return made[0] if single else made


@checked
def vjp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Returns the result of ``func`` at ``inputs``, and the product of ``v`` with its Jacobian.

    Args:
        func: a function of tensors that returns one or a tuple of them.
        inputs: its arguments: one tensor or a tuple.
        v: of the result's shape; may be left out for a result of one element.
        create_graph: whether the results can be differentiated.
        strict: raise RuntimeError if an input has no influence, instead of giving zeros.

    Example::

        >>> import vesta
        >>> x = vesta.tensor([1.0, 2.0])
        >>> vesta.autograd.functional.vjp(lambda x: x * x, x, vesta.ones(2))[1]
        tensor([2., 4.])
    """
    with vesta.enable_grad():
        given = _tuple(inputs, "inputs", "vjp")
        points = _leaves(given, create_graph)
        result = func(*points)
        outputs = _tuple(result, "outputs of the user-provided function", "vjp")
        vectors = _vectors(v, outputs, "vjp")
        found = _grads(outputs, points, vectors, create_graph, strict, "vjp")
    single = not isinstance(inputs, (tuple, list))
    return _finish(outputs, not isinstance(result, (tuple, list)), create_graph), _finish(found, single, create_graph)


@checked
def jvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Returns the result of ``func`` at ``inputs``, and the product of its Jacobian with ``v`` (of the inputs' shape).

    The arguments are those of ``vjp``.

    Example::

        >>> import vesta
        >>> x = vesta.tensor([1.0, 2.0])
        >>> vesta.autograd.functional.jvp(lambda x: x * x, x, vesta.tensor([1.0, 0.0]))[1]
        tensor([2., 0.])
    """
    with vesta.enable_grad():
        given = _tuple(inputs, "inputs", "jvp")
        points = _leaves(given, create_graph)
        vectors = _vectors(v, given, "jvp")
        result = func(*points)
        outputs = _tuple(result, "outputs of the user-provided function", "jvp")
        seeds = tuple(vesta.zeros_like(out).requires_grad_() for out in outputs)
        first = _grads(outputs, points, seeds, True, strict, "jvp")
        found = _grads(first, seeds, vectors, create_graph, False, "jvp")
    single = not isinstance(result, (tuple, list))
    return _finish(outputs, single, create_graph), _finish(found, single, create_graph)


@checked
def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """Returns the Jacobian of ``func`` at ``inputs``: for an output of shape O and an input of shape I, [O, I].

    Args:
        func, inputs, create_graph, strict: as in ``vjp``.
        vectorize, strategy: accepted; rows are computed one after the other, in reverse mode.

    Returns:
        a tensor; a tuple over the inputs or over the outputs if these are tuples; a tuple of tuples if both are.

    Example::

        >>> import vesta
        >>> vesta.autograd.functional.jacobian(lambda x: x * x, vesta.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    if strategy not in ("reverse-mode", "forward-mode"):
        raise ValueError(f"jacobian: expected 'reverse-mode' or 'forward-mode', got {strategy!r} (strategy).")
    with vesta.enable_grad():
        given = _tuple(inputs, "inputs", "jacobian")
        points = _leaves(given, create_graph)
        result = func(*points)
        outputs = _tuple(result, "outputs of the user-provided function", "jacobian")
        rows = []
        for out in outputs:
            flat = out.reshape(-1)
            parts = [_grads((flat[i],), points, (None,), create_graph, strict, "jacobian") for i in range(out.numel())]
            columns = (
                vesta.stack([part[k] for part in parts]) if parts else x.new_zeros((0, *x.shape))
                for k, x in enumerate(points)
            )
            rows.append(tuple(c.reshape((*out.shape, *x.shape)) for c, x in zip(columns, points)))
    by_output = tuple(_finish(row, not isinstance(inputs, (tuple, list)), create_graph) for row in rows)
    return by_output if isinstance(result, (tuple, list)) else by_output[0]


def _scalar(func: Callable[..., Any], op: str) -> Callable[..., Tensor]:
    """Returns ``func``, whose result is checked to be a tensor of one element."""

    def checked(*points: Tensor) -> Tensor:
        out = func(*points)
        if not isinstance(out, Tensor) or out.numel() != 1:
            raise RuntimeError(f"The Tensor returned by the function given to {op} should contain a single element")
        return out.reshape(())

    return checked


@checked
def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """Returns the matrix of second derivatives of ``func``, whose result has one element: [I, I] for an input of
    shape I.

    The arguments are those of ``jacobian``.

    Example::

        >>> import vesta
        >>> vesta.autograd.functional.hessian(lambda x: (x**3).sum(), vesta.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    single = not isinstance(inputs, (tuple, list))
    scalar = _scalar(func, "hessian")

    def gradient(*points: Tensor) -> Any:
        return jacobian(scalar, points[0] if single else points, create_graph=True, strict=strict)

    return jacobian(gradient, inputs, create_graph=create_graph, strict=False)


@checked
def vhp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Tensor, Any]:
    """Returns the result of ``func``, which has one element, and the product of ``v`` with its Hessian.

    The arguments are those of ``vjp``; ``v`` has the inputs' shape.

    Example::

        >>> import vesta
        >>> vesta.autograd.functional.vhp(lambda x: (x**3).sum(), vesta.tensor([1.0, 2.0]), vesta.ones(2))[1]
        tensor([ 6., 12.])
    """
    return _second(func, inputs, v, create_graph, strict, "vhp")


def _second(
    func: Callable[..., Any], inputs: Any, v: Any, create_graph: bool, strict: bool, op: str
) -> tuple[Tensor, Any]:
    """Returns the result of ``func``, and its Hessian times ``v``."""
    with vesta.enable_grad():
        given = _tuple(inputs, "inputs", op)
        points = _leaves(given, create_graph)
        vectors = _vectors(v, given, op)
        out = _scalar(func, op)(*points)
        first = _grads((out,), points, (None,), True, strict, op)
        found = _grads(first, points, vectors, create_graph, False, op)
    return _finish((out,), True, create_graph), _finish(found, not isinstance(inputs, (tuple, list)), create_graph)


@checked
def hvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Tensor, Any]:
    """Returns the result of ``func``, and the product of its Hessian with ``v``; the Hessian is symmetric, so that this
    is ``vhp``.

    Example::

        >>> import vesta
        >>> vesta.autograd.functional.hvp(lambda x: (x**3).sum(), vesta.tensor([1.0, 2.0]), vesta.ones(2))[1]
        tensor([ 6., 12.])
    """
    return _second(func, inputs, v, create_graph, strict, "hvp")


__dir__ = listing(globals())
