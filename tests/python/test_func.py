"""vesta.func and vesta.autograd.forward_ad, held against derivatives that are known."""

import numpy as np
import pytest
import vesta
from vesta import func
from vesta.autograd import forward_ad

RNG = np.random.default_rng(5)
A = RNG.standard_normal((4, 3))
B = RNG.standard_normal(3)


def t(value):
    return vesta.tensor(value, dtype=vesta.float64)


def close(got, expected):
    np.testing.assert_allclose(got.detach().numpy(), expected, rtol=1e-12, atol=1e-12)


def test_gradients_nest_and_leave_arguments_alone():
    x = t(B)
    close(func.grad(lambda x: (x**3).sum())(x), 3 * B**2)
    close(func.grad(func.grad(func.grad(vesta.sin)))(t(0.3)), -np.cos(0.3))
    assert not x.requires_grad and x.grad is None
    (gx, gy), (value, aux) = func.grad_and_value(
        lambda x, y: ((x * y).sum(), {"twice": 2 * x}), argnums=(0, 1), has_aux=True
    )(x, t(A))
    close(gx, A.sum(0)), close(gy, np.tile(B, (4, 1))), close(value, (A * B).sum()), close(aux["twice"], 2 * B)
    assert not (gx.requires_grad or value.requires_grad or aux["twice"].requires_grad)
    tree = func.grad(lambda p: (p["w"] ** 2).sum() + p["b"][0].sum())({"w": t(A), "b": [t(B)]})
    close(tree["w"], 2 * A), close(tree["b"][0], np.ones(3))


def test_an_outer_tape_goes_through():
    w = t(B).requires_grad_()
    gradient = func.grad(lambda x: (x * w).pow(2).sum())(t(B))  # 2 x w**2
    gradient.sum().backward()
    close(w.grad, 4 * B * B)
    x = t(B).requires_grad_()
    assert func.grad(lambda x: (x * x).sum())(x).requires_grad
    with vesta.no_grad():
        gradient = func.grad(lambda x: (x * x).sum())(x)
    assert not gradient.requires_grad
    close(gradient, 2 * B)


def test_products_with_jacobians():
    output, vjp_fn = func.vjp(lambda x, y: {"a": x * y, "b": x.sum()}, t(B), t(B))
    gx, gy = vjp_fn({"a": t(B), "b": t(2.0)})
    close(output["a"], B * B), close(gx, B * B + 2), close(gy, B * B)
    close(vjp_fn({"a": t(B), "b": t(0.0)})[0], B * B)  # again
    (product, sines), found = func.jvp(lambda x, y: (x * y, x.sin()), (t(B), t(B)), (t(B), t(2 * B)))
    close(product, B * B), close(sines, np.sin(B)), close(found[0], 3 * B * B), close(found[1], np.cos(B) * B)
    output, jvp_fn = func.linearize(lambda x, y: x * y, t(B), t(B))
    close(jvp_fn(t(B), t(B)), 2 * B * B), close(output, B * B)
    inner = lambda x: func.jvp(vesta.sin, (x,), (vesta.ones_like(x),))[1]
    close(func.jvp(inner, (t(B),), (t(B),))[1], -np.sin(B) * B)
    hvp = func.jvp(func.grad(lambda x: (x**3).sum()), (t(B),), (t(B),))[1]
    close(hvp, 6 * B * B)


def test_jacobians_and_hessians():
    for jacobian in (func.jacrev, func.jacfwd):
        close(jacobian(vesta.sin)(t(B)), np.diag(np.cos(B)))
        (by_x, by_y), (none, ones) = jacobian(lambda x, y: (x @ y, y.sum()), argnums=(0, 1))(t(A), t(B))
        assert by_x.shape == (4, 4, 3) and none.shape == (4, 3)
        close(by_x, np.einsum("ik,j->ikj", np.eye(4), B)), close(by_y, A)
        close(none, np.zeros((4, 3))), close(ones, np.ones(3))
        found, aux = jacobian(lambda x: (2 * x, x), has_aux=True)(t(B))
        close(found, 2 * np.eye(3)), close(aux, B)
        close(jacobian(jacobian(lambda x: x**3))(t(B)), np.einsum("i,ij,ik->ijk", 6 * B, np.eye(3), np.eye(3)))
        assert jacobian(lambda x: x * 2)(t(np.zeros(0))).shape == (0, 0)
    close(func.hessian(lambda x: (x**3).sum())(t(B)), np.diag(6 * B))
    (aa, ab), (ba, bb) = func.hessian(lambda x, y: (x * y).pow(2).sum(), argnums=(0, 1))(t(B), t(B))
    close(aa, np.diag(2 * B * B)), close(ab, np.diag(4 * B * B)), close(ba, np.diag(4 * B * B)), close(bb, aa)


def test_vmap_maps_dimensions_and_trees():
    close(vesta.vmap(vesta.dot)(t(A), t(A)), (A * A).sum(1))
    outer = vesta.vmap(vesta.vmap(lambda a, b: a * b, in_dims=(None, 0)), in_dims=(0, None))
    close(outer(t(B), t(B)), np.outer(B, B))
    sums, running = vesta.vmap(lambda x: (x.sum(), x.cumsum(0)), in_dims=-1, out_dims=(0, 1))(t(A))
    close(sums, A.sum(0)), close(running, A.cumsum(0))
    mixed = vesta.vmap(lambda d, n: d["a"] + n * d["b"], in_dims=({"a": 0, "b": None}, None))
    close(mixed({"a": t(A), "b": t(B)}, 3), A + 3 * B)
    close(vesta.vmap(lambda x, *, k: x + k)(t(A), k=t(B)), A + B)
    assert vesta.vmap(lambda x: vesta.stack([x, x]), out_dims=1)(t(np.zeros((0, 3)))).shape == (2, 0, 3)
    x = t(A).requires_grad_()
    vesta.vmap(lambda row: (row**2).sum())(x).sum().backward()
    close(x.grad, 2 * A)
    state = t(np.zeros((4, 3)))
    vesta.vmap(lambda s, row: s.add_(row))(state, t(A))  # a write goes to the example's part
    close(state, A)


@pytest.mark.differs
def test_vmap_lets_values_decide():
    found = vesta.vmap(lambda x: x.clamp(min=0) if x.sum() > 0 else -x)(t(A))
    close(found, np.where(A.sum(1, keepdims=True) > 0, A.clip(0), -A))


def test_vmap_and_random_numbers():
    with pytest.raises(RuntimeError, match="random operation while in randomness error mode"):
        vesta.vmap(lambda x: vesta.rand(2))(t(A))
    same = vesta.vmap(lambda x: vesta.rand(5), randomness="same")(t(A))
    assert bool((same == same[0]).all())
    different = vesta.vmap(lambda x: vesta.rand(5), randomness="different")(t(A))
    assert len({tuple(row.tolist()) for row in different}) == 4


def test_gradients_for_each_example_and_ensembles():
    net = vesta.nn.Linear(3, 2).double()
    weights = {name: p.detach() for name, p in net.named_parameters()}

    def loss(weights, x, y):
        return ((func.functional_call(net, weights, (x,)) - y) ** 2).sum()

    y = RNG.standard_normal((4, 2))
    found = vesta.vmap(func.grad(loss), in_dims=(None, 0, 0))(weights, t(A), t(y))
    error = 2 * (A @ weights["weight"].numpy().T + weights["bias"].numpy() - y)
    close(found["weight"], np.einsum("no,ni->noi", error, A)), close(found["bias"], error)

    nets = [vesta.nn.Sequential(vesta.nn.Linear(3, 2), vesta.nn.BatchNorm1d(2)).double().eval() for _ in range(3)]
    parameters, buffers = func.stack_module_state(nets)
    call = lambda p, b, x: func.functional_call(nets[0], (p, b), (x,))
    together = vesta.vmap(call, in_dims=(0, 0, None))(parameters, buffers, t(A))
    for one, other in zip(together, nets):
        close(one, other(t(A)).detach().numpy())
    together.sum().backward()
    assert parameters["0.weight"].grad.shape == (3, 2, 3) and nets[0][0].weight.grad is None


def test_forward_mode():
    with forward_ad.dual_level():
        x = forward_ad.make_dual(t(B), t(2 * B))
        primal, tangent = forward_ad.unpack_dual((x * x).sum())
        close(primal, (B * B).sum()), close(tangent, 4 * (B * B).sum())
        close(forward_ad.unpack_dual(x).tangent, 2 * B)
        mixed = forward_ad.make_dual(t(B), t(B).float())
        close(forward_ad.unpack_dual(mixed * 2).tangent, 2 * B.astype("float32").astype("float64"))
        with pytest.raises(ValueError, match="Expected tangent to be floating point or complex"):
            forward_ad.make_dual(t(B), t(B).long())
        with pytest.raises(ValueError, match="expected a real tangent"):
            forward_ad.make_dual(t(B), t(B) * 1j)
        with pytest.raises(RuntimeError, match="expected a tangent of shape"):
            forward_ad.make_dual(t(B), t(A))
        for tangent in (t(B) * 1j, t(B)):  # a real one is a complex one
            z = forward_ad.make_dual(t(B) * (1 + 1j), tangent)
            close(forward_ad.unpack_dual(z * z).tangent, 2 * B * (1 + 1j) * tangent.numpy())
        assert forward_ad.unpack_dual(t(B)).tangent is None
        assert forward_ad.unpack_dual(t(B).requires_grad_() * 2).tangent is None
        layer = vesta.nn.Linear(3, 1).double()
        del layer._parameters["weight"]
        layer.weight = forward_ad.make_dual(t(B[None]), t(A[:1]))
        close(forward_ad.unpack_dual(layer(t(B))).tangent, [B @ A[0]])
        with pytest.raises(RuntimeError, match="Nested forward mode"):
            forward_ad.enter_dual_level()
    with pytest.raises(RuntimeError, match="no level exists"):
        forward_ad.make_dual(t(B), t(B))
    with pytest.raises(RuntimeError, match="exit a forward AD level"):
        forward_ad.exit_dual_level()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: func.grad(lambda x: x)(t(B)), RuntimeError, "scalar tensor, got tensor with 1 dims"),
        (lambda: func.grad(lambda x: 3.0)(t(B)), RuntimeError, "return a Tensor, got an output of type float"),
        (lambda: func.grad(lambda x: x.sum(), argnums=1)(t(B)), RuntimeError, "argnum=1, but only 1 positional"),
        (lambda: func.grad(lambda x: x.sum(), argnums=(0, 0))(t(B), t(B)), RuntimeError, "must be unique"),
        (lambda: func.grad(lambda x: x.sum(), argnums="x")(t(B)), TypeError, "int or tuple of ints, got str"),
        (lambda: func.grad(lambda x: x.sum())(vesta.tensor([1, 2])), RuntimeError, "floating point and complex"),
        (lambda: func.grad(lambda x: x.sum())("a"), ValueError, "only tensors, got str"),
        (lambda: func.grad(lambda x: x.sum(), has_aux=True)(t(B)), RuntimeError, r"tuple: \(output, aux\)"),
        (lambda: func.grad(3), TypeError, "func"),
        (lambda: func.vjp(vesta.sin, t(B))[1](t(A)), RuntimeError, r"cotangents of shape \[3\], got \[4, 3\]"),
        (lambda: func.vjp(lambda x: (), t(B)), RuntimeError, "non-empty output"),
        (lambda: func.jvp(vesta.sin, t(B), t(B)), RuntimeError, "primals to be a tuple"),
        (lambda: func.jvp(vesta.sin, (t(B),), (t(A),)), RuntimeError, r"tangents of shape \[3\], got \[4, 3\]"),
        (lambda: func.jacrev(vesta.sin, chunk_size=0), ValueError, "chunk_size"),
        (lambda: vesta.vmap(lambda x: x)(3), ValueError, "cannot vmap over non-Tensor arguments"),
        (lambda: vesta.vmap(lambda x, y: x)(t(A), t(B)), ValueError, r"same size .* got sizes \[4, 3\]"),
        (lambda: vesta.vmap(lambda x: 3)(t(A)), ValueError, "must only return Tensors"),
        (lambda: vesta.vmap(lambda x: x, in_dims=3)(t(A)), ValueError, "-2 <= in_dim < 2"),
        (lambda: vesta.vmap(lambda x: x, in_dims=(0, 0))(t(A)), ValueError, "not compatible with the structure of inp"),
        (lambda: vesta.vmap(lambda x: x, out_dims=(0, 0))(t(A)), ValueError, "not compatible with the structure of"),
        (lambda: vesta.vmap(lambda x: x, out_dims=5)(t(A)), IndexError, "dimension of the result"),
        (lambda: vesta.vmap(lambda x: x, in_dims=None)(t(A)), ValueError, "expected `in_dims` to be int or"),
        (lambda: vesta.vmap(lambda x: x, in_dims=(None,))(t(A)), ValueError, "at least one input to be mapped"),
        (lambda: vesta.vmap(lambda: 1)(), ValueError, "got no inputs"),
        (lambda: vesta.vmap(lambda x: x, randomness="no"), RuntimeError, "'error', 'different', or 'same'"),
        (lambda: func.stack_module_state([]), RuntimeError, "at least one model"),
        (lambda: func.stack_module_state([vesta.nn.ReLU(), vesta.nn.Tanh()]), RuntimeError, "same class"),
    ],
)  # fmt: skip
def test_wrong_calls(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_vmap_of_the_gradients_of_one_graph():
    """Each call goes over the graph that is recorded outside; as in PyTorch, it is freed by the last."""
    x = vesta.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * x
    rows = vesta.vmap(lambda v: vesta.autograd.grad(y, x, v)[0])(vesta.eye(3))
    np.testing.assert_array_equal(rows.numpy(), np.diag([2.0, 4.0, 6.0]))
    with pytest.raises(RuntimeError, match="second time"):
        vesta.autograd.grad(y.sum(), x)


def test_vmap_of_gradients_in_a_batch():
    x = vesta.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    rows = vesta.vmap(lambda v: vesta.autograd.grad(y, x, v, is_grads_batched=True)[0])(
        vesta.stack([vesta.eye(2), 3 * vesta.eye(2)])
    )
    np.testing.assert_array_equal(rows.numpy(), [[[2.0, 0.0], [0.0, 4.0]], [[6.0, 0.0], [0.0, 12.0]]])


def test_gradients_in_a_batch():
    x, z = vesta.tensor([1.0, 2.0], requires_grad=True), vesta.ones(1, requires_grad=True)
    y = x**3
    (rows,) = vesta.autograd.grad(y, x, vesta.eye(2), is_grads_batched=True, create_graph=True)
    np.testing.assert_array_equal(rows.detach().numpy(), [[3.0, 0.0], [0.0, 12.0]])
    assert rows.requires_grad
    rows, unused = vesta.autograd.grad(y, (x, z), (2 * vesta.eye(2),), is_grads_batched=True, allow_unused=True)
    np.testing.assert_array_equal(rows.numpy(), [[6.0, 0.0], [0.0, 24.0]])
    assert unused is None
    with pytest.raises(RuntimeError, match="first dimension"):
        vesta.autograd.grad((x * 2).sum(), x, vesta.tensor(1.0), is_grads_batched=True)


def test_offsets_in_memory_are_those_of_the_first_example():
    """As in PyTorch, which runs the function once: a view by an offset lies in its example, and not beyond it."""
    batch = vesta.arange(24.0).reshape(2, 3, 4)
    rows = batch[0]
    for of in (rows, vesta.arange(13.0)[1:].reshape(3, 4)):
        start = of.storage_offset()
        seen = vesta.vmap(lambda x, start=start: x.as_strided((2,), (1,), start + 1) + 0 * x.storage_offset())(of)
        assert seen.tolist() == of[:, 1:3].tolist()
        assert vesta.vmap(lambda x: vesta.tensor(x.storage_offset()))(of).tolist() == [start] * 3
    columns = vesta.vmap(lambda x: vesta.as_strided(x, (2,), (4,), 4), in_dims=1)(rows)
    assert columns.tolist() == rows[1:3].t().tolist()
    nested = vesta.vmap(vesta.vmap(lambda x: x[1:].as_strided((2,), (1,), 2)))(batch)
    assert nested.tolist() == batch[..., 2:].tolist()
    slopes = vesta.vmap(vesta.func.grad(lambda x: (x.as_strided((2,), (1,), 1) ** 2).sum()))(rows)
    assert slopes.tolist() == [[0.0, 2 * row[1], 2 * row[2], 0.0] for row in rows.tolist()]
    written = vesta.vmap(lambda x: vesta.as_strided_scatter(x, vesta.zeros(2), (2,), (1,), 1))(rows)
    assert written.tolist() == [[row[0], 0.0, 0.0, row[3]] for row in rows.tolist()]
    outside = vesta.vmap(lambda x: rows.as_strided((2,), (1,), 1) + x[:2] * 0)(batch[1])  # no example
    assert outside.tolist() == [[1.0, 2.0]] * 3
    for wrong in (
        lambda x: x.as_strided((5,), (1,)),
        lambda x: x.as_strided((2,), (1,), 3),
        lambda x: x[1:].as_strided((2,), (1,), 0),
        lambda x: vesta.as_strided_scatter(x, vesta.zeros(2), (2,), (1,), 3),
    ):
        with pytest.raises(RuntimeError, match="memory outside of it"):
            vesta.vmap(wrong)(rows)
    square = vesta.arange(9.0).reshape(3, 3)
    with pytest.raises(RuntimeError, match="two meanings"):
        vesta.vmap(lambda x, y: x.as_strided((1,), (1,), 1) + y)(square, square.t())
    with pytest.raises(ZeroDivisionError):
        vesta.vmap(lambda x: 1 / 0)(rows)
    assert rows[1].as_strided((2,), (1,), 0).tolist() == [0.0, 1.0]
