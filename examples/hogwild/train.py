"""Trains one network on handwritten digits in several processes at once, without locks.

python examples/hogwild/train.py [--processes 2] [--epochs 4] [--start-method spawn]
"""

from __future__ import annotations

import argparse
import struct
import time
from pathlib import Path

import vesta
import vesta.multiprocessing as mp
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


def make_model() -> nn.Sequential:
    """Makes a network of a convolution and two linear layers. It has no running averages: all processes would write
    them at once."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * 4 * 4, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )


def train(rank: int, model: nn.Module, images: Tensor, labels: Tensor, options: argparse.Namespace) -> None:
    """Trains in one process on every ``processes``-th digit; its steps update the shared parameters."""
    vesta.set_num_threads(1)
    vesta.manual_seed(options.seed + rank)
    mine = TensorDataset(images[rank :: options.processes], labels[rank :: options.processes])
    loader = DataLoader(mine, batch_size=options.batch_size, shuffle=True)
    optimizer = vesta.optim.SGD(model.parameters(), lr=options.lr, momentum=0.9)
    for epoch in range(1, options.epochs + 1):
        total = 0.0
        for x, y in loader:
            optimizer.zero_grad()  # gradients belong to this process: only values are shared
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(y)
        # One string with its line end, so that lines of several processes do not mix.
        print(f"process {rank} epoch {epoch} loss {total / len(mine):.4f}\n", end="", flush=True)


def accuracy(model: nn.Module, images: Tensor, labels: Tensor) -> float:
    """Returns the share of digits that the model classifies correctly."""
    with vesta.inference_mode():
        logits: Tensor = model(images)
    return (logits.argmax(1) == labels).sum().item() / len(labels)


def main() -> None:
    """Trains the network and prints its accuracy."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start-method", choices=["fork", "spawn", "forkserver"], default="spawn")
    parser.add_argument("--data", type=Path, default=DIGITS)
    options = parser.parse_args()

    vesta.manual_seed(options.seed)
    images, labels = load(options.data, "train")
    model = make_model().share_memory()
    start = time.perf_counter()
    arguments = (model, images.share_memory_(), labels.share_memory_(), options)
    mp.start_processes(train, arguments, nprocs=options.processes, start_method=options.start_method)
    seconds = time.perf_counter() - start
    test = load(options.data, "t10k")
    print(f"test accuracy {100 * accuracy(model, *test):.2f}% after {seconds:.1f} s of {options.processes} processes")


if __name__ == "__main__":
    main()
