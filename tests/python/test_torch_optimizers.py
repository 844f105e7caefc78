"""Optimizers and schedules against what PyTorch's did from the same start, as it was recorded; averages of weights."""

from __future__ import annotations

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import vesta
from torch_optimizers import run
from vesta import nn, optim
from vesta.optim import swa_utils


@cache
def recorded() -> dict[str, Any]:
    return json.loads((Path(run.__file__).parent / "recorded.json").read_text())


@pytest.mark.parametrize("case", run.OPTIMIZERS, ids=run.name_of)
def test_it_steps_as_pytorchs_does(case: tuple[str, dict[str, Any]]) -> None:
    wanted, found = recorded()[run.name_of(case)], run.train(vesta, *case)
    bound = 2e-2 if case[0] == "Muon" else 1e-9  # Muon computes in bfloat16
    for own, theirs in zip(found["after"], wanted["after"]):
        assert max(abs(x - y) for x, y in zip(own, theirs)) <= bound
    if case[0] == "LBFGS":  # PyTorch keeps numbers as 0-d tensors
        assert list(found["state"]) == [key for key in found["state"] if key in wanted["state"]]
        assert found["state"]["d"] == wanted["state"]["d"] and len(found["state"]) == len(wanted["state"])
    else:
        assert found["state"] == wanted["state"]
    assert found["options"] == wanted["options"]


@pytest.mark.parametrize("case", run.SCHEDULES, ids=run.name_of)
def test_rates_are_pytorchs(case: tuple[str, dict[str, Any]]) -> None:
    for own, theirs in zip(run.rates(vesta, *case), recorded()[run.name_of(case)]):
        assert own == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize(
    "name", ["Adadelta", "Adagrad", "Adamax", "ASGD", "NAdam", "RAdam", "Rprop", "Adafactor", "LBFGS"]
)
def test_training_goes_on_from_a_saved_state(name: str) -> None:
    def step(optimizer: optim.Optimizer, weight: nn.Parameter) -> None:
        def closure() -> vesta.Tensor:
            optimizer.zero_grad()
            loss = ((weight - 0.3) ** 4).sum()
            loss.backward()
            return loss

        optimizer.step(closure)

    options = {"max_iter": 2} if name == "LBFGS" else {}
    first = nn.Parameter(vesta.tensor([[1.0, -2.0], [0.5, 3.0]]))
    optimizer = getattr(optim, name)([first], **options)
    step(optimizer, first)
    second = nn.Parameter(first.detach().clone())
    other = getattr(optim, name)([second], **options)
    other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    for _ in range(2):
        step(optimizer, first)
        step(other, second)
    assert first.tolist() == second.tolist()


def test_bad_options() -> None:
    weight = [nn.Parameter(vesta.ones(2))]
    wrong: list[tuple[str, dict[str, Any], str]] = [
        ("Adadelta", {"rho": 1.5}, "Invalid rho value: 1.5"),
        ("Adagrad", {"lr": -1.0}, "Invalid learning rate: -1.0"),
        ("Adamax", {"betas": (0.5, 1.0)}, "Invalid beta parameter at index 1: 1.0"),
        ("NAdam", {"momentum_decay": -1.0}, "Invalid momentum_decay value"),
        ("Rprop", {"etas": (1.5, 1.2)}, "Invalid eta values: 1.5, 1.2"),
        ("Adafactor", {"d": 0.5}, "Clipping threshold d should be >= 1"),
        ("Muon", {}, "Muon only supports 2D parameters"),
        ("LBFGS", {"line_search_fn": "newton"}, "only 'strong_wolfe'"),
    ]
    for name, options, message in wrong:
        with pytest.raises(ValueError, match=message):
            getattr(optim, name)(weight, **options)
    with pytest.raises(ValueError, match="parameter groups"):
        optim.LBFGS([{"params": weight}, {"params": [nn.Parameter(vesta.ones(1))]}])
    with pytest.raises(NotImplementedError, match="capturable"):
        optim.RAdam(weight, capturable=True)


def test_maximize_climbs() -> None:
    for name in ("Adagrad", "Adamax", "ASGD", "NAdam", "RAdam", "Rprop", "Adafactor"):
        weight = nn.Parameter(vesta.ones(2, 2))
        optimizer = getattr(optim, name)([weight], maximize=True)
        weight.sum().backward()
        optimizer.step()
        assert bool((weight > 1).all()), name


def test_averages_of_weights() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    averaged = swa_utils.AveragedModel(model)
    smoothed = swa_utils.AveragedModel(model, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.5), use_buffers=True)
    for value in (1.0, 2.0, 6.0):
        nn.init.constant_(model[0].weight, value)
        model[1].running_mean.fill_(value)
        averaged.update_parameters(model)
        smoothed.update_parameters(model)
    assert averaged.module[0].weight.flatten().tolist() == [3.0] * 4  # (1 + 2 + 6) / 3
    assert averaged.module[1].running_mean.tolist() == [6.0, 6.0]  # copied
    assert smoothed.module[0].weight.flatten().tolist() == [3.75] * 4  # ((1 + 2) / 2 + 6) / 2
    assert smoothed.module[1].running_mean.tolist() == [3.75, 3.75]
    assert int(averaged.n_averaged) == 3 and list(averaged.state_dict())[0] == "n_averaged"
    low, high = vesta.tensor([-65504.0]).half(), vesta.tensor([65504.0]).half()
    swa_utils.get_swa_multi_avg_fn()([low], [high], 1)
    assert low.tolist() == [0.0]
    for update in (swa_utils.get_swa_multi_avg_fn(), swa_utils.get_ema_multi_avg_fn()):
        with pytest.raises(ValueError, match="shorter"):
            update([low, low], [high], 1)


def test_statistics_are_computed_anew() -> None:
    model = nn.Sequential(nn.BatchNorm1d(1)).eval()
    swa_utils.update_bn([(vesta.tensor([[1.0], [3.0]]), "label"), (vesta.tensor([[5.0], [7.0]]), "label")], model)
    assert model[0].running_mean.tolist() == [4.0] and model[0].momentum == 0.1 and not model[0].training
