"""Training steps of whole models: forward, loss, backward, optimizer; float32, and bfloat16 by autocast."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from work import Gpu, Work, case

sys.path.append(str(Path(__file__).resolve().parent.parent))
import architectures


def _step(gpu: Gpu, model: Any, x: Any, classes: int, half: bool, target: Any = None) -> Work:
    """Returns a training step with Adam; ``half``: under autocast to bfloat16. The target is random unless given."""
    lib = gpu.lib
    model = model.to(gpu.device)
    optimizer, loss_of = lib.optim.Adam(model.parameters(), lr=1e-3), lib.nn.CrossEntropyLoss()
    target = gpu.integers(classes, x.shape[0]) if target is None else target.reshape(-1)

    def cast() -> Any:
        return lib.autocast(device_type=gpu.device, dtype=lib.bfloat16) if half else nullcontext()

    def run():
        optimizer.zero_grad()
        with cast():
            out = model(x)
            loss = loss_of(out.reshape(-1, out.shape[-1]), target)
        loss.backward()
        optimizer.step()

    return Work(run, items=x.shape[0])


def _mlp(gpu: Gpu) -> tuple:
    nn, width = gpu.lib.nn, gpu.size(1024, 16)
    model = nn.Sequential(
        nn.Linear(784, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10)
    )  # fmt: skip
    return model, gpu.normal(gpu.size(256, 8), 784)


def _lenet(gpu: Gpu) -> tuple:
    nn = gpu.lib.nn
    model = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip
    return model, gpu.normal(gpu.size(256, 2), 1, 28, 28)


def _resnet(gpu: Gpu) -> tuple:
    """Returns the ResNet of 20 layers for 32x32 images (He et al. 2015, section 4.2), 64 channels wide."""
    nn, width = gpu.lib.nn, gpu.size(64, 4)

    class Block(nn.Module):
        def __init__(self, inputs: int, outputs: int) -> None:
            super().__init__()
            stride = 1 if inputs == outputs else 2
            self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
            self.norm1 = nn.BatchNorm2d(outputs)
            self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
            self.norm2 = nn.BatchNorm2d(outputs)
            self.short = nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False) if stride > 1 else nn.Identity()
            self.relu = nn.ReLU()

        def forward(self, x: Any) -> Any:
            y = self.relu(self.norm1(self.conv1(x)))
            return self.relu(self.norm2(self.conv2(y)) + self.short(x))

    class Mean(nn.Module):
        def forward(self, x: Any) -> Any:
            return x.mean((2, 3))

    channels, blocks = width, []
    for stage in range(3):
        for i in range(gpu.size(3, 1)):
            outputs = channels * 2 if stage > 0 and i == 0 else channels
            blocks.append(Block(channels, outputs))
            channels = outputs
    model = nn.Sequential(
        nn.Conv2d(3, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
        *blocks, Mean(), nn.Linear(channels, 10),
    )  # fmt: skip
    return model, gpu.normal(gpu.size(256, 2), 3, gpu.size(32, 8), gpu.size(32, 8))


for _name, _make in (("MLP, batch 256", _mlp), ("LeNet, batch 256", _lenet), ("ResNet-20, batch 256", _resnet)):
    for _dtype in ("float32", "bfloat16 autocast"):

        @case("models", f"{_name}, {_dtype}")
        def _(gpu: Gpu, make=_make, dtype=_dtype) -> Work:
            model, x = make(gpu)
            return _step(gpu, model, x, 10, half=dtype != "float32")


@case("models", "ResNet-50 channels_last, batch 64, bfloat16 autocast")
def _(gpu: Gpu) -> Work:
    pixels, side = gpu.lib.channels_last, gpu.size(224, 32)
    x = gpu.normal(gpu.size(64, 2), 3, side, side).contiguous(memory_format=pixels)
    model = architectures.resnet50(gpu.lib, gpu.size(64, 2)).to(gpu.device).to(memory_format=pixels)
    return _step(gpu, model, x, 1000, half=True)


@case("models", "GPT-2 small, batch 8, 1024 long, bfloat16 autocast")
def _(gpu: Gpu) -> Work:
    layers, width, heads = gpu.size(12, 1), gpu.size(768, 16), gpu.size(12, 2)
    vocabulary, length = gpu.size(50304, 64), gpu.size(1024, 16)
    ids = gpu.integers(vocabulary, gpu.size(8, 2), length)
    model = architectures.transformer(gpu.lib, layers, width, heads, vocabulary, length, True)
    return _step(gpu, model, ids, vocabulary, half=True, target=ids)
