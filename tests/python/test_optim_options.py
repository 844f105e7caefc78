"""Options of optimizers and of their groups, and damaged state dicts: sentences, and nothing changed."""

from __future__ import annotations

import copy

import pytest
import vesta
from vesta import nn, optim

F32 = vesta.float32


def parameter(*sizes: int, dtype=F32) -> nn.Parameter:
    """Returns a parameter of ones with a gradient of ones."""
    param = nn.Parameter(vesta.ones(*sizes or (3,), dtype=dtype))
    param.grad = vesta.ones_like(param).detach()
    return param


@pytest.mark.parametrize(("make", "options", "message"), [
    (optim.Adam, {"betas": (0.9, 2.0)}, "Invalid beta parameter at index 1: 2.0"),
    (optim.AdamW, {"lr": -1.0}, "Invalid learning rate: -1.0"),
    (optim.AdamW, {"eps": -1.0}, "Invalid epsilon value: -1.0"),
    (optim.Adam, {"betas": (0.9,)}, r"^Adam: expected two numbers, got 1 \(betas\)\.$"),
    (optim.AdamW, {"betas": (0.9, 0.9, 0.9)}, r"^AdamW: expected two numbers, got 3 \(betas\)\.$"),
    (optim.SGD, {"momentum": -1.0}, "Invalid momentum value: -1.0"),
    (optim.SGD, {"nesterov": True}, "Nesterov momentum requires a momentum and zero dampening"),
    (optim.RMSprop, {"alpha": -1.0}, "Invalid alpha value: -1.0"),
    (optim.RMSprop, {"weight_decay": -1.0}, "Invalid weight_decay value: -1.0"),
    (optim.Adadelta, {"rho": 2.0}, "Invalid rho value: 2.0"),
    (optim.NAdam, {"momentum_decay": -1.0}, "Invalid momentum_decay value: -1.0"),
    (optim.Rprop, {"etas": (2.0, 1.2)}, "Invalid eta values: 2.0, 1.2"),
    (optim.Adam, {"lr": vesta.tensor([0.1, 0.2])}, r"^Adam: Tensor lr must be 1-element, got shape \[2\] \(lr\)\.$"),
    (optim.SGD, {"lr": vesta.tensor([])}, r"^SGD: Tensor lr must be 1-element, got shape \[0\] \(lr\)\.$"),
    (optim.NAdam, {"lr": vesta.tensor([0.1, 0.2])}, r"^NAdam: Tensor lr must be 1-element, got shape \[2\] \(lr\)\.$"),
    (optim.Adam, {"betas": (vesta.ones(2), 0.9)}, r"^Adam: Tensor betas must be 1-element, got shape \[2\]"),
])  # fmt: skip
def test_options_are_checked_in_every_group(make, options, message) -> None:
    params = [parameter(), parameter()]
    with pytest.raises(ValueError, match=message):
        make(params, **options)
    with pytest.raises(ValueError, match=message):
        make([{"params": params, **options}])
    optimizer = make(params[:1])
    with pytest.raises(ValueError, match=message):
        optimizer.add_param_group({"params": params[1], **options})
    assert len(optimizer.param_groups) == 1
    optimizer.add_param_group({"params": params[1], "lr": 0.5, "name": "last", "initial_lr": "any"})
    optimizer.step()


@pytest.mark.parametrize("make", [optim.Adam, optim.SGD, optim.RMSprop, optim.Rprop, optim.AdamW])
def test_wrong_kinds_of_options_name_class_and_argument(make) -> None:
    name = make.__name__
    with pytest.raises(
        TypeError, match=rf"^{name}: expected a real number, got a tensor of dtype .*complex64 \(lr\)\.$"
    ):
        make([parameter()], lr=vesta.tensor(1j))
    with pytest.raises(TypeError, match=rf"^{name}.__init__\(\) got an unexpected keyword argument 'learning_rate'"):
        make([parameter()], learning_rate=0.1)
    with pytest.raises(TypeError, match=rf"^{name}.__init__\(\) missing .* required .*argument: 'params'"):
        make()
    with pytest.raises(TypeError, match=r"expected float or Tensor, got str \(lr\)"):
        make([{"params": [parameter()], "lr": "fast"}])


@pytest.mark.parametrize("make", [optim.Adam, optim.AdamW, optim.SGD, optim.Adagrad])
def test_fused_and_foreach_exclude_each_other(make) -> None:
    with pytest.raises(RuntimeError, match=r"^`fused` and `foreach` cannot be `True` together\.$"):
        make([parameter()], fused=True, foreach=True)


def test_numbers_of_numpy_and_tensors_are_numbers() -> None:
    np = pytest.importorskip("numpy")
    for make in (optim.Adam, optim.NAdam, optim.RAdam, optim.Adamax):
        results = []
        for beta in (0.5, np.float32(0.5), np.float64(0.5), vesta.tensor(0.5), vesta.tensor([0.5])):
            param = parameter()
            optimizer = make([param], betas=(beta, 0.75), lr=0.5)
            optimizer.step()
            optimizer.step()
            results.append(param.tolist())
        assert results == results[:1] * 5, make


def test_sparse_adam_refuses_sparse_parameters() -> None:
    sparse = vesta.ones(3).to_sparse().requires_grad_()
    message = r"^Sparse params at indices \[\[0, 1\]\]: SparseAdam requires dense parameter tensors$"
    with pytest.raises(ValueError, match=message):
        optim.SparseAdam([parameter(), sparse])


def test_optimizers_of_real_numbers_refuse_complex_parameters() -> None:
    with pytest.raises(ValueError, match=r"^Complex params at indices \[\[0, 1\]\]: SparseAdam does not support "):
        optim.SparseAdam([parameter(), vesta.ones(3, dtype=vesta.complex64, requires_grad=True)])
    for make in (optim.Muon, optim.Adafactor):
        param = vesta.nn.Parameter(vesta.ones(2, 3, dtype=vesta.complex64))
        optimizer = make([param])
        param.grad = vesta.ones_like(param)
        with pytest.raises(RuntimeError, match=rf"^{make.__name__} does not support complex parameters$"):
            optimizer.step()


def trained(dtype=F32) -> optim.Optimizer:
    optimizer = optim.Adam([parameter(dtype=dtype), parameter(dtype=dtype)], lr=0.1, amsgrad=True)
    optimizer.step()
    return optimizer


WHERE = r"^Adam\.load_state_dict: expected "
DAMAGE = {
    "step of two": (
        lambda d: d["state"][0].update(step=vesta.ones(2)),
        WHERE + r"a number or a tensor of one, got a tensor of shape \[2\] .* \(state\[0\]\['step'\]\)\.$",
    ),
    "step of letters": (
        lambda d: d["state"][1].update(step="a"),
        WHERE + r"a number or a tensor of one, got str \(state\[1\]\['step'\]\)\.$",
    ),
    "number for a moment": (
        lambda d: d["state"][0].update(exp_avg=3.0),
        WHERE + r"a tensor for exp_avg of parameter 0 of group 0, got float \(state\[0\]\['exp_avg'\]\)\.$",
    ),
    "list for a moment": (lambda d: d["state"][0].update(exp_avg=[1.0]), WHERE + r"a tensor for exp_avg .*got list"),
    "None for a moment": (
        lambda d: d["state"][0].update(max_exp_avg_sq=None), WHERE + r"a tensor for max_exp_avg_sq .*got NoneType",
    ),
    "sparse moment": (
        lambda d: d["state"][0].update(exp_avg=vesta.ones(3).to_sparse()), WHERE + r"a tensor of layout .*strided, got",
    ),
    "complex moment": (
        lambda d: d["state"][0].update(exp_avg=vesta.ones(3) * 1j), WHERE + r"real numbers, got a tensor of dtype",
    ),
    "lr of letters": (
        lambda d: d["param_groups"][0].update(lr="a"), WHERE + r"a number, got str \(param_groups\[0\]\['lr'\]\)\.$",
    ),
    "three betas": (
        lambda d: d["param_groups"][0].update(betas=(0.9,) * 3), WHERE + r"2 numbers, got a tuple of 3 .*\['betas'\]",
    ),
    "number for a state": (
        lambda d: d["state"].update({0: 3}), WHERE + r"a dict of a parameter's state, got int \(state\[0\]\)\.$",
    ),
    "number for all states": (
        lambda d: d.update(state=3), WHERE + r"a dict of parameters' numbers and their state, got int \(state\)\.$",
    ),
    "number for the groups": (
        lambda d: d.update(param_groups=3), WHERE + r"a list of groups, got int \(param_groups\)\.$",
    ),
    "number for a group": (
        lambda d: d.update(param_groups=[3]), WHERE + r"a dict with 'params' and options, got int \(param_groups\[0\]",
    ),
    "group without params": (
        lambda d: d["param_groups"][0].pop("params"), WHERE + r"the key 'params', got the keys \['amsgrad', ",
    ),
    "lists for numbers": (
        lambda d: d["param_groups"][0].update(params=[[0], [1]]),
        WHERE + r"numbers of parameters, got list \(param_groups\[0\]\['params'\]\)",
    ),
    "number for params": (
        lambda d: d["param_groups"][0].update(params=3), WHERE + r"a list, got int \(param_groups\[0\]\['params'\]\)",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("damage", "message"), DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_state_dict_is_refused_whole(damage, message) -> None:
    optimizer = trained()
    saved = copy.deepcopy(optimizer.state_dict())
    before = copy.deepcopy(saved)
    saved["param_groups"][0]["lr"] = 9.0
    damage(saved)
    with pytest.raises((TypeError, ValueError), match=message):
        optimizer.load_state_dict(saved)
    after = optimizer.state_dict()
    assert after["param_groups"] == before["param_groups"]
    for number, entries in before["state"].items():
        assert all(vesta.equal(value, after["state"][number][name]) for name, value in entries.items())
    optimizer.step()


@pytest.mark.parametrize("step", [1001, 1001.0, vesta.tensor(1001.0), vesta.tensor([1001.0]), vesta.tensor([[1001]])])
def test_the_number_of_steps_keeps_its_digits(step) -> None:
    optimizer = trained(vesta.bfloat16)
    saved = optimizer.state_dict()
    saved["state"][0]["step"] = step
    optimizer.load_state_dict(saved)
    optimizer.step()
    assert float(optimizer.state[optimizer.param_groups[0]["params"][0]]["step"]) == 1002.0


def test_sgd_loads_a_missing_momentum() -> None:
    optimizer = optim.SGD([parameter()], lr=1.0, momentum=0.5)
    saved = optimizer.state_dict()
    optimizer.load_state_dict({**saved, "state": {0: {"momentum_buffer": None}}})  # as PyTorch saves it
    optimizer.step()
    with pytest.raises(TypeError, match=r"^SGD\.load_state_dict: expected a tensor for momentum_buffer"):
        optimizer.load_state_dict({**saved, "state": {0: {"momentum_buffer": 3}}})


def test_two_numbers_have_an_order() -> None:
    for wrong in ({0.5, 0.9}, (x for x in (0.5, 0.9)), {0.5: 1, 0.9: 2}, "ab", vesta.tensor(0.5)):
        with pytest.raises(TypeError, match=r"^Adam: expected two numbers, got \w+ \(betas\)\.$"):
            optim.Adam([parameter()], betas=wrong)
        with pytest.raises(TypeError, match=r"^Rprop: expected two numbers, got \w+ \(etas\)\.$"):
            optim.Rprop([parameter()], etas=wrong)
    with pytest.raises(TypeError, match=r"^Muon: expected three numbers, got tuple_iterator \(ns_coefficients\)\.$"):
        optim.Muon([parameter()], ns_coefficients=iter((1.0, 2.0, 3.0)))


def test_pairs_in_arrays_are_kept_as_numbers() -> None:
    """Arrays and tensors of betas stayed what they are: a saved state could not be loaded, and tensors were refused."""
    np = pytest.importorskip("numpy")
    for line in (np.array([0.5, 0.75]), vesta.tensor([0.5, 0.75])):
        param = vesta.ones(2, requires_grad=True)
        optimizer = vesta.optim.Adam([param], betas=line)
        again = vesta.optim.Adam([{"params": [param], "betas": line}])
        for made in (optimizer, again):
            assert made.param_groups[0]["betas"] == (0.5, 0.75)
        again.load_state_dict(optimizer.state_dict())
    assert vesta.optim.SGD([param], lr=vesta.tensor([0.1])).param_groups[0]["lr"].shape == (1,)
    schedulers = [vesta.optim.lr_scheduler.ConstantLR(optimizer) for _ in range(2)]
    for unordered in ({1}, iter([1]), "1"):
        with pytest.raises(TypeError, match="expected a list of ints"):
            vesta.optim.lr_scheduler.SequentialLR(optimizer, schedulers, unordered)  # type: ignore[arg-type]
