"""Invalid calls of single ops: the class and a fragment of the message of each; generated tests add the rest."""

from __future__ import annotations

from op_db_row import Bad

# A table: a case takes one line where it can.
# fmt: off
ERRORS: dict[str, tuple[Bad, ...]] = {
    "celu": (
        Bad(lambda v: v.celu(v.ones(2), 0.0), RuntimeError, "alpha"),
    ),
    "softshrink": (
        Bad(lambda v: v.nn.functional.softshrink(v.ones(2), -1.0), RuntimeError, "-1"),
    ),
    "prelu": (
        Bad(lambda v: v.prelu(v.ones(2, 3), v.ones(2)), RuntimeError, "parameter numbers"),
        Bad(lambda v: v.prelu(v.ones(2), v.ones(1, 1)), RuntimeError, "ndim"),
        Bad(lambda v: v.prelu(v.ones(2), v.ones(1).double()), RuntimeError, "float64"),
    ),
    "glu": (
        Bad(lambda v: v.nn.functional.glu(v.ones(3)), RuntimeError, "even"),
        Bad(lambda v: v.nn.functional.glu(v.ones(())), RuntimeError, "0-dim"),
    ),
    "rrelu": (
        Bad(lambda v: v.rrelu(v.ones(2), 1.0, 0.5), RuntimeError, "Lower bound"),
    ),
    "polygamma": (
        Bad(lambda v: v.polygamma(-1, v.ones(2)), RuntimeError, "-1"),
        Bad(lambda v: v.ones(2).polygamma_(-1), RuntimeError, "-1"),
        Bad(lambda v: v.polygamma(1.0, v.ones(2)), TypeError, "int"),
    ),
    "mvlgamma": (
        Bad(lambda v: v.mvlgamma(v.ones(2), 0), RuntimeError, "p has to be"),
    ),
    "imag": (
        Bad(lambda v: v.imag(v.ones(2)), RuntimeError, "float32"),
    ),
    "round": (
        Bad(lambda v: v.round(v.ones(2).int(), decimals=1), NotImplementedError, "int32"),
    ),
    "frexp": (
        Bad(lambda v: v.frexp(v.ones(2).int()), RuntimeError, "int32"),
        Bad(lambda v: v.frexp(v.ones(2), out=(v.empty(2), v.empty(2).long())), RuntimeError, "int64"),
        Bad(lambda v: v.frexp(v.ones(2), out=(v.empty(2).double(), v.empty(2).int())), RuntimeError, "float64"),
        Bad(lambda v: v.frexp(v.ones(2), out=v.empty(2)), TypeError, "tuple"),
    ),
    "polar": (
        Bad(lambda v: v.polar(v.ones(2), v.ones(2).double()), RuntimeError, "float64"),
        Bad(lambda v: v.polar(v.ones(2).half(), v.ones(2).half()), NotImplementedError, "float16"),
        Bad(lambda v: v.polar(v.ones(2), v.ones(2), out=v.empty(2, dtype=v.complex128)), RuntimeError, "complex128"),
    ),
    "complex": (
        Bad(lambda v: v.complex(v.ones(2).int(), v.ones(2)), RuntimeError, "int32"),
        Bad(lambda v: v.complex(v.ones(2).half(), v.ones(2).half()), NotImplementedError, "float16"),
        Bad(lambda v: v.complex(v.ones(2), v.ones(2).double()), RuntimeError, "float64"),
        Bad(lambda v: v.complex(v.ones(2), v.ones(3)), RuntimeError, "complex"),
    ),
    "view_as_complex": (
        Bad(lambda v: v.view_as_complex(v.ones(2, 3)), RuntimeError, "size 2"),
        Bad(lambda v: v.view_as_complex(v.ones(2, 2).t()), RuntimeError, "stride"),
        Bad(lambda v: v.view_as_complex(v.ones(3)[1:]), RuntimeError, "offset"),
        Bad(lambda v: v.view_as_complex(v.ones(())), RuntimeError, "size 2"),
    ),
    "view_as_real": (
        Bad(lambda v: v.view_as_real(v.ones(2)), RuntimeError, "complex"),
    ),
    "positive": (
        Bad(lambda v: v.positive(v.ones(2).bool()), RuntimeError, "bool"),
    ),
    "fmod": (
        Bad(lambda v: v.fmod(v.ones(2).long(), 0), RuntimeError, "ZeroDivisionError"),
    ),
    "addcmul": (
        Bad(lambda v: v.addcmul(*[v.ones(2).long()] * 3, value=1e300), RuntimeError, "value"),
    ),
    "addcdiv": (
        Bad(lambda v: v.addcdiv(v.ones(2), *[v.ones(2).long()] * 2), RuntimeError, "Integer division"),
    ),
    "cdist": (
        Bad(lambda v: v.cdist(v.ones(2, 3), v.ones(2, 2)), RuntimeError, "columns"),
        Bad(lambda v: v.cdist(v.ones(2, 3), v.ones(2, 3), -1.0), RuntimeError, "-1"),
        Bad(lambda v: v.cdist(v.ones(2, 3), v.ones(2, 3), compute_mode="fast"), ValueError, "fast"),
        Bad(lambda v: v.cdist(v.ones(3), v.ones(2, 3)), RuntimeError, "at least 2"),
    ),
    "pdist": (
        Bad(lambda v: v.pdist(v.ones(3)), RuntimeError, "2D"),
    ),
    "renorm": (
        Bad(lambda v: v.renorm(v.ones(2, 2), 0.0, 0, 1.0), RuntimeError, "norm"),
        Bad(lambda v: v.renorm(v.ones(2, 2), 2.0, 0, -1.0), RuntimeError, "maxnorm"),
        Bad(lambda v: v.renorm(v.ones(2), 2.0, 0, 1.0), RuntimeError, "dimensions"),
    ),
    "cross": (
        Bad(lambda v: v.cross(v.ones(2), v.ones(2)), RuntimeError, "size 3"),
        Bad(lambda v: v.cross(v.ones(2), v.ones(2), 0), RuntimeError, "length 3"),
    ),
    "vander": (
        Bad(lambda v: v.vander(v.ones(2, 2)), RuntimeError, "one-dimensional"),
        Bad(lambda v: v.vander(v.ones(2), -1), RuntimeError, "-1"),
    ),
    "cov": (
        Bad(lambda v: v.cov(v.ones(2, 2, 2)), RuntimeError, "two or fewer"),
        Bad(lambda v: v.cov(v.ones(2, 3), fweights=v.ones(3)), RuntimeError, "fweights"),
        Bad(lambda v: v.cov(v.ones(2, 3), aweights=v.ones(2)), RuntimeError, "aweights"),
    ),
    "gelu": (
        Bad(lambda v: v.nn.functional.gelu(v.ones(2), approximate="exact"), RuntimeError, "exact"),
    ),
    "clamp": (
        Bad(lambda v: v.clamp(v.ones(2)), RuntimeError, "min"),
    ),
    "max": (
        Bad(lambda v: v.max(v.zeros(0)), RuntimeError, "max"),
        Bad(lambda v: v.max(v.zeros(2, 0), 1), IndexError, "max"),
    ),
    "min": (
        Bad(lambda v: v.min(v.zeros(0)), RuntimeError, "min"),
    ),
    "argmax": (
        Bad(lambda v: v.argmax(v.zeros(0)), IndexError, "argmax"),
    ),
    "argmin": (
        Bad(lambda v: v.argmin(v.zeros(0)), IndexError, "argmin"),
    ),
    "var": (
        Bad(lambda v: v.var(v.ones(2).long()), NotImplementedError, "int64"),
        Bad(lambda v: v.var(v.ones(2), 0, 1), TypeError, "unbiased"),
        Bad(lambda v: v.var(v.ones(2), 0, True, correction=1), TypeError, "correction"),
        Bad(lambda v: v.ones(2).var(True, True), TypeError, "var"),
    ),
    "std": (
        Bad(lambda v: v.std(v.ones(2).long()), NotImplementedError, "int64"),
        Bad(lambda v: v.std(v.ones(2), 1), IndexError, "1"),
    ),
    "eig": (
        Bad(lambda v: v.linalg.eig(v.full((2, 2), float("nan"))), RuntimeError, "infs or NaNs"),
        Bad(lambda v: v.linalg.eigvals(v.full((1, 1), float("inf"), dtype=v.complex64)), RuntimeError, "infs or NaNs"),
    ),
    "norm": (
        Bad(lambda v: v.norm(v.ones(2).long()), NotImplementedError, "int64"),
        Bad(lambda v: v.norm(v.ones(2, 2), "max"), RuntimeError, "max"),
        Bad(lambda v: v.norm(v.ones(2), "nuc"), RuntimeError, "2 dimensions"),
        Bad(lambda v: v.norm(v.ones(0), float("inf")), RuntimeError, "inf"),
        Bad(lambda v: v.norm(v.ones(2, dtype=v.float64), 2, dtype=v.float32), RuntimeError, "float64"),
    ),
    "cumsum": (
        Bad(lambda v: v.cumsum(v.ones(2), 1), IndexError, "1"),
        Bad(lambda v: v.cumsum(v.ones(2), 0, dtype=v.bool), NotImplementedError, "bool"),
        Bad(lambda v: v.cumsum(v.ones(2)), TypeError, "dim"),
    ),
    "cummax": (
        Bad(lambda v: v.cummax(v.ones(2), 1), IndexError, "1"),
        Bad(lambda v: v.cummax(v.ones(2)), TypeError, "dim"),
    ),
    "cummin": (
        Bad(lambda v: v.cummin(v.ones(2), -2), IndexError, "-2"),
    ),
    "sort": (
        Bad(lambda v: v.sort(v.ones(2), 1), IndexError, "1"),
        Bad(lambda v: v.sort(v.ones(2), 0, False, True), TypeError, "sort"),
        Bad(lambda v: v.sort(v.ones(2), 0, stable=1.5), TypeError, "sort"),
    ),
    "argsort": (
        Bad(lambda v: v.argsort(v.ones(2), 2), IndexError, "2"),
    ),
    "index_fill": (
        Bad(lambda v: v.index_fill(v.ones(3), 0, v.tensor([3]), 1), IndexError, "3"),
        Bad(lambda v: v.index_fill(v.ones(3), 1, v.tensor([0]), 1), IndexError, "1"),
        Bad(lambda v: v.index_fill(v.ones(3), 0, v.tensor([[0]]), 1), IndexError, "index"),
        Bad(lambda v: v.index_fill(v.ones(3), 0, v.tensor([0.5]), 1), IndexError, "float32"),
        Bad(lambda v: v.index_fill(v.ones(3), 0, v.tensor([0]), v.ones(1)), RuntimeError, "value"),
        Bad(lambda v: v.index_fill(v.ones(3), 0, v.tensor([0]), 1j), RuntimeError, "complex"),
        Bad(lambda v: v.index_fill(v.ones(3, dtype=v.uint8), 0, v.tensor([0]), 300), RuntimeError, "300"),
    ),
    "flip": (
        Bad(lambda v: v.flip(v.ones(2, 2), [2]), IndexError, "2"),
        Bad(lambda v: v.flip(v.ones(2, 2), [0, 0]), RuntimeError, "0"),
    ),
    "layer_norm": (
        Bad(lambda v: v.nn.functional.layer_norm(v.ones(2, 3), [2]), RuntimeError, "[2, 3]"),
        Bad(lambda v: v.nn.functional.layer_norm(v.ones(2, 3), []), RuntimeError, "normalized_shape"),
        Bad(lambda v: v.nn.functional.layer_norm(v.ones(2, 3), [3], v.ones(2)), RuntimeError, "weight"),
        Bad(lambda v: v.nn.functional.layer_norm(v.ones(2, 3).long(), [3]), NotImplementedError, "int64"),
    ),
    "binary_cross_entropy_with_logits": (
        Bad(lambda v: v.nn.functional.binary_cross_entropy_with_logits(v.ones(2), v.ones(3)), ValueError, "[3]"),
    ),
    "index_select": (
        Bad(lambda v: v.index_select(v.ones(3), 0, v.tensor([3])), IndexError, "3"),
        Bad(lambda v: v.index_select(v.ones(3), 1, v.tensor([0])), IndexError, "1"),
        Bad(lambda v: v.index_select(v.ones(3), 0, v.tensor([0.5])), RuntimeError, "float32"),
    ),
    "gather": (
        Bad(lambda v: v.gather(v.ones(3), 0, v.tensor([3])), RuntimeError, "3"),
        Bad(lambda v: v.gather(v.ones(3), 0, v.tensor([0.0])), RuntimeError, "float32"),
        Bad(lambda v: v.gather(v.ones(3, 2), 0, v.tensor([0])), RuntimeError, "gather"),
    ),
    "scatter_add": (
        Bad(lambda v: v.scatter_add(v.ones(3), 0, v.tensor([3]), v.ones(1)), RuntimeError, "3"),
    ),
    "cat": (
        Bad(lambda v: v.cat([v.ones(2, 3), v.ones(2, 4)]), RuntimeError, "cat"),
        Bad(lambda v: v.cat([]), (RuntimeError, ValueError), "cat"),
        Bad(lambda v: v.cat([v.ones(2), "text"]), TypeError, "cat"),
        Bad(lambda v: v.cat([v.ones(2)], 1), IndexError, "1"),
    ),
    "stack": (
        Bad(lambda v: v.stack([v.ones(2), v.ones(3)]), RuntimeError, "[3]"),
        Bad(lambda v: v.stack([]), RuntimeError, "stack"),
    ),
    "matmul": (
        Bad(lambda v: v.matmul(v.ones(2, 3), v.ones(4, 5)), RuntimeError, "[2, 3]"),
        Bad(lambda v: v.matmul(v.ones(()), v.ones(4, 5)), RuntimeError, "matmul"),
        Bad(lambda v: v.matmul(v.ones(2, 3), v.ones(3, 5).to(v.float64)), RuntimeError, "float64"),
    ),
    "mm": (
        Bad(lambda v: v.mm(v.ones(2, 3), v.ones(3)), RuntimeError, "mm"),
        Bad(lambda v: v.mm(v.ones(2, 3), v.ones(2, 3)), RuntimeError, "[2, 3]"),
    ),
    "bmm": (
        Bad(lambda v: v.bmm(v.ones(2, 3), v.ones(3, 2)), RuntimeError, "bmm"),
        Bad(lambda v: v.bmm(v.ones(2, 3, 4), v.ones(3, 4, 5)), RuntimeError, "bmm"),
    ),
    "addmm": (
        Bad(lambda v: v.addmm(v.ones(3), v.ones(2, 3), v.ones(3, 2)), RuntimeError, "addmm"),
    ),
    "qr": (
        Bad(lambda v: v.linalg.qr(v.ones(3)), RuntimeError, "[3]"),
        Bad(lambda v: v.linalg.qr(v.ones(2, 2), "raw"), RuntimeError, "raw"),
        Bad(lambda v: v.linalg.qr(v.ones(2, 2).long()), NotImplementedError, "int64"),
        Bad(lambda v: v.linalg.qr(v.ones(2, 2).half()), NotImplementedError, "float16"),
        Bad(lambda v: v.linalg.qr(v.ones(2, 2, requires_grad=True), "r")[1].sum().backward(), RuntimeError, "mode='r'"),
        Bad(
            lambda v: v.linalg.qr(v.eye(3, 2).requires_grad_(), "complete")[1].sum().backward(),
            RuntimeError,
            "nrows > ncols",
        ),
    ),
    "solve_triangular": (
        Bad(lambda v: v.linalg.solve_triangular(v.eye(2), v.ones(2, 1)), TypeError, "upper"),
        Bad(lambda v: v.linalg.solve_triangular(v.eye(2), v.ones(2), upper=True), RuntimeError, "[2]"),
        Bad(lambda v: v.linalg.solve_triangular(v.eye(2, 3), v.ones(2, 1), upper=True), RuntimeError, "2 by 3"),
        Bad(lambda v: v.linalg.solve_triangular(v.eye(2), v.ones(3, 1), upper=True), RuntimeError, "AX = B"),
        Bad(
            lambda v: v.linalg.solve_triangular(v.eye(2), v.ones(2, 3), upper=True, left=False),
            RuntimeError,
            "XA = B",
        ),
        Bad(lambda v: v.linalg.solve_triangular(v.eye(2), v.ones(2, 1).double(), upper=True), RuntimeError, "float64"),
    ),
    "rfft2": (
        Bad(lambda v: v.fft.rfft2(v.ones(2, 2, dtype=v.complex64)), TypeError, "complex64"),
        Bad(lambda v: v.fft.rfft2(v.ones(2, 2).half()), NotImplementedError, "float16"),
        Bad(lambda v: v.fft.rfft2(v.ones(3)), IndexError, "-2"),
        Bad(lambda v: v.fft.rfft2(v.ones(2, 2), dim=(0, 2)), IndexError, "2"),
        Bad(lambda v: v.fft.rfft2(v.ones(2, 2), dim=(0, 0)), RuntimeError, "0"),
        Bad(lambda v: v.fft.rfft2(v.ones(2, 2), dim=()), RuntimeError, "at least one"),
        Bad(lambda v: v.fft.rfft2(v.ones(2, 2), s=(2,)), RuntimeError, "same length"),
        Bad(lambda v: v.fft.rfft2(v.ones(2, 2), s=(2, 0)), RuntimeError, "(0)"),
        Bad(lambda v: v.fft.rfft2(v.ones(2, 2), s=(-2, 2)), RuntimeError, "(-2)"),
        Bad(lambda v: v.fft.rfft2(v.ones(0, 2)), RuntimeError, "(0)"),
        Bad(lambda v: v.fft.rfft2(v.ones(2, 2), norm="unit"), RuntimeError, "unit"),
    ),
    "linear": (
        Bad(lambda v: v.nn.functional.linear(v.ones(2, 3), v.ones(4, 5)), RuntimeError, "linear"),
    ),
    "conv2d": (
        Bad(lambda v: v.nn.functional.conv2d(v.ones(1, 3, 4, 4), v.ones(2, 4, 3, 3)), RuntimeError, "conv2d"),
        Bad(lambda v: v.nn.functional.conv2d(v.ones(1, 3, 2, 2), v.ones(2, 3, 3, 3)), RuntimeError, "conv2d"),
        Bad(lambda v: v.nn.functional.conv2d(v.ones(1, 1, 4, 4), v.ones(1, 1, 2, 2), stride=0), RuntimeError, "0"),
        Bad(lambda v: v.nn.functional.conv2d(v.ones(1, 1, 4, 4), v.ones(1, 1, 2, 2), dilation=0), RuntimeError, "0"),
        Bad(lambda v: v.nn.functional.conv2d(v.ones(1, 1, 4, 4), v.ones(1, 1, 2, 2), padding=-1), RuntimeError, "-1"),
        Bad(lambda v: v.nn.functional.conv2d(v.ones(1, 4, 4, 4), v.ones(4, 4, 2, 2), groups=0), RuntimeError, "0"),
        Bad(lambda v: v.nn.functional.conv2d(v.ones(1, 4, 4, 4), v.ones(4, 4, 2, 2), groups=3), RuntimeError, "3"),
    ),
    "max_pool2d": (
        Bad(lambda v: v.nn.functional.max_pool2d(v.ones(1, 1, 4, 4), 0), RuntimeError, "0"),
        Bad(lambda v: v.nn.functional.max_pool2d(v.ones(1, 1, 4, 4), 2, padding=2), RuntimeError, "2"),
        Bad(lambda v: v.nn.functional.max_pool2d(v.ones(4), 2), RuntimeError, "max_pool2d"),
        Bad(lambda v: v.nn.functional.max_pool2d(v.ones(1, 1, 2, 2), 3), RuntimeError, "3"),
    ),
    "embedding": (
        Bad(lambda v: v.nn.functional.embedding(v.tensor([5]), v.ones(5, 2)), IndexError, "5"),
        Bad(lambda v: v.nn.functional.embedding(v.tensor([-1]), v.ones(5, 2)), IndexError, "-1"),
        Bad(lambda v: v.nn.functional.embedding(v.tensor([0.0]), v.ones(5, 2)), RuntimeError, "float32"),
    ),
    "softmax": (
        Bad(lambda v: v.softmax(v.ones(2), 1), IndexError, "1"),
    ),
    "log_softmax": (
        Bad(lambda v: v.log_softmax(v.ones(2), 1), IndexError, "1"),
    ),
    "cross_entropy": (
        Bad(lambda v: v.nn.functional.cross_entropy(v.ones(2, 3), v.tensor([0, 3])), IndexError, "3"),
        Bad(lambda v: v.nn.functional.cross_entropy(v.ones(2, 3), v.tensor([0])), ValueError, "2"),
        Bad(lambda v: v.nn.functional.cross_entropy(v.ones(2, 3), v.tensor([0, 1]), reduction="no"), ValueError, "no"),
    ),
    "nll_loss": (
        Bad(lambda v: v.nn.functional.nll_loss(v.ones(2, 3), v.tensor([0, 3])), IndexError, "3"),
    ),
    "mse_loss": (
        Bad(lambda v: v.nn.functional.mse_loss(v.ones(2), v.ones(2), reduction="no"), ValueError, "no"),
    ),
    "batch_norm": (
        Bad(lambda v: v.nn.functional.batch_norm(v.ones(2, 3), None, None), RuntimeError, "running_mean"),
        Bad(lambda v: v.nn.functional.batch_norm(v.ones(1, 3), None, None, training=True), ValueError, "[1, 3]"),
        Bad(lambda v: v.nn.functional.batch_norm(v.ones(2, 3), v.ones(2), v.ones(3)), RuntimeError, "3"),
    ),
    "view": (
        Bad(lambda v: v.ones(6).view(4, 2), RuntimeError, "[4, 2]"),
        Bad(lambda v: v.ones(6).view(-1, -1), RuntimeError, "-1"),
        Bad(lambda v: v.ones(2, 3).t().view(6), RuntimeError, "reshape"),
    ),
    "reshape": (
        Bad(lambda v: v.reshape(v.ones(6), (4, 2)), RuntimeError, "[4, 2]"),
        Bad(lambda v: v.reshape(v.ones(0), (-1, 0)), RuntimeError, "-1"),
    ),
    "transpose": (
        Bad(lambda v: v.transpose(v.ones(2, 3), 0, 2), IndexError, "2"),
    ),
    "permute": (
        Bad(lambda v: v.permute(v.ones(2, 3), (0, 0)), RuntimeError, "permute"),
        Bad(lambda v: v.permute(v.ones(2, 3), (0,)), RuntimeError, "permute"),
    ),
    "t": (
        Bad(lambda v: v.t(v.ones(2, 3, 4)), RuntimeError, "t"),
    ),
    "mT": (
        Bad(lambda v: v.ones(3).mT, RuntimeError, "mT"),
    ),
    "unsqueeze": (
        Bad(lambda v: v.unsqueeze(v.ones(2), 2), IndexError, "2"),
    ),
    "squeeze": (
        Bad(lambda v: v.squeeze(v.ones(2), 2), IndexError, "2"),
    ),
    "expand": (
        Bad(lambda v: v.ones(3).expand(4), RuntimeError, "[3]"),
        Bad(lambda v: v.ones(3, 1).expand(3), RuntimeError, "[3, 1]"),
        Bad(lambda v: v.ones(3).expand(-1, 3), RuntimeError, "-1"),
    ),
    "select": (
        Bad(lambda v: v.select(v.ones(3), 0, 3), IndexError, "3"),
        Bad(lambda v: v.select(v.ones(()), 0, 0), IndexError, "select"),
    ),
    "slice": (
        Bad(lambda v: v.ones(3)[::0], ValueError, "step"),
    ),
    "narrow": (
        Bad(lambda v: v.narrow(v.ones(5), 0, 3, 3), RuntimeError, "5"),
        Bad(lambda v: v.narrow(v.ones(5), 0, 0, -1), RuntimeError, "-1"),
    ),
    "unbind": (
        Bad(lambda v: v.unbind(v.ones(())), (RuntimeError, IndexError), "unbind"),
    ),
    "split": (
        Bad(lambda v: v.split(v.ones(5), [2, 2]), RuntimeError, "5"),
        Bad(lambda v: v.split(v.ones(5), -1), RuntimeError, "-1"),
        Bad(lambda v: v.split(v.ones(5), 0), RuntimeError, "0"),
    ),
    "chunk": (
        Bad(lambda v: v.chunk(v.ones(5), 0), RuntimeError, "0"),
    ),
    "diagonal": (
        Bad(lambda v: v.diagonal(v.ones(3)), IndexError, "1"),
        Bad(lambda v: v.diagonal(v.ones(3, 3), 0, 1, 1), RuntimeError, "1"),
    ),
    "as_strided": (
        Bad(lambda v: v.as_strided(v.ones(4), (3,), (2,)), RuntimeError, "as_strided"),
        Bad(lambda v: v.as_strided(v.ones(4), (2,), (-1,)), RuntimeError, "-1"),
        Bad(lambda v: v.as_strided(v.ones(4), (1,), (1,), 8_170_000_000_000_000_000), RuntimeError, "as_strided"),
        Bad(lambda v: v.as_strided(v.ones(4), (2, 2), (1,)), RuntimeError, "as_strided"),
    ),
    "sum_to_size": (
        Bad(lambda v: v.ones(2, 3).sum_to_size(2), RuntimeError, "[2]"),
    ),
}
# fmt: on
