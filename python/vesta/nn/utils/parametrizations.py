"""Parametrizations of weights: orthogonal, by length and direction, of spectral norm 1."""

from __future__ import annotations

from typing import Any

import vesta
from vesta import Tensor
from vesta._arguments import checked, expect
from vesta._names import listing
from vesta.nn import functional as F
from vesta.nn.modules.module import Module
from vesta.nn.modules.utils import count
from vesta.nn.utils import parametrize

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def _weight(op: str, module: Module, name: str) -> Tensor:
    """Returns the tensor that is to be parametrized."""
    expect(op, "module", module, Module, "Module")
    expect(op, "name", name, str, "str")
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight


# ---- orthogonal matrices ----


def _is_orthogonal(q: Tensor, eps: float | None = None) -> bool:
    eps = 10.0 * vesta.finfo(q.dtype).eps if eps is None else eps
    identity = vesta.eye(q.size(-1), dtype=q.dtype, device=q.device)
    return bool(vesta.allclose(q.mH @ q, identity.expand(*q.shape[:-2], -1, -1), atol=q.size(-2) * eps))


def _make_orthogonal(a: Tensor) -> Tensor:
    """Returns the orthogonal factor of a QR decomposition whose R has a positive diagonal."""
    q, r = vesta.linalg.qr(a)
    return q * r.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)


def _reflectors(a: Tensor) -> Tensor:
    """Returns R above the vectors of the Householder reflections that triangulate ``a`` [..., n, k], as LAPACK does.

    Golub and Van Loan, "Matrix computations", 2013, section 5.2. The diagonal holds signs: -1 where nothing is
    reflected.
    """
    a = a.clone()
    for i in range(a.size(-1)):
        alpha, below = a[..., i : i + 1, i : i + 1], a[..., i + 1 :, i : i + 1]
        rest = (below * below).sum(-2, keepdim=True)
        beta = -vesta.where(alpha >= 0, 1.0, -1.0).to(a.dtype) * (alpha * alpha + rest).sqrt()
        reflects = rest > 0
        beta = vesta.where(reflects, beta, alpha)
        scale = vesta.where(
            reflects, 1 / vesta.where(reflects, alpha - beta, vesta.ones_like(beta)), vesta.zeros_like(beta)
        )
        tau = vesta.where(
            reflects, (beta - alpha) / vesta.where(reflects, beta, vesta.ones_like(beta)), vesta.zeros_like(beta)
        )
        v = vesta.cat([vesta.ones_like(alpha), below * scale], -2)
        right = a[..., i:, i + 1 :]
        a[..., i:, i + 1 :] = right - tau * (v @ (v.mT @ right))
        sign = beta.sign() * vesta.where(reflects, vesta.ones_like(beta), -vesta.ones_like(beta))
        a[..., i:, i : i + 1] = vesta.cat([sign, below * scale], -2)
    return a


class _Orthogonal(Module):
    """A matrix with orthogonal columns (or rows, the fewer), computed from any matrix."""

    base: Tensor | None

    def __init__(self, weight: Tensor, orthogonal_map: str, *, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, x: Tensor) -> Tensor:
        """Returns the orthogonal matrix."""
        transposed = x.size(-2) < x.size(-1)
        if transposed:
            x = x.mT
        q = self._reflected(x) if self.orthogonal_map == "householder" else self._from_skew(x)
        if "base" in self._buffers:
            q = self.base @ q
        return q.mT if transposed else q

    def _from_skew(self, x: Tensor) -> Tensor:
        """Returns exp(A), or (I - A / 2)^-1 (I + A / 2), of the skew matrix A with ``x`` below its diagonal."""
        n, k = x.shape[-2:]
        x = x.tril()
        if n != k:
            x = vesta.cat([x, x.new_zeros((*x.shape[:-2], n, n - k))], -1)
        a = x - x.mH
        if self.orthogonal_map == "matrix_exp":
            q = vesta.linalg.matrix_exp(a)  # type: ignore[attr-defined]
        else:
            half, identity = a / 2, vesta.eye(n, dtype=a.dtype, device=a.device)
            q = vesta.linalg.solve(identity - half, identity + half)  # type: ignore[attr-defined]
        return q[..., :k]

    @staticmethod
    def _reflected(x: Tensor) -> Tensor:
        """Returns the first columns of the product of reflections by the columns of ``x`` below its diagonal."""
        n, k = x.shape[-2:]
        below = x.tril(-1)
        taus = 2.0 / (1.0 + (below * below).sum(-2))
        identity = vesta.eye(n, k, dtype=x.dtype, device=x.device)
        vectors = below + identity
        q = identity.expand(*x.shape[:-2], n, k)
        for i in reversed(range(k)):
            v = vectors[..., i : i + 1]
            q = q - taus[..., i : i + 1, None] * (v @ (v.mT @ q))
        signs = x.diagonal(dim1=-2, dim2=-1).detach().to(vesta.int32).to(x.dtype)
        return q * signs.unsqueeze(-2)

    def right_inverse(self, q: Tensor) -> Tensor:
        """Returns a matrix from which an orthogonal ``q`` is computed; another ``q`` is first made orthogonal."""
        if q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {q.shape}."
            )
        with vesta.no_grad():
            given, transposed = q, q.size(-2) < q.size(-1)
            if transposed:
                q = q.mT
            n, k = q.shape[-2:]
            if "base" not in self._buffers:
                if self.orthogonal_map != "householder":
                    raise NotImplementedError(
                        "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                        "use_trivialization=False."
                    )
                x = _reflectors(q)
                return x.mT if transposed else x
            if n == k:
                q = q.clone() if _is_orthogonal(q) else _make_orthogonal(q)
            else:
                more = vesta.randn(*q.shape[:-2], n, n - k, dtype=q.dtype, device=q.device)
                q = _make_orthogonal(vesta.cat([q, more], -1))
            self.base = q
            start = vesta.zeros_like(given)
            start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)  # all three maps turn it into the identity
            return start


@checked
def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Parametrizes a matrix so that its columns, or rows (the fewer), are always orthogonal.

    Lezcano-Casado and Martinez-Rubio, "Cheap orthogonal constraints in neural networks", 2019; the base point that
    ``use_trivialization`` adds: Lezcano-Casado, "Trivializations for gradient-based optimization on manifolds", 2019.

    Args:
        name: the matrix [..., n, k] (more dimensions are a batch).
        orthogonal_map: ``"matrix_exp"``, ``"cayley"`` or ``"householder"``; default: the first for square matrices,
            else
            the last.
        use_trivialization: keep an orthogonal base, so that any orthogonal value can be assigned.

    Example::

        >>> import vesta
        >>> layer = vesta.nn.utils.parametrizations.orthogonal(vesta.nn.Linear(3, 5))
        >>> bool(vesta.allclose(layer.weight.mT @ layer.weight, vesta.eye(3), atol=1e-5))
        True
    """
    weight = _weight("orthogonal", module, name)
    if weight.dim() < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.dim()} dimensions.")
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1)
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in ("matrix_exp", "cayley", "householder"):
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    function = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, function, unsafe=True)


# ---- length and direction ----


def norm_except_dim(v: Tensor, dim: int | None) -> Tensor:
    """Returns the 2-norms over all dimensions but ``dim``, kept with size 1; over all for None or -1."""
    if dim is None or dim == -1:
        return vesta.norm(v)
    flat = v.transpose(0, dim).reshape(v.size(dim), -1)
    shape = [1] * v.dim()
    shape[dim] = v.size(dim)
    return (
        (flat * flat.conj()).sum(1).sqrt().reshape(shape) if v.is_complex() else vesta.norm(flat, 2, 1).reshape(shape)
    )


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        """Returns the weight of length ``weight_g`` and direction ``weight_v``."""
        return weight_v * (weight_g / norm_except_dim(weight_v, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Returns length and direction of a weight."""
        return norm_except_dim(weight, self.dim), weight


@checked
def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Parametrizes a weight by lengths and directions: g * v / |v|.

    Salimans and Kingma, "Weight normalization", 2016. The parameters are ``parametrizations.weight.original0`` (g) and
    ``original1`` (v); older checkpoints with ``weight_g`` and ``weight_v`` are loaded too.

    Args:
        name: the weight.
        dim: the dimension whose entries have a length each; None: one length for all.

    Example::

        >>> import vesta
        >>> layer = vesta.nn.utils.parametrizations.weight_norm(vesta.nn.Linear(20, 40))
        >>> layer.parametrizations.weight.original0.shape
        vesta.Size([40, 1])
    """
    _weight("weight_norm", module, name)
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        old = [f"{prefix}{name}_{part}" for part in "gv"]
        if all(key in state_dict for key in old):
            for i, key in enumerate(old):
                state_dict[f"{prefix}parametrizations.{name}.original{i}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(rename)
    return module


# ---- spectral norm ----


class _SpectralNorm(Module):
    """A weight divided by its largest singular value, which power iterations estimate."""

    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        dims = weight.dim()
        if not -dims <= dim < dims:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{dims}, {dims - 1}] but got {dim})")
        if count("spectral_norm", "n_power_iterations", n_power_iterations) <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim = dim % dims
        self.eps = eps
        if dims > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._matrix(weight).detach()
            for name, size in (("_u", matrix.size(0)), ("_v", matrix.size(1))):
                start = matrix.new_empty((size,)).normal_(0, 1)
                self.register_buffer(name, F.normalize(start, dim=0, eps=eps))
            self._iterate(matrix, 15)

    def _matrix(self, weight: Tensor) -> Tensor:
        return weight.transpose(0, self.dim).flatten(1) if self.dim == 0 else _first(weight, self.dim).flatten(1)

    def _iterate(self, matrix: Tensor, times: int) -> None:
        with vesta.no_grad():
            for _ in range(times):
                self._u.copy_(F.normalize(vesta.mv(matrix, self._v), dim=0, eps=self.eps))
                self._v.copy_(F.normalize(vesta.mv(matrix.mH, self._u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        """Returns the weight divided by its norm."""
        if weight.dim() == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._iterate(matrix, self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()  # a later forward changes the buffers
        return weight / vesta.vdot(u, vesta.mv(matrix, v))

    def right_inverse(self, value: Tensor) -> Tensor:
        """Returns ``value``: a weight may have any norm."""
        return value


def _first(weight: Tensor, dim: int) -> Tensor:
    """Returns a view whose first dimension is ``dim``."""
    return weight.permute(dim, *(other for other in range(weight.dim()) if other != dim))


@checked
def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Parametrizes a weight so that its spectral norm (the largest singular value) is about 1.

    Miyato et al., "Spectral normalization for generative adversarial networks", 2018.

    Args:
        name: the weight, read as a matrix [size of dim, rest].
        n_power_iterations: power iterations in each training forward.
        eps: keeps norms from zero.
        dim: the dimension of outputs; default: 0, but 1 for transposed convolutions.

    Example::

        >>> import vesta
        >>> layer = vesta.nn.utils.parametrizations.spectral_norm(vesta.nn.Linear(2, 2), n_power_iterations=9)
        >>> layer.weight.shape
        vesta.Size([2, 2])
    """
    weight = _weight("spectral_norm", module, name)
    if dim is None:
        dim = _output_dim(module)
    return parametrize.register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))


def _output_dim(module: Module) -> int:
    """Returns the dimension of a weight that stands for outputs."""
    from vesta.nn.modules.conv import _ConvTransposeNd

    return 1 if isinstance(module, _ConvTransposeNd) else 0


__dir__ = listing(globals())
