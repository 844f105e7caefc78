"""Every op of the op list runs on a CUDA device, emulated or not: samples of every row of the table, forward and
backward, beside the CPU's results, while a recorder notes which ops have run there. The table's own tests compare all
dtypes and layouts with NumPy (a sample of them in ``make test``, all in ``make campaign``); this one proves that no op
is left out."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import op_db_check as check
import op_registry
import pytest
import vesta
from op_db import OPS
from op_db_cases import describe
from op_db_row import DTYPES, Maker, Row, Sample
from vesta.autograd.recording import Recording

pytestmark = pytest.mark.skipif(not vesta.cuda.is_available(), reason="needs a CUDA device, emulated or not")

FIRST = ("float32", "complex64", "int64", "bool")


def call(row: Row, sample: Sample, dtype: str, device: str, grad: bool) -> list[Any]:
    """Returns the results of a call, and the gradients of their sum."""
    vesta.manual_seed(11)
    args, kwargs = check.materialize(sample, dtype, device, requires_grad=grad)
    if row.kind in ("factory", "random"):
        kwargs = {**kwargs, "dtype": check.vdtype(dtype), "device": device}
    results = check.results(check.function_of(row)(*args, **kwargs))
    if not grad:
        return results
    leaves = check.leaves_of([args, kwargs])
    outputs = [r for r in results if r.requires_grad]
    gradients = vesta.autograd.grad(outputs, leaves, [vesta.ones_like(r) for r in outputs], allow_unused=True)
    return [r.detach() for r in results] + [g for g in gradients if g is not None]


def compare(row: Row, dtype: str) -> None:
    """Compares the samples of a row on both devices."""
    for grad in (False, True) if row.grad and DTYPES[dtype].bits else (False,):
        samples = (row.grad_samples or row.samples) if grad else row.samples
        for sample in samples(Maker(DTYPES[dtype], row.name)):
            sides = [call(row, sample, dtype, device, grad) for device in ("cpu", "cuda")]
            assert len(sides[0]) == len(sides[1])
            for want, got in zip(*sides):
                assert (got.dtype, got.shape) == (want.dtype, want.shape), (row.name, describe(sample))
                if row.ref is None:
                    continue
                a, b = check.array_of(got), check.array_of(want)
                size = np.abs(b[np.isfinite(b)]).max(initial=1.0)
                limit = {"float32": 2e-4, "complex64": 2e-4}.get(dtype, 0)
                note = f"{row.name} {describe(sample)}"
                np.testing.assert_allclose(a, b, rtol=limit, atol=limit * size, err_msg=note)


def special_values(*shape: int) -> Any:
    return vesta.tensor(np.random.default_rng(shape).uniform(0.2, 0.9, shape), dtype=vesta.float32)


def gradient_of(function: Callable[[Any], Any], x: Any) -> Any:
    """Returns the gradient of the sum of a function."""
    y = x.detach().requires_grad_()
    return vesta.autograd.grad(function(y).sum(), y)[0]


#: Calls of ops whose rows call them by way of others, or on the CPU only: functions of a matrix [4, 4] on a device.
CALLS: dict[str, Callable[[Any], Any]] = {
    "native_dropout_backward": lambda x: gradient_of(lambda y: vesta.native_dropout(y, 0.5, True)[0], x),
    "_trunc_divide": lambda x: vesta.div(x, 0.3, rounding_mode="trunc"),
    "_gamma_density": lambda x: vesta._C._private._gamma_density(x, x + 0.5),
    "_linear_backward_activation": lambda x: vesta._C._private._linear_backward_activation(x, x, x, True),
    "_igamma_slope": lambda x: vesta._C._private._igamma_slope(x, x + 0.5),
    "_zeta_slope": lambda x: vesta._C._private._zeta_slope(x + 2, x),
    "_wide_matmul": lambda x: vesta._C._private._wide_matmul(x.bfloat16(), x.bfloat16()),
    "addbmm_": lambda x: x.addbmm_(x[None].clone(), x[None].clone()),
    "addmm_": lambda x: x.addmm_(x.clone(), x.clone()),
    "addr_": lambda x: x.addr_(x[0].clone(), x[1].clone()),
    "baddbmm_": lambda x: x[None].baddbmm_(x[None].clone(), x[None].clone()),
    "allclose": lambda x: vesta.tensor(vesta.allclose(x, x.clone())),
    "argwhere": lambda x: x.argwhere(),
    "broadcast_to": lambda x: x.broadcast_to((2, 4, 4)),
    "clamp_": lambda x: x.clamp_(0.3, 0.6),
    "cumprod_": lambda x: x.cumprod_(1),
    "cumsum_": lambda x: x.cumsum_(1),
    "div_": lambda x: x.div_(0.3, rounding_mode="floor"),
    "dropout": lambda x: vesta.dropout(x, 0.5, True),
    "_truncated_normal_": lambda x: vesta.nn.init.trunc_normal_(x.clone()),
    "clamp_max": lambda x: vesta.clamp_max(x, 0.5),
    "equal": lambda x: vesta.tensor(vesta.equal(x, x.clone())),
    "expand_as": lambda x: x[0].expand_as(x),
    "fill": lambda x: vesta.fill(x, 3),
    "float_power_": lambda x: x.double().float_power_(2),
    "index_copy_": lambda x: x.index_copy_(0, vesta.tensor([2], device=x.device), x[:1].clone()),
    "index_reduce_": lambda x: x.index_reduce_(0, vesta.tensor([2], device=x.device), x[:1].clone(), "amax"),
    "indices": lambda x: x.to_sparse().coalesce().indices(),
    "values": lambda x: x.to_sparse().coalesce().values(),
    "ldexp_": lambda x: x.ldexp_(vesta.tensor(2, device=x.device)),
    "linalg_eigvals": lambda x: vesta.linalg.eigvals(x @ x.mT).real.sort()[0],
    "linalg_eigvalsh": lambda x: vesta.linalg.eigvalsh(x @ x.mT),
    "masked_scatter_": lambda x: x.masked_scatter_(x > 0.5, x.flip(0)),
    "max_pool1d_with_indices": lambda x: vesta.nn.functional.max_pool1d_with_indices(x, 2),
    "max_pool2d_with_indices": lambda x: vesta.nn.functional.max_pool2d_with_indices(x[None], 2),
    "max_pool3d_with_indices": lambda x: vesta.nn.functional.max_pool3d_with_indices(x[None, None], [1, 2, 2]),
    "mvlgamma_": lambda x: (x + 3).mvlgamma_(2),
    "nan_to_num_": lambda x: (x / (x > 0.5)).nan_to_num_(),
    "put_": lambda x: x.put_(vesta.tensor([3, 5], device=x.device), x[0, :2].clone()),
    "random_": lambda x: x.random_(0, 9),
    "renorm_": lambda x: x.renorm_(2, 0, 0.5),
    "reshape_as": lambda x: x[0].reshape_as(x[1]),
    "resize_": lambda x: x.resize_(2, 4),
    "resize_as_": lambda x: x.resize_as_(x[:2].clone()),
    "resolve_neg": lambda x: x.resolve_neg(),
    "rrelu_": lambda x: vesta.rrelu_(x - 0.5, 0.1, 0.3, False),
    "rsub": lambda x: vesta.rsub(x, 2),
    "scatter_reduce_": lambda x: x.scatter_reduce_(0, (x > 0.5).long(), x.clone(), "sum"),
    "squeeze": lambda x: x[None].squeeze(),
    "squeeze_": lambda x: x[None].squeeze_(),
    "swapaxes": lambda x: x.swapaxes(0, 1),
    "swapaxes_": lambda x: x.swapaxes_(0, 1),
    "tril_": lambda x: x.tril_(),
    "triu_": lambda x: x.triu_(),
    "unsafe_chunk": lambda x: x.unsafe_chunk(2),
    "unsafe_split": lambda x: x.unsafe_split(2),
    "unsafe_split_with_sizes": lambda x: x.unsafe_split_with_sizes([1, 3]),
}


#: Names that are other ways to call ops: nothing of theirs runs.
FORMS = {
    "argwhere", "broadcast_to", "ccol_indices", "col_indices", "crow_indices", "dropout", "fill", "indices", "random_",
    "row_indices", "rsub", "squeeze", "squeeze_", "swapaxes", "swapaxes_", "unsafe_chunk", "unsafe_split",
    "unsafe_split_with_sizes", "values",
}  # fmt: skip


def ops() -> set[str]:
    """Names the ops of the op list as profiles do."""
    spaces = ("linalg", "fft")
    entries = [e for e in vesta._C._registry() if op_registry.is_row(e)]
    return {f"{e['space']}_{e['name']}" if e["space"] in spaces else e["name"] for e in entries}


def test_every_op_runs_on_cuda() -> None:
    """The table's first dtype, and calls of what it does not call; no op of the list is left out."""
    recording = Recording()
    recording.start()
    try:
        for row in OPS:
            dtypes = [d for d in FIRST if row.accepts(d)] or [d for d in DTYPES if row.accepts(d)]
            compare(row, dtypes[0])
        for name, function in CALLS.items():
            sides = []
            for device in ("cpu", "cuda"):
                vesta.manual_seed(5)
                sides.append(check.results(function(special_values(4, 4).to(device))))
            for want, got in zip(*sides):
                a, b = check.array_of(got), check.array_of(want)
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5, err_msg=name)
    finally:
        recording.stop()
    ran = {event.name.removeprefix("aten::").split(".")[0] for event in recording.events() if event.on_device}
    assert ops() - ran == FORMS
