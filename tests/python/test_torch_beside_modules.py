"""Modules of PyTorch in networks of Vesta, and the other way round. Row 26 of EXCEPTIONS.md."""

from __future__ import annotations

import collections
import copy
import dataclasses
import gc
import pickle
import weakref
from typing import Any

import pytest
import vesta
from torch_beside import same, torch
from vesta import nn

pytestmark = pytest.mark.no_leak_check  # PyTorch's tape keeps tensors until the collector runs


def network(lib: Any) -> Any:
    return lib.nn.Sequential(lib.nn.Linear(3, 8, bias=False), lib.nn.BatchNorm1d(8), lib.nn.Tanh(), lib.nn.Linear(8, 2))


class Attention(torch.nn.Module):  # type: ignore[misc]
    """A module with a dict as its result, an optional argument, an integer input, and a tied weight."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(7, 4)
        self.inner = torch.nn.MultiheadAttention(4, 2, batch_first=True)
        self.out = torch.nn.Linear(4, 7, bias=False)
        self.out.weight = self.embedding.weight
        self.register_buffer("scale", torch.tensor(2.0), persistent=False)

    def forward(self, tokens: Any, *, bias: Any = None, names: str = "logits") -> Any:
        x = self.embedding(tokens) * self.scale
        x = x if bias is None else x + bias
        x = x + self.inner(x, x, x)[0]
        return {names: self.out(x), "hidden": (x, tokens + 1)}


def test_a_module_of_pytorch_trains_inside_a_network_of_vesta() -> None:
    torch.manual_seed(1)
    module = Attention()
    alone = copy.deepcopy(module)
    wrapped = vesta.from_torch(module)
    assert [n for n, _ in wrapped.named_parameters()] == [n for n, _ in module.named_parameters()]
    assert list(wrapped.state_dict()) == list(module.state_dict()) and vesta.to_torch(wrapped) is module
    tokens, bias = torch.arange(6).reshape(2, 3), torch.randn(2, 3, 4, requires_grad=True)
    ours = vesta.from_torch(bias, copy=True)
    given = vesta.from_torch(tokens)
    optimizer, other = vesta.optim.SGD(wrapped.parameters(), 0.1), torch.optim.SGD(alone.parameters(), 0.1)
    for _ in range(3):
        result, expected = wrapped(given, bias=ours, names="scores"), alone(tokens, bias=bias, names="scores")
        assert same(result["scores"], expected["scores"]) and result["hidden"][1].tolist() == (tokens + 1).tolist()
        for opt, out in ((optimizer, result), (other, expected)):
            opt.zero_grad()
            (out["scores"].square().mean() + out["hidden"][0].sum()).backward()
        assert same(ours.grad, bias.grad)
        assert all(same(a.grad, b.grad) for a, b in zip(wrapped.parameters(), alone.parameters()))
        optimizer.step()
        other.step()
        assert all(same(a, b, 1e-5) for a, b in zip(module.parameters(), alone.parameters()))


def test_a_module_of_vesta_trains_inside_a_network_of_pytorch() -> None:
    torch.manual_seed(2)
    theirs, ours = network(torch), network(vesta)
    ours.load_state_dict(vesta.from_torch(theirs.state_dict(), copy=True))
    net = torch.nn.Sequential(vesta.to_torch(ours), torch.nn.Linear(2, 1))
    alone = torch.nn.Sequential(theirs, copy.deepcopy(net[1]))
    x = torch.randn(6, 3)
    for mode in (True, False):
        net.train(mode), alone.train(mode)
        for n in (net, alone):
            optimizer = torch.optim.SGD(n.parameters(), 0.1)
            n(x).square().mean().backward()
            optimizer.step()
        assert ours.training is mode and ours[1].training is mode
        assert all(same(a, b) for a, b in zip(net.state_dict().values(), alone.state_dict().values()))
    assert list(net.state_dict()) == list(alone.state_dict())


def test_modes_pass_into_the_module() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.5))
    wrapped = vesta.from_torch(module)
    wrapped.eval()
    x = vesta.ones(3, 2)
    assert same(wrapped(x), module(torch.ones(3, 2))) and not module[1].training
    for parameter in wrapped.parameters():
        parameter.requires_grad_(False)
    assert not wrapped(x).requires_grad and not module[0].weight.requires_grad
    with vesta.no_grad():
        assert not wrapped(x).requires_grad
    wrapped.requires_grad_(True)
    with vesta.inference_mode():
        assert not wrapped(x).requires_grad
    assert wrapped(x).requires_grad
    with vesta.autocast("cpu", dtype=vesta.bfloat16):
        assert wrapped(x).dtype == vesta.bfloat16


def test_copies_and_pickles_are_whole() -> None:
    wrapped = vesta.from_torch(network(torch))
    net = nn.Sequential(wrapped, nn.Identity()).eval()
    x = vesta.randn(4, 3)
    for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert same(twin(x), net(x)) and not twin[0].training
        with vesta.no_grad():
            for parameter in twin.parameters():
                parameter.zero_()
        assert not twin(x).any() and net(x).any()


def test_memory_that_is_no_longer_shared_is_refused() -> None:
    for spoil in (
        lambda m, w: w.double(),
        lambda m, w: m.double(),
        lambda m, w: w.load_state_dict({k: v.clone() for k, v in w.state_dict().items()}, assign=True),
        lambda m, w: setattr(m[0], "weight", torch.nn.Parameter(torch.ones(8, 3))),
    ):
        module = network(torch)
        wrapped = vesta.from_torch(module)
        spoil(module, wrapped)
        with pytest.raises(RuntimeError, match="TorchModule: 0.weight: expected the same memory in both libraries"):
            wrapped(vesta.ones(2, 3))
    with pytest.raises(ValueError, match="expected copy=False for a module"):
        vesta.from_torch(network(torch), copy=True)
    with pytest.raises(RuntimeError, match="Linear: expected a call of the whole module"):
        dict(vesta.from_torch(network(torch)).named_modules())["0"](vesta.ones(2, 3))


class Counter(torch.nn.Module):  # type: ignore[misc]
    """Replaces its buffer, instead of writing to it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("n", torch.zeros(()))

    def forward(self, x: Any) -> Any:
        self.n = self.n + 1
        return x * self.n


def test_a_buffer_that_the_module_replaces_is_shared_anew() -> None:
    wrapped = vesta.from_torch(Counter())
    assert [wrapped(vesta.ones(())).item() for _ in range(3)] == [1, 2, 3]
    assert vesta.to_torch(wrapped).n == 3


class Same(torch.nn.Module):  # type: ignore[misc]
    """Returns its argument, a view of it, and the argument again."""

    def forward(self, x: Any) -> Any:
        return x, x[:1], x


def test_results_that_are_arguments_have_memory_of_their_own() -> None:
    x = vesta.ones(2, requires_grad=True)
    a, b, c = vesta.from_torch(Same())(x)
    assert len({t.data_ptr() for t in (x, a, b)}) == 3 and a is c
    (a * 2 + c).sum().backward(retain_graph=True)
    b.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [4, 3]


class Sum(torch.nn.Module):  # type: ignore[misc]
    def forward(self, x: Any, y: Any) -> Any:
        return x + y


def test_gradients_of_two_arguments_do_not_share_memory() -> None:
    x, y = vesta.ones(2, requires_grad=True), vesta.ones(2, requires_grad=True)
    for _ in range(2):
        vesta.from_torch(Sum())(x, y).sum().backward()
    assert x.grad is not None and y.grad is not None and x.grad.tolist() == y.grad.tolist() == [2, 2]


class InPlace(torch.nn.Module):  # type: ignore[misc]
    def forward(self, x: Any) -> Any:
        return x.mul_(2)


def test_writes_of_one_library_are_seen_by_the_others_tape() -> None:
    """What a backward pass needs and has been overwritten raises, whichever library wrote."""
    wrapped = vesta.from_torch(torch.nn.Sigmoid())
    x = vesta.ones(2, requires_grad=True)
    y = wrapped(x)
    y.mul_(2)  # PyTorch saved the sigmoid
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    wrapped = vesta.from_torch(torch.nn.Linear(2, 2))
    y = wrapped(x)
    y.mul_(2)  # nothing saved it
    y.sum().backward()
    y = wrapped(x)
    with vesta.no_grad():
        next(wrapped.parameters()).mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    a, w = vesta.ones(2), vesta.ones(2, requires_grad=True)
    y = w * a  # Vesta saved a
    vesta.from_torch(InPlace())(a)
    assert a.tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="modified"):
        y.sum().backward()


class Watching(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([2.0, 2.0]))
        self.register_buffer("seen", torch.ones(2))

    def forward(self, x: Any) -> Any:
        return x * self.weight * self.seen


@pytest.mark.parametrize("name", ["weight", "seen"])
def test_writes_to_frozen_parameters_and_buffers_are_seen(name: str) -> None:
    wrapped = vesta.from_torch(Watching()).requires_grad_(False)
    x = vesta.ones(2, requires_grad=True)
    y = wrapped(x)
    getattr(wrapped, name).mul_(100)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_an_input_may_be_written_to() -> None:
    """An input that requires grad enters as a copy; others are shared, and do not get a gradient in passing."""
    layer, x = nn.Linear(2, 2), vesta.randn(3, 2)
    relu = vesta.from_torch(torch.nn.Sequential(torch.nn.ReLU(inplace=True)))
    y = layer(x)
    relu(y).sum().backward()
    grad, layer.weight.grad = layer.weight.grad, None
    layer(x).relu().sum().backward()
    assert same(grad, layer.weight.grad) and same(y, layer(x))

    class Adds(torch.nn.Linear):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return x.add_(self.weight.sum())

    with pytest.raises(RuntimeError, match="TorchModule|torch:Adds: expected arguments that are not written to"):
        vesta.from_torch(Adds(2, 2))(vesta.ones(2))


def test_a_changed_module_is_refused() -> None:
    for change in (
        lambda m, w: setattr(w, "3", nn.Linear(8, 10)),
        lambda m, w: setattr(m, "3", torch.nn.Linear(8, 10)),
        lambda m, w: m.append(torch.nn.Linear(2, 2)),
        lambda m, w: m[0].register_parameter("bias2", torch.nn.Parameter(torch.ones(8))),
    ):
        module = network(torch)
        wrapped = vesta.from_torch(module)
        change(module, wrapped)
        with pytest.raises(RuntimeError, match="expected the members that the module had when it was converted"):
            wrapped(vesta.ones(4, 3))


def test_state_of_replaced_buffers_is_up_to_date_both_ways() -> None:
    wrapped = vesta.from_torch(Counter())
    wrapped(vesta.ones(()))
    assert wrapped.state_dict()["n"] == 1
    wrapped.load_state_dict({"n": vesta.tensor(10.0)})
    assert wrapped(vesta.ones(())) == 11


def test_modes_set_on_either_side_hold() -> None:
    class Frozen(torch.nn.Sequential):  # type: ignore[misc]
        def train(self, mode: bool = True) -> Any:
            return super().train(False)

    wrapped = vesta.from_torch(torch.nn.Sequential(Frozen(torch.nn.BatchNorm1d(2)), torch.nn.Dropout()))
    wrapped.train()
    before = wrapped.state_dict()["0.0.running_mean"].clone()
    wrapped(vesta.randn(8, 2) + 3)
    assert wrapped.training and before.equal(wrapped.state_dict()["0.0.running_mean"])
    module = torch.nn.Linear(2, 2)
    wrapped = vesta.from_torch(module)
    module.eval().requires_grad_(False)
    assert not wrapped(vesta.ones(2)).requires_grad and not wrapped.training and not wrapped.weight.requires_grad
    wrapped.train().requires_grad_(True)
    assert wrapped(vesta.ones(2)).requires_grad and module.training and module.weight.requires_grad


def test_a_tensor_that_nobody_registered_is_refused() -> None:
    class Hidden(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.hidden = [torch.nn.Linear(2, 2)]

        def forward(self, x: Any) -> Any:
            return self.hidden[0](x)

    with pytest.raises(
        RuntimeError, match=r"a tensor of shape \(2, 2\) requires grad, but is no parameter|shape \(2,\)"
    ):
        vesta.from_torch(Hidden())(vesta.ones(1, 2))


def test_what_cannot_be_run_from_outside_is_refused() -> None:
    with pytest.raises(TypeError, match="from_torch: expected a module written in Python, got a scripted one"):
        vesta.from_torch(torch.jit.trace(torch.nn.Linear(2, 2), torch.ones(2)))
    with pytest.raises(TypeError, match="got an uninitialized one \\(obj.weight\\)"):
        vesta.from_torch(torch.nn.LazyLinear(2))
    with pytest.raises(TypeError, match="got an uninitialized one"):
        vesta.to_torch(nn.LazyLinear(2))

    class DistributedDataParallel(torch.nn.Module):  # type: ignore[misc]
        pass

    with pytest.raises(TypeError, match="expected a module that is not distributed.*obj.0.*distribute the result"):
        vesta.from_torch(torch.nn.Sequential(DistributedDataParallel()))


def test_ties_hold_between_conversions_and_in_copies() -> None:
    shared = torch.nn.Linear(2, 2)
    first, second = (vesta.from_torch(torch.nn.Sequential(shared, torch.nn.ReLU())) for _ in range(2))
    net = nn.ModuleDict({"a": first, "b": second})
    assert len(list(net.parameters())) == 2 and vesta.from_torch([net, shared])[1].weight is getattr(first, "0").weight
    embedding = vesta.from_torch(torch.nn.Embedding(5, 2))
    head = nn.Linear(2, 5, bias=False)
    head.weight = embedding.weight
    for order in ({"head": head, "embedding": embedding}, {"embedding": embedding, "head": head}):
        net = nn.ModuleDict(order)
        for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
            assert twin["head"].weight is twin["embedding"].weight is not head.weight
            with vesta.no_grad():
                twin["head"].weight.fill_(3.0)
            assert twin["embedding"](vesta.tensor([1])).tolist() == [[3, 3]] and not (head.weight == 3).any()


def test_copies_keep_hooks_and_attributes() -> None:
    wrapped = vesta.from_torch(torch.nn.Linear(2, 2))
    wrapped.name = "layer"
    calls: list[int] = []
    wrapped.register_forward_hook(lambda module, args, out: calls.append(1))
    twin = copy.deepcopy(wrapped)
    twin(vesta.ones(2))
    assert twin.name == "layer" and len(calls) == 1


def test_gradients_do_not_share_memory_with_what_the_module_keeps() -> None:
    class Constant(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any, slope: Any) -> Any:
            ctx.slope = slope
            return x * slope

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return ctx.slope, None

    class Slope(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("slope", torch.tensor([1.0, 2.0]))

        def forward(self, x: Any) -> Any:
            return Constant.apply(x, self.slope)

    x, module = vesta.ones(2, requires_grad=True), Slope()
    wrapped = vesta.from_torch(module)
    for _ in range(3):
        wrapped(x).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [3, 6] and module.slope.tolist() == [1, 2]


def test_a_backward_pass_frees_the_inner_tape() -> None:
    """As within one library: the activations go with the pass, and a second one is refused."""
    x = vesta.ones(2, requires_grad=True)
    saved: list[Any] = []

    class Owner:
        pass

    class Keeps(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.owner = Owner()
            saved.append(weakref.ref(ctx.owner))
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2

    class Saves(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return Keeps.apply(x)

    wrapped = vesta.from_torch(Saves())
    gc.collect()
    gc.disable()
    try:
        loss = wrapped(x).sum()
        loss.backward()
        assert saved[0]() is None
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            loss.backward()
        loss = wrapped(x).sum()
        del loss
        assert saved[1]() is None
        seen = weakref.ref(wrapped)
        del wrapped
        assert seen() is None
    finally:
        gc.enable()


def test_freezing_between_forward_and_backward() -> None:
    wrapped = vesta.from_torch(torch.nn.Linear(2, 2))
    x = vesta.ones(2, requires_grad=True)
    y = wrapped(x)
    wrapped.requires_grad_(False)
    wrapped(vesta.ones(2))
    y.sum().backward()
    assert x.grad is not None and wrapped.weight.grad is None


def test_children_that_are_none_extra_states_and_versions() -> None:
    class Extra(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.head = None
            self.body = torch.nn.Linear(2, 2)
            self.register_module("gone", None)
            self.steps = {"count": torch.ones(1)}

        def get_extra_state(self) -> Any:
            return self.steps

        def set_extra_state(self, state: Any) -> None:
            self.steps = state

        def forward(self, x: Any) -> Any:
            return self.body(x)

    module = Extra()
    wrapped = vesta.from_torch(torch.nn.Sequential(module, torch.nn.BatchNorm1d(2)))
    state = wrapped.state_dict()
    assert state["0._extra_state"]["count"] == 1 and state._metadata["1"]["version"] == 2
    state["0._extra_state"] = {"count": vesta.tensor([5.0])}
    wrapped.load_state_dict(state)
    assert isinstance(module.steps["count"], torch.Tensor) and module.steps["count"] == 5
    resnet = torch.nn.Sequential(torch.nn.Linear(2, 2))
    resnet.register_module("fc", None)
    assert vesta.from_torch(resnet).fc is None


def test_inference_mode_of_pytorch() -> None:
    wrapped = vesta.to_torch(nn.Linear(2, 2))
    with torch.inference_mode():
        assert wrapped(torch.ones(2)).shape == (2,)


def test_containers_of_arguments_and_results() -> None:
    @dataclasses.dataclass
    class Output:
        logits: Any
        length: int

    class Model(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.lstm = torch.nn.LSTM(2, 3)

        def forward(self, packed: Any, dtype: Any) -> Any:
            y, _ = self.lstm(packed)
            return Output(y, 3), collections.UserDict(last=y.data.to(dtype)), {"one": [y.data]}

    sequences = [vesta.randn(3, 2), vesta.randn(1, 2)]
    packed = nn.utils.rnn.pack_sequence(sequences)
    output, mapping, one = vesta.from_torch(Model())(packed, vesta.float64)
    assert type(output.logits) is nn.utils.rnn.PackedSequence and output.logits.data.requires_grad
    assert mapping["last"].dtype == vesta.float64 and isinstance(one["one"][0], vesta.Tensor)
    given = collections.UserDict(a=torch.ones(1))
    assert isinstance(vesta.from_torch(given)["a"], vesta.Tensor) and isinstance(given["a"], torch.Tensor)
    ring = vesta.from_torch(collections.deque([torch.ones(1)], maxlen=2))
    assert ring.maxlen == 2 and isinstance(ring[0], vesta.Tensor)


def test_checkpoints_repeat_the_random_numbers_of_pytorch() -> None:
    wrapped = vesta.from_torch(torch.nn.Dropout(0.5))
    for reentrant in (True, False):
        x = vesta.ones(1000, requires_grad=True)
        y = vesta.utils.checkpoint.checkpoint(wrapped, x, use_reentrant=reentrant)
        y.sum().backward()
        assert x.grad is not None and x.grad.equal(y.detach())


def test_a_second_derivative_is_refused() -> None:
    x = vesta.ones(2, requires_grad=True)
    y = vesta.from_torch(torch.nn.Sigmoid())(x).sum()
    with pytest.raises(
        RuntimeError, match="create_graph=False: a module that runs in another library is differentiated once"
    ):
        vesta.autograd.grad(y, x, create_graph=True)


def test_both_libraries_nest() -> None:
    """Vesta inside PyTorch inside Vesta."""
    inside = nn.Linear(3, 3)
    net = vesta.from_torch(torch.nn.Sequential(vesta.to_torch(inside), torch.nn.Tanh()))
    x = vesta.randn(2, 3, requires_grad=True)
    net(x).sum().backward()
    grad = x.grad
    x.grad = None
    inside(x).tanh().sum().backward()
    assert grad is not None and same(grad, x.grad)


def test_a_graph_can_be_walked_twice() -> None:
    x = vesta.ones(2, requires_grad=True)
    y = vesta.from_torch(torch.nn.Tanh())(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad is not None and same(x.grad, 2 * (1 - vesta.ones(2).tanh() ** 2))


def test_a_result_is_freed_at_once() -> None:
    """No cycle holds the activations until the collector runs."""
    x = vesta.ones(2, requires_grad=True)
    for wrapped in (vesta.from_torch(torch.nn.Tanh()), vesta.from_torch(torch.nn.Linear(2, 2))):
        gc.collect()
        gc.disable()
        try:
            y = wrapped(x)
            seen = weakref.ref(y)
            y.sum().backward()
            del y
            assert seen() is None
        finally:
            gc.enable()


def test_errors_of_the_module_come_through() -> None:
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        vesta.from_torch(torch.nn.Linear(2, 2))(vesta.ones(3, 3))
    with pytest.raises(TypeError, match="forward"):
        vesta.from_torch(torch.nn.Linear(2, 2))()


def test_a_module_prints_as_it_is() -> None:
    text = repr(vesta.from_torch(torch.nn.Sequential(torch.nn.Linear(2, 3))))
    assert text.splitlines()[0] == "torch:Sequential(" and "Linear(in_features=2, out_features=3, bias=True)" in text
