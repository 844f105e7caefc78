"""The gradient of an activation and that of the batch normalisation in front of it run as one where nobody sees the
gradient in between, with the bits of one after the other."""

from __future__ import annotations

from typing import Any, Callable

import pytest
import vesta
import vesta.nn.functional as F
from recorded import recorded

ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "relu": F.relu,
    "relu_": lambda z: F.relu(z, inplace=True),
    "relu6_": lambda z: F.relu6(z, inplace=True),
    "hardtanh": lambda z: F.hardtanh(z, -0.3, 0.7),
    "leaky_relu_": lambda z: F.leaky_relu(z, 0.2, inplace=True),
    "silu": F.silu,
    "hardswish": F.hardswish,
    "gelu": F.gelu,
    "gelu_tanh": lambda z: F.gelu(z, approximate="tanh"),
    "mish": F.mish,
    "tanh": vesta.tanh,
    "sigmoid": vesta.sigmoid,
    "softplus": lambda z: F.softplus(z, 2.0, 3.0),
    "hardsigmoid": F.hardsigmoid,
    "threshold": lambda z: F.threshold(z, 0.1, -1.0),
}
SHAPES = [(8, 5), (3, 4, 2), (4, 6, 7, 7), (2, 3, 40, 40), (2, 3, 4, 5, 6), (70, 2, 40, 41)]


class Net:
    """Batch normalisation and what follows."""

    def __init__(self, shape: tuple[int, ...], dtype: Any = vesta.float32, last: bool = False) -> None:
        vesta.manual_seed(3)
        self.x = vesta.randn(*shape, dtype=dtype)
        if last:
            self.x = self.x.to(memory_format=vesta.channels_last)
        self.x.requires_grad_()
        wide = vesta.float64 if dtype is vesta.float64 else vesta.float32
        self.w = vesta.randn(shape[1], dtype=wide).requires_grad_()
        self.b = vesta.randn(shape[1], dtype=wide).requires_grad_()
        self.given = vesta.randn(*shape, dtype=dtype)
        self.leaves = [self.x, self.w, self.b]

    def normalize(self, training: bool = True) -> Any:
        mean, var = vesta.zeros(self.w.shape, dtype=self.w.dtype), vesta.ones(self.w.shape, dtype=self.w.dtype)
        return F.batch_norm(self.x, mean, var, self.w, self.b, training)

    def gradients(self, y: Any, **options: Any) -> list[Any]:
        return list(vesta.autograd.grad(y, self.leaves, self.given, **options))


def joined(function: Callable[[], Any]) -> tuple[Any, int]:
    """Returns what a function returns, and how many pairs of gradients ran as one."""
    return recorded(function, "_batch_norm_activation_backward")


def apart(net: Net, activation: Callable[[Any], Any], training: bool = True) -> list[Any]:
    """Computes the gradients with a hook between the two, which sees the gradient and leaves it."""
    z = net.normalize(training)
    z.register_hook(lambda g: None)
    grads, count = joined(lambda: net.gradients(activation(z)))
    assert count == 0
    return grads


def same(a: list[Any], b: list[Any]) -> bool:
    return all(vesta.equal(s, t) and s.stride() == t.stride() for s, t in zip(a, b, strict=True))


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_bits_are_those_of_one_after_the_other(name: str, shape: tuple[int, ...]) -> None:
    for dtype in (vesta.float32, vesta.float64, vesta.bfloat16):
        for training in (True, False):
            net = Net(shape, dtype)
            got, count = joined(lambda net=net, t=training: net.gradients(ACTIVATIONS[name](net.normalize(t))))
            assert count == 1
            assert same(got, apart(net, ACTIVATIONS[name], training))


@pytest.mark.parametrize("shape", [(4, 6, 7, 7), (2, 3, 40, 40)], ids=str)
def test_layouts(shape: tuple[int, ...]) -> None:
    net = Net(shape, last=True)
    assert same(net.gradients(F.relu(net.normalize())), apart(net, F.relu))
    net = Net(shape)
    net.given = net.given.to(memory_format=vesta.channels_last)
    assert same(net.gradients(F.relu(net.normalize())), apart(net, F.relu))
    net.given = vesta.ones(()).expand(shape)
    assert same(net.gradients(F.relu(net.normalize())), apart(net, F.relu))


def test_bits_depend_on_no_thread() -> None:
    results = []
    before = vesta.get_num_threads()
    for threads in (1, 2, 3):
        vesta.set_num_threads(threads)
        try:
            net = Net((70, 2, 40, 41))
            results.append(net.gradients(F.relu(net.normalize())))
        finally:
            vesta.set_num_threads(before)
    assert same(results[0], results[1]) and same(results[0], results[2])


def test_values_that_are_not_finite() -> None:
    net = Net((4, 3, 6, 6))
    with vesta.no_grad():
        net.x[0, 0, 0, 0] = float("nan")
        net.x[1, 1, 0, 0] = float("inf")
        net.given[2, 2, 0, 0] = float("nan")
    for activation in (F.relu, F.relu6, F.silu):
        got, want = net.gradients(activation(net.normalize())), apart(net, activation)
        assert all(
            vesta.equal(a.isnan(), b.isnan()) and a.nan_to_num().equal(b.nan_to_num()) for a, b in zip(got, want)
        )


def test_whoever_looks_between_sees_the_gradient() -> None:
    net = Net((4, 3, 6, 6))
    want = apart(net, F.relu)
    slope = (F.relu(net.normalize()) > 0).to(vesta.float32) * net.given

    z = net.normalize()
    z.retain_grad()
    got, count = joined(lambda: net.gradients(F.relu(z)))
    assert count == 0 and same(got, want) and vesta.equal(z.grad, slope)

    z = net.normalize()
    (of_z, of_x), count = joined(lambda: vesta.autograd.grad(F.relu(z), [z, net.x], net.given))
    assert count == 0 and vesta.equal(of_z, slope) and vesta.equal(of_x, want[0])

    seen: list[Any] = []
    z = net.normalize()
    y = F.relu(z)
    y.grad_fn.register_hook(lambda inputs, outputs: seen.extend(inputs))
    got, count = joined(lambda: net.gradients(y))
    assert count == 0 and same(got, want) and vesta.equal(seen[0], slope)

    with vesta.autograd.detect_anomaly(check_nan=False):
        got, count = joined(lambda: net.gradients(F.relu(net.normalize())))
    assert count == 0 and same(got, want)


def test_a_hook_that_another_hook_adds_sees_the_gradient() -> None:
    net, seen = Net((4, 3, 6, 6)), []
    z = net.normalize()
    node, y = z.grad_fn, F.relu(z)
    other = net.x * 2  # made last, so its gradient runs between those of the two

    def add(gradient: Any) -> None:
        node.register_prehook(lambda g: seen.append(g[0]))

    other.register_hook(add)
    vesta.autograd.grad([y, other], net.leaves, [net.given, net.given])
    slope = (y > 0).to(vesta.float32) * net.given
    assert len(seen) == 1 and vesta.equal(seen[0], slope)


def test_a_result_of_two_readers_is_summed_before() -> None:
    net = Net((4, 3, 6, 6))
    z = net.normalize()
    got, count = joined(lambda: net.gradients(F.relu(z) + z.sigmoid()))
    assert count == 0
    z = net.normalize()
    z.register_hook(lambda g: None)
    assert same(got, net.gradients(F.relu(z) + z.sigmoid()))


def test_second_derivatives_take_one_after_the_other() -> None:
    net = Net((3, 2, 3, 2), vesta.float64)
    _, count = joined(lambda: net.gradients(vesta.tanh(net.normalize()), create_graph=True))
    assert count == 0
    assert vesta.autograd.gradgradcheck(lambda *_: vesta.tanh(net.normalize()), net.leaves)


def test_the_graph_may_run_twice_only_where_it_is_kept() -> None:
    net = Net((4, 3, 6, 6))
    y = F.relu(net.normalize())
    first = net.gradients(y, retain_graph=True)
    assert same(first, net.gradients(y))
    with pytest.raises(RuntimeError, match="a second time"):
        net.gradients(y)


def test_a_result_that_was_written_is_told_of_its_op() -> None:
    net = Net((4, 3, 6, 6))
    y = F.relu(net.normalize())
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as error:
        net.gradients(y)
    assert "ReluBackward0" in str(error.value) or "relu" in str(error.value)


def test_hooks_on_saved_tensors() -> None:
    net = Net((4, 3, 6, 6))
    want = apart(net, F.silu)
    unpacked: list[Any] = []

    def unpack(tensor: Any) -> Any:
        unpacked.append(tensor.shape)
        return tensor.clone()

    with vesta.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
        y = F.silu(net.normalize())
    got, count = joined(lambda: net.gradients(y))
    assert count == 1 and same(got, want) and unpacked.count(y.shape) == 2


@pytest.mark.parametrize("activation", [F.relu, F.elu, vesta.exp, F.silu])
def test_a_saved_tensor_is_unpacked_once(activation: Callable[[Any], Any]) -> None:
    """A hook may keep what it packed for one use only, such as a file that it removes."""
    net, kept = Net((4, 3, 6, 6)), {}
    want = apart(net, activation)

    def pack(tensor: Any) -> int:
        kept[len(kept)] = tensor
        return len(kept) - 1

    with vesta.autograd.graph.saved_tensors_hooks(pack, kept.pop):
        y = activation(net.normalize())
    assert same(net.gradients(y), want) and not kept


def test_layers_of_a_network() -> None:
    """A network whose gradients run joined gives those of the same network with hooks everywhere."""
    vesta.manual_seed(5)
    nn = vesta.nn
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU6(True), nn.Conv2d(8, 4, 1), nn.BatchNorm2d(4), nn.SiLU()
    )
    x = vesta.randn(2, 3, 20, 20)
    _, count = joined(lambda: net(x).square().sum().backward())
    assert count == 2
    got = [p.grad.clone() for p in net.parameters()]
    for module in net:
        module.register_full_backward_hook(lambda *_: None)
        for p in module.parameters():
            p.grad = None
    _, count = joined(lambda: net(x).square().sum().backward())
    assert count == 0
    assert same(got, [p.grad for p in net.parameters()])
