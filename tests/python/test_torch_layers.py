"""Each layer of ``torch_layers/table.py`` against what PyTorch said and computed for the same row, as it was recorded.

Text, attributes, names and shapes of the values are the same; initial values have the same distribution; outputs,
gradients and running statistics agree to float32's precision.
"""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import vesta
from torch_layers import run
from torch_layers.table import ROWS, Row
from vesta import nn

each_row = pytest.mark.parametrize("row", ROWS, ids=str)


@cache
def recorded() -> dict[str, Any]:
    return json.loads((Path(run.__file__).parent / "recorded.json").read_text())


def compare(where: str, got: Any, wanted: Any, tolerance: float = 2e-5) -> list[str]:
    """Returns the differences of two results in plain data; numbers may differ by ``tolerance`` of the largest one."""
    if isinstance(wanted, dict) and "values" in wanted:
        if not isinstance(got, dict) or (got["dtype"], got["shape"]) != (wanted["dtype"], wanted["shape"]):
            return [f"{where}: {got and (got['dtype'], got['shape'])}, not {wanted['dtype']}, {wanted['shape']}"]
        scale = max([1.0, *(abs(x) for x in wanted["values"] if math.isfinite(x))])
        pairs = [(x, y, tolerance * scale) for x, y in zip(got["values"], wanted["values"])]
        size = math.prod(wanted["shape"])
        pairs += [
            (x, y, tolerance * scale * math.sqrt(size) * 10)
            for x, y in zip(got.get("sums", ()), wanted.get("sums", ()))
        ]
        far = [(x, y) for x, y, bound in pairs if not (x == y or abs(x - y) <= bound or (x != x and y != y))]
        return [f"{where}: {far[0][0]}, not {far[0][1]} ({len(far)} of {len(pairs)})"] if far else []
    if isinstance(wanted, dict) and isinstance(got, dict) and list(got) == list(wanted):
        return [line for key in wanted for line in compare(f"{where}, {key}", got[key], wanted[key], tolerance)]
    if isinstance(wanted, list) and isinstance(got, list) and len(got) == len(wanted):
        pairs = enumerate(zip(got, wanted))
        return [line for i, (x, y) in pairs for line in compare(f"{where}, {i}", x, y, tolerance)]
    return [] if got == wanted else [f"{where}: {got}, not {wanted}"]


def plain(value: Any) -> Any:
    """Returns a value as JSON gives it back."""
    return json.loads(json.dumps(value))


@each_row
def test_it_shows_what_pytorchs_shows(row: Row) -> None:
    wanted = recorded()[str(row)]
    facts = plain(run.facts(run.build(vesta, row)))
    assert facts["repr"] == wanted["repr"]
    own = {name: facts["attributes"].get(name, "missing") for name in wanted["attributes"]}
    assert own == wanted["attributes"]
    for name in ("children", "parameters", "state"):
        assert facts[name] == wanted[name], name


@pytest.mark.parametrize("row", [row for row in ROWS if "initial" in recorded()[str(row)]], ids=str)
def test_it_begins_as_pytorchs_does(row: Row) -> None:
    wanted = recorded()[str(row)]["initial"]
    found = run.initial(vesta, row)
    assert list(found) == list(wanted)
    for name, (least, mean, spread, greatest, count) in wanted.items():
        own_least, own_mean, own_spread, own_greatest, own_count = found[name]
        assert own_count == count
        near = 6 * spread / math.sqrt(count) + 1e-7
        assert abs(own_mean - mean) <= 1.5 * near, (name, found[name], wanted[name])
        assert abs(own_spread - spread) <= near, (name, found[name], wanted[name])
        bound = max(abs(least), abs(greatest))
        assert max(abs(own_least), abs(own_greatest)) <= 1.8 * bound, (name, found[name], wanted[name])


@pytest.mark.parametrize("row", [row for row in ROWS if not row.text_only], ids=str)
def test_it_computes_what_pytorchs_does(row: Row) -> None:
    wanted = recorded()[str(row)]
    layer = run.build(vesta, row)
    run.fill(vesta, layer)
    evaluated = run.call(vesta, layer.eval(), row)
    found = compare("evaluation", evaluated, wanted["evaluation"])
    if row.random:
        run.call(vesta, layer.train(), row)
    else:
        training = wanted["training"] if wanted["training"] != "as in evaluation" else wanted["evaluation"]
        found += compare("training", run.call(vesta, layer.train(), row), training)
        state = {name: run.told(value) for name, value in layer.state_dict().items()}
        found += compare("state afterwards", state, wanted["state afterwards"])
    assert not found, "\n".join(found)


def test_every_layer_has_a_row() -> None:
    containers = {"Module", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"}
    bases = {"RNNBase", "RNNCellBase"}
    others = {"SyncBatchNorm", "NLLLoss2d"}  # test_distributed_nn.py; the old name of NLLLoss
    others |= {"LinearCrossEntropyOptions", *(name for name in nn.modules.__all__ if name.startswith("Lazy"))}
    missing = set(nn.modules.__all__) - {row.name for row in ROWS} - containers - bases - others
    assert not missing


@pytest.mark.differs
def test_cross_map_normalization_takes_the_window_around_each_channel() -> None:
    """PyTorch's sums keep channel 0 for ever, and its gradients are not those of its outputs."""
    layer = nn.CrossMapLRN2d(3, 0.1, 0.5, 2.0)
    x = run.tensor(vesta, run.Data((2, 5, 3, 2))).double()
    windows = vesta.stack([(x * x)[:, max(0, c - 1) : c + 2].sum(1) for c in range(5)], 1)
    assert vesta.allclose(layer(x), x * (2.0 + 0.1 / 3 * windows) ** -0.5)
    assert vesta.autograd.gradcheck(layer, (x.requires_grad_(),))
