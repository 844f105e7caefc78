"""Module from Python: names, copies, state dicts, hooks, containers, printing, and errors that name their layer."""

from __future__ import annotations

import copy
import gc
import pickle
import sys
import weakref
from collections import OrderedDict
from typing import Any

import pytest
import vesta
from vesta import nn


class Net(nn.Module):
    """A module with every kind of member."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 3)
        self.norm = nn.BatchNorm1d(3)
        self.scale = nn.Parameter(vesta.ones(1))
        self.register_buffer("seen", vesta.zeros(1))
        self.register_buffer("cache", vesta.zeros(4), persistent=False)
        self.number = 3

    def forward(self, x):
        return self.norm(self.layer(x)) * self.scale


STATE = [
    "scale", "seen", "layer.weight", "layer.bias", "norm.weight", "norm.bias", "norm.running_mean", "norm.running_var",
    "norm.num_batches_tracked",
]  # fmt: skip


def test_state_dict_has_pytorchs_layout() -> None:
    net = Net()
    state = net.state_dict()
    assert list(state) == STATE
    assert state._metadata["norm"] == {"version": 2} and state._metadata[""] == {"version": 1}
    assert not state["scale"].requires_grad and state["scale"].data_ptr() == net.scale.data_ptr()
    assert net.state_dict(keep_vars=True)["scale"] is net.scale
    assert list(net.state_dict(prefix="a."))[0] == "a.scale"


def test_registered_tensors_are_attributes() -> None:
    """The attribute and the table's entry are the same object, whichever of the two is set."""
    net = Net()
    assert net.scale is net._parameters["scale"] and net.cache is net._buffers["cache"]
    net._modules["layer"] = nn.Identity()
    assert isinstance(net.layer, nn.Identity)
    net.seen = vesta.ones(2)
    assert net._buffers["seen"] is net.seen
    net.layer = None
    assert net.layer is None and "layer" in net._modules
    del net.layer
    assert not hasattr(net, "layer") and "layer" not in net._modules
    net.number = nn.ReLU()
    assert net._modules["number"] is net.number
    net._parameters = {}
    assert not hasattr(net, "scale")


def test_what_may_not_be_assigned() -> None:
    net = Net()
    with pytest.raises(
        TypeError, match=r"cannot assign '.*FloatTensor' as parameter 'scale' \(vesta.nn.Parameter or None expected\)"
    ):
        net.scale = vesta.ones(1)
    with pytest.raises(TypeError, match="as child module 'layer'"):
        net.layer = 3
    with pytest.raises(TypeError, match="as buffer 'seen'"):
        net.seen = 3
    with pytest.raises(KeyError, match="already exists"):
        net.register_buffer("forward", None)
    for name in ("", "a.b"):
        with pytest.raises(KeyError):
            net.register_parameter(name, None)

    class Early(nn.Module):
        def __init__(self) -> None:
            self.layer = nn.ReLU()

    with pytest.raises(AttributeError, match=r"before Module.__init__\(\) call"):
        Early()


def test_a_module_is_no_cycle() -> None:
    gc.disable()
    try:
        net = Net()
        watch = weakref.ref(net)
        del net
        assert watch() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_are_whole_and_apart(duplicate) -> None:
    net = Net().eval()
    other = duplicate(net)
    x = vesta.ones(2, 2)
    assert other(x).tolist() == net(x).tolist() and list(other.state_dict()) == STATE
    assert other.layer.weight is other.layer._parameters["weight"] and not other.training
    assert isinstance(other.scale, nn.Parameter) and other.scale.requires_grad
    with vesta.no_grad():
        other.scale.fill_(7)
    assert net.scale.item() == 1


def test_a_shallow_copy_has_tables_of_its_own() -> None:
    net = Net()
    other = copy.copy(net)
    assert other.scale is net.scale
    other.scale = nn.Parameter(vesta.zeros(1))
    assert net.scale.item() == 1


def test_names_and_duplicates() -> None:
    shared = nn.Linear(1, 1)
    net = nn.Sequential(shared, nn.Sequential(nn.ReLU(), shared))
    assert [name for name, _ in net.named_modules()] == ["", "0", "1", "1.0"]
    assert [name for name, _ in net.named_modules(remove_duplicate=False)] == ["", "0", "1", "1.0", "1.1"]
    assert [name for name, _ in net.named_parameters()] == ["0.weight", "0.bias"]
    assert len(list(net.named_parameters(remove_duplicate=False))) == 4
    assert [name for name, _ in net.named_children()] == ["0", "1"]
    assert net.get_submodule("1.1") is shared and net.get_parameter("0.bias") is shared.bias
    with pytest.raises(AttributeError, match="has no attribute `2`"):
        net.get_submodule("2")
    net.set_submodule("1.0", nn.Tanh())
    assert isinstance(net[1][0], nn.Tanh)


@pytest.mark.parametrize("target", [vesta.float64, vesta.bfloat16, "meta"])
@pytest.mark.parametrize("trained", [False, True])
def test_a_module_is_converted_while_an_old_graph_lives(target: Any, trained: bool) -> None:
    """The next graph's gradients have the form that the parameters have then, the old one's that of its time."""
    model = vesta.nn.Linear(3, 2)
    if trained:
        model(vesta.ones(1, 3)).sum().backward()
    old = model(vesta.ones(1, 3)).sum()
    seen = []
    model.weight.register_hook(lambda g: seen.append((g.dtype, g.device)))
    model.to(target)
    new = model(vesta.ones(1, 3).to(target)).sum()
    new.backward()
    for p in model.parameters():
        assert (p.grad.dtype, p.grad.device) == (p.dtype, p.device)
    assert seen == [(model.weight.dtype, model.weight.device)]
    model.zero_grad()
    if target != "meta":
        old.backward()
        assert model.weight.grad.tolist() == [[1.0] * 3] * 2


def test_to_keeps_parameters_and_integer_buffers() -> None:
    net = Net()
    weight = net.layer.weight
    weight.grad = vesta.ones(3, 2)
    assert net.to(vesta.float64) is net and net.layer.weight is weight
    assert weight.dtype == weight.grad.dtype == net.seen.dtype == vesta.float64
    assert net.norm.num_batches_tracked.dtype == vesta.int64
    assert net.half().scale.dtype == vesta.float16 and net.float().scale.dtype == vesta.float32
    with pytest.raises(TypeError, match="floating point or complex"):
        net.to(vesta.int32)


def test_modes_freezing_and_gradients() -> None:
    net = Net()
    assert net.training and not net.eval().norm.training and net.train().norm.training
    net(vesta.randn(4, 2)).sum().backward()
    assert net.scale.grad is not None
    net.zero_grad(set_to_none=False)
    assert net.scale.grad.tolist() == [0.0]
    net.zero_grad()
    assert net.scale.grad is None
    assert not any(p.requires_grad for p in net.requires_grad_(False).parameters())
    visited = []
    net.apply(lambda module: visited.append(type(module).__name__))
    assert visited == ["Linear", "BatchNorm1d", "Net"]


# ---- loading ----


def test_load_copies_all_or_nothing() -> None:
    source, net = Net(), Net()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    state = dict(source.state_dict())
    for broken in ({**state, "norm.bias": vesta.ones(7)}, {**state, "extra": vesta.ones(1)}, {"scale": state["scale"]}):
        with pytest.raises(RuntimeError, match="Error\\(s\\) in loading state_dict for Net"):
            net.load_state_dict(broken)
        assert all(value.tolist() == before[name].tolist() for name, value in net.state_dict().items())
    assert str(net.load_state_dict(state)) == "<All keys matched successfully>"
    assert net.layer.weight.tolist() == source.layer.weight.tolist()


def test_load_says_what_is_wrong() -> None:
    net = nn.Linear(2, 3)
    with pytest.raises(RuntimeError, match="size mismatch for weight: copying a param with shape"):
        net.load_state_dict({"weight": vesta.ones(2, 2), "bias": vesta.ones(3)})
    with pytest.raises(RuntimeError, match='Missing key.*"bias".*\n.*Unexpected key.*"b"'):
        net.load_state_dict({"weight": vesta.ones(3, 2), "b": vesta.ones(3)})
    with pytest.raises(RuntimeError, match="removeprefix"):
        net.load_state_dict({f"module.{name}": value for name, value in net.state_dict().items()})
    with pytest.raises(TypeError, match="dict-like"):
        net.load_state_dict(3)
    keys = net.load_state_dict({"b": vesta.ones(3)}, strict=False)
    assert keys.missing_keys == ["weight", "bias"] and keys.unexpected_keys == ["b"]


def test_load_assign_and_hooks() -> None:
    source, net = nn.Linear(2, 2), nn.Linear(2, 2)
    net.load_state_dict(source.state_dict(), assign=True)
    assert isinstance(net.weight, nn.Parameter) and net.weight.data_ptr() == source.weight.data_ptr()
    net.register_load_state_dict_pre_hook(lambda module, state, *rest: state.pop("bias"))
    net.register_load_state_dict_post_hook(lambda module, keys: keys.missing_keys.clear())
    net.load_state_dict(nn.Linear(2, 2).state_dict())
    net.register_state_dict_post_hook(lambda module, state, prefix, metadata: state.update(extra=1))
    assert net.state_dict()["extra"] == 1


# ---- hooks ----


def test_forward_hooks() -> None:
    layer = nn.Identity()
    plain = layer.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    layer.register_forward_hook(lambda module, args, kwargs, output: output * 10, with_kwargs=True)
    assert layer(vesta.ones(1)).tolist() == [20.0]
    plain.remove()
    assert layer(vesta.ones(1)).tolist() == [10.0]
    seen = []

    class Fails(nn.Module):
        def forward(self, x):
            raise KeyError("missing")

    failing = Fails()
    failing.register_forward_hook(lambda module, args, output: seen.append(output), always_call=True)
    with pytest.raises(KeyError):
        failing(1)
    assert seen == [None]


def test_global_hooks() -> None:
    layer, seen = nn.Identity(), []
    handle = nn.modules.hooks.register_module_forward_hook(lambda module, args, output: seen.append(module))
    layer(vesta.ones(1))
    handle.remove()
    layer(vesta.ones(1))
    assert seen == [layer]


def test_full_backward_hooks() -> None:
    layer, seen = nn.Linear(2, 1, bias=False), []
    layer.register_full_backward_pre_hook(lambda module, grad_output: (grad_output[0] * 2,))
    layer.register_full_backward_hook(lambda module, grads, outs: seen.append((grads[0].tolist(), outs[0].tolist())))
    layer.register_full_backward_hook(lambda module, grads, outs: (grads[0] * 10,))
    x = vesta.ones(1, 2, requires_grad=True)
    layer(x).sum().backward()
    weight = layer.weight.tolist()[0]
    assert seen == [([[2 * weight[0], 2 * weight[1]]], [[2.0]])]
    assert x.grad.tolist()[0] == pytest.approx([20 * weight[0], 20 * weight[1]])
    assert layer.weight.grad.tolist() == [[2.0, 2.0]]


# ---- errors name their layer ----


def test_an_error_names_its_layer() -> None:
    net = nn.Sequential(OrderedDict(encoder=nn.ModuleDict({"ff": nn.Sequential(nn.ReLU(), nn.Linear(5, 4))})["ff"]))
    with pytest.raises(RuntimeError) as caught:
        net(vesta.ones(2, 3))
    text = "in encoder.1 = Linear(in_features=5, out_features=4, bias=True)"
    if sys.version_info >= (3, 11):
        assert caught.value.__notes__ == [text]
    else:
        assert str(caught.value).endswith(text)


def test_missing_forward_and_wrong_arguments() -> None:
    with pytest.raises(NotImplementedError, match="missing the required"):
        nn.Module()(1)
    with pytest.raises(TypeError):
        nn.Linear(2, 2)()
    with pytest.raises(TypeError):
        nn.Linear(2, 2)(vesta.ones(1, 2), 3)
    assert nn.Linear(2, 2)(input=vesta.ones(1, 2)).shape == (1, 2)


# ---- containers ----


def test_sequential_is_a_list() -> None:
    net = nn.Sequential(nn.ReLU(), nn.Tanh())
    net.append(nn.Sigmoid()).insert(0, nn.Identity()).extend([nn.Flatten()])
    names = [type(module).__name__ for module in net]
    assert names == ["Identity", "ReLU", "Tanh", "Sigmoid", "Flatten"] and len(net) == 5
    assert type(net[-1]) is nn.Flatten and len(net[1:3]) == 2 and list(net._modules) == list("01234")
    del net[0]
    assert type(net.pop(0)) is nn.ReLU and [name for name, _ in net.named_children()] == ["0", "1", "2"]
    assert len(net + nn.Sequential(nn.ReLU())) == 4 and len(net * 2) == len(2 * net) == 6
    for wrong in (lambda: net[7], lambda: net.insert(9, nn.ReLU())):
        with pytest.raises(IndexError):
            wrong()


def test_lists_and_dicts() -> None:
    layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)] + [nn.ReLU()])
    assert repr(layers) == (
        "ModuleList(\n  (0-2): 3 x Linear(in_features=2, out_features=2, bias=True)\n  (3): ReLU()\n)"
    )
    choices = nn.ModuleDict({"a": nn.ReLU()})
    choices["b"] = nn.Tanh()
    assert list(choices) == ["a", "b"] and type(choices.pop("a")) is nn.ReLU and "a" not in choices
    weights = nn.ParameterList([vesta.ones(2), vesta.ones(3)]).append(vesta.ones(4))
    assert len(list(weights.parameters())) == 3 and weights[-1].numel() == 4 and len(weights[1:]) == 2
    named = nn.ParameterDict({"left": vesta.ones(2)})
    named["right"] = vesta.ones(3)
    assert [name for name, _ in named.named_parameters()] == ["left", "right"] and named.left is named["left"]


def test_repr_as_pytorch_prints_it() -> None:
    net = nn.Sequential(
        nn.Conv2d(4, 6, (3, 5), stride=2, padding=(1, 2), groups=2, bias=False),
        nn.BatchNorm2d(6),
        nn.LeakyReLU(0.1, inplace=True),
        nn.MaxPool2d(2, ceil_mode=True),
        nn.Sequential(nn.Flatten(), nn.Dropout(0.2), nn.GELU("tanh"), nn.Embedding(10, 3, padding_idx=-1)),
    )
    assert repr(net) == (
        "Sequential(\n"
        "  (0): Conv2d(4, 6, kernel_size=(3, 5), stride=(2, 2), padding=(1, 2), groups=2, bias=False)\n"
        "  (1): BatchNorm2d(6, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)\n"
        "  (2): LeakyReLU(negative_slope=0.1, inplace=True)\n"
        "  (3): MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=True)\n"
        "  (4): Sequential(\n"
        "    (0): Flatten(start_dim=1, end_dim=-1)\n"
        "    (1): Dropout(p=0.2, inplace=False)\n"
        "    (2): GELU(approximate='tanh')\n"
        "    (3): Embedding(10, 3, padding_idx=9)\n"
        "  )\n"
        ")"
    )


# ---- layers ----


def test_batch_norm_counts_and_averages() -> None:
    norm = nn.BatchNorm1d(1, momentum=None)
    for value in (1.0, 3.0):
        norm(vesta.tensor([[value], [value + 2]]))
    assert norm.num_batches_tracked.item() == 2 and norm.running_mean.tolist() == pytest.approx([3.0])
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        norm(vesta.ones(1, 1))
    with pytest.raises(ValueError, match="expected 2D or 3D input"):
        norm(vesta.ones(1))
    assert not list(nn.BatchNorm1d(2, affine=False, track_running_stats=False).state_dict())


def test_same_padding_is_as_large_as_the_input() -> None:
    layer = nn.Conv2d(1, 1, (2, 4), padding="same", bias=False)
    nn.init.ones_(layer.weight)
    image = vesta.arange(9, dtype=vesta.float32).reshape(1, 1, 3, 3)
    # zeros: one row below, one column to the left, two to the right
    assert layer(image)[0, 0].tolist() == [[15.0, 15.0, 12.0], [33.0, 33.0, 24.0], [21.0, 21.0, 15.0]]


def test_initial_values_stay_in_their_bounds() -> None:
    layer = nn.Linear(16, 400)
    assert layer.weight.abs().amax().item() <= 0.25 and layer.weight.abs().amax().item() > 0.24
    values = nn.init.trunc_normal_(vesta.empty(2000), std=0.5, a=-1.0, b=1.0)
    assert values.abs().amax().item() <= 1.0 and abs(values.mean().item()) < 0.05
    tail = nn.init.trunc_normal_(vesta.empty(500), a=3.0, b=4.0)
    assert tail.amin().item() >= 3.0 and tail.amax().item() <= 4.0 and tail.mean().item() < 3.4
    assert nn.init.calculate_gain("tanh") == 5 / 3
    for wrong in (lambda: nn.init.kaiming_uniform_(vesta.empty(3)), lambda: nn.init.calculate_gain("none")):
        with pytest.raises(ValueError):
            wrong()


def test_gradients_are_clipped() -> None:
    weights = [nn.Parameter(vesta.zeros(1)), nn.Parameter(vesta.zeros(1)), nn.Parameter(vesta.zeros(1))]
    weights[0].grad, weights[1].grad = vesta.tensor([3.0]), vesta.tensor([-4.0])
    assert nn.utils.clip_grad_norm_(weights, 2.5).item() == pytest.approx(5.0)
    assert [weights[0].grad.item(), weights[1].grad.item()] == pytest.approx([1.5, -2.0])
    nn.utils.clip_grad_value_(weights, 1.0)
    assert [weights[0].grad.item(), weights[1].grad.item()] == [1.0, -1.0]
    weights[0].grad = vesta.tensor([float("nan")])
    with pytest.raises(RuntimeError, match="non-finite"):
        nn.utils.clip_grad_norm_(weights, 1.0, error_if_nonfinite=True)


def test_containers_of_parameters_print_as_pytorchs():
    assert "[vesta.float32 of size 2]" in repr(vesta.nn.ParameterList([vesta.ones(2)]))
    assert "[vesta.FloatTensor of size 2x3]" in repr(vesta.nn.ParameterDict({"x": vesta.ones(2, 3)}))


class Wrapper(nn.Module):
    """Finds in the module that it wraps what it has not itself."""

    def __init__(self, wrapped: nn.Module) -> None:
        super().__init__()
        self.wrapped = wrapped

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("wrapped"), name)


def test_a_subclass_may_look_attributes_up_by_the_base_class() -> None:
    wrapper = Wrapper(nn.Linear(2, 3))
    assert wrapper.in_features == 2 and wrapper.weight is wrapper.wrapped.weight
    assert nn.Module.__getattr__(wrapper, "wrapped") is wrapper.wrapped
    assert copy.deepcopy(wrapper).out_features == 3
    with pytest.raises(AttributeError, match="'Linear' object has no attribute 'missing'"):
        _ = wrapper.missing
    layer = nn.Linear(2, 3)
    assert layer.__getattr__("weight") is layer.weight
    with pytest.raises(AttributeError, match="'Linear' object has no attribute 'missing'"):
        _ = layer.missing
    nn.Linear.__getattr__ = lambda self, name: name  # given later
    try:
        assert layer.missing == "missing"
    finally:
        del nn.Linear.__getattr__
    with pytest.raises(AttributeError):
        _ = layer.missing


def test_tables_replaced_past_the_own_setattr_are_attributes() -> None:
    class Bare(nn.Linear):
        def __setattr__(self, name: str, value: Any) -> None:
            object.__setattr__(self, name, value)

    module = Bare(2, 3)
    assert "weight" not in module._parameters  # what is set past Module is an attribute alone
    weight = nn.Parameter(vesta.ones(3, 2))
    module._parameters = OrderedDict(weight=weight, bias=None)
    assert module.weight is weight and list(module.parameters()) == [weight]
    module._parameters["weight"] = nn.Parameter(vesta.zeros(3, 2))
    assert not module(vesta.ones(1, 2)).any()
    module._parameters = module._parameters
    assert [name for name, _ in module.named_parameters()] == ["weight"]
    module._parameters = {}
    assert not hasattr(module, "weight")
    with pytest.raises(AttributeError, match=r"before Module.__init__\(\) call"):
        nn.Linear.__new__(nn.Linear).weight = weight


def test_methods_that_subclasses_call_by_pytorchs_names() -> None:
    net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    weights = net._named_members(get_members_fn=lambda module: [("w", getattr(module, "weight", None))])
    assert [name for name, _ in weights] == ["0.w", "1.w"]
    assert type(net.pop(key=1)) is nn.Linear and type(nn.ModuleDict({"a": net}).pop(key="a")) is nn.Sequential

    class Ones(nn.Embedding):
        def reset_parameters(self) -> None:
            nn.init.ones_(self.weight)
            self._fill_padding_idx_with_zero()

    assert Ones(3, 2, padding_idx=1).weight.tolist() == [[1.0, 1.0], [0.0, 0.0], [1.0, 1.0]]
    with pytest.raises(AttributeError, match=r"cannot assign buffer before Module.__init__\(\) call"):
        nn.Module.__new__(nn.Module).register_buffer("b", vesta.ones(1))
