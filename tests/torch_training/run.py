"""Training runs that both libraries make, from the same weights and data; losses in plain data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

STEPS = 100
DTYPES = ("float64", "float32")


def _fill(torch: Any, net: Any, dtype: Any, seed: int) -> Any:
    """Gives a network weights of NumPy's, uniform in +-1 / sqrt(inputs), so that both libraries start alike."""
    rng = np.random.default_rng(seed)
    net.to(dtype)
    with torch.no_grad():
        for name, p in net.named_parameters():
            bound = 1 / math.sqrt(max(1, p.numel() // p.shape[0])) if p.dim() > 1 else 0.1
            values = rng.uniform(-bound, bound, tuple(p.shape))
            if "norm" in name and name.endswith("weight"):
                values = 1 + values
            p.copy_(torch.tensor(values, dtype=dtype))
    return net


def _summary(net: Any) -> list[float]:
    """Returns the sum of squares of each parameter and buffer of floats."""
    return [float(t.detach().double().square().sum()) for t in net.state_dict().values() if t.is_floating_point()]


def convolutional(torch: Any, dtype: Any) -> dict[str, Any]:
    """A classifier of images: convolutions, norms, pooling, label smoothing, SGD with Nesterov momentum."""
    nn, F = torch.nn, torch.nn.functional

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(1, 6, 3, padding=1)
            self.norm1 = nn.BatchNorm2d(6)
            self.conv2 = nn.Conv2d(6, 8, 3, stride=2, groups=2)
            self.norm2 = nn.GroupNorm(2, 8)
            self.linear = nn.Linear(8 * 3, 5)

        def forward(self, x: Any) -> Any:
            x = F.relu(self.norm1(self.conv1(x)))
            x = F.gelu(self.norm2(self.conv2(F.avg_pool2d(x, 3, stride=1, padding=1))))
            x = F.max_pool2d(x, 2)
            return self.linear(F.adaptive_avg_pool2d(x, (3, 1)).flatten(1))

    net = _fill(torch, Net(), dtype, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4, nesterov=True)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 40, 0.5)
    rng = np.random.default_rng(2)
    images, labels = rng.standard_normal((60, 1, 14, 14)), rng.integers(0, 5, 60)
    images += labels[:, None, None, None] * np.linspace(-1, 1, 14)
    losses = []
    for step in range(STEPS):
        at = [(step * 12 + i) % 60 for i in range(12)]
        x, y = torch.tensor(images[at], dtype=dtype), torch.tensor(labels[at])
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y, label_smoothing=0.1)
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(float(loss.detach()))
    with torch.no_grad():
        outputs = net.eval()(torch.tensor(images[:4], dtype=dtype)).tolist()
    return {"losses": losses, "summary": _summary(net), "outputs": outputs}


def recurrent(torch: Any, dtype: Any) -> dict[str, Any]:
    """A language model: embedding, LSTM of two layers with its state carried on, clipped gradients, Adam."""
    nn, F = torch.nn, torch.nn.functional

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(20, 8)
            self.lstm = nn.LSTM(8, 12, num_layers=2, batch_first=True)
            self.linear = nn.Linear(12, 20)

        def forward(self, x: Any, state: Any) -> Any:
            y, state = self.lstm(self.embedding(x), state)
            return self.linear(y), state

    net = _fill(torch, Net(), dtype, 3)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    rng = np.random.default_rng(4)
    text = (np.arange(4)[:, None] * 5 + np.cumsum(rng.integers(1, 3, (4, 701)), 1)) % 20
    state, losses = None, []
    for step in range(STEPS):
        at = step * 7
        x, y = torch.tensor(text[:, at : at + 7]), torch.tensor(text[:, at + 1 : at + 8])
        if state is not None:
            state = tuple(s.detach() for s in state)
        optimizer.zero_grad()
        output, state = net(x, state)
        loss = F.cross_entropy(output.reshape(-1, 20), y.reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        optimizer.step()
        losses.append(float(loss.detach()))
    return {"losses": losses, "summary": _summary(net), "outputs": [s.detach().flatten().tolist() for s in state]}


def transformer(torch: Any, dtype: Any) -> dict[str, Any]:
    """A language model of a masked transformer encoder, AdamW with warm-up and cosine."""
    nn, F = torch.nn, torch.nn.functional

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(20, 16)
            self.places = nn.Parameter(torch.zeros(10, 16))
            layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, activation="gelu", batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.linear = nn.Linear(16, 20)

        def forward(self, x: Any) -> Any:
            mask = nn.Transformer.generate_square_subsequent_mask(x.size(1)).to(dtype)
            return self.linear(self.encoder(self.embedding(x) + self.places, mask=mask, is_causal=True))

    net = _fill(torch, Net(), dtype, 5)
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01, betas=(0.9, 0.95), weight_decay=0.1)
    rate = lambda step: min(1, (step + 1) / 10) * 0.5 * (1 + math.cos(math.pi * step / STEPS))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    rng = np.random.default_rng(6)
    losses = []
    for _ in range(STEPS):
        text = (rng.integers(0, 20, (6, 1)) + np.arange(11) * rng.integers(1, 4, (6, 1))) % 20
        x, y = torch.tensor(text[:, :-1]), torch.tensor(text[:, 1:])
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(net(x).transpose(1, 2), y)
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(float(loss.detach()))
    return {"losses": losses, "summary": _summary(net), "outputs": net.eval()(x[:1]).detach()[0, -1].tolist()}


RUNS = {"convolutional": convolutional, "recurrent": recurrent, "transformer": transformer}
