"""Compares gradients with finite differences: ``gradcheck`` and ``gradgradcheck``.

Note [One Jacobian for real and complex]
A complex number is treated as two real ones throughout. The numerical Jacobian moves the real and the imaginary part of
every input element by +-eps. The analytical one runs backward once for each real number among the outputs: a gradient
of 1 selects the real part, 1j the imaginary part, and the result is d/d(real) + 1j * d/d(imaginary). Both are then
plain real matrices [numbers of the output, numbers of the input], kept as Python lists: a check needs no operation but
those under test, writing an element and ``tolist``.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import vesta
from vesta import Tensor
from vesta._arguments import checked, expect
from vesta.autograd.function import Function

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]

Matrix = "list[list[float]]"


class GradcheckError(RuntimeError):
    """The error of ``gradcheck`` and ``gradgradcheck``: a gradient is wrong."""


class _Options:
    """The tolerances and choices of one check."""

    def __init__(
        self, eps: float, atol: float, rtol: float, nondet_tol: float, undefined: bool, dtypes: bool, fast: bool
    ) -> None:
        self.eps, self.atol, self.rtol, self.nondet_tol = eps, atol, rtol, nondet_tol
        self.undefined, self.dtypes, self.fast = undefined, dtypes, fast

    def close(self, a: float, b: float) -> bool:
        """Returns whether a (analytical) is near b (numerical); NaN is near nothing."""
        return a == b or abs(a - b) <= self.atol + self.rtol * abs(b)


@checked
def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Checks the gradients of ``func`` at ``inputs`` against central differences.

    Args:
        func: a function from tensors to a tensor or a tuple of them.
        inputs: a tensor or a tuple; those that require grad are checked and should be float64 or complex128.
        eps: how far an element is moved.
        atol, rtol: |analytical - numerical| <= atol + rtol * |numerical| passes.
        raise_exception: raise instead of returning False.
        nondet_tol: how far two backward runs may differ.
        check_undefined_grad: also check that missing gradients of outputs are handled.
        check_grad_dtypes: also check that a gradient has the dtype of its input.
        fast_mode: check one random direction instead of every element.
        masked: accepted for PyTorch's sake (it concerns sparse tensors).

    Raises:
        GradcheckError: a gradient is wrong.
        ValueError: no input requires grad, or an input overlaps itself.
        NotImplementedError: forward mode or batched gradients are requested.

    Example::

        >>> import vesta
        >>> x = vesta.tensor([1.0, 2.0], dtype=vesta.float64, requires_grad=True)
        >>> vesta.autograd.gradcheck(lambda t: t * t, (x,))
        True
    """
    for name, asked in (
        ("check_batched_grad", check_batched_grad),
        ("check_batched_forward_grad", check_batched_forward_grad),
        ("check_forward_ad", check_forward_ad),
    ):
        if asked:
            raise NotImplementedError(f"gradcheck: expected {name}=False, got True ({name}). It is not available.")
    if not check_backward_ad:
        raise ValueError("gradcheck: expected check_backward_ad=True, got False: nothing would be checked.")
    tensors = _tuple(inputs)
    _check_inputs(tensors, eps)
    options = _Options(eps, atol, rtol, nondet_tol, check_undefined_grad, check_grad_dtypes, fast_mode)
    try:
        _check(func, tensors, options)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


@checked
def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Checks second derivatives: ``gradcheck`` of the function from (inputs, grad_outputs) to the gradients.

    Args:
        grad_outputs: incoming gradients, one for each output; default: random ones.
        gen_non_contig_grad_outputs: make the random ones non-contiguous.
        The others: as for ``gradcheck``.

    Example::

        >>> import vesta
        >>> x = vesta.tensor([1.0, 2.0], dtype=vesta.float64, requires_grad=True)
        >>> vesta.autograd.gradgradcheck(lambda t: t * t * t, (x,))
        True
    """
    for value in [inputs] if isinstance(inputs, Tensor) else inputs if isinstance(inputs, (tuple, list)) else [None]:
        expect("gradgradcheck", "inputs", value, Tensor, "a Tensor or a tuple of them")
    if check_fwd_over_rev or not check_rev_over_rev:
        raise NotImplementedError(
            "gradgradcheck: expected check_fwd_over_rev=False and check_rev_over_rev=True: there is no forward mode."
        )
    tensors = _tuple(inputs)
    if grad_outputs is None:
        outputs = _differentiable(func(*tensors))
        grads = tuple(_random_like(output, gen_non_contig_grad_outputs).requires_grad_() for output in outputs)
    else:
        grads = _tuple(grad_outputs)
    count = len(grads)

    def gradients(*args: Any) -> tuple[Tensor, ...]:
        own, incoming = args[: len(args) - count], args[len(args) - count :]
        wanted = [arg for arg in own if _requires_grad(arg)]
        outputs = _differentiable(func(*own))
        found = vesta.autograd.grad(outputs, wanted, incoming, create_graph=True, allow_unused=True)
        return tuple(gradient for gradient in found if gradient is not None)

    return gradcheck(
        gradients,
        tensors + grads,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        fast_mode=fast_mode,
        masked=masked,
    )


# ---- inputs and outputs ----


def _tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _requires_grad(value: Any) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


def _differentiable(outputs: Any) -> tuple[Tensor, ...]:
    return tuple(output for output in _tuple(outputs) if _requires_grad(output))


def _check_inputs(tensors: tuple[Any, ...], eps: float) -> None:
    if not any(_requires_grad(tensor) for tensor in tensors):
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of the them have "
            "requires_grad=True."
        )
    for i, tensor in enumerate(tensors):
        if not _requires_grad(tensor):
            continue
        if tensor.dtype not in (vesta.float64, vesta.complex128):
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or complex. This check "
                "will likely fail if all the inputs are not of double precision floating point or complex.",
                stacklevel=3,
            )
        if any(stride == 0 and size > 1 for stride, size in zip(tensor.stride(), tensor.shape)):
            raise ValueError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping to be able to compute the numerical gradients correctly. You should call .contiguous "
                "on the input before passing it to gradcheck."
            )


def _flat(tensor: Tensor | None, like: Tensor) -> list[float]:
    """Returns the numbers of a tensor in a row, real parts before imaginary ones; zeros of ``like``'s size for None."""
    if tensor is None:
        return [0.0] * (like.numel() * (2 if like.is_complex() else 1))
    values = tensor.detach().reshape(-1).tolist()
    return [v.real for v in values] + [v.imag for v in values] if tensor.is_complex() else values


def _places(tensor: Tensor) -> Iterator[tuple[int, ...]]:
    return itertools.product(*map(range, tensor.shape))


def _put(tensor: Tensor, place: tuple[int, ...], value: Any) -> None:
    if place:
        tensor[place] = value
    else:
        tensor.fill_(value)


def _random_like(tensor: Tensor, non_contiguous: bool = False) -> Tensor:
    shape = (*tensor.shape, 2) if non_contiguous else tuple(tensor.shape)
    dtype = {vesta.complex64: vesta.float32, vesta.complex128: vesta.float64}.get(tensor.dtype, tensor.dtype)
    values = vesta.rand(shape, dtype=dtype, device=tensor.device) * 2 - 1
    if tensor.is_complex():
        values = values + (vesta.rand(shape, dtype=dtype, device=tensor.device) * 2 - 1) * 1j
    return values[..., 0].detach() if non_contiguous else values.detach()


# ---- the checks ----


def _check(func: Callable[..., Any], tensors: tuple[Any, ...], options: _Options) -> None:
    wanted = [tensor for tensor in tensors if _requires_grad(tensor)]
    outputs = _differentiable(func(*tensors))
    if not outputs:
        _check_constant(func, tensors, wanted, options)
        return
    for i, output in enumerate(outputs):
        if options.fast:
            _check_direction(func, tensors, wanted, i, output, options)
        else:
            _check_jacobian(func, tensors, wanted, i, options)
    _check_zero_gradients(func, tensors, wanted)
    if options.undefined:
        _check_undefined(func, tensors, wanted)


def _numerical(func: Callable[..., Any], tensors: tuple[Any, ...], wanted: Tensor, pick: Any, eps: float) -> Matrix:
    """Returns d(chosen output) / d(wanted), a column for each number of ``wanted``, by central differences;
    transposed."""
    alias = wanted.detach()
    columns: Matrix = []
    for step in (eps, eps * 1j) if wanted.is_complex() else (eps,):
        for place in _places(wanted):
            value = alias[place].item() if place else alias.item()
            ends = []
            for moved in (value + step, value - step):
                _put(alias, place, moved)
                output = pick(func(*tensors))
                ends.append(_flat(output, output))
            _put(alias, place, value)
            columns.append([(up - down) / (2 * eps) for up, down in zip(*ends)])
    return columns


def _analytical(output: Tensor, wanted: list[Tensor], options: _Options) -> list[Matrix]:
    """Returns d(output) / d(each wanted), a row for each number of ``output``, by backward."""
    rows: list[Matrix] = [[] for _ in wanted]
    for one in (1.0, 1j) if output.is_complex() else (1.0,):
        for place in _places(output):
            incoming = vesta.zeros_like(output).detach()
            _put(incoming, place, one)
            grads = vesta.autograd.grad(output, wanted, incoming, retain_graph=True, allow_unused=True)
            for matrix, grad, tensor in zip(rows, grads, wanted):
                _check_kind(grad, tensor, options)
                matrix.append(_flat(grad, tensor))
    return rows


def _check_kind(grad: Tensor | None, tensor: Tensor, options: _Options) -> None:
    if grad is None:
        return
    if grad.shape != tensor.shape:
        raise GradcheckError("Analytical gradient has incorrect size")
    if options.dtypes and grad.dtype != tensor.dtype:
        raise GradcheckError("Analytical gradient has dtype mismatch")


def _check_jacobian(
    func: Callable[..., Any], tensors: tuple[Any, ...], wanted: list[Tensor], i: int, options: _Options
) -> None:
    """Compares every entry of the Jacobian of output ``i``."""
    pick = lambda result: _differentiable(result)[i]
    # Finite differences write into the inputs: they come first, so that what backward has saved stays valid.
    numerical = [_numerical(func, tensors, tensor, pick, options.eps) for tensor in wanted]
    output = pick(func(*tensors))
    analytical = _analytical(output, wanted, options)
    again = _analytical(output, wanted, options)
    for j, (columns, rows) in enumerate(zip(numerical, analytical)):
        wrong = any(
            not options.close(rows[k][m], column[k]) for m, column in enumerate(columns) for k in range(len(rows))
        )
        if wrong:
            raise GradcheckError(
                f"Jacobian mismatch for output {i} with respect to input {j},\n"
                f"numerical:{_shown(columns)}\nanalytical:{_shown([list(row) for row in zip(*rows)])}\n"
            )
    for first, second in zip(analytical, again):
        differences = (abs(a - b) for x, y in zip(first, second) for a, b in zip(x, y) if a != b)
        if any(not difference <= options.nondet_tol for difference in differences):
            raise GradcheckError(
                "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times "
                "gives different values, although analytical gradient matches numerical gradient. The tolerance for "
                f"nondeterminism was {options.nondet_tol}."
            )


def _shown(matrix: Sequence[Sequence[float]]) -> str:
    return str(vesta.tensor([list(row) for row in matrix], dtype=vesta.float64))


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    return math.fsum(x * y for x, y in zip(a, b))


def _check_direction(
    func: Callable[..., Any],
    tensors: tuple[Any, ...],
    wanted: list[Tensor],
    i: int,
    output: Tensor,
    options: _Options,
) -> None:
    """Compares v . J u for a random u among the inputs and a random v among the outputs."""
    v = _random_like(output)
    numerical, directions = [], []
    for tensor in wanted:
        u = _random_like(tensor)
        alias, original = tensor.detach(), tensor.detach().clone()
        ends = []
        for step in (options.eps, -options.eps):
            alias.copy_(original + u * step)
            moved = _differentiable(func(*tensors))[i]
            ends.append(_flat(moved, moved))
        alias.copy_(original)
        slope = [(up - down) / (2 * options.eps) for up, down in zip(*ends)]
        numerical.append(_dot(_flat(v, v), slope))
        directions.append(u)
    grads = vesta.autograd.grad(_differentiable(func(*tensors))[i], wanted, v, allow_unused=True)
    for j, (grad, tensor, u) in enumerate(zip(grads, wanted, directions)):
        _check_kind(grad, tensor, options)
        analytical = _dot(_flat(grad, tensor), _flat(u, u))
        if not options.close(analytical, numerical[j]):
            raise GradcheckError(
                f"Jacobian mismatch for output {i} with respect to input {j} (fast mode, one random direction),\n"
                f"numerical:{numerical[j]}\nanalytical:{analytical}\nRun it with fast_mode=False to see every entry."
            )


def _check_constant(
    func: Callable[..., Any], tensors: tuple[Any, ...], wanted: list[Tensor], options: _Options
) -> None:
    """Checks that outputs that do not require grad do not depend on the inputs."""
    floats = lambda result: [o for o in _tuple(result) if isinstance(o, Tensor) and _is_float(o)]
    for i in range(len(floats(func(*tensors)))):
        for tensor in wanted:
            pick = lambda result, i=i: floats(result)[i]
            columns = _numerical(func, tensors, tensor, pick, options.eps)
            if any(abs(value) > options.atol for column in columns for value in column):
                raise GradcheckError("Numerical gradient for function expected to be zero")


def _is_float(tensor: Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _check_zero_gradients(func: Callable[..., Any], tensors: tuple[Any, ...], wanted: list[Tensor]) -> None:
    """Checks that incoming zeros give zeros."""
    outputs = _differentiable(func(*tensors))
    zeros = [vesta.zeros_like(output).detach() for output in outputs]
    for grad, tensor in zip(vesta.autograd.grad(outputs, wanted, zeros, allow_unused=True), wanted):
        if grad is None:
            continue
        if any(value != 0 for value in _flat(grad, tensor)):
            raise GradcheckError("backward not multiplied by grad_output")
        if grad.dtype != tensor.dtype or grad.device != tensor.device:
            raise GradcheckError("grad is incorrect type")
        if grad.shape != tensor.shape:
            raise GradcheckError("grad is incorrect size")


class _Undefined(Function):
    """The identity, whose gradient is missing."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> None:
        return None


def _check_undefined(func: Callable[..., Any], tensors: tuple[Any, ...], wanted: list[Tensor]) -> None:
    """Checks that missing gradients of all outputs give no gradients or zeros."""
    outputs = [_Undefined.apply(output) for output in _differentiable(func(*tensors))]
    incoming = [vesta.zeros_like(output).detach() for output in outputs]
    try:
        grads = vesta.autograd.grad(outputs, wanted, incoming, allow_unused=True)
    except Exception as error:
        raise GradcheckError(
            "Expected backward function to handle undefined output grads: a gradient may be missing where nothing "
            "depended on an output. Treat it as zero."
        ) from error
    for grad, tensor in zip(grads, wanted):
        if any(value != 0 for value in _flat(grad, tensor)):
            raise GradcheckError(
                "Expected all input grads to be undefined or zero when all output grads are undefined or zero."
            )
