"""Trains a small convolutional network on 8x8 handwritten digits, in seconds on two cores.

    python examples/digits/train.py [--epochs 6] [--out out] [--device cuda]

Writes into the output folder: digits.safetensors (the network), digits_logits.safetensors (its output for the test
digits, for a program in another language to compare with) and, if matplotlib is installed, digits.png (loss curve,
sixteen digits with predictions). With tqdm a bar shows the progress of each epoch.
"""

from __future__ import annotations

import argparse
import importlib.util
import struct
import sys
import time
from pathlib import Path
from typing import Any

import picture
import vesta
from vesta import Tensor, nn
from vesta.utils.data import DataLoader, TensorDataset

HERE = Path(__file__).resolve().parent


def read_idx(path: Path) -> Tensor:
    """Reads a file of the MNIST IDX format (unsigned bytes, big-endian header) as a uint8 tensor."""
    data = path.read_bytes()
    zeros, kind, dims = struct.unpack_from(">HBB", data)
    if zeros != 0 or kind != 8:
        raise ValueError(f"{path.name}: expected an IDX file of unsigned bytes, got magic {data[:4].hex()}.")
    shape = struct.unpack_from(f">{dims}I", data, 4)
    return vesta.tensor(list(data[4 + 4 * dims :]), dtype=vesta.uint8).reshape(shape)


def load(folder: Path, part: str) -> tuple[Tensor, Tensor]:
    """Returns images [N, 1, 8, 8], float32 from 0 to 1, and labels [N], int64, of ``train`` or ``t10k`` (test)."""
    images = read_idx(folder / f"{part}-images-idx3-ubyte")
    labels = read_idx(folder / f"{part}-labels-idx1-ubyte")
    return images.to(vesta.float32).unsqueeze(1) / 255, labels.to(vesta.int64)


def with_shifts(images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the digits and four copies of each, moved by one pixel up, down, left and right, as data augmentation."""
    copies = [images]
    for dim in (2, 3):
        size = images.size(dim)
        edge = vesta.zeros_like(images.narrow(dim, 0, 1))
        copies.append(vesta.cat([images.narrow(dim, 1, size - 1), edge], dim))
        copies.append(vesta.cat([edge, images.narrow(dim, 0, size - 1)], dim))
    return vesta.cat(copies), vesta.cat([labels] * len(copies))


def make_model() -> nn.Sequential:
    """Makes two convolutions, a pooling that halves the image, and two linear layers: 36,222 parameters."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.3),
        nn.Linear(32 * 4 * 4, 60),
        nn.ReLU(),
        nn.Linear(60, 10),
    )


def progress(loader: DataLoader[tuple[Tensor, ...]], epoch: int, epochs: int) -> Any:
    """Returns the loader, with a bar of tqdm if it is installed and the output is a terminal."""
    if importlib.util.find_spec("tqdm") is None or not sys.stdout.isatty():
        return loader
    tqdm: Any = importlib.import_module("tqdm")  # without types
    return tqdm.tqdm(
        loader, desc=f"epoch {epoch}/{epochs}", file=sys.stdout, unit="batch", dynamic_ncols=True, leave=False
    )


def train(model: nn.Module, data: TensorDataset, epochs: int, batch_size: int) -> list[float]:
    """Trains with Adam and a falling learning rate; returns the loss of every step."""
    loader = DataLoader(data, batch_size=batch_size, shuffle=True)
    optimizer = vesta.optim.Adam(model.named_parameters(), lr=3e-3)
    schedule = vesta.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)
    criterion = nn.CrossEntropyLoss()
    device = next(model.parameters()).device
    losses: list[float] = []
    start = time.perf_counter()
    model.train()
    for epoch in range(1, epochs + 1):
        total = right = seen = 0.0
        bar = progress(loader, epoch, epochs)
        for images, labels in bar:
            images, labels = images.to(device), labels.to(device)
            logits = model(images)
            loss = criterion(logits, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            total += losses[-1] * len(labels)
            right += (logits.argmax(1) == labels).sum().item()
            seen += len(labels)
            if bar is not loader:
                bar.set_postfix(loss=f"{total / seen:.4f}", accuracy=f"{100 * right / seen:.1f}%", refresh=False)
        schedule.step()
        seconds = time.perf_counter() - start
        print(f"epoch {epoch}/{epochs}  loss {total / seen:.4f}  accuracy {100 * right / seen:5.1f}%  {seconds:4.1f} s")
    return losses


def evaluate(model: nn.Module, images: Tensor) -> Tensor:
    """Returns the logits [N, 10] of all images at once, on the CPU."""
    model.eval()
    with vesta.inference_mode():
        logits: Tensor = model(images.to(next(model.parameters()).device))
    return logits.cpu()


def main() -> None:
    """Trains and evaluates the network, and writes the checkpoint, the logits and the picture."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:1")
    parser.add_argument("--data", type=Path, default=HERE.parent / "data" / "digits")
    parser.add_argument("--out", type=Path, default=HERE.parent.parent / "out")
    options = parser.parse_args()

    vesta.manual_seed(options.seed)
    train_images, train_labels = load(options.data, "train")
    test_images, test_labels = load(options.data, "t10k")
    model = make_model().to(options.device)
    count = sum(parameter.numel() for parameter in model.parameters())
    print(f"{len(train_labels)} digits to learn from, {len(test_labels)} to test with; {count:,} parameters")
    losses = train(model, TensorDataset(*with_shifts(train_images, train_labels)), options.epochs, options.batch_size)

    logits = evaluate(model, test_images)
    predicted = logits.argmax(1)
    accuracy = (predicted == test_labels).sum().item() / len(test_labels)
    print(f"test accuracy {100 * accuracy:.2f}%")

    options.out.mkdir(parents=True, exist_ok=True)
    vesta.save_file(model.state_dict(), options.out / "digits.safetensors")
    vesta.save_file({"logits": logits}, options.out / "digits_logits.safetensors")
    written = "digits.safetensors, digits_logits.safetensors"
    if missing := [name for name in ("matplotlib", "tqdm") if importlib.util.find_spec(name) is None]:
        print(f"without {' and '.join(missing)}: pip install {' '.join(missing)} for the picture and bars of progress")
    if "matplotlib" not in missing:
        written += ", digits.png"
        epochs = vesta.tensor(losses).reshape(options.epochs, -1)
        picture.draw(options.out / "digits.png", epochs, test_images[:16, 0], predicted, test_labels, accuracy)
    print(f"wrote {written} into {options.out}")


if __name__ == "__main__":
    main()
