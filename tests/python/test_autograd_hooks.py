"""Hooks on tensors, nodes, leaves and saved tensors; custom Functions in both styles."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import vesta
from vesta import autograd


def leaf(*values: float):
    return vesta.tensor(list(values), dtype=vesta.float64, requires_grad=True)


def values(tensor) -> list:
    return tensor.detach().tolist()


# ---- tensor hooks ----


def test_tensor_hooks_run_in_order_and_may_replace() -> None:
    """Each hook sees what the one before returned; None keeps the gradient."""
    x, seen = leaf(1.0), []
    x.register_hook(lambda g: seen.append(values(g)))
    x.register_hook(lambda g: g * 10)
    x.register_hook(lambda g: seen.append(values(g)))
    (x * 3).sum().backward()
    assert seen == [[3.0], [30.0]] and values(x.grad) == [30.0]


def test_hook_handles_remove() -> None:
    x, seen = leaf(1.0), []
    handle = x.register_hook(lambda g: seen.append(1))
    (x * 3).sum().backward()
    handle.remove()
    handle.remove()
    (x * 3).sum().backward()
    with x.register_hook(lambda g: seen.append(2)):
        (x * 3).sum().backward()
    (x * 3).sum().backward()
    assert seen == [1, 2]


def test_hook_on_an_intermediate_sees_the_whole_gradient() -> None:
    x, seen = leaf(2.0), []
    y = x * 3
    y.register_hook(lambda g: seen.append(values(g)))
    (y * y + y).sum().backward()
    assert seen == [[13.0]] and values(x.grad) == [39.0]


def test_hooks_refuse_what_is_no_gradient() -> None:
    x = leaf(1.0, 2.0)
    for bad in (vesta.ones(3, dtype=vesta.float64), "text"):
        handle = x.register_hook(lambda g, bad=bad: bad)
        with pytest.raises((RuntimeError, TypeError)):
            (x * 2).sum().backward()
        handle.remove()
    with pytest.raises(RuntimeError, match="require"):
        vesta.ones(1).register_hook(lambda g: g)
    assert x.grad is None


def test_a_hook_keeps_the_dtype() -> None:
    """A gradient of a different dtype than the tensor's would be stored in .grad: it raises, like a wrong shape."""
    for make in (lambda x: x, lambda x: x * 1):
        x = leaf(1.0, 2.0)
        y = make(x)
        handle = y.register_hook(lambda g: g.float())
        with pytest.raises(RuntimeError, match="changed the type.*float64.*float32"):
            (y * 2).sum().backward()
        handle.remove()
        assert x.grad is None


def test_a_retained_gradient_is_its_own() -> None:
    """A gradient kept by retain_grad may be written like a leaf's: it is no view of another one, and not expanded."""
    x = leaf(1.0, 2.0)
    y = x + 1
    z = y + 1
    y.retain_grad(), z.retain_grad()
    seed = vesta.ones(2, dtype=vesta.float64)
    z.backward(seed, retain_graph=True)
    z.grad.mul_(5), seed.mul_(7)
    assert values(z.grad) == [5.0, 5.0] and values(y.grad) == [1.0, 1.0] == values(x.grad)
    y.grad = None
    y.sum().backward()
    assert y.grad.stride() == (1,) and values(y.grad.mul_(2)) == [2.0, 2.0]


def test_hooks_apply_to_autograd_grad() -> None:
    x = leaf(1.0)
    y = x * 2
    y.register_hook(lambda g: g * 5)
    assert values(autograd.grad(y.sum(), x)[0]) == [10.0]


def test_hook_before_an_in_place_write_belongs_to_the_old_value() -> None:
    """A hook registered before an in-place op still belongs to the old value."""
    x, seen = leaf(1.0), []
    y = x * 2
    y.register_hook(lambda g: seen.append(("before", values(g))))
    y.mul_(3)
    y.register_hook(lambda g: seen.append(("after", values(g))))
    y.sum().backward()
    assert seen == [("after", [1.0]), ("before", [3.0])] and values(x.grad) == [6.0]


# ---- post-accumulate hooks ----


def test_post_accumulate_grad_hook() -> None:
    """The hook runs once the gradient is in ``.grad``; it may step and drop the gradient at once."""
    x, y, order = leaf(1.0), leaf(2.0), []

    def step(parameter) -> None:
        order.append(values(parameter.grad))
        with vesta.no_grad():
            parameter.sub_(parameter.grad)
        parameter.grad = None

    handle = x.register_post_accumulate_grad_hook(step)
    (x * y * 3).sum().backward()
    assert order == [[6.0]] and values(x) == [-5.0] and x.grad is None and values(y.grad) == [3.0]
    handle.remove()
    (x * 2).sum().backward()
    assert values(x.grad) == [2.0]
    with pytest.raises(RuntimeError, match="leaf"):
        (x * 2).register_post_accumulate_grad_hook(step)


# ---- node hooks ----


def test_node_hooks() -> None:
    """A post hook gets (grad inputs, grad outputs), a prehook grad outputs; both may replace their arguments."""
    x, seen = leaf(2.0), []
    y = x * 5
    node = y.grad_fn
    post = node.register_hook(lambda inputs, outputs: seen.append((values(inputs[0]), values(outputs[0]))))
    pre = node.register_prehook(lambda outputs: (outputs[0] * 2,))
    y.sum().backward(retain_graph=True)
    assert seen == [([10.0], [2.0])] and values(x.grad) == [10.0]
    post.remove()
    pre.remove()
    y.sum().backward()
    assert len(seen) == 1 and values(x.grad) == [15.0]


def test_node_metadata() -> None:
    y = leaf(1.0).exp()
    y.grad_fn.metadata["origin"] = "here"
    assert y.grad_fn.metadata == {"origin": "here"}


# ---- saved-tensor hooks ----


def test_saved_tensors_hooks_pack_and_unpack() -> None:
    """Every saved tensor goes through pack; backward and double backward get it from unpack."""
    packed, unpacked = [], []

    def pack(tensor):
        packed.append(tensor.shape)
        return tensor.numpy().copy() if not tensor.requires_grad else tensor.detach().numpy().copy()

    def unpack(array):
        unpacked.append(array.shape)
        return vesta.from_numpy(array)

    x, y = leaf(1.0, 2.0), leaf(3.0, 5.0)
    with autograd.graph.saved_tensors_hooks(pack, unpack):
        z = (x * y).sum()
    assert len(packed) == 2 and not unpacked
    z.backward()
    assert len(unpacked) == 2 and values(x.grad) == [3.0, 5.0] and values(y.grad) == [1.0, 2.0]
    before = len(packed)
    (x * y).sum()
    assert len(packed) == before


@pytest.mark.differs
@pytest.mark.parametrize("change", [lambda t: t.half(), lambda t: t[:1], lambda t: vesta.cat([t, t])])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: vesta.nn.functional.layer_norm(x, x.shape[1:]),
        lambda x: vesta.softmax(x, 0),
        lambda x: vesta.nn.functional.batch_norm(x, None, None, training=True),
        lambda x: vesta.nn.functional.silu(x),
        lambda x: x @ x.mT,
    ],
)
def test_hooks_give_back_the_form_that_was_saved(change, function) -> None:
    x = vesta.randn(4, 3, 8, 8).requires_grad_()
    with autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: change(t) if t.is_floating_point() else t):
        y = function(x)
    with pytest.raises(RuntimeError, match=r"unpack returned .* it must give back the same shape, dtype and device"):
        y.sum().backward()


def test_saved_tensors_hooks_nest_and_are_checked() -> None:
    """The innermost pair is used; an unpack that does not return a tensor raises."""
    x, seen = leaf(2.0), []
    with autograd.graph.saved_tensors_hooks(lambda t: seen.append("outer") or t, lambda t: t):
        with autograd.graph.saved_tensors_hooks(lambda t: seen.append("inner") or t, lambda t: t):
            (x * x).sum()
        x.exp()
    assert set(seen[:-1]) == {"inner"} and seen[-1] == "outer"
    with autograd.graph.saved_tensors_hooks(lambda t: 3, lambda packed: packed):
        y = x.exp()
    with pytest.raises((TypeError, RuntimeError)):
        y.sum().backward()


def test_save_on_cpu_and_disable() -> None:
    x = leaf(2.0)
    with autograd.graph.save_on_cpu():
        y = x * x
    y.sum().backward()
    assert values(x.grad) == [4.0]
    hooks = autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)
    with autograd.graph.disable_saved_tensors_hooks("not here"), pytest.raises(RuntimeError, match="not here"), hooks:
        x.exp()


# ---- custom Functions ----


class Scale(autograd.Function):
    """The function x * factor, in the style where forward gets the context."""

    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        ctx.save_for_backward(x)
        return x * factor

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        assert x.requires_grad == ctx.needs_input_grad[0]
        return g * ctx.factor, None


class Product(autograd.Function):
    """The function x * y, in the style of forward and setup_context."""

    @staticmethod
    def forward(x, y):
        return x * y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return (g * y if ctx.needs_input_grad[0] else None), (g * x if ctx.needs_input_grad[1] else None)


def test_function_with_context_in_forward() -> None:
    x = leaf(1.0, 2.0)
    y = Scale.apply(x, 3.0)
    assert y.requires_grad and "Scale" in y.grad_fn.name()
    y.sum().backward()
    assert values(x.grad) == [3.0, 3.0]
    assert not Scale.apply(vesta.ones(2), 2.0).requires_grad
    with vesta.no_grad():
        assert not Scale.apply(x, 2.0).requires_grad


def test_function_with_setup_context() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    Product.apply(x, y).sum().backward()
    assert values(x.grad) == [3.0, 4.0] and values(y.grad) == [1.0, 2.0]
    x.grad = None
    Product.apply(x, vesta.ones(2, dtype=vesta.float64)).sum().backward()
    assert values(x.grad) == [1.0, 1.0]
    assert autograd.gradcheck(Product.apply, (x, y)) and autograd.gradgradcheck(Product.apply, (x, y))


def test_forward_of_a_function_does_not_record() -> None:
    recorded = []

    class Look(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            recorded.append((vesta.is_grad_enabled(), (x * 2).requires_grad))
            return x * 2

        @staticmethod
        def backward(ctx, g):
            recorded.append(vesta.is_grad_enabled())
            return g * 2

    x = leaf(1.0)
    Look.apply(x).sum().backward()
    autograd.grad(Look.apply(x).sum(), x, create_graph=True)
    assert recorded == [(False, False), False, (False, False), True]


def test_once_differentiable() -> None:
    class Once(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @autograd.function.once_differentiable
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

    x = leaf(3.0)
    (g,) = autograd.grad((Once.apply(x) * x).sum(), x, create_graph=True)
    assert values(g) == [27.0]
    with pytest.raises(RuntimeError, match="once_differentiable"):
        g.sum().backward()


def test_function_with_several_outputs() -> None:
    """A missing output gradient is zeros, or None if the Function asks for that."""
    seen = []

    def make(materialize: bool):
        class Two(autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.set_materialize_grads(materialize)
                return x * 2, x * 3

            @staticmethod
            def backward(ctx, first, second):
                seen.append(None if second is None else values(second))
                return first * 2

        return Two

    for materialize in (True, False):
        x = leaf(1.0)
        first, _ = make(materialize).apply(x)
        first.sum().backward()
        assert values(x.grad) == [2.0]
    assert seen == [[0.0], None]


def test_function_marks() -> None:
    """mark_non_differentiable outputs do not record; mark_dirty makes an in-place Function count the version."""

    class Sorted(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            places = vesta.argmax(x)
            ctx.mark_non_differentiable(places)
            return x * 1, places

        @staticmethod
        def backward(ctx, g, unused):
            return g

    class Double(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = leaf(1.0, 2.0)
    kept, places = Sorted.apply(x)
    assert kept.requires_grad and not places.requires_grad
    y = x * 1
    version = y._version
    z = Double.apply(y)
    assert z is y and y._version > version
    y.sum().backward()
    assert values(x.grad) == [2.0, 2.0]


def test_function_mistakes() -> None:
    """A wrong number of gradients, a gradient of another shape, no tensor at all: errors that name the Function."""

    def returning(result):
        class Mistaken(autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, g):
                return result(g)

        return Mistaken

    x = leaf(1.0, 2.0)
    for result in (lambda g: (g, g), lambda g: vesta.ones(3, dtype=vesta.float64)):
        with pytest.raises(RuntimeError, match="Mistaken"):
            returning(result).apply(x).sum().backward()
    with pytest.raises((RuntimeError, TypeError)):
        returning(lambda g: "text").apply(x).sum().backward()
    with pytest.raises(RuntimeError):
        Scale()(x)

    class Alone(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    with pytest.raises((NotImplementedError, RuntimeError)):
        Alone.apply(x).sum().backward()


def test_saved_tensors_of_a_function_are_version_checked() -> None:
    x = leaf(1.0)
    y = x * 2
    z = Product.apply(y, y.detach().clone())
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an in-?place"):
        z.sum().backward()


def test_save_for_backward_makes_no_cycle() -> None:
    """Saving input and output by the context keeps nothing alive once the results are gone."""

    class Exponential(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx, g):
            _, y = ctx.saved_tensors
            return g * y

    x = leaf(0.5)
    y = Exponential.apply(x)
    watch = weakref.ref(y)
    y.sum().backward()
    np.testing.assert_allclose(values(x.grad), np.exp([0.5]), rtol=1e-15)
    del y
    gc.collect()
    assert watch() is None


def test_functions_take_anything() -> None:
    """Arguments that are not tensors pass through; their gradients may be None."""

    class Anything(autograd.Function):
        @staticmethod
        def forward(ctx, x, text, things, nothing):
            assert text == "a" and things == [1, 2] and nothing is None
            return x * 2

        @staticmethod
        def backward(ctx, g):
            assert ctx.needs_input_grad == (True, False, False, False)
            return g * 2, None, None, None

    x = leaf(1.0)
    Anything.apply(x, "a", [1, 2], None).sum().backward()
    assert values(x.grad) == [2.0]


def calls_of_a_hook(function, create_graph: bool = True) -> list[int]:
    """Counts the calls of a hook on a function's result after the first and after the second differentiation."""
    x, calls = leaf(3.0, 4.0), []
    y = function(x)
    y.register_hook(lambda g: calls.append(1))
    (g,) = autograd.grad(y.sum(), x, create_graph=create_graph)
    first = len(calls)
    autograd.grad((g * g).sum(), x)
    return [first, len(calls)]


def test_a_hook_sees_the_result_as_what_is_saved() -> None:
    """Where a gradient uses the op's result, the second differentiation comes through it, and its hooks run again."""
    for function in (lambda x: x.sigmoid(), lambda x: (x * x).sum().sqrt(), lambda x: x.softmax(0), lambda x: x.exp()):
        assert calls_of_a_hook(function) == [1, 2]
    for function in (lambda x: x.norm(), lambda x: x.norm(3), lambda x: x.norm(2, 0), lambda x: x.std()):
        assert calls_of_a_hook(function) == [1, 2]
    for function in (lambda x: x.var(), lambda x: x * x, vesta.nn.functional.gelu):
        assert calls_of_a_hook(function) == [1, 1]


@pytest.mark.differs
def test_a_hook_on_a_rounded_norm_sees_the_first_differentiation_only() -> None:
    """Of 16-bit floats, norm and std are computed, and saved, in float32; what is returned is rounded."""
    for function in (lambda x: x.norm(), lambda x: x.norm(3), lambda x: x.std()):
        assert calls_of_a_hook(lambda x, function=function: function(x.half())) == [1, 1]


def test_a_hook_on_a_norm_scales_the_second_gradient() -> None:
    """The numbers: the derivative of |x| w is x w / |x|, and the hook's factor c comes in by both (c and c * c)."""
    for dim, factor in ((None, 0.5), (0, -2.0)):
        x = leaf(3.0, 4.0)
        y = x.norm() if dim is None else x.norm(2, dim)
        y.register_hook(lambda g, factor=factor: g * factor)
        (g,) = autograd.grad(y, x, create_graph=True)
        (h,) = autograd.grad(g[0], x)
        np.testing.assert_allclose(values(g), np.array([0.6, 0.8]) * factor)
        # d/dx_k of c x_0 / y is c (delta_0k / y), and through y, whose hook multiplies once more, -c c x_0 x_k / y**3
        direct, through = np.array([1 / 5, 0]), np.array([-9 / 125, -12 / 125])
        np.testing.assert_allclose(values(h), factor * direct + factor**2 * through)


def test_a_hook_after_accumulation_may_return_its_tensor():
    """``lambda p: p.add_(p.grad, alpha=-lr)`` is a step of an optimizer within backward."""
    p = vesta.zeros(2, requires_grad=True)
    p.register_post_accumulate_grad_hook(lambda p: p.add_(p.grad, alpha=-0.5))
    p.backward(vesta.tensor([1.0, 2.0]))
    np.testing.assert_array_equal(p.detach().numpy(), [-0.5, -1.0])
    q = vesta.zeros(2, requires_grad=True)
    q.register_post_accumulate_grad_hook(lambda q: q.grad)
    with pytest.raises(RuntimeError, match="should return None"):
        q.backward(vesta.ones(2))


def test_the_type_of_nodes_has_a_name():
    y = vesta.ones(1, requires_grad=True) * 2
    assert isinstance(y.grad_fn, autograd.graph.Node)


# ---- hooks of several tensors, tensors that are written to after they were saved ----


def test_a_hook_of_several_tensors_runs_once_with_all_gradients() -> None:
    a, b, c = leaf(1.0), leaf(2.0), leaf(3.0)
    seen: list = []
    tell = lambda grads: seen.append([None if g is None else values(g) for g in grads])
    handle = autograd.graph.register_multi_grad_hook([a, b, c], tell)
    (a * b * c).sum().backward()
    (a * b).sum().backward()  # c gets none: told at the end
    assert seen == [[[6.0], [3.0], [2.0]], [[2.0], [1.0], None]]
    vesta.autograd.grad((a * c).sum(), [a])
    assert len(seen) == 3
    handle.remove()
    handle.remove()
    (a * b * c).sum().backward()
    assert len(seen) == 3


def test_the_first_gradient_of_several_tensors() -> None:
    a, b = leaf(1.0), leaf(2.0)
    middle, seen = a * b, []
    autograd.graph.register_multi_grad_hook((a, middle), lambda g: seen.append(values(g)), mode="any")
    (middle * 5).sum().backward()
    assert seen == [[5.0]]
    with pytest.raises(ValueError, match="expects mode to be one of"):
        autograd.graph.register_multi_grad_hook([a], print, mode="some")


def test_a_run_that_fails_leaves_no_gradients_for_the_next_one() -> None:
    a, b, seen = leaf(1.0), leaf(2.0), []
    autograd.graph.register_multi_grad_hook([a, b], lambda grads: seen.append([values(g) for g in grads]))
    y = a * b
    failing = b.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        y.sum().backward()
    failing.remove()
    seen.clear()
    (a * b * 10).sum().backward()
    assert seen == [[[20.0], [10.0]]]


def test_saved_tensors_may_be_written_to() -> None:
    x = leaf(1.0, 2.0)
    with autograd.graph.allow_mutation_on_saved_tensors():
        y = x * 1
        z = y.exp()
        y.mul_(7)
        z.add_(3)
        z.sum().backward()
    assert np.allclose(x.grad.numpy(), np.exp([1.0, 2.0]))
    with autograd.graph.allow_mutation_on_saved_tensors() as copies:
        y = (x * x).sum()
    copies.clear()
    with pytest.raises(RuntimeError, match="has been cleared"):
        y.backward()


def test_functions_may_return_what_is_no_tensor() -> None:
    class Text(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_forward(x)
            return None if x is None else "text"

    assert Text.apply(leaf(1.0)) == "text" and Text.apply(None) is None
