"""The tape: what backward computes, keeps and refuses, and that deep graphs need no stack."""

from __future__ import annotations

import gc
import math
import threading
import weakref

import numpy as np
import op_db_check as check
import pytest
import vesta
from op_db_check import DEVICES
from sanitized import SANITIZED
from vesta import autograd


def leaf(*values: float, dtype=None):
    return vesta.tensor(list(values), dtype=dtype or vesta.float64, requires_grad=True)


def values(tensor) -> list:
    return tensor.detach().tolist()


# ---- leaves, accumulation, identity ----


def test_backward_accumulates_into_leaves() -> None:
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    assert values(x.grad) == [2.0, 4.0]
    (x * 3).sum().backward()
    assert values(x.grad) == [5.0, 7.0]
    x.grad = None
    (x * 3).sum().backward()
    assert values(x.grad) == [3.0, 3.0]


def test_grad_keeps_its_identity() -> None:
    """``t.grad`` is one object until it is replaced, and later backward passes add into it in place."""
    x = leaf(1.0)
    assert x.grad is None
    x.sum().backward()
    first = x.grad
    assert x.grad is first
    first.note = "kept"
    x.sum().backward()
    assert x.grad is first and values(first) == [2.0] and x.grad.note == "kept"


def test_grad_is_never_an_alias() -> None:
    """A gradient has its own memory: it is neither another leaf's gradient nor the tensor that was passed in."""
    x, y, g = leaf(1.0, 2.0), leaf(3.0, 4.0), vesta.ones(2, dtype=vesta.float64)
    (x + y).backward(g)
    x.grad.mul_(10)
    assert values(y.grad) == [1.0, 1.0] and values(g) == [1.0, 1.0]


def test_is_leaf_and_grad_fn() -> None:
    x = leaf(1.0)
    y = x * 2
    assert x.is_leaf and x.grad_fn is None and not y.is_leaf and y.grad_fn is not None
    assert y.grad_fn is y.grad_fn
    assert not y.detach().requires_grad and y.detach().is_leaf
    plain = vesta.ones(2)
    assert plain.is_leaf and (plain * 2).is_leaf and (plain * 2).grad_fn is None


def test_a_number_before_a_tensor_is_the_second_operand() -> None:
    x = vesta.ones(2, requires_grad=True)
    y = x.exp()
    for z in (2 * y, 2 + y, y * 2, y + 2):
        assert z.grad_fn.next_functions[0][0] is y.grad_fn and z.grad_fn.next_functions[1][0] is None
    for z in (2.5 * vesta.tensor([1, 2]), 2.5 + vesta.tensor([1, 2])):
        assert z.dtype == vesta.float32
    (2 * y + 1).sum().backward()
    assert vesta.equal(x.grad, 2 * y)


def test_grad_fn_names_and_edges() -> None:
    """Nodes name their op and lead to the nodes that made their inputs."""
    x = leaf(1.0)
    y = x.exp()
    z = y.sum()
    assert "Exp" in z.grad_fn.next_functions[0][0].name() and "Sum" in z.grad_fn.name()
    assert z.grad_fn.next_functions[0][0] is y.grad_fn
    accumulate = y.grad_fn.next_functions[0][0]
    assert "AccumulateGrad" in accumulate.name() and accumulate.variable is x


def test_retain_grad() -> None:
    x = leaf(2.0)
    y = x * 3
    y.retain_grad()
    y.retain_grad()
    assert y.retains_grad and not x.retains_grad
    (y * y).sum().backward()
    assert values(y.grad) == [12.0] and values(x.grad) == [36.0]
    with pytest.raises(RuntimeError, match="(?i)requires_?.?grad"):
        vesta.ones(1).retain_grad()


def test_setting_grad_is_checked() -> None:
    """A gradient has its tensor's shape, dtype and device."""
    x = leaf(1.0, 2.0)
    x.grad = vesta.ones(2, dtype=vesta.float64)
    for wrong in (vesta.ones(3, dtype=vesta.float64), vesta.ones(2, dtype=vesta.float32)):
        with pytest.raises(RuntimeError):
            x.grad = wrong
    for wrong in (1.0, "text", x):
        with pytest.raises((TypeError, RuntimeError)):
            x.grad = wrong
    assert values(x.grad) == [1.0, 1.0]


def test_requires_grad_switches() -> None:
    x = vesta.ones(2)
    assert x.requires_grad_() is x and x.requires_grad
    x.requires_grad = False
    assert not x.requires_grad
    y = x.requires_grad_() * 2
    with pytest.raises(RuntimeError, match="leaf|leaves"):
        y.requires_grad_(False)


# ---- requirements of backward ----


def test_non_scalar_backward_needs_a_gradient() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="scalar"):
        (x * 2).backward()
    (x * 2).backward(vesta.tensor([1.0, 10.0], dtype=vesta.float64))
    assert values(x.grad) == [2.0, 20.0]
    with pytest.raises(RuntimeError, match="shape"):
        (x * 2).backward(vesta.ones(3, dtype=vesta.float64))


def test_backward_without_a_graph() -> None:
    with pytest.raises(RuntimeError, match="grad"):
        vesta.ones(()).backward()
    with pytest.raises(RuntimeError, match="grad"):
        autograd.grad(vesta.ones(()), leaf(1.0))


def test_second_backward_names_the_cause() -> None:
    """The first backward frees the saved tensors; the error of the second says so and names the solution."""
    x = leaf(1.0, 2.0)
    y = (x.exp() * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match="second time") as caught:
        y.backward()
    assert "retain_graph" in str(caught.value)
    z = (x + 1).sum()  # nothing saved: a second pass is possible
    z.backward()
    z.backward()


def test_backward_frees_what_was_saved() -> None:
    x = leaf(1.0)
    before = vesta._C._live_tensors()
    y = x.exp().tanh().sum()
    y.backward()
    x.grad = None
    gc.collect()
    assert vesta._C._live_tensors() <= before + 1  # y itself


def test_backward_with_inputs() -> None:
    """``inputs=`` accumulates into the listed leaves alone, also into one that is not a leaf."""
    x, y = leaf(2.0), leaf(3.0)
    product = x * y
    (product * product).sum().backward(inputs=[x], retain_graph=True)
    assert values(x.grad) == [36.0] and y.grad is None
    (product * product).sum().backward(inputs=[product])
    assert values(product.grad) == [12.0] and y.grad is None
    with pytest.raises(RuntimeError, match="empty"):
        (x * 2).sum().backward(inputs=[])


def test_backward_of_several_roots() -> None:
    x = leaf(1.0, 2.0)
    autograd.backward([(x * 2).sum(), x * 3], [None, vesta.ones(2, dtype=vesta.float64)])
    assert values(x.grad) == [5.0, 5.0]


def test_shared_subgraphs_count_once_each_way() -> None:
    """A diamond sums both ways and runs the shared part once."""
    x = leaf(3.0)
    calls = []
    y = x * 2
    y.register_hook(lambda g: calls.append(values(g)))
    (y * y + y).sum().backward()
    assert values(x.grad) == [26.0] and calls == [[13.0]]


# ---- autograd.grad ----


def test_grad_returns_and_does_not_accumulate() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    gx, gy = autograd.grad((x * y).sum(), (x, y))
    assert values(gx) == [3.0, 4.0] and values(gy) == [1.0, 2.0] and x.grad is None and y.grad is None
    (gx,) = autograd.grad(x * y, x, grad_outputs=vesta.tensor([1.0, 10.0], dtype=vesta.float64))
    assert values(gx) == [3.0, 40.0]


def test_grad_of_intermediates() -> None:
    x = leaf(2.0)
    y = x.exp()
    z = (y * y).sum()
    (gy,) = autograd.grad(z, y)
    check.assert_same_bits(gy, (2 * y).detach())


def test_unused_inputs() -> None:
    """An input that is not used raises, is None with allow_unused, zeros with materialize_grads."""
    x, unused = leaf(1.0), leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="allow_unused"):
        autograd.grad((x * 2).sum(), (x, unused))
    gx, none = autograd.grad((x * 2).sum(), (x, unused), allow_unused=True)
    assert values(gx) == [2.0] and none is None
    _, zeros = autograd.grad((x * 2).sum(), (x, unused), materialize_grads=True)
    assert values(zeros) == [0.0, 0.0]
    with pytest.raises(RuntimeError):
        autograd.grad((x * 2).sum(), vesta.ones(1))


def test_create_graph_to_third_order() -> None:
    """x**4 has the derivatives 4 x**3, 12 x**2, 24 x; exp is its own derivative."""
    x = leaf(1.5, -2.0)
    current = (x**4).sum()
    for order, want in enumerate((4 * x**3, 12 * x**2, 24 * x)):
        (gradient,) = autograd.grad(current, x, create_graph=True)
        assert gradient.requires_grad
        np.testing.assert_allclose(values(gradient), values(want), rtol=1e-12, err_msg=f"order {order + 1}")
        current = gradient.sum()
    y = leaf(0.3)
    current = y.exp().sum()
    for _ in range(3):
        (current,) = autograd.grad(current.sum(), y, create_graph=True)
    np.testing.assert_allclose(values(current), values(y.exp()), rtol=1e-12)


def test_backward_with_create_graph() -> None:
    x = leaf(2.0)
    (x**3).sum().backward(create_graph=True)
    first = x.grad
    assert first.requires_grad
    x.grad = None
    first.sum().backward()
    assert values(x.grad) == [12.0]
    x.grad = None


# ---- broadcasting and dtypes ----


def test_gradients_have_the_shape_of_their_input() -> None:
    for shape in ((3,), (1, 3), (2, 1), (1, 1), (), (4, 1, 1), (4, 2, 3)):
        x = vesta.ones(shape, dtype=vesta.float64, requires_grad=True)
        (x * vesta.ones(4, 2, 3, dtype=vesta.float64)).sum().backward()
        assert x.grad.shape == x.shape
        assert float(x.grad.sum()) == 24.0 and float(x.grad.reshape(-1)[0]) == 24.0 / x.numel()


def test_gradients_have_the_dtype_of_their_input() -> None:
    """Mixed operands: each gradient is cast back; the real operand of a complex product gets the real part."""
    half = vesta.ones(3, dtype=vesta.float16, requires_grad=True)
    double = vesta.full((3,), 2.0, dtype=vesta.float64, requires_grad=True)
    (half * double).sum().backward()
    assert half.grad.dtype == vesta.float16 and values(half.grad) == [2.0] * 3
    assert double.grad.dtype == vesta.float64
    real = leaf(1.0, 2.0)
    turned = (real * vesta.tensor([1j, 2 + 1j], dtype=vesta.complex128)).sum()
    (turned.abs() ** 2).backward()
    assert real.grad.dtype == vesta.float64
    np.testing.assert_allclose(values(real.grad), [6.0, 22.0], rtol=1e-12)


def test_integer_gradients_are_converted() -> None:
    x = vesta.tensor([1.0, 2.0], requires_grad=True)
    (x * 2).backward(vesta.tensor([1, 3]))
    assert x.grad is not None and x.grad.dtype == vesta.float32 and x.grad.tolist() == [2, 6]
    (grad,) = vesta.autograd.grad(x.exp().sum(), x, vesta.tensor(True))
    assert grad.dtype == vesta.float32 and vesta.equal(grad, x.detach().exp())
    z = vesta.ones(2, dtype=vesta.complex64, requires_grad=True)
    with pytest.raises(RuntimeError, match="complex"):
        z.mul(1j).backward(vesta.tensor([1, 3]))


def test_integer_operands_take_no_gradient() -> None:
    x, counts = leaf(1.0, 2.0), vesta.tensor([3, 4])
    (x * counts).sum().backward()
    assert values(x.grad) == [3.0, 4.0] and counts.grad is None


def test_cast_in_the_graph() -> None:
    x = leaf(1.0, 2.0)
    y = x.to(vesta.float32)
    assert y.requires_grad
    (y * y).sum().backward()
    assert x.grad.dtype == vesta.float64 and values(x.grad) == [2.0, 4.0]
    assert not x.to(vesta.int64).requires_grad


# ---- grad modes ----


def test_no_grad_and_enable_grad() -> None:
    x = leaf(1.0)
    assert vesta.is_grad_enabled()
    with vesta.no_grad():
        assert not vesta.is_grad_enabled() and not (x * 2).requires_grad
        with vesta.enable_grad():
            assert (x * 2).requires_grad
        assert not vesta.is_grad_enabled()
        with vesta.set_grad_enabled(True):
            assert vesta.is_grad_enabled()
    assert vesta.is_grad_enabled()

    @vesta.no_grad()
    def frozen():
        return x * 2

    assert not frozen().requires_grad and frozen.__name__ == "frozen"
    with pytest.raises(ValueError), vesta.no_grad():
        raise ValueError
    assert vesta.is_grad_enabled()


def test_grad_mode_belongs_to_the_thread() -> None:
    seen = []
    with vesta.no_grad():
        worker = threading.Thread(target=lambda: seen.append(vesta.is_grad_enabled()))
        worker.start()
        worker.join()
    assert seen == [True]


def test_no_grad_allows_writing_leaves() -> None:
    x = leaf(1.0)
    with vesta.no_grad():
        x.add_(1)
    assert values(x) == [2.0] and x.requires_grad and x.is_leaf


def test_inference_mode() -> None:
    """Tensors made in inference mode do not record there, and may not be saved for backward later."""
    x = leaf(2.0)
    with vesta.inference_mode():
        assert vesta.is_inference_mode_enabled()
        y = x * 2
        assert not y.requires_grad and y.is_inference()
        y.add_(1)
    assert not vesta.is_inference_mode_enabled() and not x.is_inference()
    with pytest.raises(RuntimeError, match="(?i)inference"):
        (x * y).sum()
    copied = y.clone()
    with pytest.raises(RuntimeError, match="(?i)inference"):
        y.add_(1)
    with pytest.raises(RuntimeError, match="(?i)inference"):
        y.requires_grad_()
    (x * copied).sum().backward()
    assert values(x.grad) == [5.0]


# ---- depth, threads, reentrancy ----


def run_on_a_small_stack(work, kibibytes: int = 512) -> None:
    """Runs ``work`` in a thread with a small stack and raises what it raised."""
    failures = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:  # raised again in the test's own thread
            failures.append(error)

    before = threading.stack_size(kibibytes * 1024)
    try:
        thread = threading.Thread(target=guarded)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    if failures:
        raise failures[0]


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "complex128", "int64", "bool"])
@pytest.mark.skipif(SANITIZED, reason="a sanitizer makes frames larger")
def test_reductions_need_no_large_stack(dtype: str) -> None:
    """128 KiB is what a thread has by default where the C library is musl."""
    x = vesta.ones(2048, 2048).to(getattr(vesta, dtype))
    real = not x.is_complex() and x.is_floating_point()

    def work() -> None:
        for dim in (0, 1, None):
            assert x.sum(dim).flatten()[0].item() == (2048**2 if dim is None else 2048)
            x.any() if dim is None else x.prod(dim)
            if real:
                assert x.var(dim).flatten()[0].item() == 0 and x.amax(dim).flatten()[0].item() == 1
                x.norm(dim=dim), x.softmax(dim or 0), x.argmax(dim)

    before = vesta.get_num_threads()
    vesta.set_num_threads(1)
    try:
        run_on_a_small_stack(work, 128)
    finally:
        vesta.set_num_threads(before)


NODES = 1_000_000


def test_a_chain_of_a_million_nodes() -> None:
    """Built, run backward and freed with 512 KiB of stack: nothing recurses over the graph."""

    def work() -> None:
        x = leaf(1.0)
        y = x
        for _ in range(NODES):
            y = y + 1
        y.sum().backward()
        assert values(x.grad) == [1.0] and values(y) == [NODES + 1.0]

    run_on_a_small_stack(work)


def test_a_long_chain_is_dropped_without_backward() -> None:
    """Dropping the last reference to a chain that saved tensors, views and in-place writes does not recurse either."""

    def work() -> None:
        x = leaf(1.0)
        y = x * 1.0
        for _ in range(100_000):
            y = (y * y).view(1)
            y.mul_(1.0)
        del y
        diamond = x
        for _ in range(50_000):
            diamond = diamond + diamond
        del diamond

    run_on_a_small_stack(work)


def test_backward_from_several_threads() -> None:
    """Independent graphs run side by side; a shared leaf gets the sum of all."""
    shared = vesta.ones(100, dtype=vesta.float64, requires_grad=True)
    failures = []

    def work(factor: float) -> None:
        try:
            mine = vesta.ones(100, dtype=vesta.float64, requires_grad=True)
            for _ in range(50):
                (shared * mine * factor).sum().backward()
            assert float(mine.grad[0]) == 50 * factor
        except BaseException as error:  # reported below, by the test's own thread
            failures.append(error)

    threads = [threading.Thread(target=work, args=(float(i),)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert values(shared.grad) == [50.0 * (0 + 1 + 2 + 3)] * 100


def test_one_graph_from_two_threads() -> None:
    """With retain_graph the same graph may run backward in two threads at once, and both count."""
    x = leaf(1.0)
    y = x
    for _ in range(200):
        y = y * 1.0
    total = y.sum()
    threads = [threading.Thread(target=lambda: total.backward(retain_graph=True)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert values(x.grad) == [2.0]


def test_reentrant_backward() -> None:
    """A backward inside a hook or a Function of another backward works, a hundred levels deep."""
    inner_leaf = leaf(3.0)

    def nested(depth: int):
        class Nested(autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, g):
                if depth:
                    with vesta.enable_grad():
                        y = leaf(1.0)
                        nested(depth - 1).apply(y).sum().backward()
                        assert values(y.grad) == [2.0]
                inner_leaf.grad = None
                with vesta.enable_grad():
                    (inner_leaf * inner_leaf).sum().backward()
                return g * 2

        return Nested

    x = leaf(1.0)
    nested(20).apply(x).sum().backward()
    assert values(x.grad) == [2.0] and values(inner_leaf.grad) == [6.0]


def test_an_error_in_backward_reaches_the_caller() -> None:
    """The exception of a hook arrives unchanged, and the engine works afterwards."""

    class Broken(Exception):
        pass

    def fail(gradient):
        raise Broken("from the hook")

    x = leaf(1.0)
    y = x * 2
    y.register_hook(fail)
    with pytest.raises(Broken, match="from the hook"):
        y.sum().backward()
    assert x.grad is None
    (x * 2).sum().backward()
    assert values(x.grad) == [2.0]


def test_graphs_die_with_their_tensors() -> None:
    """No reference keeps a graph alive once the last tensor of it is gone."""
    x = vesta.ones(10, requires_grad=True)
    before = vesta._C._live_tensors()
    y = x
    for _ in range(10):
        y = (y * y).tanh()
    watch = weakref.ref(y)
    assert vesta._C._live_tensors() >= before
    del y
    assert watch() is None and vesta._C._live_tensors() == before


def test_an_instance_of_a_function_warns_and_applies() -> None:
    class Double(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, g):
            return 2 * g

    x = leaf(3.0)
    with pytest.warns(DeprecationWarning, match=r"Double.*Call Double\.apply"):
        double = Double()
    double.apply(x).backward()
    assert values(x.grad) == [2.0]
    with pytest.raises(RuntimeError, match=r"Call Double\.apply"):
        double(x)


def test_old_names_of_a_functions_context() -> None:
    class Double(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            with pytest.warns(FutureWarning, match="mark_shared_storage"):
                ctx.mark_shared_storage((x, x))
            return 2 * x

        @staticmethod
        def backward(ctx, g):
            with pytest.warns(DeprecationWarning, match="use 'saved_tensors'"):
                (x,) = ctx.saved_variables
            return 2 * g * (x == 3.0)

    x = leaf(3.0)
    Double.apply(x).backward()
    assert values(x.grad) == [2.0]


# ---- gradcheck itself ----


class WrongSquare(autograd.Function):
    """A square whose gradient is 1% off."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2.02 * x * g


def test_gradcheck_finds_a_wrong_gradient() -> None:
    x = leaf(1.0, 2.0, 3.0)
    assert autograd.gradcheck(lambda t: t * t, (x,)) is True
    with pytest.raises(RuntimeError, match="(?i)jacobian"):
        autograd.gradcheck(WrongSquare.apply, (x,))
    assert autograd.gradcheck(WrongSquare.apply, (x,), raise_exception=False) is False
    assert autograd.gradcheck(WrongSquare.apply, (x,), eps=1e-6, atol=1.0) is True


def test_gradgradcheck_finds_a_wrong_second_gradient() -> None:
    class WrongSecond(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 3 * x.detach() * x * g  # the value is right, half of the second derivative is missing

    x = leaf(1.0, 2.0)
    assert autograd.gradcheck(WrongSecond.apply, (x,))
    assert autograd.gradgradcheck(lambda t: t**3, (x,))
    assert not autograd.gradgradcheck(WrongSecond.apply, (x,), raise_exception=False)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("fast", [False, True])
def test_gradients_of_a_device_are_checked_there(device: str, fast: bool) -> None:
    x = vesta.tensor([1.0, 2.0], dtype=vesta.float64, device=device).requires_grad_()
    assert autograd.gradcheck(lambda t: t * t, (x,), fast_mode=fast)
    assert autograd.gradgradcheck(lambda t: t**3, (x,), fast_mode=fast)
    assert autograd.gradgradcheck(lambda t: t**3, (x,), gen_non_contig_grad_outputs=True, fast_mode=fast)


def test_errors_name_an_op_as_programs_do() -> None:
    logits = vesta.ones(2, 3, requires_grad=True) * 1
    loss = vesta.nn.functional.cross_entropy(logits, vesta.tensor([0, 1]))
    logits.add_(1)
    with pytest.raises(RuntimeError, match=r"operation: cross_entropy saved its input \[2, 3\]"):
        loss.backward()


def test_gradcheck_wants_double_precision_inputs_that_record() -> None:
    with pytest.raises(ValueError):
        autograd.gradcheck(lambda t: t * 2, (vesta.ones(2, dtype=vesta.float64),))


def test_rounded_division_has_a_gradient_of_zero():
    """Both modes are step functions: the gradient exists and is 0, as is the second one."""
    for mode in ("floor", "trunc"):
        x, y = vesta.rand(5, requires_grad=True), vesta.rand(5, requires_grad=True)
        r = vesta.div(x, y, rounding_mode=mode)
        assert r.requires_grad
        grads = vesta.autograd.grad(r.sum(), [x, y], create_graph=True)
        assert [g.tolist() for g in grads] == [[0.0] * 5] * 2


@pytest.mark.parametrize("dtype", [vesta.float16, vesta.float32, vesta.float64], ids=str)
def test_steps_have_a_gradient_of_zero_without_a_history(dtype):
    """It is 0 where the incoming one is NaN, too, in the dtype and shape of the step's input, and records nothing."""
    x = vesta.tensor([[-1.5, 0.0, 2.5]], dtype=dtype, requires_grad=True)
    y = vesta.tensor([[0.5], [-2.0]], dtype=vesta.float64, requires_grad=True)
    steps = [vesta.floor, vesta.ceil, vesta.trunc, vesta.sign, vesta.round, lambda t: vesta.round(t, decimals=1)]
    steps += [lambda t: vesta.div(t, y, rounding_mode="floor"), lambda t: vesta.copysign(vesta.ones(3), t)]
    for step in steps:
        r = step(x)
        g = vesta.full(r.shape, float("nan"), dtype=r.dtype, requires_grad=True)
        (grad,) = vesta.autograd.grad(r, x, g, create_graph=True)
        assert grad.tolist() == [[0.0] * 3] and grad.dtype == dtype and not grad.requires_grad
    vesta.div(x, y, rounding_mode="trunc").sum().backward()
    assert y.grad.tolist() == [[0.0], [0.0]] and y.grad.dtype == vesta.float64
    x.detach().clone().requires_grad_().floor().mul(x).sum().backward()
    assert x.grad.tolist() == [[-2.0, 0.0, 2.0]]


@pytest.mark.differs
def test_floor_division_has_the_gradient_of_div():
    x = vesta.rand(5, requires_grad=True)
    (x // 0.3 + x).sum().backward()
    assert x.grad.tolist() == [1.0] * 5


@pytest.mark.differs
def test_the_gradient_of_a_product_of_zeros_and_infinity() -> None:
    """The product of the others: NaN where it is 0 times infinity, whether or not a dimension is given."""
    inf, nan = math.inf, math.nan
    for factors, want in [
        ([0.0, 0.0, inf], [nan, nan, 0.0]),
        ([0.0, nan, 0.0], [nan, 0.0, nan]),
        ([inf, 0.0], [0.0, inf]),
    ]:
        for dim in ((), (0,)):
            x = vesta.tensor(factors, dtype=vesta.float64, requires_grad=True)
            x.prod(*dim).backward()
            np.testing.assert_array_equal(x.grad.numpy(), want)


def test_products_of_rows_without_elements():
    """[5, 5, 0] @ [0, 5] is 25 rows of empty sums, as is a linear layer without features."""
    for f in (lambda a, b: a @ b, lambda a, b: vesta.nn.functional.linear(a, b.transpose(0, 1))):
        a, b = vesta.zeros(5, 5, 0, requires_grad=True), vesta.zeros(0, 5, requires_grad=True)
        r = f(a, b)
        assert r.tolist() == [[[0.0] * 5] * 5] * 5
        r.sum().backward()
        assert a.grad.shape == (5, 5, 0) and b.grad.shape == (0, 5)


@pytest.mark.parametrize(("sizes", "index", "want"), [((), [0, 0, 0], 3.0), ((3,), 1, [0.0, 1.0, 0.0])])
def test_gather_beside_a_number_has_a_gradient(sizes, index, want):
    x = vesta.ones(sizes, requires_grad=True)
    vesta.gather(x, 0, vesta.tensor(index)).sum().backward()
    assert x.grad.tolist() == want


def test_gather_and_scatter_of_nothing_take_an_index_of_any_dtype():
    x, none = vesta.rand(5, requires_grad=True), vesta.zeros(0, dtype=vesta.uint8)
    r = vesta.gather(x, 0, none)
    assert r.shape == (0,)
    r.sum().backward()
    assert x.grad.tolist() == [0.0] * 5
    assert vesta.zeros(3).scatter_add_(0, none, vesta.zeros(0)).tolist() == [0.0] * 3


def test_batch_norm_in_evaluation():
    """No statistics are returned; the gradient is that of the running ones, whatever a later pass writes into them."""
    x, mean, var = vesta.rand(3, 2, 4, requires_grad=True), vesta.tensor([1.0, 2.0]), vesta.tensor([3.0, 8.0])
    y, used, invstd = vesta.native_batch_norm(x, None, None, mean, var, False, 0.1, 1.0)
    assert used.shape == (0,) and invstd.shape == (0,)
    mean.zero_(), var.zero_()
    y.sum().backward()
    assert x.grad[:, 0].unique().tolist() == [0.5] and vesta.allclose(x.grad[:, 1], vesta.tensor(1 / 3))
    assert vesta.nn.functional.batch_norm(vesta.zeros(0), vesta.zeros(0), vesta.zeros(0), training=True).shape == (0,)
    with pytest.raises(vesta.Error, match="at least 2 dimensions"):
        vesta.nn.functional.batch_norm(vesta.zeros(3), vesta.zeros(3), vesta.zeros(3), training=True)


def test_a_value_on_its_bound() -> None:
    """As in PyTorch: no gradient if the bound is a number, half of it if it is a tensor; the same for NaN."""
    values = [float("nan"), -1.0, 0.0, 0.5, 1.0, 2.0]

    def slope(f) -> list[float]:
        x = vesta.tensor(values, requires_grad=True)
        f(x).sum().backward()
        return x.grad.tolist()

    zero, one = vesta.tensor(0.0), vesta.tensor(1.0)
    assert slope(lambda x: x.clamp(min=0)) == [0, 0, 0, 1, 1, 1]
    assert slope(lambda x: x.clamp(max=0)) == [0, 1, 0, 0, 0, 0]
    assert slope(lambda x: x.clamp(0, 1)) == [0, 0, 0, 1, 0, 0]
    assert slope(lambda x: x.clamp(1, 0)) == [0, 0, 0, 0, 0, 0]
    assert slope(lambda x: x.clamp(zero, one)) == [1, 0, 0.5, 1, 0.5, 0]
    assert slope(lambda x: x.clamp(one, zero)) == [1, 0, 0, 0, 0, 0]
    low, high = zero.clone().requires_grad_(), one.clone().requires_grad_()
    vesta.tensor([0.0, 1.0, 3.0]).clamp(low, high).sum().backward()
    assert low.grad.item() == 0.5 and high.grad.item() == 1.5


@pytest.mark.parametrize("dtype", [vesta.float64, vesta.float16])
def test_the_parts_of_a_tensor_that_is_read_in_pieces(dtype: vesta.dtype) -> None:
    """Gradients of select, slice and diagonal are added in place to the sum in progress: no value may change, nobody
    else's tensor may be written to, and hooks, captures and recorded gradients see what they always saw."""
    base = vesta.randn(6, 6, dtype=vesta.float64).to(dtype)
    weight = vesta.randn(6, 6, dtype=vesta.float64).to(dtype)

    def loss(x):
        y = x * 1.0
        pieces = [y[i] * weight[i] for i in range(6)] + [y[:, 1:4].sum(1), y[::2, 0].sum() * 2, y.diagonal(1).sum()]
        return sum(p.sum() for p in pieces) + (y * y).sum() + y[2].sum() + y[2].sum()

    x = base.clone().requires_grad_()
    loss(x).backward()
    expected = weight.double() + 2 * base.double()
    expected[:, 1:4] += 1
    expected[::2, 0] += 2
    expected[2] += 2
    expected += vesta.ones(6, 6, dtype=vesta.float64).tril(1).triu(1)
    vesta.testing.assert_close(
        x.grad.double(), expected, rtol=8 * vesta.finfo(dtype).eps, atol=8 * vesta.finfo(dtype).eps
    )
    first = x.grad.clone()
    seen = []
    (captured,) = vesta.autograd.grad(loss(x), x, create_graph=True)
    vesta.testing.assert_close(captured, first, rtol=8 * vesta.finfo(dtype).eps, atol=8 * vesta.finfo(dtype).eps)
    y = x * 1.0
    y.register_hook(lambda g: seen.append(g.clone()))
    kept = vesta.ones(6, 6, dtype=dtype)
    vesta.autograd.backward([y, y[0], y[1]], [kept, kept[0], kept[1]])
    assert (kept == 1).all()  # a gradient that the user gave is not the run's to write to
    assert seen[0].sum() == 6 * 6 + 12
