"""How rows call the library if the call is more than ``vesta.NAME(...)``: indexing, in-place ops, optimizers."""

from __future__ import annotations

import math
from typing import Any, Callable

import vesta
from op_db_references_optim import STEPS


def on_clone(name: str) -> Callable[..., Any]:
    """Returns a call of an in-place method on a clone, so that its operand may be a leaf that requires grad."""
    return lambda x, *args, **kwargs: getattr(x.clone(), name)(*args, **kwargs)


def function(name: str) -> Callable[..., Any]:
    """Returns a call of a function of ``vesta``."""
    return lambda *args, **kwargs: getattr(vesta, name)(*args, **kwargs)


def attribute(name: str) -> Callable[..., Any]:
    """Returns a function that reads an attribute that makes a view (``x.mT``)."""
    return lambda x: getattr(x, name)


def getitem(x: Any, index: Any) -> Any:
    return x[index]


def clamp(x: Any, low: Any, high: Any) -> Any:
    return vesta.clamp(x, low, high)


def private(name: str) -> Callable[..., Any]:
    """Returns an op of ``vesta._C._private``, which functions of the package with further arguments call."""
    return lambda *args, **kwargs: getattr(vesta._C._private, name)(*args, **kwargs)


def polygamma(x: Any, n: int, **out: Any) -> Any:
    return vesta.polygamma(n, x, **out)


def view_as_complex(x: Any) -> Any:
    """Views pairs as complex numbers; where the layout does not allow it, those of a copy."""
    strides = x.stride()
    fits = strides[-1] == 1 and not any(n % 2 for n in strides[:-1]) and x.storage_offset() % 2 == 0
    return vesta.view_as_complex(x if fits else x.clone(memory_format=vesta.contiguous_format))


def one_hot(x: Any, *args: Any) -> Any:
    return (
        vesta.nn.functional.one_hot(x, *args)
        if hasattr(vesta.nn.functional, "one_hot")
        else vesta._C._nn.one_hot(x, *args)
    )


def hermitian(x: Any) -> Any:
    """Returns the Hermitian part, so that a numerical gradient stays among Hermitian matrices."""
    return (x + x.mH) / 2


def cholesky(x: Any, upper: bool = False) -> Any:
    return vesta.linalg.cholesky(hermitian(x), upper=upper)


def lu_unpacked(a: Any) -> Any:
    return vesta.lu_unpack(*vesta.linalg.lu_factor(a))[1:]


def geqrf_product(x: Any) -> Any:
    a, tau = vesta.geqrf(x)
    return vesta.linalg.householder_product(a, tau) @ a.triu()


def ldl_solve(a: Any, b: Any) -> Any:
    return vesta.linalg.ldl_solve(*vesta.linalg.ldl_factor(a + a.mT), b)


def lu_solve(a: Any, b: Any, adjoint: bool = False) -> Any:
    return vesta.linalg.lu_solve(*vesta.linalg.lu_factor(a), b, adjoint=adjoint)


def lu_solve_last(b: Any, a: Any) -> Any:
    return vesta.lu_solve(b, *vesta.linalg.lu_factor(a))


def eigh(x: Any) -> Any:
    values, vectors = vesta.linalg.eigh(x + x.mH)
    return values, (vectors * values.exp().unsqueeze(-2)) @ vectors.mH


def matrix_sqrth(x: Any) -> Any:
    """Computes the root of a positive-definite matrix."""
    return vesta.linalg.matrix_sqrth(x + x.mH + 8 * vesta.eye(x.shape[-1], dtype=x.dtype, device=x.device))


def eig(x: Any) -> Any:
    values, vectors = vesta.linalg.eig(x)
    squares = (vectors * (values * values).unsqueeze(-2)) @ vesta.linalg.inv(vectors)
    return (values * values * values).sum(-1), squares


def svd(x: Any) -> Any:
    u, s, vh = vesta.linalg.svd(x, full_matrices=False)
    return s, u @ vh


def svd_with_v(x: Any) -> Any:
    u, s, v = vesta.svd(x)
    return s, u @ v.mH


def multinomial(size: Any, **kwargs: Any) -> Any:
    count = max(1, int(vesta.empty(size).numel()))
    drawn = vesta.multinomial(vesta.ones(7, **kwargs), count, True).to(kwargs["dtype"])
    return drawn[: vesta.empty(size).numel()].reshape(size)


def normal(size: Any, **kwargs: Any) -> Any:
    return vesta.normal(vesta.zeros(size, **kwargs), vesta.ones(size, **kwargs))


def poisson(size: Any, **kwargs: Any) -> Any:
    return vesta.poisson(vesta.full(size, 3.0, **kwargs))


def to(x: Any, name: str) -> Any:
    return x.to(getattr(vesta, name))


def filled(name: str, *rest: Any) -> Callable[..., Any]:
    """Returns a function that fills a new tensor with an in-place random method: ``empty(size).uniform_(...)``."""
    return lambda size, **kwargs: getattr(vesta.empty(size, **kwargs), name)(*rest)


def new(name: str) -> Callable[..., Any]:
    """Returns a call of ``x.new_NAME(size, ...)``; dtype and device come from x, which has those of the options."""
    return lambda x, *args, dtype, device: getattr(x.to(device, dtype), name)(*args)


def new_empty(size: Any, **kwargs: Any) -> Any:
    return vesta.zeros(1, **kwargs).new_empty(size)


def new_empty_strided(size: Any, stride: Any, **kwargs: Any) -> Any:
    return vesta.zeros(1, **kwargs).new_empty_strided(size, stride)


def bernoulli(size: Any, **kwargs: Any) -> Any:
    return vesta.bernoulli(vesta.full(size, 0.3, **kwargs))


def dropout(size: Any, **kwargs: Any) -> Any:
    return vesta.nn.functional.dropout(vesta.ones(size, **kwargs), 0.3)


def optimize(name: str) -> Callable[..., Any]:
    """Returns a function that runs STEPS steps of ``vesta.optim.NAME`` from given parameters with given gradients."""

    def run(params: list, grads: list, **options: Any) -> list:
        from vesta import optim

        leaves = [vesta.nn.Parameter(p.detach().clone()) for p in params]
        for leaf, gradient in zip(leaves, grads):
            leaf.grad = gradient.clone()
        decoupled = options.pop("decoupled", False)
        stepper = getattr(optim, "AdamW" if decoupled else name)(leaves, **options)
        for _ in range(STEPS):
            stepper.step()
        return [leaf.detach() for leaf in leaves]

    return run


def unscale(grads: list) -> list:
    """Multiplies gradients by 1/4, the value of a scale of 1/2 after a backoff by half."""
    grads = [g.detach().clone() for g in grads]
    device = grads[0].device
    scale, found = (vesta.full((), value, dtype=vesta.float32, device=device) for value in (0.5, 1.0))
    vesta._C._amp_update_scale_(scale, vesta.zeros((), dtype=vesta.int32, device=device), found, 2.0, 0.5, 3)
    vesta._C._amp_unscale_(grads, found, scale)
    return grads


def list_ops(grads: list) -> list:
    """Returns a list divided by 4, a list of zeros, and the norms of the given one."""
    grads = [g.detach() for g in grads]
    scaled, zeros = ([g.clone() for g in grads] for _ in range(2))
    vesta._C._list_mul_(scaled, None, 0.25, False)
    vesta._C._list_zero_(zeros)
    return [*scaled, *zeros, vesta._C._list_norms(grads, math.inf, False).to(grads[0].dtype)]


# The gradient by a factor is PyTorch's, of the whole matrix; that of the triangle is the function's.
def cholesky_solve(b: vesta.Tensor, factor: vesta.Tensor, upper: bool = False) -> vesta.Tensor:
    return vesta.cholesky_solve(b, factor.triu() if upper else factor.tril(), upper)


def cholesky_inverse(factor: vesta.Tensor, upper: bool = False) -> vesta.Tensor:
    return vesta.cholesky_inverse(factor.triu() if upper else factor.tril(), upper)
