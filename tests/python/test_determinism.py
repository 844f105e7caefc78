"""Equal bits for 1, 2 and 4 threads and from run to run; a row's result does not depend on its batch."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, Callable

import numpy as np
import op_db_check as check
import pytest
import vesta
from op_db import OPS
from op_db_cases import COMPARED, single
from op_db_row import DTYPES, Maker, Row

F = vesta.nn.functional
THREADS = (1, 2, 4)
pytestmark = pytest.mark.differs


@pytest.fixture(autouse=True)
def restore_threads() -> Iterator[None]:
    before = vesta.get_num_threads()
    yield
    vesta.set_num_threads(before)


def random(*shape: int, seed: int = 0, dtype: str = "float32", requires_grad: bool = False):
    values = np.random.default_rng(seed).normal(size=shape).astype(DTYPES[dtype].carrier)
    return check.tensor_of(values, dtype).requires_grad_(requires_grad)


def same_for_all_threads(work: Callable[[], Any]) -> None:
    """Runs ``work`` twice with each number of threads; all its tensors must be equal bit for bit."""
    wanted = None
    for threads in THREADS:
        vesta.set_num_threads(threads)
        for _ in range(2):
            got = check.results(work())
            wanted = got if wanted is None else wanted
            for number, (a, b) in enumerate(zip(got, wanted)):
                check.assert_same_bits(a, b, f"result {number} with {threads} threads")


@pytest.mark.parametrize("row", single(r for r in OPS if r.kind in ("unary", "binary") and r.accepts("float32")))
def test_pointwise(row: Row) -> None:
    """Forward and gradient for sizes that are split into several chunks."""
    function, make = check.function_of(row), Maker(DTYPES["float32"], row.name)
    sample = next(iter(row.samples(make)))
    count = 1 if row.kind == "unary" else 2
    operands = [random(300, 1001, seed=n).abs().add(0.1).detach() for n in range(count)]

    def work():
        leaves = [operand.clone().requires_grad_(row.grad) for operand in operands]
        results = check.results(function(*leaves, *sample.args[count:], **sample.kwargs))
        if row.grad:
            results[0].backward(operands[0].to(results[0].dtype))
        return [*results, *(leaf.grad for leaf in leaves if row.grad)]

    same_for_all_threads(work)


def seeded() -> Any:
    """Seeds the generator and returns the library, for use inside an expression."""
    vesta.manual_seed(3)
    return vesta


LARGE: dict[str, Callable[[], Any]] = {
    "sum of all": lambda: random(700, 1003).sum(),
    "sum over rows": lambda: random(700, 1003).sum(1),
    "sum over columns": lambda: random(700, 1003).sum(0),
    "sum over columns, transposed": lambda: random(700, 1003).t().sum(0),
    "sum over the middle": lambda: random(33, 257, 65).sum(1),
    "mean of bfloat16": lambda: random(300, 1003, dtype="bfloat16").mean(),
    "amax and argmax": lambda: [random(300, 1003).amax(1), random(300, 1003).argmax()],
    "matmul": lambda: random(257, 515) @ random(515, 129, seed=1),
    "matmul, tall": lambda: random(3, 20000) @ random(20000, 5, seed=1),
    "matmul, batched": lambda: random(7, 65, 33) @ random(7, 33, 17, seed=1),
    "matmul, transposed": lambda: random(515, 257).t() @ random(129, 515, seed=1).t(),
    "matmul, float64": lambda: random(129, 65, dtype="float64") @ random(65, 33, seed=1, dtype="float64"),
    "matmul, bfloat16": lambda: random(129, 65, dtype="bfloat16") @ random(65, 33, seed=1, dtype="bfloat16"),
    "softmax": lambda: [random(300, 1003).softmax(1), random(300, 1003).log_softmax(0)],
    "cat": lambda: vesta.cat([random(100, 1003), random(200, 1003, seed=1)]),
    "index_put, accumulated": lambda: vesta.zeros(50).index_put(
        (vesta.arange(100_000) % 50,), random(100_000), accumulate=True
    ),
    "index_add": lambda: vesta.zeros(50, 7).index_add(0, vesta.arange(20_000) % 50, random(20_000, 7)),
    "scatter_add": lambda: vesta.zeros(50).scatter_add(0, vesta.arange(100_000) % 50, random(100_000)),
    "random": lambda: [seeded().rand(300_001), vesta.randn(300_001), vesta.randperm(5000)],
}


@pytest.mark.parametrize("name", LARGE)
def test_large(name: str) -> None:
    same_for_all_threads(LARGE[name])


def gradients(function: Callable[..., Any], *leaves: Any) -> list:
    """Returns the result and the gradients of its weighted sum."""
    leaves = tuple(leaf.detach().clone().requires_grad_() for leaf in leaves)
    result = function(*leaves)
    (result * random(*result.shape, seed=9)).sum().backward()
    return [result, *(leaf.grad for leaf in leaves)]


BACKWARD: dict[str, Callable[[], Any]] = {
    "linear": lambda: gradients(F.linear, random(100, 65), random(33, 65, seed=1), random(33, seed=2)),
    "conv 3x3": lambda: gradients(
        lambda x, w, b: F.conv2d(x, w, b, padding=1), random(8, 16, 20, 20), random(32, 16, 3, 3), random(32)
    ),
    "conv 1x1": lambda: gradients(F.conv2d, random(9, 16, 14, 14), random(32, 16, 1, 1)),
    "conv strided": lambda: gradients(lambda x, w: F.conv2d(x, w, stride=2), random(5, 3, 33, 33), random(8, 3, 5, 5)),
    "conv grouped": lambda: gradients(lambda x, w: F.conv2d(x, w, groups=4), random(6, 8, 16, 16), random(8, 2, 3, 3)),
    "conv of one channel": lambda: gradients(F.conv2d, random(64, 1, 28, 28), random(6, 1, 5, 5)),
    "max_pool2d": lambda: gradients(lambda x: F.max_pool2d(x, 3, 2), random(8, 16, 21, 21)),
    "batch_norm": lambda: gradients(
        lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), random(16, 33, 9, 9), random(33), random(33)
    ),
    "embedding": lambda: gradients(lambda w: F.embedding(vesta.arange(30_000) % 40, w), random(40, 17)),
    "cross_entropy": lambda: gradients(lambda x: F.cross_entropy(x, vesta.arange(3000) % 10), random(3000, 10)),
    "broadcast": lambda: gradients(lambda x, b: x * b, random(3000, 65), random(65, seed=1)),
    "getitem": lambda: gradients(lambda x: x[vesta.arange(50_000) % 100], random(100, 3)),
}


@pytest.mark.parametrize("name", BACKWARD)
def test_backward(name: str) -> None:
    same_for_all_threads(BACKWARD[name])


ROWWISE: dict[str, Callable[[Any], Any]] = {
    "linear": lambda x: F.linear(x, random(513, 77), random(513)),
    "linear, wide": lambda x: F.linear(x, random(10, 77)),
    "matmul": lambda x: x @ random(77, 64),
    "linear, float64": lambda x: F.linear(x.to(vesta.float64), random(33, 77, dtype="float64")),
    "linear, bfloat16": lambda x: F.linear(x.to(vesta.bfloat16), random(33, 77, dtype="bfloat16")),
    "conv2d": lambda x: F.conv2d(x.reshape(-1, 1, 7, 11), random(6, 1, 3, 3), random(6), padding=1),
    "conv2d of two layers": lambda x: F.conv2d(
        F.conv2d(x.reshape(-1, 1, 7, 11), random(16, 1, 3, 3)).relu(), random(17, 16, 3, 3)
    ),
    "max_pool2d": lambda x: F.max_pool2d(x.reshape(-1, 1, 7, 11), 2),
    "softmax": lambda x: x.softmax(1),
    "log_softmax": lambda x: x.log_softmax(1),
    "sum": lambda x: x.sum(1),
    "mean": lambda x: x.mean(1),
    "batch_norm": lambda x: F.batch_norm(x, random(77), random(77).abs() + 0.1),
    "gelu": lambda x: F.gelu(x),
    "cross_entropy": lambda x: F.cross_entropy(x, vesta.zeros(x.shape[0], dtype=vesta.int64), reduction="none"),
}


@pytest.mark.parametrize("name", ROWWISE)
def test_a_row_does_not_depend_on_its_batch(name: str) -> None:
    """Each row alone, and in batches of several sizes and positions, has the same bits as in the batch of 64."""
    function, batch = ROWWISE[name], random(64, 77, seed=4)
    vesta.set_num_threads(2)
    whole = function(batch)
    for size in (1, 2, 3, 7, 8, 16, 33):
        for start in (0, 5, 64 - size):
            part = function(batch[start : start + size])
            check.assert_same_bits(part, whole[start : start + size].clone(), f"{size} rows from {start}")


def train(steps: int) -> str:
    """Trains a small convolutional network and hashes its parameters and losses."""
    vesta.manual_seed(0)
    nn = vesta.nn
    model = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 3), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.2), nn.Linear(144, 32), nn.ReLU(), nn.Linear(32, 10)
    )  # fmt: skip
    optimizer = vesta.optim.AdamW(model.parameters(), lr=1e-3)
    loss_of, digest = nn.CrossEntropyLoss(), hashlib.sha256()
    for step in range(steps):
        x, target = random(32, 1, 16, 16, seed=step), vesta.arange(32) % 10
        loss = loss_of(model(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        digest.update(check.array_of(loss).tobytes())
    for parameter in model.state_dict().values():
        digest.update(check.array_of(parameter).tobytes())
    return digest.hexdigest()


def test_training_is_the_same_for_any_number_of_threads() -> None:
    """100 steps of a convolutional network with dropout end in the same bits for 1, 2 and 4 threads."""
    hashes = set()
    for threads in THREADS:
        vesta.set_num_threads(threads)
        hashes.add(train(100))
    assert len(hashes) == 1


@pytest.mark.parametrize("row", single(row for row in COMPARED if row.accepts("float32")))
def test_samples_are_the_same_for_any_number_of_threads(row: Row) -> None:
    """The samples of every row, so that no op of the table is left out."""
    function, digests = check.function_of(row), set()
    for threads in THREADS:
        vesta.set_num_threads(threads)
        digest = hashlib.sha256()
        for sample in row.samples(Maker(DTYPES["float32"], row.name)):
            args, kwargs = check.materialize(sample, "float32")
            for tensor in check.results(function(*args, **kwargs)):
                digest.update(check.array_of(tensor).tobytes())
        digests.add(digest.hexdigest())
    assert len(digests) == 1


@pytest.mark.parametrize("dtype", [vesta.float32, vesta.float64, vesta.bfloat16, vesta.float16], ids=str)
@pytest.mark.parametrize("rows", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("k", [4, 33, 300])
def test_few_rows_have_the_same_bits_wherever_the_lines_of_a_weight_lie(dtype: vesta.dtype, rows: int, k: int) -> None:
    """Lines that share a page are read in another order than lines a page apart, and the last few in a third."""
    vesta.manual_seed(0)
    for n in (1, 15, 16, 63, 64, 100, 259):
        x, bias = vesta.randn(rows, k).to(dtype), vesta.randn(n).to(dtype)
        weight = vesta.randn(n, k).to(dtype)
        apart = vesta.zeros(n, 4096, dtype=dtype)[:, :k]
        apart.copy_(weight)
        product = vesta.nn.functional.linear(x, weight, bias)
        wide = [t.double().numpy() for t in (x, weight, bias)]
        exact, sums = wide[0] @ wide[1].T + wide[2], np.abs(wide[0]) @ np.abs(wide[1]).T + np.abs(wide[2])
        added = vesta.finfo(vesta.promote_types(dtype, vesta.float32)).eps
        bound = vesta.finfo(dtype).eps * np.abs(exact) + (k + 2) * added * sums
        assert (np.abs(product.double().numpy() - exact) <= bound).all(), n
        assert vesta.equal(product, vesta.nn.functional.linear(x, apart, bias)), n
        assert vesta.equal(product[:1], vesta.nn.functional.linear(x[:1], weight, bias)), n
        alone = [vesta.nn.functional.linear(x, weight[i : i + 1], bias[i : i + 1]) for i in range(n)]
        assert vesta.equal(product, vesta.cat(alone, 1)), n
        columns = vesta.mm(weight, x.t()) + bias[:, None] if dtype == vesta.float32 else None
        assert columns is None or vesta.equal(product.t(), columns), n


@pytest.mark.parametrize("dtype", [vesta.float32, vesta.float64, vesta.float16])
def test_a_power_does_not_depend_on_its_neighbours(dtype: vesta.dtype) -> None:
    """Powers that are products and roots have the bits of those, alone or among powers that are not."""
    values = [0.0, -0.0, 1e-3, -0.7, 1.3, 2.9, 200.0, float("inf"), float("-inf"), float("nan")]
    x = vesta.tensor(values * 10, dtype=dtype)
    exponents = [1.0, 2.0, 3.0, 0.5, -0.5, -1.0, -2.0, 0.0, 2.5, -3.0]
    mixed = vesta.tensor([e for e in exponents for _ in values], dtype=dtype)
    together = (x**mixed).view(10, 10)
    for row, e in zip(together, exponents):
        alone = x[:10] ** e
        assert row.numpy().tobytes() == alone.numpy().tobytes(), e
        with np.errstate(all="ignore"):
            base = x[:10].double().numpy()
            exact = np.power(base, np.full_like(base, e)).astype(alone.numpy().dtype)
            np.testing.assert_allclose(alone.numpy(), exact, rtol=2 * vesta.finfo(dtype).eps, atol=0)


def test_denormals_are_flushed_by_all_threads_or_none() -> None:
    threads = vesta.get_num_threads()
    x = vesta.full((1 << 20,), 1e-39)
    try:
        vesta.set_num_threads(4)
        flushes = vesta.set_flush_denormal(True)  # False where the processor has no such mode
        assert (x * 1).count_nonzero().item() == (0 if flushes else x.numel())
        vesta.set_flush_denormal(False)
        assert (x * 1).count_nonzero().item() == x.numel()
    finally:
        vesta.set_flush_denormal(False)
        vesta.set_num_threads(threads)
