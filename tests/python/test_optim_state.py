"""The state of optimizers: replaced, freed, in another dtype; flags, options of groups, damaged state dicts."""

from __future__ import annotations

import collections
import gc
import weakref

import pytest
import vesta
from vesta import nn, optim

MAKERS = {
    "Adam": lambda params: optim.Adam(params, amsgrad=True),
    "RMSprop": lambda params: optim.RMSprop(params, momentum=0.9, centered=True),
    "SGD": lambda params: optim.SGD(params, lr=0.1, momentum=0.9),
    "Adagrad": optim.Adagrad,
    "NAdam": optim.NAdam,
    "ASGD": optim.ASGD,
}
any_optimizer = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def parameter(*sizes: int, dtype=vesta.float32) -> nn.Parameter:
    """Returns a parameter of ones with a gradient of ones."""
    param = nn.Parameter(vesta.ones(*sizes or (3,), dtype=dtype))
    param.grad = vesta.ones_like(param).detach()
    return param


@pytest.mark.parametrize("replace", [
    lambda o: setattr(o, "state", collections.defaultdict(dict)),
    lambda o: setattr(o, "state", {}),
    lambda o: o.__setstate__({"state": collections.defaultdict(dict), "param_groups": o.param_groups}),
])  # fmt: skip
@any_optimizer
def test_a_replaced_state_begins_anew(make, replace) -> None:
    param = parameter()
    optimizer = make([param])
    for _ in range(3):
        optimizer.step()
    replace(optimizer)
    with vesta.no_grad():
        param.fill_(1.0)
    optimizer.step()
    other = parameter()
    fresh = make([other])
    fresh.step()
    assert param.tolist() == other.tolist()
    assert list(optimizer.state) == [param]
    for name, value in fresh.state[other].items():
        assert vesta.equal(optimizer.state[param][name], value), name


def test_an_assigned_state_is_used() -> None:
    param = parameter()
    optimizer = optim.SGD([param], lr=1.0, momentum=1.0)
    optimizer.step()
    optimizer.state = {param: {"momentum_buffer": vesta.full((3,), 10.0)}}
    optimizer.step()
    assert param.tolist() == [-11.0] * 3  # 1 - 1 - (10 + 1)
    with pytest.raises(TypeError, match=r"^SGD: expected a dict of parameters and their state, got int \(state\)\.$"):
        optimizer.state = 3


@any_optimizer
def test_what_is_taken_out_of_the_state_is_freed(make) -> None:
    def watched(tensors) -> list[weakref.ref]:
        return [weakref.ref(value) for value in tensors]

    first, second = parameter(), parameter()
    optimizer = make([{"params": [first]}, {"params": [second]}])
    for _ in range(3):
        optimizer.step()
    replaced = watched(optimizer.state[first].values())
    for name in list(optimizer.state[first]):
        optimizer.state[first][name] = optimizer.state[first][name].clone()
    gc.collect()
    assert not any(ref() is not None for ref in replaced)
    optimizer.step()
    removed = watched([second, *optimizer.state[second].values()])
    del optimizer.param_groups[1], optimizer.state[second], second
    gc.collect()
    assert not any(ref() is not None for ref in removed)
    optimizer.step()
    cleared = watched(optimizer.state[first].values())
    optimizer.state.clear()
    gc.collect()
    assert not any(ref() is not None for ref in cleared)


def test_a_removed_group_without_state_is_freed_by_the_next_step() -> None:
    first, second = parameter(), parameter()
    optimizer = optim.SGD([{"params": [first]}, {"params": [second]}], lr=0.1)
    optimizer.step()
    ref = weakref.ref(second)
    del optimizer.param_groups[1], second
    optimizer.step()
    gc.collect()
    assert ref() is None


def test_plans_of_several_groups_are_kept() -> None:
    optimizer = optim.Adam([{"params": [parameter()]}, {"params": [parameter()]}, {"params": [parameter()]}])
    for _ in range(3):
        optimizer.step()
    before = dict(optimizer.state.plans)
    optimizer.step()
    assert len(before) == 3
    assert all(optimizer.state.plans[key] is plan for key, plan in before.items())


@pytest.mark.parametrize("owner", ["optimizer", "module"])
def test_zero_grad_keeps_the_gradient_that_it_fills(owner) -> None:
    layer = nn.Linear(2, 1)
    target = layer if owner == "module" else optim.SGD(layer.parameters(), lr=0.1)
    layer(vesta.ones(1, 2)).sum().backward()
    layer.weight.grad.requires_grad_()
    layer.bias.grad = layer.bias.grad * vesta.ones(1, requires_grad=True)
    grads = [param.grad for param in layer.parameters()]
    assert grads[1].grad_fn is not None
    target.zero_grad(set_to_none=False)
    for param, grad in zip(layer.parameters(), grads):
        assert param.grad is grad
        assert not grad.requires_grad
        assert grad.grad_fn is None
        assert not grad.any()


@pytest.mark.parametrize(("make", "flags"), [
    (optim.Adam, ("amsgrad", "maximize", "decoupled_weight_decay")),
    (optim.AdamW, ("amsgrad", "maximize")),
    (lambda params, **options: optim.SGD(params, lr=0.1, momentum=0.9, **options), ("nesterov", "maximize")),
    (optim.RMSprop, ("centered", "maximize")),
    (optim.NAdam, ("decoupled_weight_decay", "maximize")),
    (optim.RAdam, ("decoupled_weight_decay", "maximize")),
    (optim.Adagrad, ("maximize",)),
    (optim.Muon, ("nesterov",)),
    (optim.Adafactor, ("maximize",)),
])  # fmt: skip
@pytest.mark.parametrize("value", [1, "yes", 0, None])
def test_flags_count_by_their_truth_value(make, flags, value) -> None:
    def run(value) -> list:
        param = parameter(2, 2)
        optimizer = make([param], **dict.fromkeys(flags, value))
        for _ in range(3):
            optimizer.step()
        return param.tolist()

    assert run(value) == run(bool(value))


@any_optimizer
def test_a_parameter_may_change_its_dtype(make) -> None:
    layer, still = nn.Linear(2, 2), parameter()
    optimizer = make([{"params": [*layer.parameters(), still]}])
    for dtype in (vesta.float32, vesta.float64, vesta.float16, vesta.bfloat16):
        layer.to(dtype)
        for param in layer.parameters():
            param.grad = vesta.ones_like(param).detach()
        before = [param.float().tolist() for param in (*layer.parameters(), still)]
        steps = [float(entry["step"]) for entry in optimizer.state.values() if "step" in entry]
        for _ in range(2):
            optimizer.step()
        assert all(
            param.float().tolist() != old or dtype == vesta.bfloat16
            for param, old in zip((*layer.parameters(), still), before)
        )
        assert not steps or [float(entry["step"]) for entry in optimizer.state.values()] == [n + 2 for n in steps]
        for name in optimizer._shaped_like_param:
            assert {optimizer.state[param][name].dtype for param in layer.parameters()} == {dtype}


def test_a_step_after_a_change_of_dtype_updates_everything_once() -> None:
    """What is updated before the change is noticed is not updated again."""
    params = [parameter(dtype=dtype) for dtype in (vesta.float64, vesta.float32, vesta.float32)]
    optimizer = optim.SGD(params, lr=1.0, momentum=1.0)
    optimizer.step()
    params[2].grad, params[2].data = None, params[2].data.half()
    params[2].grad = vesta.ones(3, dtype=vesta.float16)
    optimizer.step()
    assert [param.tolist() for param in params] == [[-2.0] * 3] * 3


@any_optimizer
def test_a_parameter_of_another_shape_is_named(make) -> None:
    params = [parameter(), parameter()]
    optimizer = make(params)
    name = type(optimizer).__name__
    optimizer.step()
    params[1].data = vesta.ones(5)
    params[1].grad = vesta.ones(5)
    with pytest.raises(ValueError, match=rf"^{name}: expected \w+ of parameter 1 of group 0 with shape \[5\] on cpu,"):
        optimizer.step()


def test_a_wrapper_without_a_constructor_of_its_own_steps() -> None:
    """As programs write them: the groups and the state are those of the optimizer inside."""

    class Wrapper(optim.Optimizer):
        def __init__(self, inner: optim.Optimizer) -> None:
            self.inner, self.defaults = inner, inner.defaults
            self.param_groups, self.state = inner.param_groups, inner.state

        def step(self, closure=None):
            return self.inner.step(closure)

    param = parameter()
    wrapper = Wrapper(optim.SGD([param], lr=0.5, momentum=0.9))
    wrapper.step()
    assert param.tolist() == [0.5] * 3
    assert wrapper.state is wrapper.inner.state
    wrapper.zero_grad()
    assert param.grad is None


#: The options of a group, in the order that PyTorch 2.15 has them in.
ORDERS = {
    "Adadelta": "lr rho eps weight_decay maximize capturable foreach differentiable",
    "Adagrad": "lr lr_decay eps weight_decay initial_accumulator_value foreach maximize differentiable fused",
    "Adam": "lr betas eps weight_decay amsgrad maximize foreach capturable differentiable"
    " fused decoupled_weight_decay",
    "AdamW": "lr betas eps weight_decay amsgrad maximize foreach capturable differentiable"
    " fused decoupled_weight_decay",
    "Adamax": "lr betas eps weight_decay foreach maximize differentiable capturable",
    "ASGD": "lr lambd alpha t0 weight_decay foreach maximize differentiable capturable",
    "LBFGS": "lr max_iter max_eval tolerance_grad tolerance_change history_size line_search_fn maximize",
    "NAdam": "lr betas eps weight_decay momentum_decay decoupled_weight_decay maximize"
    " foreach capturable differentiable",
    "RAdam": "lr betas eps weight_decay maximize foreach capturable decoupled_weight_decay differentiable",
    "RMSprop": "lr momentum alpha eps centered weight_decay capturable foreach maximize differentiable",
    "Rprop": "lr etas step_sizes foreach maximize differentiable capturable",
    "SGD": "lr momentum dampening weight_decay nesterov maximize foreach differentiable fused",
    "Adafactor": "lr beta2_decay eps d weight_decay foreach maximize",
    "SparseAdam": "lr betas eps maximize",
    "Muon": "lr weight_decay momentum nesterov ns_coefficients eps ns_steps adjust_lr_fn",
}  # fmt: skip


@pytest.mark.parametrize("name", ORDERS)
def test_options_have_pytorchs_order(name: str) -> None:
    """The text and the pickle of a state dict are PyTorch's."""
    optimizer = getattr(vesta.optim, name)([vesta.nn.Parameter(vesta.ones(2, 2))], lr=0.1)
    assert list(optimizer.param_groups[0]) == ["params", *ORDERS[name].split()]
    assert list(optimizer.state_dict()["param_groups"][0]) == [*ORDERS[name].split(), "params"]


def test_shares_of_lbfgs_are_in_its_state() -> None:
    x = nn.Parameter(vesta.tensor([3.0, -2.0]))
    optimizer = optim.LBFGS([x], lr=0.5, max_iter=4, history_size=7)

    def closure() -> vesta.Tensor:
        optimizer.zero_grad()
        loss = (x**2 * vesta.tensor([1.0, 5.0])).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    shares = optimizer.state_dict()["state"][0]["al"]
    kept = len(optimizer.state[x]["old_dirs"])
    assert len(shares) == 7 and 0 < kept < 7
    assert all(share is not None for share in shares[:kept]) and shares[kept:] == [None] * (7 - kept)
    other = optim.LBFGS([nn.Parameter(x.detach().clone())], lr=0.5, max_iter=4, history_size=7)
    other.load_state_dict(optimizer.state_dict())
    assert other.state_dict()["state"][0]["al"] == shares


def test_adagrads_sums_are_there_before_the_first_step():
    """As in PyTorch: programs read, copy and share them."""
    param = vesta.nn.Parameter(vesta.ones(2))
    optimizer = optim.Adagrad([param], initial_accumulator_value=0.5)
    assert optimizer.state[param]["step"].item() == 0
    assert optimizer.state[param]["sum"].tolist() == [0.5, 0.5]
    assert optimizer.state_dict()["state"][0].keys() == {"step", "sum"}
    optim.Adagrad(vesta.nn.LazyLinear(2).parameters())
