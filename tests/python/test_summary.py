"""vesta.summary: multiply-adds counted by hand, calls in their order, and a model that is left as it was."""

from __future__ import annotations

import doctest
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import vesta
from layers_table import LAYERS, Row
from vesta import nn
from vesta.nn.modules import hooks
from vesta.nn.utils.rnn import pack_sequence
from vesta.utils import _pytree

# Layer, input, multiply-adds by hand.
COUNTED = [
    (nn.Linear(5, 3), vesta.ones(2, 4, 5), 2 * 4 * 3 * 5),
    (nn.Bilinear(2, 3, 4), (vesta.ones(6, 2), vesta.ones(6, 3)), 6 * 4 * (2 * 3 + 2)),
    (nn.Conv1d(2, 4, 3), vesta.ones(1, 2, 7), 4 * 5 * 2 * 3),
    (nn.Conv2d(4, 6, (3, 5), padding=1, groups=2), vesta.ones(2, 4, 8, 8), 2 * 6 * 8 * 6 * 2 * 15),
    (nn.Conv3d(1, 2, 2), vesta.ones(1, 1, 3, 3, 3), 2 * 8 * 8),
    (nn.ConvTranspose2d(4, 6, 3, stride=2, groups=2), vesta.ones(1, 4, 5, 5), 4 * 25 * 3 * 9),
    (nn.BatchNorm2d(3), vesta.ones(2, 3, 4, 4), 96),
    (nn.BatchNorm1d(3, track_running_stats=False), vesta.ones(2, 3), 18),
    (nn.LayerNorm(4), vesta.ones(2, 4), 24),
    (nn.GroupNorm(2, 4), vesta.ones(2, 4), 24),
    (nn.InstanceNorm1d(2), vesta.ones(1, 2, 5), 30),
    (nn.RMSNorm(4), vesta.ones(2, 4), 16),
    (nn.PReLU(), vesta.ones(3, 4), 12),
    (nn.RNN(3, 4), vesta.ones(5, 2, 3), 2 * 5 * 4 * (3 + 4)),
    (nn.GRU(3, 4, batch_first=True), vesta.ones(2, 5, 3), 2 * 5 * 3 * 4 * (3 + 4)),
    (nn.LSTM(3, 4, 2, bidirectional=True), vesta.ones(5, 2, 3), 10 * 4 * 4 * 2 * ((3 + 4) + (8 + 4))),
    (nn.LSTM(3, 4, proj_size=2), vesta.ones(5, 3), 5 * (4 * 4 * (3 + 2) + 4 * 2)),
    (nn.LSTM(3, 4), (pack_sequence([vesta.ones(4, 3), vesta.ones(2, 3)]),), 6 * 4 * 4 * 7),
    (nn.GRUCell(3, 4), vesta.ones(2, 3), 2 * 3 * 4 * 7),
    (nn.LSTMCell(3, 4), vesta.ones(3), 4 * 4 * 7),
    (
        nn.MultiheadAttention(8, 2),
        (vesta.ones(5, 2, 8), vesta.ones(3, 2, 8), vesta.ones(3, 2, 8)),
        2 * ((5 + 3 + 3 + 5) * 64 + 2 * 5 * 3 * 8),
    ),
    (
        nn.MultiheadAttention(8, 2, kdim=4, vdim=6, add_bias_kv=True, add_zero_attn=True, batch_first=True),
        {"query": vesta.ones(2, 5, 8), "key": vesta.ones(2, 3, 4), "value": vesta.ones(2, 3, 6)},
        2 * (2 * 5 * 64 + 3 * 4 * 8 + 3 * 6 * 8 + 2 * 5 * 5 * 8),
    ),
    (nn.Embedding(7, 3), vesta.arange(4), 0),
    (nn.ReLU(), vesta.ones(4), 0),
    (nn.MaxPool2d(2), vesta.ones(1, 1, 4, 4), 0),
]


@pytest.mark.parametrize(("layer", "input", "expected"), COUNTED, ids=[type(layer).__name__ for layer, _, _ in COUNTED])
def test_multiply_adds(layer: nn.Module, input: Any, expected: int) -> None:
    found = vesta.summary(layer, input)
    assert found.multiply_adds == expected and found.uncounted == []
    assert found.parameters == sum(p.numel() for p in layer.parameters())


class Net(nn.Module):
    """A layer that is called twice, one that is not, several inputs and outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.shared, self.unused = nn.Linear(4, 4), nn.Linear(1, 1)
        self.parts = nn.ModuleList([nn.Flatten(), nn.ReLU(inplace=True)])

    def forward(self, x: vesta.Tensor, extra: Any = None, *, scale: Any = None) -> Any:
        first = self.shared(x)
        second = self.parts[1](self.shared(self.parts[0](first)))
        if scale is not None:
            second = second * scale
        return {"out": second, "both": (first, extra["x"] if extra else None)}


def test_inputs_by_name() -> None:
    """``summary(model, src=x, tgt=y)``, beside inputs by place or alone."""
    model = nn.Transformer(8, 2, 1, 1, 16)
    x, y = vesta.ones(3, 1, 8), vesta.ones(4, 1, 8)
    expected = str(vesta.summary(model, (x, y)))
    assert str(vesta.summary(model, src=x, tgt=y)) == str(vesta.summary(model, x, tgt=y)) == expected
    assert str(vesta.summary(model, {"src": x}, tgt=y)) == expected
    assert vesta.summary(nn.Linear(2, 3), input=vesta.ones(2)).rows[0].outputs == [3]
    with pytest.raises(TypeError, match="multiple values for argument 'tgt'"):
        vesta.summary(model, {"src": x, "tgt": y}, tgt=y)


def test_rows_are_calls() -> None:
    """A row for each call, in order, with sizes in the structure of the values; totals count shared parameters once."""
    found = vesta.summary(Net(), (vesta.ones(2, 4), {"x": vesta.ones(3)}))
    assert [(row.name, row.call, row.depth) for row in found.rows] == [
        ("", 1, 0),
        ("shared", 1, 1),
        ("parts.0", 1, 1),
        ("shared", 2, 1),
        ("parts.1", 1, 1),
    ]
    assert found.rows[0].inputs == ([2, 4], {"x": [3]})
    assert found.rows[0].outputs == {"out": [2, 4], "both": ([2, 4], [3])}
    assert (found.parameters, found.parameter_bytes, found.multiply_adds) == (22, 88, 2 * 32)
    assert found.not_called == ["unused"]
    assert found.activation_bytes == 64 and found.input_bytes == 32 + 12  # Flatten and an in-place ReLU take nothing
    text = str(found)
    assert "shared (call 2)" in text and "{out: [2, 4], both: ([2, 4], [3])}" in text and "Not called: unused." in text
    by_name = vesta.summary(Net(), {"x": vesta.ones(2, 4), "scale": 2.0})
    assert by_name.rows[0].outputs["both"] == ([2, 4], None) and "-" in str(by_name)
    assert found.rows[1].to_dict()["multiply_adds"] == 32
    shown = found._repr_html_()
    assert "shared (call 2)" in shown and "Multiply-adds: 64." in shown and len(shown) < 5000


def test_transformers_and_packed_sequences() -> None:
    """Attention is counted once, with its projections, in a model that contains it."""
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    found = vesta.summary(nn.TransformerEncoder(layer, 2), vesta.ones(2, 5, 8))
    attention = 2 * (4 * 5 * 64 + 2 * 5 * 5 * 8)
    assert found.multiply_adds == 2 * (attention + 2 * 10 * 8 * 16 + 2 * 3 * 80)
    assert found.not_called == []


def test_counts_of_further_layers() -> None:
    class Scale(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.factor = nn.Parameter(vesta.ones(3))

        def forward(self, x: vesta.Tensor) -> vesta.Tensor:
            return x * self.factor

    model = nn.Sequential(Scale(), nn.Linear(3, 2))
    plain = vesta.summary(model, vesta.ones(4, 3))
    assert plain.uncounted == ["Scale"] and plain.multiply_adds == 24 and "not counted: Scale" in str(plain)
    counted = vesta.summary(model, vesta.ones(4, 3), counts={Scale: lambda m, inputs, output: inputs["x"].numel()})
    assert counted.uncounted == [] and counted.multiply_adds == 36


class Busy(nn.Module):
    """A model whose forward changes whatever it can."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.drop, self.linear = nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 4)
        self.register_buffer("seen", vesta.zeros(1))
        self.register_buffer("none", None)
        self.calls, self.fail = 0, False

    def forward(self, x: vesta.Tensor) -> vesta.Tensor:
        self.calls += 1
        self.seen += 1
        self.last = x
        self.linear.requires_grad_ = None
        x.add_(vesta.rand(1)).mul_(random.random() + np.random.random())
        self.norm.train()
        out = self.drop(self.linear(self.norm(x)))
        if self.fail:
            raise RuntimeError("on purpose")
        return out


def state_of(model: Busy) -> dict[str, Any]:
    """Returns all that a model is: values, identities, versions, attributes, and the random states."""
    tensors = [*model.parameters(), *model.buffers()]
    return {
        "ids": [id(t) for t in tensors],
        "values": [t.tolist() for t in tensors],
        "versions": [t._version for t in tensors],
        "grads": [(p.grad.data_ptr(), p.grad.tolist()) for p in model.parameters()],
        "attributes": [{k: v for k, v in vars(m).items() if not isinstance(v, vesta.Tensor)} for m in model.modules()],
        "order": [list(vars(m)) for m in model.modules()],
        "tables": [list(m._buffers) for m in model.modules()],
        "random": (vesta.get_rng_state().tolist(), random.getstate(), np.random.get_state()[1].tolist()),
        "position": np.random.get_state()[2],
        "global hooks": (
            list(hooks.any_global),
            len(hooks._global_forward_hooks),
            len(hooks._global_forward_pre_hooks),
        ),
        "threads": (vesta.is_grad_enabled(), vesta.is_inference_mode_enabled()),
    }


@pytest.mark.parametrize("fail", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_the_model_is_left_as_it_was(training: bool, fail: bool) -> None:
    model = Busy().train(training)
    model.drop.train(not training)  # modes of parts differ
    model.fail = fail
    heard: list[Any] = []
    model.linear.register_forward_hook(lambda module, args, output: heard.append(output.shape))
    x = vesta.randn(8, 4)
    model.linear(x).sum().backward()
    model.norm(x.clone()).sum().backward()
    heard.clear()
    before, given, version = state_of(model), x.tolist(), x._version
    if fail:
        with pytest.raises(RuntimeError, match="on purpose"):
            vesta.summary(model, x)
    else:
        found = vesta.summary(model, x)
        assert found.parameters == 28 and found.buffer_bytes == 4 * 4 * 2 + 8 + 4
    assert state_of(model) == before and (x.tolist(), x._version) == (given, version)
    assert len(heard) == 1 and not hasattr(model, "last")
    model.norm.running_mean.add_(1)  # an attribute and the table's entry are still one
    assert model.norm._buffers["running_mean"] is model.norm.running_mean


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match=r"summary: expected a vesta.nn.Module, got function \(model\)"):
        vesta.summary(lambda x: x, vesta.ones(1))
    with pytest.raises(ValueError, match="'weight' has no shape yet. Call the model once"):
        vesta.summary(nn.LazyLinear(2), vesta.ones(1, 2))
    with pytest.raises(TypeError, match=r"a mapping of classes to functions \(counts\)"):
        vesta.summary(nn.Linear(1, 1), vesta.ones(1), counts={"Linear": 3})


def test_the_example_runs() -> None:
    """The docstring's table is what is printed."""
    import vesta._summary as module

    finder = doctest.DocTestFinder(recurse=False)
    (test,) = finder.find(module.summary, "summary", globs={})
    assert doctest.DocTestRunner().run(test).failed == 0


def test_the_example_of_the_readme_runs() -> None:
    text = (Path(__file__).resolve().parents[2] / "README.md").read_text("utf-8")
    (block,) = re.findall(r"^```pycon\n(.*?)^```$", text, re.M | re.S)
    test = doctest.DocTestParser().get_doctest(block, {}, "README.md", None, None)
    assert doctest.DocTestRunner().run(test) == (0, 5)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("row", LAYERS, ids=str)
def test_cpp_writes_the_same_table(row: Row) -> None:
    """``nn/summary.h``: for each layer that both languages have."""
    vesta.manual_seed(7)
    inputs = _pytree.tree_map(lambda value: value() if callable(value) else value, list(row.inputs))
    text = str(vesta.summary(row.build(nn), tuple(inputs)))
    assert row.build(vesta._C.cpp_nn).summary(*inputs) == text and text.startswith("Layer ")
