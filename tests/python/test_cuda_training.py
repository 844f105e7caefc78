"""Training on CUDA gives the results of the CPU: the digits example, layers of the parity table, checkpoints."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import vesta
from vesta import nn

pytestmark = pytest.mark.skipif(not vesta.cuda.is_available(), reason="needs a GPU or the build tree's emulated device")

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "digits"


@pytest.fixture(scope="module")
def digits() -> Any:
    """Returns the module of the example, which is a program, not a package."""
    sys.path.insert(0, str(EXAMPLE))
    try:
        spec = importlib.util.spec_from_file_location("digits_train", EXAMPLE / "train.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(str(EXAMPLE))
        sys.modules.pop("picture", None)


def test_the_digits_example_has_the_losses_of_the_cpu(digits: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """Same seed and batches, no dropout (a device has its own generator): losses and logits agree up to rounding."""
    images, labels = digits.load(EXAMPLE.parent / "data" / "digits", "train")
    found = {}
    for device in ("cpu", "cuda"):
        vesta.manual_seed(0)
        model = digits.make_model().to(device)
        next(layer for layer in model if isinstance(layer, nn.Dropout)).p = 0.0
        data = digits.TensorDataset(images[:192], labels[:192])
        losses = digits.train(model, data, epochs=2, batch_size=32)
        found[device] = losses, digits.evaluate(model, images[:32])
    capsys.readouterr()
    for a, b in zip(found["cpu"][0], found["cuda"][0]):
        assert abs(a - b) < 2e-3 * max(1.0, abs(a))
    assert len(found["cpu"][0]) == 12 and found["cuda"][0][-1] < found["cuda"][0][0]
    assert vesta.allclose(*(found[d][1] for d in found), rtol=0.05, atol=0.05)


def test_training_repeats_bit_by_bit(digits: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    images, labels = digits.load(EXAMPLE.parent / "data" / "digits", "train")
    runs = []
    for _ in range(2):
        vesta.manual_seed(3)
        model = digits.make_model().cuda()
        digits.train(model, digits.TensorDataset(images[:64], labels[:64]), epochs=1, batch_size=32)
        runs.append([p.detach().cpu() for p in model.parameters()])
    capsys.readouterr()
    assert all(vesta.equal(a, b) for a, b in zip(*runs))


def test_modules_move_and_their_checkpoints_follow(tmp_path: Path) -> None:
    vesta.manual_seed(1)
    layer = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3) if hasattr(nn, "BatchNorm1d") else nn.ReLU())
    there = nn.Linear(4, 3).cuda()
    there.load_state_dict(layer[0].state_dict())
    assert all(p.is_cuda for p in there.parameters())
    x = vesta.randn(5, 4)
    assert vesta.allclose(there(x.cuda()).cpu(), layer[0](x), atol=1e-6)
    vesta.save_file(there.state_dict(), tmp_path / "there.safetensors")
    loaded = vesta.load_file(tmp_path / "there.safetensors")
    assert vesta.equal(loaded["weight"], layer[0].weight)
    back = there.cpu()
    assert back is there and not any(p.is_cuda for p in back.parameters())


def test_inputs_on_the_wrong_device_are_named() -> None:
    layer = nn.Linear(4, 3).cuda()
    with pytest.raises(RuntimeError, match="one device"):
        layer(vesta.ones(2, 4))


def launches_of(x: vesta.Tensor, op: Callable[[vesta.Tensor], vesta.Tensor]) -> tuple[int, int]:
    """Returns the kernels that an op queues where it is recorded, and those of its gradient."""
    g = vesta.ones_like(op(x))
    counts = [dict(vesta._C_cuda.counters())["launches"]]
    y = op(x)
    counts.append(dict(vesta._C_cuda.counters())["launches"])
    (gx,) = vesta.autograd.grad(y, x, g)
    counts.append(dict(vesta._C_cuda.counters())["launches"])
    assert gx.shape == x.shape
    return counts[1] - counts[0], counts[2] - counts[1]


def test_recorded_ops_take_no_more_launches_than_they_need() -> None:
    target = vesta.tensor([1, 0, 3, -100, 2, 2, 1, 0]).cuda()
    for dtype in (vesta.float32, vesta.bfloat16):
        x = vesta.randn(8, 16).to(dtype).cuda().requires_grad_()
        assert launches_of(x, lambda x: x.tril(1)) == (1, 1)
        assert launches_of(x, lambda x: x.triu(-2)) == (1, 1)
        assert launches_of(x, lambda x: nn.functional.dropout(x, 0.3)) == (1, 1)
        assert launches_of(x, lambda x: nn.functional.cross_entropy(x, target, reduction="sum"))[1] == 1
        assert launches_of(x, lambda x: nn.functional.cross_entropy(x, target)) == (2, 1)
        assert launches_of(x, lambda x: x.cumsum(1)) == (1, 1)
        assert launches_of(x, lambda x: x.logsumexp(1)) == (1, 1)
        assert launches_of(x, lambda x: x.amax(1)) == (1, 3)
        assert launches_of(x, lambda x: x.max()) == (1, 3)
        x = x.detach().float().requires_grad_()
        assert launches_of(x, lambda x: x.norm()) == (2, 2)
        assert launches_of(x, lambda x: x.var(1))[1] == 2
        cell = vesta.nn.LSTMCell(16, 8).cuda()
        assert launches_of(x, lambda x: cell(x)[0])[0] <= 6  # noqa: B023


def test_one_gradient_for_all_rows_of_cross_entropy() -> None:
    """The gradient of a sum is one number: the same bits as rows of it."""
    for shape, classes in (((6, 11), (6,)), ((2, 9, 40), (2, 40)), ((2, 300, 4, 5), (2, 4, 5))):
        x = vesta.randn(shape).cuda().requires_grad_()
        target = vesta.randint(0, shape[1], classes).cuda()
        one = vesta.autograd.grad(nn.functional.cross_entropy(x, target, reduction="sum"), x)[0]
        rows = nn.functional.cross_entropy(x, target, reduction="none")
        assert vesta.equal(vesta.autograd.grad(rows, x, vesta.ones_like(rows))[0], one)
