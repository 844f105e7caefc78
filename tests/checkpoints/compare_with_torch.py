"""Compares files with PyTorch in both directions, by hand:

    PYTHONPATH=build/python python tests/checkpoints/compare_with_torch.py --torch PYTHON_WITH_TORCH [--cases 200]

Random objects (tensors of every dtype and layout, views of shared storages, parameters, nested containers) and whole
layers are saved by Vesta, loaded by PyTorch with ``weights_only=True`` (layers: False), saved again and loaded by
Vesta. The two files must be the same, byte for byte, but for the identity of the contents; those of the old format,
whose names of storages are addresses, must give the same third file.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

DTYPES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split()
LAYERS = {
    "Linear(3, 4)": [2, 3],
    "Conv2d(2, 3, 3, padding=1)": [1, 2, 5, 5],
    "Conv2d(2, 3, 3, padding='same')": [1, 2, 5, 5],
    "BatchNorm1d(3)": [2, 3],
    "BatchNorm2d(2)": [1, 2, 4, 4],
    "LayerNorm(3)": [2, 3],
    "Dropout(0.5)": [2, 3],
    "Flatten()": [2, 3, 4],
    "Unflatten(1, (3, 1))": [2, 3],
    "MaxPool2d(2)": [1, 2, 4, 4],
    "GELU()": [2, 3],
    "Softmax(1)": [2, 3],
    "Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))": [2, 3],
}


def values(layer: Any, library: Any, shape: list[int]) -> Any:
    """Returns what a layer computes."""
    count = 1
    for size in shape:
        count *= size
    return layer.eval()(library.arange(float(count)).reshape(shape) / count).tolist()


def save_again(folder: Path) -> None:
    """Runs with PyTorch: loads each file and saves the object again beside it."""
    import torch

    for path in sorted(folder.glob("ours/*.pt")):
        whole = path.stem.startswith("layer")
        obj = torch.load(path, weights_only=not whole)
        legacy = path.stem.endswith("legacy")
        torch.save(obj, folder / "theirs" / path.name, _use_new_zipfile_serialization=not legacy)
        if whole:
            layer, shape = obj
            path.with_suffix(".json").write_text(json.dumps([values(layer, torch, shape), repr(layer)]))


def random_tensor(chance: random.Random, bases: list[Any]) -> Any:
    """Makes a tensor, of its own or over the storage of an earlier one."""
    import vesta

    if bases and chance.random() < 0.4:
        base = chance.choice(bases)
    else:
        base = vesta.randint(0, 2, (chance.choice((0, 1, 24, 600)),)).to(getattr(vesta, chance.choice(DTYPES)))
        bases.append(base)
    view = base
    if base.numel() >= 24:
        view = chance.choice((base, base[3:9], base[::2], base.view(-1, 6).t(), base[5], base[2:3].expand(4)))
    floating = view.is_floating_point() or view.is_complex()
    if chance.random() < 0.3:
        view = vesta.nn.Parameter(view, requires_grad=floating and chance.random() < 0.7)
    elif floating and chance.random() < 0.2:
        view = view.detach().requires_grad_()
    return view


def random_object(chance: random.Random, depth: int, bases: list[Any]) -> Any:
    """Makes a nested object."""
    import vesta

    if depth == 0 or chance.random() < 0.4:
        if chance.random() < 0.6:
            return random_tensor(chance, bases)
        plain = (
            None,
            True,
            chance.getrandbits(70),
            -chance.getrandbits(20),
            chance.random(),
            f"text {chance.random()}",
        )
        ours = (vesta.Size([1, 2]), vesta.float16, vesta.device("cuda", 1), 1 + 2j, b"bytes \xff")
        return chance.choice(plain + ours)
    items = [random_object(chance, depth - 1, bases) for _ in range(chance.randrange(5))]
    kind = chance.choice(("list", "tuple", "dict", "OrderedDict"))
    if kind in ("list", "tuple"):
        return items if kind == "list" else tuple(items)
    pairs = [(f"key{i}.{chance.random()}", item) for i, item in enumerate(items)]
    return dict(pairs) if kind == "dict" else OrderedDict(pairs)


def end_of(data: bytes, name: str) -> int:
    """Returns where the identity of the contents begins; the end, if the file has none."""
    at = data.find(f"{name}/.data/serialization_id".encode())
    return len(data) if at < 0 else at + 40


def compare(folder: Path) -> int:
    """Compares the files; returns how many differ."""
    import vesta

    different = 0
    for path in sorted(folder.glob("ours/*.pt")):
        again = folder / "theirs" / path.name
        ours, theirs = path.read_bytes(), again.read_bytes()
        legacy = path.stem.endswith("legacy")
        back = vesta.load(again, weights_only=not path.stem.startswith("layer"))
        if path.stem.startswith("layer"):
            layer, shape = back
            computed, shown = json.loads(path.with_suffix(".json").read_text())
            close = vesta.allclose(vesta.tensor(computed), vesta.tensor(values(layer, vesta, shape)), atol=1e-5)
            equal = close and shown == repr(layer)
        elif legacy:
            zipped = []
            for source in (path, again):  # names of storages are addresses, so that the files cannot be compared
                vesta.save(vesta.load(source), folder / "again" / path.name)
                zipped.append((folder / "again" / path.name).read_bytes())
            equal = zipped[0] == zipped[1]
        else:
            equal = ours[: end_of(ours, path.stem)] == theirs[: end_of(theirs, path.stem)]
            third = folder / "again" / path.name
            vesta.save(back, third)
            equal = equal and third.read_bytes()[: end_of(ours, path.stem)] == ours[: end_of(ours, path.stem)]
        if not equal:
            different += 1
            print("different:", path.name)
    return different


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", help="a Python that has PyTorch")
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--save-again", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.save_again:
        save_again(arguments.save_again)
        return
    import vesta
    from vesta import nn

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("ours", "theirs", "again"):
            (folder / part).mkdir()
        for case in range(arguments.cases):
            obj = random_object(random.Random(case), 3, [])
            vesta.save(obj, folder / "ours" / f"case{case}.pt")
            if case % 4 == 0:
                vesta.save(obj, folder / "ours" / f"case{case}legacy.pt", _use_new_zipfile_serialization=False)
        for number, (text, shape) in enumerate(LAYERS.items()):
            vesta.save((eval(f"nn.{text}", {"nn": nn}), shape), folder / "ours" / f"layer{number}.pt")
        other = [arguments.torch, __file__, "--save-again", name]
        subprocess.run(other, check=True, env={"PATH": "/usr/bin:/bin"})
        files, different = len(list(folder.glob("ours/*.pt"))), compare(folder)
    print(f"{files} files, {different} of them different")
    sys.exit(different > 0)


if __name__ == "__main__":
    main()
