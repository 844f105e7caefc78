"""Whole networks for compare_torch.py, written once for both libraries: steps of training and answers of a server.

A case is a function of `lib` and `form`, the way in which the library runs the network: "eager", "channels_last"
(images and weights of convolutions) or "compile" (PyTorch only). The table holds Vesta, eager, against the best form
of PyTorch.
"""

from __future__ import annotations

import math

from architectures import (
    alexnet,
    collaborative_filtering,
    lenet,
    mobilenet_v1,
    mobilenet_v2,
    resnet50,
    transformer,
    translator,
    vgg19,
)  # fmt: skip
from cases import case


def _in_form(lib, model, form, *inputs):
    """Returns the model and its inputs in the form that is measured."""
    if form == "channels_last":
        model = model.to(memory_format=lib.channels_last)
        inputs = tuple(x.contiguous(memory_format=lib.channels_last) if x.dim() == 4 else x for x in inputs)
    if form == "compile":
        model = lib.compile(model)
    return (model, *inputs)


def _training(lib, form, model, inputs, target, autocast=False):
    model, *inputs = _in_form(lib, model, form, *inputs)
    optimizer = lib.optim.Adam(model.parameters(), lr=1e-3)
    loss_of = lib.nn.CrossEntropyLoss()

    def step():
        optimizer.zero_grad()
        with lib.autocast("cpu", dtype=lib.bfloat16, enabled=autocast):
            out = model(*inputs)
            loss = loss_of(out.reshape(-1, out.shape[-1]), target.reshape(-1))
        loss.backward()
        optimizer.step()

    return step


def _serving(lib, form, model, *inputs):
    model, *inputs = _in_form(lib, model.eval(), form, *inputs)

    def answer():
        with lib.no_grad():
            return model(*inputs)

    return answer


# ---- training steps ----


@case("training", "MLP 64-64-64-10, tanh, batch 32, Adam")
def _(lib, form):
    nn = lib.nn
    model = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 10))
    return _training(lib, form, model, [lib.rand(32, 64)], lib.randint(0, 10, (32,)))


def _images(name, make, batch, side=224, channels=3, classes=1000):
    @case("training", name)
    def _(lib, form):
        return _training(lib, form, make(lib), [lib.rand(batch, channels, side, side)],
                         lib.randint(0, classes, (batch,)))  # fmt: skip


_images("LeNet 28x28, batch 64, Adam", lenet, 64, 28, 1, 10)
_images("ResNet-50, batch 2", resnet50, 2)
_images("MobileNet v1, batch 4", mobilenet_v1, 4)
_images("MobileNet v2, batch 4", mobilenet_v2, 4)
_images("VGG-19, batch 2", vgg19, 2)
_images("AlexNet, batch 8", alexnet, 8)


@case("training", "GPT, 4 layers, 256 wide, 256 long, batch 4")
def _(lib, form):
    ids = lib.randint(0, 8192, (4, 256))
    return _training(lib, form, transformer(lib, 4, 256, 4, 8192, 256, True), [ids], ids)


@case("training", "GPT as above, autocast to bfloat16")
def _(lib, form):
    ids = lib.randint(0, 8192, (4, 256))
    return _training(lib, form, transformer(lib, 4, 256, 4, 8192, 256, True), [ids], ids, autocast=True)


@case("training", "LSTM translator, 256 wide, 24 long, batch 32")
def _(lib, form):
    source, target = lib.randint(0, 4000, (32, 24)), lib.randint(0, 4000, (32, 24))
    return _training(lib, form, translator(lib), [source, target], target)


@case("training", "neural collaborative filtering, batch 256")
def _(lib, form):
    users, items = lib.randint(0, 6000, (256,)), lib.randint(0, 4000, (256,))
    return _training(lib, form, collaborative_filtering(lib), [users, items], lib.randint(0, 2, (256,)))


# ---- serving, batch 1 ----


def _served_image(name, make):
    @case("serving", name)
    def _(lib, form):
        return _serving(lib, form, make(lib), lib.rand(1, 3, 224, 224))


_served_image("ResNet-50, one image", resnet50)
_served_image("MobileNet v1, one image", mobilenet_v1)
_served_image("MobileNet v2, one image", mobilenet_v2)


@case("serving", "encoder, 6 layers, 384 wide, 128 long")
def _(lib, form):
    return _serving(lib, form, transformer(lib, 6, 384, 6, 8192, 128, False), lib.randint(0, 8192, (1, 128)))


@case("serving", "GPT, 6 layers, 384 wide, 64 tokens one by one")
def _(lib, form):
    prompt, count = 32, 64
    model = transformer(lib, 6, 384, 6, 8192, prompt + count, True).eval()
    if form == "compile":
        model = lib.compile(model, dynamic=True)
    ids = lib.randint(0, 8192, (1, prompt))

    def generate():
        with lib.no_grad():
            kept = [[lib.zeros(1, 6, prompt + count, 64) for _ in range(2)] for _ in range(6)]
            last = model(ids, kept, 0)[:, -1:].argmax(-1)
            for at in range(prompt, prompt + count - 1):
                last = model(last, kept, at)[:, -1:].argmax(-1)
            return last

    return generate


def geometric_mean(ratios) -> float:
    """Returns the geometric mean of ratios."""
    ratios = list(ratios)
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan
