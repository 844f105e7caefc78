"""Sparse tensors: against dense ones and NumPy, on the CPU and on the emulated device."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import vesta
from vesta import nn

DEVICES = ["cpu", *(["cuda"] if vesta.cuda.is_available() else [])]


def random_sparse(rng: np.random.Generator, *shape: int, nnz: int = 9, dense: int = 0, device: str = "cpu") -> Any:
    """Returns a sparse float64 tensor, whose places may repeat, and its elements as an array."""
    split = len(shape) - dense
    where = np.stack([rng.integers(0, n, nnz) for n in shape[:split]])
    values = rng.standard_normal((nnz, *shape[split:]))
    whole = np.zeros(shape)
    np.add.at(whole, tuple(where), values)
    return vesta.sparse_coo_tensor(where, values, shape, device=device), whole


def dense(x: Any) -> np.ndarray:
    return (x.to_dense() if x.is_sparse else x).detach().cpu().numpy()


def saved(x: Any) -> Any:
    """Returns what a file of x gives."""
    file = io.BytesIO()
    vesta.save(x, file)
    file.seek(0)
    return vesta.load(file)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape, hybrid", [((4, 5), 0), ((6,), 0), ((3, 4, 2), 1), ((2, 3, 4), 0), ((5, 3, 2), 2)])
def test_coalesced_and_dense(rng: np.random.Generator, shape: tuple[int, ...], hybrid: int, device: str) -> None:
    x, want = random_sparse(rng, *shape, dense=hybrid, device=device)
    assert x.is_sparse and x.layout == vesta.sparse_coo and x.device.type == device
    assert (x.sparse_dim(), x.dense_dim(), x._nnz()) == (len(shape) - hybrid, hybrid, 9)
    np.testing.assert_allclose(dense(x), want, atol=1e-15)
    whole = x.coalesce()
    assert whole.is_coalesced() and not x.is_coalesced()
    numbers = np.ravel_multi_index(tuple(whole.indices().cpu().numpy()), shape[: len(shape) - hybrid])
    assert (np.diff(numbers) > 0).all()
    np.testing.assert_allclose(dense(whole), want, atol=1e-15)
    back = vesta.tensor(want, device=device).to_sparse(len(shape) - hybrid)
    np.testing.assert_array_equal(dense(back), want)
    assert back._nnz() == whole._nnz()


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
}


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("kinds", ["ss", "ds", "sd"])
def test_sums_and_products(rng: np.random.Generator, name: str, kinds: str) -> None:
    a, b = random_sparse(rng, 4, 5), random_sparse(rng, 4, 5)
    left, right = (x if kind == "s" else vesta.tensor(want) for kind, (x, want) in zip(kinds, (a, b)))
    result = BINARY[name](left, right)
    assert result.is_sparse == (kinds == "ss" or name == "mul")
    np.testing.assert_allclose(dense(result), BINARY[name](a[1], b[1]), atol=1e-15)


def test_numbers_and_functions(rng: np.random.Generator) -> None:
    x, want = random_sparse(rng, 4, 5)
    for made, expected in (
        (x * 3, want * 3),
        (2 * x, want * 2),
        (x / 4, want / 4),
        (-x, -want),
        (x.abs(), np.abs(want)),
        (x.pow(2), want**2),
        (x.sin(), np.sin(want)),
        (x.t(), want.T),
        (x.transpose(0, 1), want.T),
        (x.float(), want.astype("f")),
        (x.clone(), want),
    ):
        assert made.is_sparse
        np.testing.assert_allclose(dense(made), expected, rtol=1e-6, atol=1e-15)
    np.testing.assert_allclose(x.sum().item(), want.sum(), atol=1e-14)
    np.testing.assert_allclose(dense(vesta.sparse.sum(x, 1)), want.sum(1), atol=1e-14)


@pytest.mark.parametrize("device", DEVICES)
def test_matrix_products(rng: np.random.Generator, device: str) -> None:
    a, want = random_sparse(rng, 4, 5, device=device)
    b, other = random_sparse(rng, 5, 3, device=device)
    m = rng.standard_normal((5, 3))
    right = vesta.tensor(m, device=device)
    for made in (
        a @ right,
        vesta.mm(a, right),
        vesta.sparse.mm(a, right),
        vesta.matmul(a, right),
        vesta.spmm(a, right),
    ):
        np.testing.assert_allclose(dense(made), want @ m, atol=1e-14)
    np.testing.assert_allclose(dense(a @ right[:, 0]), want @ m[:, 0], atol=1e-14)
    np.testing.assert_allclose(dense(right.t() @ a.t()), (want @ m).T, atol=1e-14)
    np.testing.assert_allclose(dense(a @ b), want @ other, atol=1e-14)
    start = vesta.ones(4, 3, dtype=vesta.float64, device=device)
    np.testing.assert_allclose(
        dense(vesta.sparse.addmm(start, a, right, beta=2, alpha=3)), 2 + 3 * (want @ m), atol=1e-13
    )
    np.testing.assert_allclose(dense(vesta.addmm(start, a, right)), 1 + want @ m, atol=1e-13)


def test_gradients(rng: np.random.Generator) -> None:
    """Gradients reach values, dense factors and sparse leaves; those of sparse factors are sparse."""
    where = vesta.tensor([[0, 1, 1, 3], [2, 0, 4, 2]])
    values = vesta.tensor(rng.standard_normal(4), requires_grad=True)
    m = vesta.tensor(rng.standard_normal((5, 3)), requires_grad=True)

    def loss(values: Any, m: Any) -> Any:
        a = vesta.sparse_coo_tensor(where, values, (4, 5))
        return ((a @ m) ** 2).sum() + (a * a).coalesce().values().sum() + (a.to_dense() * 2).sum() + a.sum()

    assert vesta.autograd.gradcheck(loss, (values, m))
    assert vesta.autograd.gradgradcheck(loss, (values, m))

    leaf = vesta.sparse_coo_tensor(where, values.detach(), (4, 5), requires_grad=True)
    vesta.sparse.mm(leaf, m.detach()).sum().backward()
    assert leaf.grad.is_sparse
    full = np.zeros((4, 5))
    full[tuple(where.numpy())] = np.repeat(m.detach().numpy().sum(1)[None], 4, 0)[tuple(where.numpy())]
    np.testing.assert_allclose(dense(leaf.grad), full, atol=1e-14)


def gradients(function: Callable[..., Any], *leaves: Any) -> list[list]:
    """Returns the gradients of the sum of ``function(*leaves)``."""
    for leaf in leaves:
        leaf.requires_grad_()
    function(*leaves).sum().backward()
    return [dense(leaf.grad).tolist() for leaf in leaves]


def test_gradients_where_places_repeat() -> None:
    """The gradient at a place is counted once, however often the place is stored."""
    two = lambda: vesta.tensor([1.0, 2.0])
    made = lambda v: vesta.sparse_coo_tensor(vesta.tensor([[0, 0]]), v, (2,))
    twice = lambda x: x.to_sparse() + x.to_sparse()
    assert gradients(lambda x: twice(x).to_dense(), two()) == [[2, 2]]
    assert gradients(lambda x: twice(x).coalesce().values(), two()) == [[2, 2]]
    assert gradients(lambda x, y: (x.to_sparse() - y.to_sparse()).to_dense(), two(), two()) == [[1, 1], [-1, -1]]
    assert gradients(lambda v: made(v).to_dense(), two()) == [[1, 1]]
    assert gradients(lambda v: (made(v) * 2).to_dense(), two()) == [[2, 2]]
    assert gradients(lambda x: x.to_dense(), made(two())) == [[1, 0]]
    matrix = lambda v: vesta.sparse_coo_tensor(vesta.tensor([[0, 0], [1, 1]]), v, (2, 2))
    assert gradients(lambda v: vesta.sparse.mm(matrix(v), vesta.ones(2, 1)), two()) == [[1, 1]]
    rows = lambda x: vesta.sparse.sum(x.to_sparse(), 1)
    assert gradients(lambda x: rows(x).to_dense(), vesta.ones(2, 3)) == [[[1, 1, 1], [1, 1, 1]]]


def test_edges() -> None:
    number = vesta.tensor(3.0).to_sparse()
    assert number.sum(-1).item() == 3 and number.t().to_dense().item() == 3
    whole = vesta.ones(2, 3).to_sparse()
    whole._indices().t_()  # an alias: the sparse tensor keeps its geometry
    whole._values().unsqueeze_(0)
    assert dense(whole.coalesce()).tolist() == [[1, 1, 1], [1, 1, 1]]
    assert vesta.ones(2, 3, dtype=vesta.bool).to_sparse().sum(0).to_dense().tolist() == [2, 2, 2]
    assert vesta.zeros(0, 3).to_sparse().to_dense().shape == (0, 3)
    for wrong in (
        lambda: vesta.sparse.sum(number, 0),
        lambda: vesta.sparse.sum(whole, (0, 0)),
        lambda: vesta.ones(2, dtype=vesta.bool).to_sparse() - vesta.ones(2, dtype=vesta.bool).to_sparse(),
    ):
        with pytest.raises((RuntimeError, IndexError, TypeError)):
            wrong()


def test_in_place(rng: np.random.Generator) -> None:
    x, want = random_sparse(rng, 4, 5)
    y, other = random_sparse(rng, 4, 5)
    total = vesta.zeros(4, 5, dtype=vesta.float64)
    assert total.add_(x, alpha=2) is total
    total.t().add_(y.t())
    np.testing.assert_allclose(total.numpy(), 2 * want + other, atol=1e-14)
    version = x._version
    x.add_(y).mul_(3)
    assert x._version > version
    np.testing.assert_allclose(dense(x), 3 * (want + other), atol=1e-14)
    z = x.detach()
    z.zero_()
    assert x._nnz() == 0 and not dense(x).any()


@pytest.mark.parametrize("mode", ["embedding", "sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 3])
def test_embedding_gradients(mode: str, padding: int | None) -> None:
    tables = []
    for sparse in (True, False):
        vesta.manual_seed(0)
        if mode == "embedding":
            table: Any = nn.Embedding(10, 3, padding_idx=padding, sparse=sparse)
        else:
            table = nn.EmbeddingBag(10, 3, mode=mode, padding_idx=padding, sparse=sparse)
        tables.append(table)
        for _ in range(2):  # the second is added to the first
            (table(vesta.tensor([[1, 3, 1], [4, 3, 9]])) ** 2).sum().backward()
    assert tables[0].weight.grad.is_sparse and not tables[1].weight.grad.is_sparse
    np.testing.assert_allclose(dense(tables[0].weight.grad), dense(tables[1].weight.grad), rtol=1e-6)


def test_dense_and_sparse_gradients_of_one_leaf() -> None:
    for order in (0, 1):
        weight = vesta.ones(4, 2, requires_grad=True)
        parts = [nn.functional.embedding(vesta.tensor([1, 1]), weight, sparse=True).sum(), weight.sum()]
        for part in parts[::-1] if order else parts:
            part.backward()
        np.testing.assert_array_equal(dense(weight.grad), [[1, 1], [3, 3], [1, 1], [1, 1]])
    weight.grad = None
    (nn.functional.embedding(vesta.tensor([1, 1]), weight, sparse=True).sum() + weight.sum()).backward()
    np.testing.assert_array_equal(dense(weight.grad), [[1, 1], [3, 3], [1, 1], [1, 1]])


OPTIMIZERS = {
    "SGD": lambda p: vesta.optim.SGD(p, lr=0.1),
    "momentum": lambda p: vesta.optim.SGD(p, lr=0.1, momentum=0.9),
    "nesterov": lambda p: vesta.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "Adagrad": lambda p: vesta.optim.Adagrad(p, lr=0.1),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_sparse_step_is_the_dense_one(name: str) -> None:
    results = []
    for sparse in (True, False):
        vesta.manual_seed(0)
        table = nn.Sequential(nn.Embedding(6, 2, sparse=sparse), nn.Linear(2, 1))
        optimizer = OPTIMIZERS[name](table.parameters())
        for step in range(4):
            optimizer.zero_grad()
            (table(vesta.tensor([step, 2, 2])) ** 2).sum().backward()
            optimizer.step()
        results.append(np.concatenate([p.detach().numpy().ravel() for p in table.parameters()]))
    np.testing.assert_allclose(*results, rtol=1e-5)


def test_sparse_adam() -> None:
    """Against the formula, written for the rows that had a gradient."""
    vesta.manual_seed(0)
    table = nn.Embedding(5, 2, sparse=True)
    p = table.weight.detach().numpy().astype(np.float64)
    m, v = np.zeros_like(p), np.zeros_like(p)
    optimizer = vesta.optim.SparseAdam(table.parameters(), lr=0.01)
    for t in range(1, 5):
        rows = [0, 3, 3] if t % 2 else [2]
        optimizer.zero_grad()
        (table(vesta.tensor(rows)) ** 2).sum().backward()
        optimizer.step()
        g = np.zeros_like(p)
        np.add.at(g, rows, 2 * p[rows])
        r = sorted(set(rows))
        m[r] = 0.9 * m[r] + 0.1 * g[r]
        v[r] = 0.999 * v[r] + 0.001 * g[r] ** 2
        p[r] -= 0.01 * np.sqrt(1 - 0.999**t) / (1 - 0.9**t) * m[r] / (np.sqrt(v[r]) + 1e-8)
    np.testing.assert_allclose(table.weight.detach().numpy(), p, rtol=1e-5)
    state = copy.deepcopy(optimizer.state_dict())
    vesta.optim.SparseAdam(table.parameters(), lr=0.01).load_state_dict(state)


def test_softmax(rng: np.random.Generator) -> None:
    x = vesta.sparse_coo_tensor([[0, 0, 1, 1, 1], [0, 2, 0, 1, 2]], [1.0, 2.0, 3.0, 0.5, 1.5], (3, 3))
    for dim in (0, 1):
        hidden = np.where(dense(x) == 0, -np.inf, dense(x))
        exponentials = np.exp(hidden)
        want = exponentials / np.maximum(exponentials.sum(dim, keepdims=True), 1e-30)
        np.testing.assert_allclose(dense(vesta.sparse.softmax(x, dim)), want, rtol=1e-6)
        made = vesta.sparse.log_softmax(x, dim)
        np.testing.assert_allclose(made.values().exp().numpy(), want[tuple(made.indices().numpy())], rtol=1e-6)


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "an op without a sparse form": (lambda x: x.exp(), "exp: expected dense tensors"),
    "cumsum": (lambda x: x.cumsum(0), "cumsum"),
    "reshape": (lambda x: x.reshape(-1), "sparse"),
    "numpy": (lambda x: x.numpy(), "sparse"),
    "np.asarray": (lambda x: np.asarray(memoryview(x)), "sparse"),
    "item": (lambda x: x.item(), "item"),
    "tolist": (lambda x: x.tolist(), "tolist"),
    "data_ptr": (lambda x: x.data_ptr(), "data_ptr"),
    "stride": (lambda x: x.stride(), "stride"),
    "storage": (lambda x: x.untyped_storage(), "sparse"),
    "dlpack": (lambda x: x.__dlpack__(), "sparse"),
    "index": (lambda x: x[0:2], "sparse"),
    "write": (lambda x: x.__setitem__(0, 1.0), "sparse"),
    "values of repeated places": (lambda x: x.values(), "coalesce"),
    "indices of repeated places": (lambda x: x.indices(), "coalesce"),
    "shapes": (lambda x: x + vesta.sparse_coo_tensor([[0], [0]], [1.0], (2, 2)), "sizes"),
    "a product of wrong sizes": (lambda x: x @ vesta.ones(4, 2, dtype=vesta.float64), "shapes"),
    "a dtype": (lambda x: x @ vesta.ones(5, 2), "dtype"),
    "copy of a dense one": (lambda x: vesta.zeros(4, 5).copy_(x), "copy_"),
    "copy to a sparse one": (lambda x: x.copy_(vesta.zeros(4, 5)), "copy_"),
    "Adam": (lambda x: _adam(), "Adam does not support sparse gradients"),
}


def _adam() -> None:
    table = nn.Embedding(3, 2, sparse=True)
    table(vesta.tensor([1])).sum().backward()
    vesta.optim.Adam(table.parameters()).step()


@pytest.mark.parametrize("name", REFUSED)
def test_what_takes_no_sparse_tensor_says_so(rng: np.random.Generator, name: str) -> None:
    x, want = random_sparse(rng, 4, 5)
    function, text = REFUSED[name]
    with pytest.raises((NotImplementedError, RuntimeError, TypeError, BufferError), match=text):
        function(x)
    np.testing.assert_allclose(dense(x), want, atol=1e-15)


@pytest.mark.parametrize(
    "arguments",
    [
        ([[0, 4]], [1.0, 2.0], (4,)),
        ([[0, -1]], [1.0, 2.0], (4,)),
        ([[0, 1]], [1.0], (4,)),
        ([[0.5, 1]], [1.0, 2.0], (4,)),
        ([[0], [0], [0]], [1.0], (4, 4)),
        ([0, 1], [1.0, 2.0], (4,)),
        ([[0]], [[1.0, 2.0]], (4, 3)),
        ([[0]], [1.0], (-4,)),
    ],
)
def test_wrong_coordinates_raise(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(RuntimeError):
        vesta.sparse_coo_tensor(*arguments)


def test_printing_copying_and_old_forms() -> None:
    x = vesta.sparse_coo_tensor([[0, 1], [1, 0]], [1.5, 2.0], (2, 3))
    assert repr(x) == (
        "tensor(indices=tensor([[0, 1],\n                       [1, 0]]),\n       values=tensor([1.5000, 2.0000]),\n"
        "       size=(2, 3), nnz=2, layout=vesta.sparse_coo)"
    )
    for again in (copy.deepcopy(x), copy.copy(x), pickle.loads(pickle.dumps(x)), saved(x), saved({"a": [x]})["a"][0]):
        assert again.is_sparse and again.is_coalesced() == x.is_coalesced()
        np.testing.assert_array_equal(dense(again), dense(x))
    old = vesta.sparse.FloatTensor(vesta.tensor([[0, 1], [1, 0]]), vesta.tensor([1.5, 2.0]), vesta.Size([2, 3]))
    np.testing.assert_array_equal(dense(old), dense(x))
    np.testing.assert_array_equal(dense(x.new(x._indices(), x._values(), x.shape)), dense(x))
    assert vesta.sparse_coo_tensor((2, 3))._nnz() == 0
    assert vesta.sparse_coo_tensor([[0, 3]], [1.0, 1.0]).shape == (4,)


@pytest.mark.parametrize("value", [True, 2, 1j, 1.0])
def test_a_dtype_that_the_values_show_is_not_printed(value):
    assert "nnz=1, layout" in repr(vesta.sparse_coo_tensor([[0]], [value], (1,)))
    assert "dtype=vesta.float64, layout" in repr(vesta.ones(1, dtype=vesta.float64).to_sparse())
    assert "dtype=vesta.int32, layout" in repr(vesta.ones(1, dtype=vesta.int32).to_sparse())


# ---- shapes ----


def places_and_values(shape: tuple[int, ...], sparse_dims: int, count: int, coalesced: bool = True) -> vesta.Tensor:
    generator = np.random.RandomState(sum(shape) + sparse_dims)
    where = np.stack([generator.randint(0, n, count) for n in shape[:sparse_dims]])
    values = vesta.from_numpy(generator.standard_normal((count, *shape[sparse_dims:])))
    made = vesta.sparse_coo_tensor(vesta.from_numpy(where), values, shape)
    return made.coalesce() if coalesced else made


#: Operations along a dimension.
ALONG: dict[str, Callable[[vesta.Tensor, int], vesta.Tensor]] = {
    "select": lambda t, dim: t.select(dim, 1),
    "select the last": lambda t, dim: t.select(dim, -1),
    "index_select": lambda t, dim: t.index_select(dim, vesta.tensor([2, 0, 2, 1]) % t.size(dim)),
    "select none": lambda t, dim: t.index_select(dim, vesta.tensor([], dtype=vesta.int64)),
    "unsqueeze": lambda t, dim: t.unsqueeze(dim),
    "cat": lambda t, dim: vesta.cat([t, t * 2, t], dim),
    "stack": lambda t, dim: vesta.stack([t, t], dim),
}


@pytest.mark.parametrize("coalesced", [True, False])
@pytest.mark.parametrize("shape", [(4, 5, None), (4, 5, None, 3), (6, None), (3, None, 4, 2), (2, 3, 4, None)])
def test_shapes_of_sparse_tensors_are_those_of_dense_ones(shape: tuple[Any, ...], coalesced: bool) -> None:
    split = shape.index(None)  # sparse sizes come before it
    x = places_and_values((*shape[:split], *shape[split + 1 :]), split, 9, coalesced)
    whole = x.to_dense()
    for dim in range(-x.dim(), x.dim()):
        for op in ALONG.values():
            made, right = op(x, dim), op(whole, dim)
            assert made.shape == right.shape and made.dtype == right.dtype
            vesta.testing.assert_close(made.to_dense() if made.is_sparse else made, right)
        assert x.select(dim, 0).is_sparse == (split > 1 or dim % x.dim() > 0)
    assert type(x[1]) is vesta.Tensor and x[1].shape == whole[1].shape
    assert vesta.cat([x, x.float()]).dtype == vesta.float64


def test_gradients_pass_shapes_of_sparse_tensors() -> None:
    values = vesta.tensor([1.0, 2.0, 3.0], requires_grad=True)
    x = vesta.sparse_coo_tensor([[0, 1, 1], [1, 0, 2]], values, (2, 3))
    weight = vesta.arange(6.0).view(2, 3)
    total = (x[1].to_dense() * weight[1]).sum() + (
        vesta.cat([x, x], 1).to_dense() * vesta.cat([weight, weight], 1)
    ).sum()
    total = total + (x.index_select(0, vesta.tensor([1, 1])).to_dense() * weight[1]).sum()
    (total + (x.unsqueeze(0).to_dense() * weight).sum()).backward()
    assert values.grad.tolist() == [1.0 * 3, 3.0 * 6, 5.0 * 6]


def test_sums_of_coalesced_tensors_are_coalesced() -> None:
    x, y = places_and_values((4, 5), 2, 9), places_and_values((4, 5), 2, 8, coalesced=False)
    for made, right in ((x + x, 2 * x.to_dense()), (x - x, 0 * x.to_dense()), (x.sum(0), x.to_dense().sum(0))):
        assert made.is_coalesced() and made.indices().shape[1] <= 9
        vesta.testing.assert_close(made.to_dense(), right)
    assert not (x + y).is_coalesced()
    z = x.clone()
    z.add_(x)
    assert z.is_coalesced() and vesta.allclose(z.to_dense(), 2 * x.to_dense())


def test_small_ways_to_sparse_tensors() -> None:
    x = places_and_values((4, 5), 2, 9)
    assert vesta.zeros_like(x).is_sparse and vesta.zeros_like(x, dtype=vesta.int64)._nnz() == 0
    assert vesta.empty_like(x).is_coalesced() and vesta.sparse_coo_tensor(size=(2, 3)).shape == (2, 3)
    assert vesta.equal(x.to_dense().to_sparse_coo().to_dense(), x.to_dense()) and x.to_sparse_coo() is x
    for op in (vesta.erf, vesta.trunc, vesta.frac, vesta.sgn, vesta.deg2rad, vesta.erfinv):
        vesta.testing.assert_close(op(x * 0.1).to_dense(), op(x.to_dense() * 0.1))
    assert repr(vesta.sparse_coo_tensor([[1]], [2.0], (3,), dtype=vesta.float64)) == (
        "tensor(indices=tensor([[1]]),\n       values=tensor([2.]),\n       size=(3,), nnz=1, dtype=vesta.float64, "
        "layout=vesta.sparse_coo)"
    )
    diagonals = vesta.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
    made = vesta.sparse.spdiags(diagonals, vesta.tensor([0, 2, -1]), (4, 3)).to_dense()
    assert made.tolist() == [[1.0, 0.0, 6.0], [7.0, 2.0, 0.0], [0.0, 8.0, 3.0], [0.0, 0.0, 9.0]]
    with pytest.raises(RuntimeError, match="each offset once"):
        vesta.sparse.spdiags(diagonals, vesta.tensor([0, 0, 1]), (3, 3))


def test_shapes_that_do_not_fit_are_refused() -> None:
    x = places_and_values((4, 5), 2, 9)
    for error, wrong in (
        (IndexError, lambda: x.select(0, 4)), (IndexError, lambda: x.index_select(1, vesta.tensor([5]))),
        (IndexError, lambda: x.unsqueeze(3)), (RuntimeError, lambda: vesta.cat([x, x.to_dense()])),
        (RuntimeError, lambda: vesta.cat([x, x.t()])), (IndexError, lambda: x.select(2, 0)),
    ):  # fmt: skip
        with pytest.raises(error):
            wrong()


def test_sums_of_uncoalesced_tensors_are_coalesced() -> None:
    s = vesta.sparse_coo_tensor([[0, 0, 1], [1, 1, 0]], [1.0, 2.0, 4.0], (2, 2))
    total = vesta.sparse.sum(s, 0)
    assert total.is_coalesced() and total.values().tolist() == [4.0, 3.0]


def test_index_select_takes_negative_indices_from_the_end() -> None:
    s = vesta.sparse_coo_tensor([[0, 2], [1, 0]], [1.0, 2.0], (3, 2))
    got = s.index_select(0, vesta.tensor([-1, 0])).to_dense()
    assert got.tolist() == [[2.0, 0.0], [0.0, 1.0]]
    with pytest.raises(IndexError, match="out of range"):
        s.index_select(0, vesta.tensor([-4]))


def test_a_linear_layer_takes_a_sparse_operand() -> None:
    rng = np.random.default_rng(3)
    dense, other = (vesta.from_numpy(rng.standard_normal(shape)) for shape in ((4, 5), (3, 5)))
    dense = dense * (dense > 0)
    bias = vesta.ones(4, dtype=vesta.float64, requires_grad=True)
    weight, x = dense.to_sparse().requires_grad_(), other.clone().requires_grad_()
    y = nn.functional.linear(x, weight, bias)
    vesta.testing.assert_close(y, nn.functional.linear(other, dense, bias.detach()), check_dtype=True)
    y.square().sum().backward()
    grad = 2 * (other @ dense.T + 1)
    vesta.testing.assert_close(x.grad, grad @ dense)
    vesta.testing.assert_close(bias.grad, grad.sum(0))
    vesta.testing.assert_close(weight.grad, grad.T @ other)  # of a sparse second operand it is dense, as in PyTorch
    table = vesta.ones(2, 5, dtype=vesta.float64, requires_grad=True)
    y = nn.functional.linear(dense.to_sparse(), table)
    vesta.testing.assert_close(y, dense.sum(1, keepdim=True).expand(4, 2))
    y.sum().backward()
    vesta.testing.assert_close(table.grad, dense.sum(0).expand(2, 5))


@pytest.mark.parametrize("sizes", [(5,), (2, 3, 5), (0, 5)])
def test_a_sparse_weight_takes_batches(sizes) -> None:
    weight = (vesta.arange(20.0).reshape(4, 5) * vesta.eye(4, 5)).to_sparse()
    x = vesta.randn(sizes, requires_grad=True)
    y = nn.functional.linear(x, weight, vesta.ones(4))
    vesta.testing.assert_close(y, nn.functional.linear(x.detach(), weight.to_dense(), vesta.ones(4)))
    y.sum().backward()
    vesta.testing.assert_close(x.grad, weight.to_dense().sum(0).expand(sizes))
    with pytest.raises(NotImplementedError, match="to be dense where there is a bias"):
        nn.functional.linear(vesta.eye(5).to_sparse(), weight, vesta.ones(4))


def test_rows_of_elements_and_where_rows_begin() -> None:
    rows, begins = vesta.tensor([0, 0, 2]), vesta.tensor([0, 2, 2, 3, 3])
    found = vesta.sparse._convert_indices_from_coo_to_csr(rows, 4, out_int32=True)
    assert found.dtype == vesta.int32 and found.tolist() == begins.tolist()
    assert vesta.sparse._convert_indices_from_coo_to_csr(rows[:0], 1).tolist() == [0, 0]
    with pytest.raises(RuntimeError, match=r"expected rows below 2 \(size\), got 2"):
        vesta.sparse._convert_indices_from_coo_to_csr(rows, 2)
    columns = vesta.tensor([1, 2, 0])
    assert vesta.sparse._convert_indices_from_csr_to_coo(begins, columns).tolist() == [[0, 0, 2], [1, 2, 0]]
    turned = vesta.sparse._convert_indices_from_csr_to_coo(begins, columns, transpose=True, out_int32=True)
    assert turned.tolist() == [[1, 2, 0], [0, 0, 2]] and turned.dtype == vesta.int32
    with pytest.raises(RuntimeError, match="supposed to be a vector"):
        vesta.sparse._convert_indices_from_coo_to_csr(vesta.zeros(2, 2, dtype=vesta.int64), 1)
    with pytest.raises(RuntimeError, match="expected two vectors"):
        vesta.sparse._convert_indices_from_csr_to_coo(begins, columns.unsqueeze(0))


def test_a_program_may_declare_that_places_occur_once() -> None:
    x = vesta.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 2))
    assert not x.is_coalesced() and x._coalesced_(True) is x and x.is_coalesced()
    assert x.values().tolist() == [1.0, 2.0]
    with pytest.raises((RuntimeError, NotImplementedError)):
        vesta.ones(2)._coalesced_(True)


def test_a_promise_of_order_is_checked() -> None:
    """A product took elements in any order for sorted ones: its rows were others'."""
    indices, values = vesta.tensor([[2, 0, 1], [0, 1, 2]]), vesta.tensor([1.0, 2.0, 3.0])
    for wrong in (indices, vesta.tensor([[0, 0, 1], [1, 1, 2]])):
        with pytest.raises(RuntimeError, match="correspond to uncoalesced"):
            vesta.sparse_coo_tensor(wrong, values, (3, 3), is_coalesced=True)
    sorted_ = vesta.sparse_coo_tensor(indices.sort(1).values, values, (3, 3), is_coalesced=True)
    assert sorted_.is_coalesced() and vesta.sparse_coo_tensor((2, 2), is_coalesced=True).is_coalesced()
    given = vesta.sparse_coo_tensor(indices, values, (3, 3))
    assert vesta.equal(vesta.sparse.mm(given._coalesced_(True), vesta.eye(3)), given.to_dense())


def test_a_product_looks_at_indices_that_were_written() -> None:
    eye = vesta.eye(3).to_sparse()
    eye._indices()[0] = vesta.tensor([2, 1, 0])
    assert vesta.equal(vesta.sparse.mm(eye, vesta.eye(3)), vesta.eye(3).flip(0))
    for wrong in ([-5, 1, 2], [0, 1, 3], [0, -5, 2]):
        eye._indices()[0] = vesta.tensor(wrong)
        with pytest.raises(IndexError, match="out of bounds|out of range"):
            vesta.sparse.mm(eye, vesta.eye(3))


@pytest.mark.parametrize(
    ("order", "starts"),
    [([0, 1, 10**6], [0, 3]), ([0, 1, -1], [0, 3]), ([0, 1, 2], [0, 10**7]), ([0, 1, 2], [2, 0]), ([0, 1, 2], [])],
)
def test_sums_of_runs_read_nothing_else(order: list[int], starts: list[int]) -> None:
    places = [vesta.tensor(numbers, dtype=vesta.int64) for numbers in (order, starts)]
    with pytest.raises((IndexError, ValueError), match="_sum_runs"):
        vesta._C._private._sum_runs(vesta.ones(3), *places)
