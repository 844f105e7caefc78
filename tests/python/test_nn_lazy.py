"""Layers that learn their sizes from the first input."""

from __future__ import annotations

import copy
import pickle

import pytest
import vesta
from vesta import nn
from vesta.nn.parameter import is_lazy

INPUTS = {1: (2, 4, 9), 2: (2, 4, 9, 9), 3: (2, 4, 5, 5, 5)}
LAYERS = [
    *((f"LazyConv{d}d", (6, 3), INPUTS[d]) for d in INPUTS),
    *((f"LazyConvTranspose{d}d", (6, 3), INPUTS[d]) for d in INPUTS),
    *((f"Lazy{kind}Norm{d}d", (1e-5, 0.1, True, True), INPUTS[d]) for kind in ("Batch", "Instance") for d in INPUTS),
    ("LazyLinear", (3,), (2, 4)),
]


@pytest.mark.parametrize(("name", "args", "shape"), LAYERS, ids=[name for name, *_ in LAYERS])
def test_the_first_call_makes_an_ordinary_layer(name: str, args: tuple, shape: tuple[int, ...]) -> None:
    layer = getattr(nn, name)(*args)
    assert layer.has_uninitialized_params() and type(layer).__name__ == name
    output = layer(vesta.randn(*shape))
    plain = getattr(nn, name.removeprefix("Lazy"))
    assert type(layer) is plain and not layer._forward_pre_hooks and not hasattr(layer, "_load_hook")
    size = {"Linear": "in_features", "Conv": "in_channels"}.get(
        name[4:10] if "Linear" in name else name[4:8], "num_features"
    )
    assert getattr(layer, size) == 4 and not any(is_lazy(p) for p in layer.parameters())
    assert all(type(p) is nn.Parameter for p in layer.parameters())
    ordinary = plain(*((4, *args) if "Norm" in name or "Linear" in name or "Conv" in name else args))
    ordinary.load_state_dict(layer.state_dict())
    assert repr(ordinary) == repr(layer)
    layer.eval(), ordinary.eval()
    x = vesta.randn(*shape)
    assert layer(x).tolist() == ordinary(x).tolist() and output.shape == layer(x).shape


def test_unbatched_images_and_groups() -> None:
    layer = nn.LazyConv2d(6, 3, groups=2)
    layer(vesta.zeros(4, 9, 9))
    assert layer.in_channels == 4 and layer.weight.shape == (6, 2, 3, 3)
    with pytest.raises(ValueError, match="in_channels must be divisible by groups"):
        nn.LazyConv2d(6, 3, groups=2)(vesta.zeros(3, 9, 9))
    with pytest.raises(RuntimeError, match=r"Expected 3D \(unbatched\) or 4D \(batched\) input to LazyConv2d"):
        nn.LazyConv2d(6, 3)(vesta.zeros(9, 9))


def test_a_state_dict_gives_the_shapes() -> None:
    model = nn.Sequential(nn.LazyConv1d(3, 2), nn.LazyBatchNorm1d(), nn.Flatten(), nn.LazyLinear(2))
    twin = copy.deepcopy(model)
    model(vesta.randn(2, 5, 4))
    assert twin.load_state_dict(model.state_dict()).missing_keys == []
    assert twin[0].weight.tolist() == model[0].weight.tolist() and not is_lazy(twin[1].running_mean)
    x = vesta.randn(2, 5, 4)
    assert (
        twin.eval()(x).tolist() == model.eval()(x).tolist() and type(twin[3]) is nn.Linear and twin[3].in_features == 9
    )


def test_what_has_no_shape_yet_says_so() -> None:
    layer = nn.LazyLinear(2).double()
    assert is_lazy(layer.weight) and layer.weight.dtype == vesta.float64
    for use in (lambda w: w + 1, lambda w: w.sum(), lambda w: vesta.relu(w)):
        with pytest.raises(ValueError, match="uninitialized parameter"):
            use(layer.weight)
    with pytest.raises(RuntimeError, match="Can't access the shape"):
        _ = layer.weight.shape
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert is_lazy(other.weight) and other.weight.dtype == vesta.float64
        assert other(vesta.ones(1, 3, dtype=vesta.float64)).shape == (1, 2)
    with pytest.raises(RuntimeError, match="copying the parameter|uninitialized"):
        nn.Linear(3, 2).load_state_dict(nn.LazyLinear(2).state_dict())


def test_a_lazy_module_of_ones_own() -> None:
    class Scale(nn.modules.lazy.LazyModuleMixin, nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.UninitializedParameter()

        def initialize_parameters(self, x: vesta.Tensor) -> None:
            self.weight.materialize(x.shape[-1:])
            nn.init.ones_(self.weight)

        def forward(self, x: vesta.Tensor) -> vesta.Tensor:
            return x * self.weight

    layer = Scale()
    assert layer(vesta.ones(2, 3)).tolist() == [[1.0] * 3] * 2 and type(layer) is Scale
    forgets = type("Forgets", (Scale,), {"initialize_parameters": lambda self, x: None})()
    with pytest.raises(RuntimeError, match="has not been fully initialized"):
        forgets(vesta.ones(2))
