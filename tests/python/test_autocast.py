"""Autocast: the dtype of each operation, gradients in the leaf's dtype, the cache, contexts, threads.

Tests without the mark ``differs`` test PyTorch's behaviour; they also pass with ``sys.modules["vesta"] = torch``.
"""

from __future__ import annotations

import threading
import time
import warnings

import pytest
import vesta
from vesta import nn
from vesta.nn import functional as F

f16, bf16, f32, f64 = vesta.float16, vesta.bfloat16, vesta.float32, vesta.float64
LOWER = (bf16, f16)


def values(*shape, dtype=f32, device="cpu", requires_grad=False):
    """Returns numbers from 1/8 to 1, exact in bfloat16."""
    count = 1
    for size in shape:
        count *= size
    x = ((vesta.arange(count) * 5 % 8 + 1) / 8).to(dtype).reshape(shape).to(device)
    return x.requires_grad_(requires_grad)


def has_cuda():
    return hasattr(vesta, "cuda") and vesta.cuda.is_available()


with_cuda = pytest.mark.skipif(not has_cuda(), reason="needs CUDA")


# ---- the table ----

PRODUCTS = {
    "matmul": lambda x: vesta.matmul(x, x),
    "operator": lambda x: x @ x,
    "mm": lambda x: vesta.mm(x, x),
    "bmm": lambda x: vesta.bmm(x[None], x[None]),
    "matmul_vector": lambda x: vesta.matmul(x, x[0]),
    "matmul_dot": lambda x: vesta.matmul(x[0], x[0]),
    "addmm": lambda x: vesta.addmm(x, x, x),
    "linear": lambda x: F.linear(x, x, x[0]),
    "conv2d": lambda x: F.conv2d(x[None, None], x[None, None, :2, :2], x[0, :1]),
}
LOSSES = {
    "mse_loss": lambda x: F.mse_loss(x, x * 2),
    "mse_loss_none": lambda x: F.mse_loss(x, x * 2, reduction="none"),
    "cross_entropy": lambda x: F.cross_entropy(x, vesta.tensor([0, 1, 2, 3], device=x.device)),
    "cross_entropy_soft": lambda x: F.cross_entropy(x, x),
    "nll_loss": lambda x: F.nll_loss(x, vesta.tensor([0, 1, 2, 3], device=x.device)),
}
FLOAT32_ON_CUDA = {
    "exp": lambda x: x.exp(),
    "log": lambda x: x.log(),
    "log1p": lambda x: x.log1p(),
    "rsqrt": lambda x: x.rsqrt(),
    "reciprocal": lambda x: x.reciprocal(),
    "pow": lambda x: x**2,
    "pow_tensor": lambda x: vesta.pow(x, x),
    "pow_of_number": lambda x: 2**x,
    "sum": lambda x: x.sum(),
    "sum_dim": lambda x: x.sum(1),
    "cumsum": lambda x: x.cumsum(1),
    "norm": lambda x: x.norm(dim=1),
    "softplus": lambda x: F.softplus(x),
    "layer_norm": lambda x: F.layer_norm(x, (4,)),
    "binary_cross_entropy_with_logits": lambda x: F.binary_cross_entropy_with_logits(x, x),
    "softmax": lambda x: x.softmax(1),
    "log_softmax": lambda x: F.log_softmax(x, 1),
}
UNTOUCHED = {
    "add": lambda x: x + x,
    "mul": lambda x: x * 2,
    "relu": lambda x: x.relu(),
    "mean": lambda x: x.mean(),
    "sqrt": lambda x: x.sqrt(),
    "tanh": lambda x: x.tanh(),
    "amax": lambda x: x.amax(),
    "max_pool2d": lambda x: F.max_pool2d(x[None, None], 2),
    "view": lambda x: x.reshape(16),
}


def close(a, b, tolerance):
    assert vesta.allclose(a.to("cpu").to(f32), b.to("cpu").to(f32), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", LOWER, ids=str)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_compute_in_the_lower_dtype(name, dtype):
    for given in (f32, bf16, f16):
        with vesta.autocast("cpu", dtype):
            result = PRODUCTS[name](values(4, 4, dtype=given))
        assert result.dtype == dtype
    close(result, PRODUCTS[name](values(4, 4)), 0.02)


@pytest.mark.parametrize("name", LOSSES)
def test_losses_compute_in_float32(name):
    x = values(4, 4, dtype=bf16)
    with vesta.autocast("cpu"):
        result = LOSSES[name](x)
    assert result.dtype == f32
    close(result, LOSSES[name](x.float()), 1e-5)


@pytest.mark.parametrize("name", {**FLOAT32_ON_CUDA, **UNTOUCHED})
def test_the_rest_follows_its_operands_on_the_cpu(name):
    fn = {**FLOAT32_ON_CUDA, **UNTOUCHED}[name]
    for given in (f32, bf16):
        with vesta.autocast("cpu"):
            assert fn(values(4, 4, dtype=given)).dtype == given


@pytest.mark.parametrize("function", ["cat", "stack"])
def test_lists_take_the_widest_dtype(function):
    fn = getattr(vesta, function)
    wide, narrow = values(2, 2), values(2, 2, dtype=bf16)
    with vesta.autocast("cpu"):
        assert fn([narrow, wide]).dtype == f32
        assert fn([narrow, narrow]).dtype == bf16
        assert fn([wide, wide]).dtype == f32


def test_images_and_distances_compute_in_float32():
    image, grid = values(1, 2, 3, 3, dtype=bf16), values(1, 2, 2, 2, requires_grad=True)
    with vesta.autocast("cpu"):
        result = F.grid_sample(image, grid, align_corners=True)
        assert result.dtype == f32
        assert vesta.cdist(values(4, 4, dtype=bf16), values(4, 4)).dtype == f32
    close(result, F.grid_sample(image.float(), grid, align_corners=True), 1e-6)
    result.sum().backward()
    assert grid.grad.dtype == f32


@with_cuda
def test_images_take_the_widest_dtype_on_cuda():
    image = values(1, 2, 3, 3, dtype=f16, device="cuda")
    for given, want in ((f16, f16), (f32, f32)):
        grid = values(1, 2, 2, 2, dtype=given, device="cuda")
        with vesta.autocast("cuda"):
            assert F.grid_sample(image, grid, align_corners=True).dtype == want


@pytest.mark.differs
def test_lists_of_two_16_bit_dtypes_become_float32():
    with vesta.autocast("cpu"):
        assert vesta.cat([values(2, dtype=f16), values(2, dtype=bf16)]).dtype == f32


def test_float64_and_integers_are_left_alone():
    x, n = values(3, 3, dtype=f64), vesta.arange(9).reshape(3, 3)
    with vesta.autocast("cpu"):
        assert vesta.matmul(x, x).dtype == f64
        assert vesta.matmul(n, n).dtype == vesta.int64
        assert F.mse_loss(x, x).dtype == f64
        assert vesta.cat([n, n]).dtype == vesta.int64


def test_numbers_stay_numbers():
    with vesta.autocast("cpu"):
        assert (values(2, dtype=f16) ** 2.0).dtype == f16
        assert (values(2, dtype=bf16) * 2.0).dtype == bf16


def test_out_and_inplace_are_as_written():
    x = values(3, 3)
    with vesta.autocast("cpu"):
        out = vesta.empty(3, 3)
        assert vesta.matmul(x, x, out=out) is out
        y = x.clone()
        assert y.exp_().dtype == f32
    assert vesta.equal(out, x @ x)  # not rounded to 16 bits


def test_a_dtype_that_was_asked_for_holds():
    x = values(4, 4, dtype=f16)
    with vesta.autocast("cpu"):
        assert x.softmax(1, dtype=f64).dtype == f64
        assert x.sum(dtype=f64).dtype == f64


# ---- gradients ----


@pytest.mark.parametrize("dtype", LOWER, ids=str)
def test_gradients_arrive_in_the_leafs_dtype(dtype):
    layer = nn.Linear(4, 3)
    x = values(2, 4, requires_grad=True)
    with vesta.autocast("cpu", dtype):
        y = layer(x)
        assert y.dtype == dtype
        loss = F.mse_loss(y, vesta.zeros(2, 3))
    assert loss.dtype == f32
    loss.backward()
    for leaf in (x, layer.weight, layer.bias):
        assert leaf.grad.dtype == f32 and leaf.grad.shape == leaf.shape
    grads = [leaf.grad.clone() for leaf in (x, layer.weight, layer.bias)]
    for leaf in (x, layer.weight, layer.bias):
        leaf.grad = None
    F.mse_loss(layer(x), vesta.zeros(2, 3)).backward()
    for leaf, grad in zip((x, layer.weight, layer.bias), grads):
        assert vesta.allclose(leaf.grad, grad, rtol=0.05, atol=0.02)


def test_convolution_and_normalisation_mix():
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 2))
    with vesta.autocast("cpu"):
        y = model(values(3, 1, 4, 4))
    assert y.dtype == bf16
    y.sum().backward()
    assert all(p.grad.dtype == f32 for p in model.parameters())


def test_backward_inside_and_twice():
    w = values(3, 3, requires_grad=True)
    with vesta.autocast("cpu"):
        for _ in range(2):  # the second use shares the kept cast, whose graph the first backward went through
            (w @ w).sum().backward()
    once = values(3, 3, requires_grad=True)
    with vesta.autocast("cpu"):
        (once @ once).sum().backward()
    assert vesta.allclose(w.grad, once.grad * 2)


def test_double_backward():
    x = values(3, 3, requires_grad=True)
    with vesta.autocast("cpu"):
        y = (x @ x).float().sum()
        (g,) = vesta.autograd.grad(y, x, create_graph=True)
    g.sum().backward()
    assert x.grad.dtype == f32


# ---- contexts ----


def test_state_and_nesting():
    x = values(2, 2)
    assert not vesta.is_autocast_enabled("cpu")
    with vesta.autocast("cpu", f16):
        assert vesta.is_autocast_enabled("cpu") and not vesta.is_autocast_enabled("cuda")
        assert vesta.get_autocast_dtype("cpu") == f16
        with vesta.autocast("cpu", enabled=False):
            assert not vesta.is_autocast_enabled("cpu")
            assert (x @ x).dtype == f32
            with vesta.autocast("cpu", dtype=bf16):
                assert (x @ x).dtype == bf16
            assert (x @ x).dtype == f32
        assert (x @ x).dtype == f16
    assert vesta.get_autocast_dtype("cpu") == bf16 and vesta.get_autocast_dtype("cuda") == f16
    assert (x @ x).dtype == f32


def test_an_exception_leaves_the_context():
    with pytest.raises(RuntimeError), vesta.autocast("cpu"):
        raise RuntimeError
    assert not vesta.is_autocast_enabled("cpu")


def test_one_object_entered_again_inside_itself():
    mode, x = vesta.autocast("cpu"), values(2, 2)
    with mode, vesta.autocast("cpu", enabled=False), mode:
        assert (x @ x).dtype == bf16
    assert mode.device == "cpu" and mode.fast_dtype == bf16


def test_decorator():
    @vesta.autocast("cpu", dtype=f16)
    def product(x):
        """Says what it is."""
        return x @ x

    assert product.__name__ == "product" and product.__doc__ == "Says what it is."
    assert product(values(2, 2)).dtype == f16
    assert not vesta.is_autocast_enabled("cpu")
    with pytest.raises(TypeError, match="callable"):
        vesta.autocast("cpu")(3)


@pytest.mark.differs
def test_decorated_functions_may_call_themselves():
    """In PyTorch the second entry overwrites the state that the first one saved: the dtype stays changed."""

    @vesta.autocast("cpu", dtype=f16)
    def product(x, n=2):
        return product(x, n - 1) if n else x @ x

    assert product(values(2, 2)).dtype == f16
    assert vesta.get_autocast_dtype("cpu") == bf16 and not vesta.is_autocast_enabled("cpu")


@pytest.mark.differs
def test_decorated_generators_run_in_the_mode():
    @vesta.autocast("cpu")
    def products(x):
        yield x @ x

    for y in products(values(2, 2)):
        assert y.dtype == bf16
        assert not vesta.is_autocast_enabled("cpu")


def test_other_threads_are_not_concerned():
    seen = []

    def look(mode):
        seen.append(vesta.is_autocast_enabled("cpu"))
        if mode:
            with vesta.autocast("cpu", f16):
                seen.append((values(2, 2) @ values(2, 2)).dtype)

    with vesta.autocast("cpu"):
        thread = threading.Thread(target=look, args=(True,))
        thread.start()
        thread.join()
        assert (values(2, 2) @ values(2, 2)).dtype == bf16
    assert seen == [False, f16]


def test_the_dtype_belongs_to_the_thread():
    seen = []
    thread = threading.Thread(target=lambda: seen.append(vesta.get_autocast_dtype("cpu")))
    with vesta.autocast("cpu", f16):
        thread.start()
        thread.join()
    assert seen == [bf16]


def test_a_decorated_function_in_many_threads():
    errors = []

    @vesta.autocast("cpu")
    def product(x):
        return (x @ x).dtype

    def run():
        for _ in range(200):
            if product(values(2, 2)) != bf16 or vesta.is_autocast_enabled("cpu"):
                errors.append(1)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_setters():
    before = vesta.get_autocast_dtype("cpu")
    vesta.set_autocast_dtype("cpu", f16)
    vesta.set_autocast_enabled("cpu", True)
    try:
        assert (values(2, 2) @ values(2, 2)).dtype == f16
        assert vesta.autocast("cpu").fast_dtype == f16
    finally:
        vesta.set_autocast_enabled("cpu", False)
        vesta.set_autocast_dtype("cpu", before)
    assert vesta.is_autocast_cache_enabled()
    with vesta.autocast("cpu", cache_enabled=False):
        assert not vesta.is_autocast_cache_enabled()
    assert vesta.is_autocast_cache_enabled()


# ---- refused arguments ----


def test_unknown_device_types():
    with pytest.raises(RuntimeError):
        vesta.autocast("toaster")
    with pytest.raises(RuntimeError):
        vesta.is_autocast_enabled("toaster")
    with pytest.raises(ValueError, match="device_type"):
        vesta.autocast(vesta.device("cpu"))
    assert vesta.autocast("cpu:0")._enabled
    assert vesta.amp.is_autocast_available("cpu") and vesta.amp.is_autocast_available("cuda")


def test_dtypes_without_autocast_warn():
    with pytest.warns(UserWarning, match="dtype is not supported"):
        mode = vesta.autocast("cpu", dtype=f32)
    with mode:
        assert (values(2, 2) @ values(2, 2)).dtype == f32


@pytest.mark.differs
@pytest.mark.parametrize("dtype", [vesta.int64, vesta.complex64, "float16", 3], ids=str)
def test_other_dtypes_are_refused(dtype):
    with pytest.raises(TypeError, match="autocast: expected dtype bfloat16 or float16"):
        vesta.autocast("cpu", dtype=dtype)


@pytest.mark.differs
def test_setters_refuse():
    with pytest.raises(TypeError, match="floating-point"):
        vesta.set_autocast_dtype("cpu", vesta.int32)
    with pytest.raises(TypeError):
        vesta.set_autocast_dtype("cpu", "float16")
    with pytest.raises(TypeError):
        vesta.set_autocast_enabled("cpu", "yes")
    with pytest.raises(RuntimeError, match="expected device type 'cpu' or 'cuda'"):
        vesta.set_autocast_enabled("meta", True)


def test_older_names_warn():
    with pytest.warns(FutureWarning, match="cpu.amp.autocast"):
        mode = vesta.cpu.amp.autocast()
    with mode:
        assert (values(2, 2) @ values(2, 2)).dtype == bf16
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # there may be no GPU
        with pytest.warns(FutureWarning, match="cuda.amp.autocast"):
            vesta.cuda.amp.autocast()
    with pytest.warns(DeprecationWarning):
        assert vesta.get_autocast_gpu_dtype() == f16
    with pytest.warns(DeprecationWarning):
        assert not vesta.is_autocast_cpu_enabled()


# ---- the cache ----


def counts():
    """Returns the (hits, casts) so far, and the contents of the cache."""
    return vesta._C._autocast_cache_counts()


@pytest.mark.differs
class TestCache:
    """A weight is cast once per context, and again after a change. PyTorch has no counter and misses changes."""

    def test_once_per_context(self):
        layer, x = nn.Linear(4, 4), values(2, 4)
        for _ in range(2):
            hits, casts, held = counts()
            assert held == 0
            with vesta.autocast("cpu"):
                for _ in range(3):
                    layer(x)
                with vesta.autocast("cpu", enabled=False):
                    pass
                layer(x)
                assert counts() == (
                    hits + 6,
                    casts + 2,
                    2,
                )  # weight and bias; the input is not a leaf that requires grad
            assert counts()[2] == 0

    def test_off(self):
        layer, x = nn.Linear(4, 4), values(2, 4)
        before = counts()
        with vesta.autocast("cpu", cache_enabled=False):
            layer(x), layer(x)
        assert counts() == before

    def test_dtypes_are_kept_apart(self):
        w = values(3, 3, requires_grad=True)
        with vesta.autocast("cpu", bf16):
            assert (w @ w).dtype == bf16
            with vesta.autocast("cpu", f16):
                assert (w @ w).dtype == f16
            before = counts()
            assert (w @ w).dtype == bf16
            assert counts()[1] == before[1]

    def test_first_use_without_recording(self):
        w, x = values(3, 3, requires_grad=True), values(3, 3)
        with vesta.autocast("cpu"):
            with vesta.no_grad():
                assert not (x @ w).requires_grad
            y = x @ w
            with vesta.no_grad():
                assert not (x @ w).requires_grad
        y.sum().backward()
        assert w.grad is not None

    def test_first_use_in_inference_mode(self):
        w, x = values(3, 3, requires_grad=True), values(3, 3)
        with vesta.autocast("cpu"):
            with vesta.inference_mode():
                x @ w
            (x @ w).sum().backward()
        assert w.grad is not None

    def test_a_leaf_that_is_written(self):
        w, x = values(3, 3, requires_grad=True), values(3, 3)
        with vesta.autocast("cpu"):
            first = x @ w
            with vesta.no_grad():
                w.mul_(2)
            assert vesta.equal(x @ w, first * 2)
            w.data = w.detach() * 2
            assert vesta.equal(x @ w, first * 4)

    def test_a_step_inside_of_the_context(self):
        w, x = values(3, 3, requires_grad=True), values(3, 3)
        optimizer = vesta.optim.SGD([w], lr=0.5)
        with vesta.autocast("cpu"):
            first = x @ w
            first.sum().backward()
            optimizer.step()
            assert not vesta.equal(x @ w, first)

    def test_nothing_is_left(self):
        before = vesta._C._live_tensors()
        for _ in range(3):
            layer = nn.Linear(4, 4)
            with vesta.autocast("cpu"):
                layer(values(2, 4)).sum().backward()
            del layer
        assert vesta._C._live_tensors() == before

    def test_switched_on_without_a_context_nothing_is_kept(self):
        w = values(3, 3, requires_grad=True)
        vesta.set_autocast_enabled("cpu", True)
        try:
            w @ w
        finally:
            vesta.set_autocast_enabled("cpu", False)
        assert counts()[2] == 0

    def test_clear(self):
        w = values(3, 3, requires_grad=True)
        with vesta.autocast("cpu"):
            w @ w
            assert counts()[2] == 1
            vesta.clear_autocast_cache()
            assert counts()[2] == 0

    def test_a_thread_that_ends_inside_a_context(self):
        def leave():
            vesta.autocast("cpu").__enter__()
            w = values(3, 3, requires_grad=True)
            w @ w

        before = vesta._C._live_tensors()
        thread = threading.Thread(target=leave)
        thread.start()
        thread.join()
        assert counts()[2] == 0
        give_up = time.monotonic() + 10  # join() returns before the thread's own storage is destroyed
        while vesta._C._live_tensors() > before and time.monotonic() < give_up:
            time.sleep(0.001)


# ---- custom functions ----


def make_function(cast_inputs=None):
    class Product(vesta.autograd.Function):
        seen = []

        @staticmethod
        @vesta.amp.custom_fwd(device_type="cpu", cast_inputs=cast_inputs)
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            y = a @ b
            Product.seen.append((vesta.is_autocast_enabled("cpu"), a.dtype, y.dtype))
            return y

        @staticmethod
        @vesta.amp.custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            a, b = ctx.saved_tensors
            Product.seen.append((vesta.is_autocast_enabled("cpu"), (a.float() @ b.float()).dtype))
            return grad @ b.t().to(grad.dtype), a.t().to(grad.dtype) @ grad

    return Product


def test_custom_function_keeps_the_state():
    fn, a, b = make_function(), values(2, 2, requires_grad=True), values(2, 2, requires_grad=True)
    with vesta.autocast("cpu"):
        y = fn.apply(a, b)
    y.sum().backward()
    assert fn.seen == [(True, f32, bf16), (True, bf16)]
    assert a.grad.dtype == f32


def test_custom_function_casts_its_inputs():
    fn = make_function(f32)
    a, b = values(2, 2, dtype=bf16, requires_grad=True), values(2, 2, requires_grad=True)
    with vesta.autocast("cpu"):
        y = fn.apply(a, b)
        y.sum().backward()
    assert fn.seen == [(False, f32, f32), (False, f32)]
    assert a.grad.dtype == bf16 and b.grad.dtype == f32
    outside = make_function(f32)
    with pytest.raises(RuntimeError):
        outside.apply(a, b)  # no cast where autocast is off: the dtypes differ


# ---- CUDA: a real device, or the emulated one ----


def needs(fn, *args):
    """Runs an op on CUDA; returns None if this build has no kernel for it yet."""
    try:
        return fn(*args)
    except NotImplementedError as error:
        assert "no CUDA kernel" in str(error)
        return None


class TestCuda:
    """PyTorch's table of autocast for CUDA."""

    @pytest.fixture(autouse=True)
    def device(self):
        if not has_cuda():
            pytest.skip("needs a CUDA device, or the emulated one")

    def test_pointwise_rows(self):
        x = values(4, 4, dtype=f16, device="cuda")
        with vesta.autocast("cuda"):
            for name in ("exp", "log", "reciprocal", "pow", "pow_tensor", "pow_of_number"):
                assert FLOAT32_ON_CUDA[name](x).dtype == f32, name
            for name in ("add", "mul", "relu", "sqrt", "tanh"):
                assert UNTOUCHED[name](x).dtype == f16, name
            assert x.clone().exp_().dtype == f16

    def test_float32_rows(self):
        x = values(4, 4, dtype=f16, device="cuda")
        with vesta.autocast("cuda"):
            for name, fn in {**FLOAT32_ON_CUDA, **LOSSES}.items():
                result = needs(fn, x)
                assert result is None or result.dtype == f32, name
            result = needs(lambda: x.sum(dtype=f16))
            assert result is None or result.dtype == f16
            result = needs(lambda: x.softmax(1, dtype=f16))
            assert result is None or result.dtype == f16

    def test_products(self):
        for dtype in LOWER:
            with vesta.autocast("cuda", dtype):
                for name, fn in PRODUCTS.items():
                    result = needs(fn, values(4, 4, device="cuda"))
                    assert result is None or result.dtype == dtype, name

    def test_widest(self):
        x, y = values(4, dtype=f16, device="cuda"), values(4, device="cuda")
        i = vesta.tensor([0, 1, 2, 3]).to("cuda")
        with vesta.autocast("cuda"):
            for fn in (
                lambda: vesta.cat([x, y]),
                lambda: vesta.index_put(x, [i], y),
                lambda: vesta.scatter_add(x, 0, i, y),
                lambda: vesta.atan2(x, y),
            ):
                result = needs(fn)
                assert result is None or result.dtype == f32

    def test_devices_have_modes_of_their_own(self):
        c, g = values(2, 2), values(2, 2, dtype=f16, device="cuda")
        with vesta.autocast("cuda"):
            assert (c @ c).dtype == f32
            assert vesta.is_autocast_enabled() and not vesta.is_autocast_enabled("cpu")
            with vesta.autocast("cpu"):
                assert (c @ c).dtype == bf16
                assert g.exp().dtype == f32
        with vesta.autocast("cpu"):
            assert g.exp().dtype == f16


def test_cuda_without_a_device_warns():
    if has_cuda():
        assert vesta.autocast("cuda")._enabled
        return
    with pytest.warns(UserWarning, match="CUDA is not available"):
        mode = vesta.autocast("cuda")
    with mode:
        assert not vesta.is_autocast_enabled("cuda")


RECURRENT = {
    "lstm": (nn.LSTM, {}, {"cpu": (bf16, bf16, bf16), "cuda": (bf16, bf16, bf16)}),
    "lstm with a projection": (nn.LSTM, {"proj_size": 3}, {"cpu": (bf16, bf16, f32), "cuda": (bf16, bf16, bf16)}),
    "gru": (nn.GRU, {}, {"cpu": (f32, f32), "cuda": (bf16, bf16)}),
    "rnn": (nn.RNN, {}, {"cpu": (bf16, bf16), "cuda": (bf16, bf16)}),
}
CELLS = {nn.LSTMCell: (f32, f32), nn.GRUCell: (f32,), nn.RNNCell: (bf16,)}


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=with_cuda)])
@pytest.mark.parametrize("name", RECURRENT)
def test_recurrent_networks_return_pytorchs_dtypes(name, device):
    make, options, wanted = RECURRENT[name]
    vesta.manual_seed(2)
    layer = make(4, 5, num_layers=2, bidirectional=True, **options).to(device)
    x = vesta.randn(3, 2, 4).to(device).requires_grad_()
    with vesta.autocast(device, bf16):
        y, last = layer(x)
        narrow = layer(x.to(bf16))[0]
    states = last if isinstance(last, tuple) else (last,)
    assert (y.dtype, *(s.dtype for s in states)) == wanted[device]
    exact, _ = layer(x)
    close(y, exact, 0.05)
    close(narrow, exact, 0.05)
    y.float().sum().backward()
    assert x.grad.dtype == f32 and all(p.grad.dtype == f32 for p in layer.parameters())


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=with_cuda)])
@pytest.mark.parametrize("make", CELLS)
def test_recurrent_cells_return_pytorchs_dtypes(make, device):
    cell = make(4, 5).to(device)
    x = vesta.randn(2, 4).to(device)
    with vesta.autocast(device, bf16):
        states = cell(x)
    states = states if isinstance(states, tuple) else (states,)
    assert tuple(s.dtype for s in states) == (CELLS[make] if device == "cpu" else (bf16,) * len(states))
    for got, want in zip(states, cell(x) if len(states) == 2 else (cell(x),)):
        close(got, want, 0.05)


def test_a_recurrent_network_still_refuses_another_dtype_outside_of_autocast():
    with vesta.autocast("cpu", enabled=False), pytest.raises(ValueError, match="RNN input dtype"):
        nn.LSTM(4, 5)(vesta.randn(3, 2, 4, dtype=bf16))
