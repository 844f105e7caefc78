"""Steps of optimizers, which are structs: recorded steps, lists of any memory, complex parameters, state by name."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import vesta
from vesta import Tensor, nn, optim

#: Optimizers with options; the numbers of steps are few, so that gradients of the formulas stay well conditioned.
ROWS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "maximize": True}),
    ("Adam", {"lr": 0.1, "eps": 0.1, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.1, "eps": 0.1, "amsgrad": True, "betas": (0.5, 0.6)}),
    ("AdamW", {"lr": 0.1, "eps": 0.1}),
    ("RMSprop", {"lr": 0.1, "eps": 0.1, "centered": True, "momentum": 0.5}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "eps": 0.1}),
    ("Adadelta", {"eps": 0.1, "weight_decay": 0.1}),
    ("Adamax", {"lr": 0.1, "eps": 0.1}),
    ("NAdam", {"lr": 0.1, "eps": 0.1, "decoupled_weight_decay": True, "weight_decay": 0.1}),
    ("RAdam", {"lr": 0.1, "eps": 0.1, "betas": (0.9, 0.6)}),
    ("ASGD", {"lr": 0.1, "t0": 1, "lambd": 0.1}),
]
IDS = [f"{name}-{i}" for i, (name, _) in enumerate(ROWS)]


def values(*shape: int, seed: int = 0, dtype: Any = vesta.float64) -> Tensor:
    generator = vesta.Generator().manual_seed(seed)
    return vesta.randn(shape, generator=generator, dtype=dtype)


def stepped(name: str, options: dict[str, Any], p: Tensor, grads: list[Tensor]) -> Tensor:
    """Returns what p has become after a recorded step with each gradient."""
    p = p.clone()
    p.retain_grad()
    optimizer = getattr(optim, name)([p], differentiable=True, **options)
    for grad in grads:
        p.grad = grad
        optimizer.step()
    return p


@pytest.mark.parametrize(("name", "options"), ROWS, ids=IDS)
def test_gradients_flow_through_recorded_steps(name: str, options: dict[str, Any]) -> None:
    p, grads = values(3, 2, seed=1).requires_grad_(), [values(3, 2, seed=2 + i).requires_grad_() for i in range(3)]
    assert vesta.autograd.gradcheck(lambda p, *g: stepped(name, options, p, list(g)), (p, *grads))


@pytest.mark.parametrize(("name", "options"), [*ROWS, ("Rprop", {"lr": 0.1})], ids=[*IDS, "Rprop"])
def test_recorded_steps_are_the_kernels(name: str, options: dict[str, Any]) -> None:
    grads = [values(3, 2, seed=2 + i) for i in range(3)]
    leaf = nn.Parameter(values(3, 2, seed=1))
    optimizer = getattr(optim, name)([leaf], **options)
    for grad in grads:
        leaf.grad = grad
        optimizer.step()
    start = values(3, 2, seed=1).requires_grad_()
    assert vesta.allclose(stepped(name, options, start, grads), leaf, rtol=1e-12, atol=1e-14)


def test_a_leaf_is_not_stepped_while_recording() -> None:
    leaf = nn.Parameter(vesta.ones(2))
    leaf.grad = vesta.ones(2)
    with pytest.raises(RuntimeError, match="leaf"):
        optim.SGD([leaf], lr=0.1, differentiable=True).step()
    assert leaf.tolist() == [1.0, 1.0]


def test_a_learning_rate_that_wants_a_gradient_is_refused() -> None:
    p = vesta.ones(2, requires_grad=True).clone()
    p.grad = vesta.ones(2)
    optimizer = optim.SGD([p], lr=vesta.tensor(0.1, requires_grad=True), differentiable=True)
    with pytest.raises(NotImplementedError, match="expected lr without a gradient"):
        optimizer.step()


@pytest.mark.parametrize(("name", "options"), [*ROWS, ("Rprop", {"lr": 0.1})], ids=[*IDS, "Rprop"])
def test_parameters_of_any_memory(name: str, options: dict[str, Any]) -> None:
    """A parameter with holes, a transposed one and its gradient in another order are stepped as their copies are."""
    wide = values(4, 6, seed=1)
    views = [wide[:, ::2], wide[:2, 1::2].t(), wide[3:, 1:2]]
    plain = [nn.Parameter(v.contiguous()) for v in views]
    strided = [nn.Parameter(v) for v in views]
    assert not strided[0].is_contiguous()
    made = [getattr(optim, name)(params, **options) for params in (plain, strided)]
    for step in range(3):
        for a, b in zip(plain, strided):
            a.grad = values(*a.shape, seed=10 + step)
            b.grad = a.grad.t().contiguous().t()
        for optimizer in made:
            optimizer.step()
    for a, b in zip(plain, strided):
        assert vesta.equal(a, b)


@pytest.mark.parametrize(("name", "options"), [*ROWS, ("Rprop", {"lr": 0.1})], ids=[*IDS, "Rprop"])
def test_complex_parameters_are_pairs(name: str, options: dict[str, Any]) -> None:
    start = values(3, dtype=vesta.complex128)
    whole, pairs = nn.Parameter(start), nn.Parameter(vesta.view_as_real(start).clone())
    made = [getattr(optim, name)([p], **options) for p in (whole, pairs)]
    for step in range(3):
        whole.grad = values(3, seed=step, dtype=vesta.complex128)
        pairs.grad = vesta.view_as_real(whole.grad).clone()
        for optimizer in made:
            optimizer.step()
    assert whole.is_complex() and vesta.equal(vesta.view_as_real(whole.detach()), pairs)


def test_one_call_updates_tensors_of_all_sizes_to_the_same_bits() -> None:
    """A list is one loop: what a parameter becomes does not depend on what stands beside it, or on threads."""
    shapes = [(1,), (0,), (16385,), (3, 5), (40000,), (), (63,)]
    alone, together, serial = ([nn.Parameter(values(*s, seed=i)) for i, s in enumerate(shapes)] for _ in range(3))
    for params in (alone, together, serial):
        for i, p in enumerate(params):
            p.grad = values(*p.shape, seed=100 + i)
    for p in alone:
        optim.NAdam([p], lr=0.1).step()
    optim.NAdam(together, lr=0.1).step()
    threads = vesta.get_num_threads()
    vesta.set_num_threads(1)
    try:
        optim.NAdam(serial, lr=0.1).step()
    finally:
        vesta.set_num_threads(threads)
    for a, b, c in zip(alone, together, serial):
        assert vesta.equal(a, b) and vesta.equal(a, c)


@pytest.mark.parametrize("name", ["NAdam", "ASGD"])
def test_numbers_of_the_state_keep_their_dtype(name: str) -> None:
    p = nn.Parameter(vesta.ones(3, dtype=vesta.bfloat16))
    p.grad = vesta.ones_like(p)
    optimizer = getattr(optim, name)([p])
    optimizer.step()
    other = getattr(optim, name)([p])
    other.load_state_dict(optimizer.state_dict())
    other.step()
    numbers = {key: value for key, value in other.state[p].items() if value.dim() == 0}
    assert len(numbers) >= 2 and all(value.dtype == vesta.float32 for value in numbers.values())


@pytest.mark.parametrize("columns", [slice(None), slice(None, None, 2)], ids=["dense", "strided"])
def test_parameters_over_one_another_are_stepped_in_turn(columns: slice) -> None:
    shared = vesta.zeros(64, 1024)
    params = [nn.Parameter(shared[:, columns]) for _ in range(2)]
    for p in params:
        p.grad = vesta.ones_like(p)
    optim.SGD(params, lr=1.0).step()
    assert shared[:, columns].eq(-2).all()


@pytest.mark.parametrize(
    ("name", "key"), [("NAdam", "mu_product"), ("ASGD", "eta"), ("Adam", "step"), ("RMSprop", "step")]
)
@pytest.mark.parametrize("dtype", [vesta.float64, vesta.bfloat16, vesta.int64])
def test_numbers_of_other_dtypes_are_loaded(name: str, key: str, dtype: Any) -> None:
    p = nn.Parameter(vesta.ones(3))
    p.grad = vesta.ones_like(p)
    optimizer = getattr(optim, name)([p])
    optimizer.step()
    saved = optimizer.state_dict()
    saved["state"][0][key] = saved["state"][0][key].to(dtype)
    optimizer.load_state_dict(saved)
    optimizer.step()
    assert optimizer.state[p][key].dtype == vesta.float32


def test_small_gradients_after_large_ones_are_kept() -> None:
    """A mean with beta 0 is the gradient itself."""
    p = nn.Parameter(vesta.zeros(1))
    optimizer = optim.Adam([p], betas=(0.0, 0.9))
    for value in (1e8, 1.0):
        p.grad = vesta.tensor([value])
        optimizer.step()
    assert optimizer.state[p]["exp_avg"].item() == 1.0


def test_recorded_steps_count_versions_of_numbers() -> None:
    p = vesta.ones(2, requires_grad=True).clone()
    optimizer = optim.NAdam([p], differentiable=True)
    p.grad = vesta.ones(2)
    optimizer.step()
    assert [optimizer.state[p][name]._version for name in ("step", "mu_product")] == [1, 1]


@pytest.mark.parametrize("name", ["Adam", "NAdam", "RMSprop"])
def test_state_that_lacks_something_is_completed(name: str) -> None:
    p = nn.Parameter(vesta.ones(2))
    p.grad = vesta.ones(2)
    optimizer = getattr(optim, name)([p])
    optimizer.step()
    kept = next(iter(optimizer._shaped_like_param))
    state = optimizer.state_dict()
    for key in [key for key in state["state"][0] if key != kept]:
        del state["state"][0][key]
    optimizer.load_state_dict(state)
    before = optimizer.state[p][kept].clone()
    assert before.abs().sum() > 0
    p.grad = vesta.zeros(2)
    optimizer.step()
    assert optimizer.state[p][kept].abs().sum() > 0 and optimizer.state[p]["step"].item() == 1


def trained(model: nn.Module, optimizer: optim.Optimizer) -> None:
    vesta.manual_seed(5)
    model(vesta.randn(4, 3)).square().sum().backward()
    optimizer.step()
    optimizer.zero_grad()


def test_state_goes_to_the_parameter_of_its_name() -> None:
    vesta.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    optimizer = optim.Adam(model.named_parameters())
    trained(model, optimizer)
    other = optim.Adam(reversed(list(model.named_parameters())))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        other.load_state_dict(optimizer.state_dict())
    for p in model.parameters():
        assert vesta.equal(other.state[p]["exp_avg"], optimizer.state[p]["exp_avg"])
    assert other.param_groups[0]["param_names"][0] == "1.bias"


def test_state_goes_to_its_name_in_another_group() -> None:
    a, b = nn.Parameter(vesta.ones(2)), nn.Parameter(vesta.ones(2))
    a.grad, b.grad = vesta.full((2,), 1.0), vesta.full((2,), -5.0)
    optimizer = optim.Adam([{"params": [("a", a)]}, {"params": [("b", b)]}])
    optimizer.step()
    other = optim.Adam([{"params": [("b", b)]}, {"params": [("a", a)]}])
    other.load_state_dict(optimizer.state_dict())
    assert vesta.equal(other.state[a]["exp_avg"], optimizer.state[a]["exp_avg"])


def test_names_that_are_too_few_are_refused() -> None:
    a, b = nn.Parameter(vesta.ones(2)), nn.Parameter(vesta.ones(2))
    optimizer = optim.Adam([("a", a), ("b", b)])
    saved = optimizer.state_dict()
    saved["param_groups"][0]["param_names"] = ["a"]
    with pytest.raises(ValueError, match="a name for each of 2 parameters, got 1"):
        optimizer.load_state_dict(saved)


def test_other_names_are_matched_by_place_with_a_warning() -> None:
    model = nn.Linear(3, 3)
    optimizer = optim.Adam([(f"module.{name}", p) for name, p in model.named_parameters()])
    trained(model, optimizer)
    other = optim.Adam(model.named_parameters())
    with pytest.warns(UserWarning, match=r"first 'module\.weight' \(saved\) and 'weight'"):
        other.load_state_dict(optimizer.state_dict())
    assert vesta.equal(other.state[model.weight]["exp_avg"], optimizer.state[model.weight]["exp_avg"])


@pytest.mark.parametrize("name", ["SGD", "AdamW", "Adagrad", "RAdam"])
def test_micro_batches_add_up_to_the_large_batch(name: str) -> None:
    """The mean loss of a batch, and that of its eighths divided by eight, train alike to rounding."""
    x, y = values(32, 5, seed=1), values(32, 1, seed=2)

    def train(pieces: int) -> list[Tensor]:
        vesta.manual_seed(3)
        model = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1)).double()
        optimizer = getattr(optim, name)(model.parameters(), lr=0.05)
        for _ in range(5):
            optimizer.zero_grad()
            for inputs, targets in zip(x.chunk(pieces), y.chunk(pieces)):
                (nn.functional.mse_loss(model(inputs), targets) / pieces).backward()
            optimizer.step()
        return list(model.parameters())

    for whole, pieces in zip(train(1), train(8)):
        assert vesta.allclose(whole, pieces, rtol=1e-9, atol=1e-12)
