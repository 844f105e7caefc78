"""The gradient of an activation as the epilogue of the product that the layer behind it computes, and when each runs
by itself: where something sees what lies between, and where the library has no such product."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cuda_fakes
import pytest
import vesta
import vesta.nn.functional as F
from cuda_fakes import FAKES, needs_device, needs_fakes
from recorded import recorded

PRELUDE = (
    cuda_fakes.PRELUDE
    + """
def same(got, want, rtol):
    got, want = got.detach().cpu().double().numpy(), want.detach().cpu().double().numpy()
    np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * max(1, np.abs(want).max(initial=0)))
"""
)

GELU = """
def step(x, w1, b1, w2, activation, seen):
    leaves = [t.detach().requires_grad_() for t in (x, w1, b1, w2)]
    x, w1, b1, w2 = leaves
    h = activation(F.linear(x, w1, b1))
    if seen: h.register_hook(lambda g: None)
    y = F.linear(h, w2)
    before = fake.fake_activation_gradients(), launches()
    grads = vesta.autograd.grad(y, leaves, made(*y.shape).to(y.device, y.dtype))
    return grads, fake.fake_activation_gradients() - before[0], launches() - before[1]
tanh = lambda t: F.gelu(t, approximate="tanh")
for dtype, rtol in (("float32", 1e-5), ("float16", 2e-3), ("bfloat16", 1e-2), ("float64", 1e-12)):
    for shape, width in (((5, 12), 16), ((2, 3, 12), 24), ((12,), 8), ((5, 12), 13), ((0, 12), 16)):
        operands = [made(*s, dtype=dtype) for s in (shape, (width, 12), (width,), (9, width))]
        for activation in (tanh, F.gelu, F.relu, lambda t: F.relu(t, inplace=True)):
            want, *_ = step(*operands, activation, False)
            apart, none, more = step(*[t.cuda() for t in operands], activation, True)
            got, joined, fewer = step(*[t.cuda() for t in operands], activation, False)
            expected = (EXPECTED and activation is tanh and dtype in ("float16", "bfloat16") and width % 8 == 0
                        and 0 not in shape)
            assert (joined, none) == (expected, 0), (dtype, shape, width, joined)
            assert more - fewer == expected, (dtype, shape, width, more, fewer)  # a pass over the gradient
            for a, b, c in zip(want, got, apart):
                same(b, a, rtol)
                if not expected: assert vesta.equal(b, c)
"""


@needs_fakes
def test_the_gradient_of_gelu_is_the_epilogue_of_the_layer_behind() -> None:
    cuda_fakes.check(PRELUDE + "EXPECTED = True" + GELU, FAKES)
    cuda_fakes.check(PRELUDE + "EXPECTED = True" + GELU, FAKES, VESTA_EMULATION_SCHEDULE="random")
    out = cuda_fakes.check(PRELUDE + "EXPECTED = False" + GELU, FAKES, FAKE_CUBLAS_LT="plain")
    assert "cuBLASLt" not in out  # refused, without a warning
    older = {"VESTA_EMULATION_CAPABILITY": "80", "VESTA_EMULATION_ARCHITECTURES": "80"}
    cuda_fakes.check(PRELUDE + "EXPECTED = False" + GELU, FAKES, **older)


CHAIN = """
allow = vesta.backends.cuda.matmul
def step(net, x, apart, *more):
    x = x.detach().requires_grad_()
    hooks = [m.register_forward_hook(lambda *_: None) for m in net] if apart == "forward" else []
    h, middles = x, []
    if apart == "backward":
        for i in range(0, len(net), 2):
            h = net[i : i + 2](h)
            h.register_hook(lambda g: None)
    else:
        h = net(x)
    for hook in hooks: hook.remove()
    before = fake.fake_activation_gradients(), fake.fake_activations()
    grads = vesta.autograd.grad(h, [x, *net.parameters()], made(*h.shape).to(h.device, h.dtype), *more)
    return [h, *grads], fake.fake_activation_gradients() - before[0]
for dtype, rtol in (("float32", 1e-5), ("float16", 5e-3), ("bfloat16", 4e-2)):
    for layer in (nn.ReLU, lambda: nn.ReLU(inplace=True), lambda: nn.GELU("tanh")):
        for sizes in ((12, 16, 24, 8), (12, 136, 8, 8), (12, 7, 257, 8)):
            for allowed in (False, True):
                allow.allow_relu_epilogue = allowed
                vesta.manual_seed(0)
                a, b, c, d = sizes
                net = nn.Sequential(nn.Linear(a, b), layer(), nn.Linear(b, c, bias=False), layer(), nn.Linear(c, d))
                net = net.to(getattr(vesta, dtype))
                x = made(6, 12, dtype=dtype)
                want, _ = step(net.cpu(), x, None)
                net.cuda()
                got, joined = step(net, x.cuda(), None)
                apart, none = step(net, x.cuda(), "backward")
                is_relu = isinstance(net[1], nn.ReLU)
                fits = sum(n % 8 == 0 for n in (b, c))
                assert joined == (2 * allowed if is_relu else fits * (dtype != "float32")), (dtype, sizes, joined)
                assert none == 0
                for u, v, w in zip(want, got, apart):
                    same(v, u, rtol)
                    if is_relu: assert vesta.equal(v, w), (dtype, sizes)
"""


@needs_fakes
def test_a_chain_of_layers_joins_both_ways() -> None:
    """Layers that ran with their activation as one product, too; relu with the same bits."""
    cuda_fakes.check(PRELUDE + CHAIN, FAKES)
    cuda_fakes.check(PRELUDE + CHAIN, FAKES, VESTA_EMULATION_SCHEDULE="random")


@needs_fakes
def test_relu_in_the_product_hides_no_gradient() -> None:
    """A sum of zero has no slope, an infinite gradient stays, and where relu is zero a NaN from behind is."""
    cuda_fakes.check(
        PRELUDE
        + """
vesta.backends.cuda.matmul.allow_relu_epilogue = True
w1 = vesta.eye(3).cuda().requires_grad_()
x = vesta.tensor([[1.0, 0.0, -1.0], [2.0, -0.0, -2.0]]).cuda().requires_grad_()
h = vesta._C._private._linear_activation(x, w1, None, False)
y = F.linear(h, vesta.eye(3).cuda().requires_grad_())
g = vesta.tensor([[1.0, 5.0, 7.0], [float("inf"), 2.0, 3.0]]).cuda()
of_x, = vesta.autograd.grad(y, x, g, retain_graph=True)
assert fake.fake_activation_gradients() == 1
assert of_x[0].tolist() == [1, 0, 0] and of_x[1, 0].item() == float("inf"), of_x
g = vesta.tensor([[1.0, float("nan"), 7.0], [3.0, 2.0, 3.0]]).cuda()
of_h, = vesta.autograd.grad(y, h, g, retain_graph=True)
assert fake.fake_activation_gradients() == 1 and of_h[0].isnan().all()
""",
        FAKES,
    )


def gelu(t: Any) -> Any:
    return F.gelu(t, approximate="tanh")


class Net:
    """Two linear layers of bfloat16 and what lies between them."""

    def __init__(self, between: Callable[[Any], Any] = gelu) -> None:
        vesta.manual_seed(5)
        self.x, self.w1, self.w2 = (
            vesta.randn(s).bfloat16().cuda().requires_grad_() for s in ((4, 8), (16, 8), (8, 16))
        )
        self.h = between(F.linear(self.x, self.w1))
        self.y = F.linear(self.h, self.w2)
        self.given = vesta.randn(4, 8).bfloat16().cuda()
        self.leaves = [self.x, self.w1, self.w2]

    def gradients(self, *more: Any, **options: Any) -> list[Any]:
        return list(vesta.autograd.grad(self.y, [*self.leaves, *more], self.given, **options))


def joined(function: Callable[[], Any]) -> tuple[Any, int]:
    """Returns what a function returns, and how many layers computed the gradient of an activation before them."""
    return recorded(function, "_linear_backward_activation")


def near(a: list[Any], b: list[Any]) -> bool:
    return all(vesta.allclose(x.float(), y.float(), rtol=2e-2, atol=2e-2) for x, y in zip(a, b))


@needs_device
def test_what_sees_the_middle_keeps_gradients_apart() -> None:
    want, count = joined(Net().gradients)
    assert count == 1
    seen: list[Any] = []

    def count_of(net: Net, *more: Any, **options: Any) -> int:
        got, count = joined(lambda: net.gradients(*more, **options))
        assert near(got[:3], want)
        return count

    net = Net()
    net.h.register_hook(seen.append)
    assert count_of(net) == 0 and len(seen) == 1 and seen[0].shape == (4, 16)
    net = Net()
    net.h.retain_grad()
    assert count_of(net) == 0 and net.h.grad is not None and vesta.equal(net.h.grad, seen[0])
    net = Net()
    got, count = joined(lambda: net.gradients(net.h))
    assert count == 0 and vesta.equal(got[3], seen[0])
    net = Net()
    net.h.grad_fn.register_hook(lambda *_: None)
    assert count_of(net) == 0
    net = Net()
    net.y.grad_fn.register_hook(lambda *_: None)  # which sees what the layer behind returns
    assert count_of(net) == 0
    net = Net()
    net.h.grad_fn.register_prehook(lambda *_: None)
    assert count_of(net) == 0
    assert count_of(Net(), create_graph=True) == 0
    with vesta.autograd.detect_anomaly(check_nan=False):
        assert count_of(Net()) == 0
    net = Net()
    net.y = net.y + net.h[:, :8] * 0  # two gradients meet
    assert joined(net.gradients)[1] == 0
    net = Net()
    assert joined(lambda: vesta.autograd.grad(net.y, net.w2, net.given))[1] == 0  # nobody wants what is before
    for between in (F.gelu, F.relu, lambda t: gelu(t).view(4, 16), lambda t: gelu(t) * 2):
        assert joined(Net(between).gradients)[1] == 0
    assert count_of(Net()) == 1


@needs_device
def test_a_joined_gradient_is_released_as_others() -> None:
    net = Net()
    first, count = joined(lambda: net.gradients(retain_graph=True))
    second, again = joined(net.gradients)
    assert (count, again) == (1, 1) and all(vesta.equal(a, b) for a, b in zip(first, second))
    with pytest.raises(RuntimeError, match="second time"):
        net.gradients()
    net = Net()
    vesta.autograd.grad(net.h, net.x, vesta.ones_like(net.h))  # releases what is before the layer
    with pytest.raises(RuntimeError, match="GeluBackward|_GeluTanhBackward|second time"):
        net.gradients()
    net = Net()
    with vesta.no_grad():
        net.w2.add_(1)
    with pytest.raises(RuntimeError, match="linear"):
        net.gradients()


@needs_device
def test_saved_tensor_hooks_unpack_once() -> None:
    packed: list[Any] = []
    unpacked: list[Any] = []

    def pack(t: Any) -> int:
        packed.append(t)
        return len(packed) - 1

    def unpack(i: int) -> Any:
        unpacked.append(i)
        return packed[i]

    want = Net().gradients()
    with vesta.autograd.graph.saved_tensors_hooks(pack, unpack):
        net = Net()
    got, count = joined(net.gradients)
    assert count == 1 and sorted(unpacked) == list(range(len(packed)))
    assert all(vesta.equal(a, b) for a, b in zip(got, want))


@needs_device
def test_a_gradient_on_another_stream_runs_apart() -> None:
    net = Net(lambda t: t)
    vesta.cuda.synchronize()
    stream = vesta.cuda.Stream()
    with vesta.cuda.stream(stream):
        h = gelu(F.linear(net.x, net.w1))
    vesta.cuda.current_stream().wait_stream(stream)
    y = F.linear(h, net.w2)
    got, count = joined(lambda: vesta.autograd.grad(y, net.leaves, net.given))
    assert count == 0 and near(list(got), Net().gradients())


@pytest.mark.differs
@needs_device
def test_a_hook_that_comes_too_late_is_refused() -> None:
    """One that a hook adds during the run: it sees the gradient, or learns that it was not computed by itself."""
    seen: list[Any] = []
    for late in (False, True):
        net = Net()
        p = vesta.ones(2).cuda().requires_grad_()

        def add(_: Any, net: Net = net) -> None:
            net.h.grad_fn.register_prehook(lambda g: seen.append(g))

        if not late:  # nodes that were made last run first
            side = p * 1
            y = net.y
        else:
            side = p * 1
            y = F.linear(net.h, net.w2)
        side.register_hook(add)
        total = y.float().sum() + side.sum()
        if late:
            with pytest.raises(RuntimeError, match="a hook was added while a backward runs"):
                total.backward()
        else:
            assert joined(total.backward)[1] == 0 and len(seen) == 1


def test_the_private_op_is_its_parts() -> None:
    """On any device, recorded too."""
    private = vesta._C._private._linear_backward_activation
    for where in ("cpu", "cuda") if vesta.cuda.is_available() else ("cpu",):
        for use_gelu, activation in ((False, F.relu), (True, gelu)):
            vesta.manual_seed(2)
            g, w, x = (vesta.randn(s, dtype=vesta.float64).to(where).requires_grad_() for s in ((3, 4), (4, 5), (3, 5)))
            used = x if use_gelu else activation(x).detach()
            got = private(g, w, used, use_gelu)
            want = vesta.autograd.grad(activation(x), x, g @ w, create_graph=True)[0]
            assert vesta.allclose(got, want) and got.requires_grad
            operands = (g, w, x) if use_gelu else (g, w)
            pairs = zip(*(vesta.autograd.grad(t.square().sum(), operands) for t in (got, want)))
            assert all(vesta.allclose(a, b) for a, b in pairs)
    one = vesta.ones(2, 3)
    for used in (vesta.ones(3), vesta.ones(2, 2), one.double()):
        with pytest.raises(ValueError, match="expected float32 of shape .2, 3., got"):
            private(vesta.ones(2, 4), vesta.ones(4, 3), used, True)
    with pytest.raises(NotImplementedError, match="floats"):
        private(vesta.ones(2, 2).int(), vesta.ones(2, 2).int(), vesta.ones(2, 2).int(), False)
