"""Names of older programs, functions over lists, numerical analysis over samples."""

import pickle

import numpy as np
import pytest
import vesta


def matrix(n, m=None, dtype=vesta.float64):
    vesta.manual_seed(n)
    return vesta.randn(n, m or n, dtype=dtype)


def test_older_names_are_there_and_not_shown():
    for name in ("qr", "symeig", "solve", "range", "lu"):
        assert callable(getattr(vesta, name))
        assert name not in dir(vesta)
    with vesta.device("cpu"):  # its wrapping of factories leaves no names behind
        vesta.ones(1)
    assert "range" not in dir(vesta) and callable(vesta.range)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_older_linear_algebra():
    a, b = matrix(4), matrix(4, 2)
    q, r = vesta.qr(a)
    vesta.testing.assert_close(q @ r, a)
    symmetric = a + a.mT
    values, vectors = symmetric.symeig(eigenvectors=True)
    vesta.testing.assert_close(vectors @ vesta.diag(values) @ vectors.mT, symmetric)
    assert vesta.symeig(symmetric).eigenvectors.numel() == 0
    vesta.testing.assert_close(a @ vesta.solve(b, a).solution, b)
    tall, right = matrix(5, 3), matrix(5, 2)
    best = vesta.lstsq(right, tall).solution
    vesta.testing.assert_close(best[:3], vesta.linalg.lstsq(tall, right).solution)
    errors = (tall @ best[:3] - right).square().sum(0)
    vesta.testing.assert_close(best[3:].square().sum(0), errors)
    factors, pivots = vesta.lu(a)
    p, lower, upper = vesta.lu_unpack(factors, pivots)
    vesta.testing.assert_close(p @ lower @ upper, a)
    positive = a @ a.mT + 4 * vesta.eye(4, dtype=a.dtype)
    factor = positive.cholesky()
    vesta.testing.assert_close(factor @ factor.mT, positive)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_eig_gives_a_pair_of_vectors_as_two_columns():
    turn = vesta.tensor([[0.0, -2.0], [2.0, 0.0]], dtype=vesta.float64)
    values, vectors = vesta.eig(turn, eigenvectors=True)
    assert sorted(values[:, 1].tolist()) == pytest.approx([-2.0, 2.0])
    first = vesta.complex(vectors[:, 0], vectors[:, 1])
    vesta.testing.assert_close(turn.to(first.dtype) @ first, first * complex(*values[0].tolist()))


def test_older_names_say_what_replaces_them():
    with pytest.warns(DeprecationWarning, match="vesta.linalg.qr"):
        vesta.qr(matrix(2))


def test_range_includes_its_end():
    with pytest.warns(UserWarning, match="arange"):
        assert vesta.range(1, 2, 0.5).tolist() == [1.0, 1.5, 2.0]
    with pytest.warns(UserWarning), pytest.raises(RuntimeError, match="range: .*step"):
        vesta.range(1, 0)


def test_names_of_dimensions():
    x = vesta.zeros(2, 3)
    assert x.names == (None, None)
    assert x.rename(None).data_ptr() == x.data_ptr()
    with pytest.raises(NotImplementedError, match="rename"):
        x.rename("N", "C")


def test_foreach_takes_lists_numbers_and_tensors():
    xs = [vesta.ones(2), vesta.full((3,), 2.0)]
    ys = [vesta.full((2,), 3.0), vesta.full((3,), 4.0)]
    assert [t.tolist() for t in vesta._foreach_add(xs, ys, alpha=2)] == [[7.0] * 2, [10.0] * 3]
    assert [t.tolist() for t in vesta._foreach_mul(xs, [2, 3])] == [[2.0] * 2, [6.0] * 3]
    assert [t.item() for t in vesta._foreach_norm(ys)] == pytest.approx([18**0.5, 48**0.5])
    assert vesta._foreach_mul_(xs, vesta.tensor(0.5)) is None
    assert [t.tolist() for t in xs] == [[0.5] * 2, [1.0] * 3]
    vesta._foreach_addcdiv_(xs, ys, ys, -1.0)
    assert [t.tolist() for t in xs] == [[-0.5] * 2, [0.0] * 3]
    vesta._foreach_maximum_(xs, ys)
    assert [t.tolist() for t in xs] == [[3.0] * 2, [4.0] * 3]
    vesta._foreach_zero_(xs)
    assert [t.tolist() for t in vesta._foreach_pow(2.0, xs)] == [[1.0] * 2, [1.0] * 3]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: vesta._foreach_add(vesta.ones(2), 1), TypeError),
        (lambda: vesta._foreach_add([], 1), RuntimeError),
        (lambda: vesta._foreach_add([vesta.ones(2)], [1, 2]), RuntimeError),
        (lambda: vesta._foreach_nothing, AttributeError),
    ],
)
def test_foreach_refuses(call, error):
    with pytest.raises(error, match="_foreach_"):
        call()


@pytest.mark.parametrize("order", [1, 2])
def test_gradient_is_numpys(order):
    x = np.random.default_rng(0).normal(size=(4, 5))
    at, across = np.array([0.0, 0.5, 2.0, 2.5]), 0.5 * np.arange(5.0)
    got = vesta.gradient(
        vesta.from_numpy(x), spacing=[vesta.from_numpy(at), vesta.from_numpy(across)], edge_order=order
    )
    for mine, theirs in zip(got, np.gradient(x, at, across, edge_order=order)):
        np.testing.assert_allclose(mine.numpy(), theirs, rtol=1e-12)
    got = vesta.gradient(vesta.from_numpy(x), spacing=[2.0, 0.5], edge_order=order)
    for mine, theirs in zip(got, np.gradient(x, 2.0, 0.5, edge_order=order)):
        np.testing.assert_allclose(mine.numpy(), theirs, rtol=1e-12)
    (along,) = vesta.gradient(vesta.from_numpy(x), dim=-1, edge_order=order)
    np.testing.assert_allclose(along.numpy(), np.gradient(x, axis=-1, edge_order=order), rtol=1e-12)


def test_gradient_refuses_what_is_too_short():
    with pytest.raises(RuntimeError, match="gradient"):
        vesta.gradient(vesta.ones(1))
    with pytest.raises(RuntimeError, match="gradient"):
        vesta.gradient(vesta.ones(3, 3), spacing=[1.0])
    with pytest.raises(NotImplementedError, match="gradient: .* got uint8"):
        vesta.gradient(vesta.ones(3, dtype=vesta.uint8))


@pytest.mark.parametrize("density", [False, True])
def test_histograms_are_numpys(density):
    rng = np.random.default_rng(1)
    x, w = rng.normal(size=100), rng.random(100)
    edges = np.array([-1.0, 0.0, 0.1, 2.0])
    for bins, limits in ((7, None), (5, (-1.0, 1.5))):
        want = np.histogram(x, bins, range=limits, weights=w, density=density)
        got = vesta.histogram(vesta.from_numpy(x), bins, range=limits, weight=vesta.from_numpy(w), density=density)
        np.testing.assert_allclose(got.hist.numpy(), want[0], rtol=1e-12)
        np.testing.assert_allclose(got.bin_edges.numpy(), want[1], rtol=1e-12)
    got = vesta.from_numpy(x).histogram(vesta.from_numpy(edges), density=density)
    np.testing.assert_allclose(got.hist.numpy(), np.histogram(x, edges, density=density)[0], rtol=1e-12)
    points = rng.normal(size=(50, 2))
    want, _ = np.histogramdd(points, [3, 4], density=density)
    got = vesta.histogramdd(vesta.from_numpy(points), [3, 4], density=density)
    np.testing.assert_allclose(got.hist.numpy(), want, rtol=1e-12)


def test_a_result_with_names_shows_them_and_pickles():
    got = vesta.histogram(vesta.tensor([0.0, 1.0, 2.0]), 2)
    assert repr(got).startswith("vesta.return_types.histogram(\nhist=tensor([1., 2.]),\nbin_edges=tensor(")
    again = pickle.loads(pickle.dumps(got))
    assert type(again) is type(got)
    assert vesta.equal(again.bin_edges, got.bin_edges)


def test_histogram_refuses():
    with pytest.raises(RuntimeError, match="histogram: bins"):
        vesta.histogram(vesta.ones(3), 0)
    with pytest.raises(RuntimeError, match="histogramdd"):
        vesta.histogramdd(vesta.ones(3), 2)


def test_unravel_index():
    at = vesta.tensor([[0, 5], [23, -1]])
    want = np.unravel_index(at.numpy() % 24, (2, 3, 4))
    assert [t.tolist() for t in vesta.unravel_index(at, (2, 3, 4))] == [t.tolist() for t in want]
    assert [t.shape for t in vesta.unravel_index(vesta.zeros(0).long(), (0, 3))] == [(0,), (0,)]
    with pytest.raises(ValueError, match="unravel_index"):
        vesta.unravel_index(vesta.tensor([24]), (2, 3, 4))


def test_nanquantile_leaves_nan_out():
    x = vesta.tensor([[1.0, float("nan"), 3.0], [float("nan")] * 3])
    got = vesta.nanquantile(x, 0.5, dim=1)
    assert got[0] == 2.0 and got[1].isnan()


def test_frexp_of_numbers_below_the_normal_ones():
    x = np.array([5e-324, -1e-310, 0.75, 0.0, np.inf, 2.0**1023], dtype=np.float64)
    mantissa, exponent = vesta.frexp(vesta.from_numpy(x))
    want = np.frexp(x)
    np.testing.assert_array_equal(mantissa.numpy(), want[0])
    np.testing.assert_array_equal(exponent.numpy()[:4], want[1][:4])
    for dtype in (vesta.float32, vesta.float16, vesta.bfloat16):
        values = vesta.tensor([3.0, -0.1, 6e-8], dtype=dtype)
        assert vesta.frexp(values).exponent.tolist() == np.frexp(values.double().numpy())[1].tolist()
    small = vesta.tensor([1e-45, 3.0]).requires_grad_()
    vesta.frexp(small).mantissa[1].backward()
    assert small.grad.tolist() == [0.0, 0.25]


@pytest.mark.parametrize("dtype", [vesta.float16, vesta.bfloat16, vesta.float32, vesta.float64])
def test_frexp_is_exact(dtype):
    """The results are those of C, in every layout; the slope is 2 ** -exponent where that is no number, too."""
    x = (vesta.randn(50, 70) * vesta.randn(50, 70).mul(8).exp()).to(dtype)
    x[0, :4] = vesta.tensor([float("inf"), float("-inf"), float("nan"), -0.0]).to(dtype)
    for layout in (x, x.t(), x[:, ::3], x[3:4].expand(5, 70)):
        mantissa, exponent = vesta.frexp(layout)
        want = np.frexp(layout.double().numpy())
        assert mantissa.dtype == dtype and exponent.dtype == vesta.int32
        assert mantissa.stride() == exponent.stride()
        np.testing.assert_array_equal(mantissa.double().numpy(), want[0])
        np.testing.assert_array_equal(exponent.numpy(), want[1])
    assert np.signbit(vesta.frexp(x)[0][0, 3].item())
    outs = vesta.empty(0, dtype=dtype), vesta.empty(70, 50, dtype=vesta.int32).t()
    got = vesta.frexp(x, out=outs)
    assert got.mantissa is outs[0] and got.exponent is outs[1] and outs[0].shape == (50, 70)
    assert outs[1].tolist() == vesta.frexp(x).exponent.tolist()


def test_slope_of_frexp():
    largest = vesta.finfo(vesta.float64).max
    x = vesta.tensor([largest, 0.75, -6.0, 0.0, 2.0**-1000], dtype=vesta.float64).requires_grad_()
    (slope,) = vesta.autograd.grad(vesta.frexp(x).mantissa.sum(), x, create_graph=True)
    assert slope.tolist() == [2.0**-1024, 1.0, 0.125, 1.0, 2.0**999]
    assert vesta.autograd.grad(vesta.frexp(x)[0].sum(), x)[0].tolist() == slope.tolist()
    assert not vesta.frexp(x).exponent.requires_grad


def test_view_as_another_dtype():
    x = vesta.tensor([[1.0, -2.0], [0.5, 4.0]])
    bits = x.view(vesta.int32)
    assert bits.tolist() == x.numpy().view(np.int32).tolist()
    bits[0, 0] = 0
    assert x[0, 0] == 0.0
    assert x.view(vesta.int64).shape == (2, 1)
    assert x.view(vesta.float16).shape == (2, 4)
    assert not x.requires_grad_().view(vesta.int32).requires_grad
    with pytest.raises(RuntimeError, match=r"view: self.stride\(-1\) must be 1"):
        x.detach().t().view(vesta.int64)
    with pytest.raises(RuntimeError, match="view: self.dim"):
        vesta.tensor(1.0).view(vesta.int64)
    with pytest.raises(RuntimeError, match="view: self.size"):
        vesta.ones(3).view(vesta.int64)


def test_older_backward_hook_and_compile():
    layer, seen = vesta.nn.Linear(2, 1), []
    layer.register_backward_hook(lambda module, into, out: seen.append(out[0].tolist()))
    assert layer.compile() is None
    layer(vesta.ones(1, 2, requires_grad=True)).sum().backward()
    assert seen == [[[1.0]]]
    vesta._assert(True, "never")
    with pytest.raises(AssertionError, match="shape"):
        vesta._assert(False, "shape")


def test_strides_of_uninitialised_memory():
    x = vesta.empty_strided((2, 3), (1, 2))
    assert x.stride() == (1, 2) and x.untyped_storage().nbytes() == 24
    assert vesta.ones(1, dtype=vesta.int8).new_empty_strided((4,), (3,)).untyped_storage().nbytes() == 10
    with pytest.raises(RuntimeError, match="empty_strided: expected strides"):
        vesta.empty_strided((2,), (-1,))


def test_gradient_of_ctc_loss_is_that_of_normalised_scores():
    """PyTorch's: whatever the scores, they count as logarithms of probabilities whose sum is 1."""
    scores = vesta.randn(5, 2, 4, dtype=vesta.float64).requires_grad_()
    targets = vesta.tensor([[1, 2], [3, 3]])
    loss = vesta.nn.functional.ctc_loss(scores, targets, [5, 4], [2, 2], reduction="sum")
    loss.backward()
    mass = scores.detach().exp().sum(-1) - 1
    mass[4, 1] = 0  # beyond the second one's length
    vesta.testing.assert_close(scores.grad.sum(-1), mass)


@pytest.mark.differs
def test_float32_gradient_of_ctc_loss_over_many_steps():
    generator = np.random.RandomState(0)
    scores = vesta.from_numpy(generator.standard_normal((500, 2, 60)))
    targets = vesta.from_numpy(generator.randint(1, 60, (2, 100)))
    gradients = []
    for dtype in (vesta.float32, vesta.float64):
        x = scores.to(dtype).requires_grad_()
        log_probs = vesta.nn.functional.log_softmax(x, 2)
        vesta.nn.functional.ctc_loss(log_probs, targets, [500, 480], [100, 90], reduction="sum").backward()
        gradients.append(x.grad.double())
    assert (gradients[0] - gradients[1]).abs().max().item() < 2e-4


def test_nuclear_norm():
    x = matrix(3, 4).requires_grad_()
    vesta.testing.assert_close(vesta.norm(x, "nuc"), vesta.linalg.svdvals(x).sum())
    assert vesta.norm(x.expand(2, 3, 4), "nuc", dim=(1, 2)).shape == (2,)


def test_sums_of_products_with_beta_0_give_a_gradient_of_0():
    c, a, b = (t.requires_grad_() for t in (matrix(2, 3).fill_(float("nan")), matrix(2, 4), matrix(4, 3)))
    vesta.addmm(c, a, b, beta=0).sum().backward()
    assert c.grad.tolist() == [[0.0] * 3] * 2
    assert not vesta.addmm(c, a, b, beta=0).isnan().any()


def test_modules_of_devices_and_storages():
    assert vesta.get_device_module("cpu") is vesta.cpu and vesta.get_device_module("cuda:0") is vesta.cuda
    with pytest.raises(RuntimeError, match="get_device_module: expected cuda or cpu"):
        vesta.get_device_module("meta")
    x = vesta.ones(2)
    assert vesta.is_storage(x.untyped_storage()) and not vesta.is_storage(x)
