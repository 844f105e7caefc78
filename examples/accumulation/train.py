"""Trains with batches larger than memory: gradients of micro-batches add up to those of the whole batch.

python examples/accumulation/train.py [--batch-size 256] [--micro-batch-size 32] [--epochs 4]
"""

from __future__ import annotations

import argparse
import struct
from pathlib import Path

import vesta
from vesta import Tensor, nn
from vesta.utils.data import DataLoader, TensorDataset

DIGITS = Path(__file__).resolve().parent.parent / "data" / "digits"


def read_idx(path: Path) -> Tensor:
    """Reads a file of the MNIST IDX format (unsigned bytes, big-endian header) as a uint8 tensor."""
    data = path.read_bytes()
    dims = data[3]
    shape = struct.unpack_from(f">{dims}I", data, 4)
    return vesta.frombuffer(bytearray(data[4 + 4 * dims :]), dtype=vesta.uint8).reshape(shape)


def load(folder: Path, part: str) -> tuple[Tensor, Tensor]:
    """Returns images [N, 1, 8, 8], float32 from 0 to 1, and labels [N], int64, of ``train`` or ``t10k`` (test)."""
    images = read_idx(folder / f"{part}-images-idx3-ubyte")
    labels = read_idx(folder / f"{part}-labels-idx1-ubyte")
    return images.to(vesta.float32).unsqueeze(1) / 255, labels.to(vesta.int64)


def train(data: TensorDataset, micro_batch_size: int, options: argparse.Namespace) -> nn.Sequential:
    """Returns a network trained on batches of which ``micro_batch_size`` digits at a time are in memory."""
    vesta.manual_seed(options.seed)
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.GroupNorm(4, 16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * 4 * 4, 10),
    )
    optimizer = vesta.optim.SGD(model.parameters(), lr=options.lr, momentum=0.9)
    for epoch in range(1, options.epochs + 1):
        total = 0.0
        for images, labels in DataLoader(data, batch_size=options.batch_size, shuffle=True):
            optimizer.zero_grad()
            for x, y in zip(images.split(micro_batch_size), labels.split(micro_batch_size)):
                loss = nn.functional.cross_entropy(model(x), y, reduction="sum") / len(labels)
                loss.backward()  # adds to .grad
                total += loss.item() * len(labels)
            optimizer.step()
        print(f"micro-batches of {micro_batch_size}: epoch {epoch} loss {total / len(data):.4f}", flush=True)
    return model


def main() -> None:
    """Trains with whole batches and in parts, and compares the networks."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--micro-batch-size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", type=Path, default=DIGITS)
    options = parser.parse_args()

    data = TensorDataset(*load(options.data, "train"))
    whole = train(data, options.batch_size, options)
    parts = train(data, options.micro_batch_size, options)
    difference = max((a - b).abs().max().item() for a, b in zip(whole.parameters(), parts.parameters()))
    images, labels = load(options.data, "t10k")
    with vesta.inference_mode():
        accuracy = (parts(images).argmax(1) == labels).sum().item() / len(labels)
    print(f"test accuracy {100 * accuracy:.2f}%; largest difference of a parameter {difference:.1e}")


if __name__ == "__main__":
    main()
