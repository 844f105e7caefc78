"""Random object graphs of tensors, for Vesta and for PyTorch alike, and what they consist of as plain data.

    python tests/checkpoints/random_graphs.py write LIBRARY FILE.tar.xz --first SEED --count 100 [--reload]
    python tests/checkpoints/random_graphs.py check LIBRARY FILE.tar.xz

``write`` saves graphs with ``LIBRARY``, ``vesta`` or ``torch``, into an archive, each with its description; ``check``
loads them with ``weights_only=True``, describes them again and compares. ``--reload`` describes what the library itself
loads from its file: PyTorch 1.13 does not save all that it is given. Every fourth file is of the format before 1.6.
"""

from __future__ import annotations

import argparse
import importlib
import io
import json
import random
import sys
import tarfile
import warnings
from collections import Counter, OrderedDict
from typing import Any

DTYPES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split()
SHAPES = [(), (0,), (1,), (7,), (24,), (2, 12), (0, 3), (2, 3, 4), (2, 3, 2, 2), (60,)]
NUMBERS = [0.0, -0.0, 1.5, float("inf"), float("-inf"), float("nan"), 1e-30, -3e4, 2.0**-20]
OPTIMIZERS = "Adam AdamW RMSprop Adagrad SGD Adamax NAdam RAdam Rprop ASGD Adadelta".split()


class Graphs:
    """Makes graphs with one library; the same seed gives the same graph.

    Args:
        library: the module ``vesta`` or ``torch``.
        seed: of the graph.
    """

    def __init__(self, library: Any, seed: int) -> None:
        self.library, self.chance = library, random.Random(seed)
        self.bases: list[Any] = []
        self.containers: list[Any] = []

    def make(self) -> Any:
        """Makes a graph."""
        return [self.any(4), self.tensor(), self.tensor()]

    def any(self, depth: int) -> Any:
        """Makes an object: an earlier container, a training's state, a tensor, a plain value or a container."""
        chance = self.chance.random()
        if self.containers and chance < 0.05:
            return self.chance.choice(self.containers)
        if chance < 0.08:
            return self.training()
        if depth == 0 or chance < 0.4:
            return self.tensor() if self.chance.random() < 0.6 else self.plain()
        return self.container(depth)

    def container(self, depth: int) -> Any:
        """Makes a container of other objects."""
        items = [self.any(depth - 1) for _ in range(self.chance.randrange(5))]
        kind = self.chance.choice(("list", "tuple", "dict", "ordered", "keys", "nested"))
        if kind == "tuple":
            return tuple(items)
        if kind == "dict":
            made: Any = {f"key{i}.{self.chance.random()}": item for i, item in enumerate(items)}
        elif kind == "ordered":
            made = OrderedDict((f"k{i}", item) for i, item in enumerate(items))
        elif kind == "keys":
            made = {self.chance.choice((i, (i, "a"), i + 0.5, -i or None)): item for i, item in enumerate(items)}
        else:
            made = items if kind == "list" else {"nested": [items, (items,)]}
        self.containers.append(made)
        return made

    def plain(self) -> Any:
        """Makes an object without tensors."""
        library, chance = self.library, self.chance
        numbers = [None, True, chance.getrandbits(70), -chance.getrandbits(40), 10**400, chance.random(), -0.0, 1 + 2j]
        texts = [f"t\u00e4xt {chance.random()}", "", "x" * 300, b"b\xff", bytearray(b"xy")]
        containers = [{1, 2, "a"}, set(), (), Counter("aab"), (1,)]
        sizes = [library.Size([1, chance.randrange(4)]), library.Size([])]
        kinds = [library.float16, library.complex128, library.bool, library.strided]
        devices = [library.device("cpu"), library.device("cuda", 1)]
        return chance.choice([*numbers, *texts, *containers, *sizes, *kinds, *devices])

    def values(self) -> Any:
        """Makes a tensor of its own."""
        dtype, shape = getattr(self.library, self.chance.choice(DTYPES)), self.chance.choice(SHAPES)
        count = 1
        for length in shape:
            count *= length
        numbers = NUMBERS if dtype.is_floating_point or dtype.is_complex else [0, 1, 2, 3, 100]
        values: list[Any] = [self.chance.choice(numbers) for _ in range(count)]
        if dtype.is_complex:
            values = [complex(value, self.chance.choice((0.0, 1.5, -2.0))) for value in values]
        return self.library.tensor(values, dtype=dtype).reshape(shape)

    def view(self, t: Any) -> Any:
        """Makes a view."""
        if t.dim() == 0:
            return self.chance.choice((t, t.unsqueeze(0), t.expand(3), t.view(1, 1)))
        views = [t[::2], t[..., :1], t.transpose(0, -1), t.unsqueeze(1), t[..., 1:], t.narrow(0, 0, t.shape[0] // 2)]
        if t.shape[0]:
            views += [t[0], t[-1], t[:1].expand(4, *t.shape[1:])]
        if t.dim() == 4:
            views.append(t.contiguous(memory_format=self.library.channels_last))
        if t.numel() >= 6 and t.is_contiguous():
            views.append(t.as_strided((2, 2), (1, 1), t.storage_offset()))
        return self.chance.choice(views)

    def tensor(self) -> Any:
        """Makes a tensor, of its own or over the storage of an earlier one."""
        if self.bases and self.chance.random() < 0.35:
            t = self.chance.choice(self.bases)
        else:
            t = self.values()
            self.bases.append(t)
        for _ in range(self.chance.randrange(3)):
            t = self.view(t)
        return self.dressed(t)

    def dressed(self, t: Any) -> Any:
        """Makes of a tensor, sometimes, a parameter, a leaf, a result, one with an attribute, or a sparse tensor."""
        library, kind = self.library, self.chance.random()
        differentiable = t.is_floating_point() or t.is_complex()
        if kind < 0.2:
            return library.nn.Parameter(t.detach(), requires_grad=differentiable and self.chance.random() < 0.7)
        if kind < 0.3 and differentiable:
            return t.detach().requires_grad_()
        if kind < 0.36 and differentiable:
            return t.detach().clone().requires_grad_() * 2
        if kind < 0.42:
            t = t.detach()
            t.note = self.chance.choice(("text", 3, [1, 2]))
        elif kind < 0.5 and t.dim() in (1, 2) and t.numel():
            t = t.detach().clone().to_sparse()
        elif kind < 0.55:
            values = library.tensor([3.0, 4.0, 5.0], dtype=self.chance.choice((library.float32, library.complex64)))
            t = library.sparse_coo_tensor(library.tensor([[0, 1, 1], [2, 0, 0]]), values, (2, 3))
        return t

    def training(self) -> Any:
        """Makes the state of a training after some steps."""
        library, nn, optim = self.library, self.library.nn, self.library.optim
        middle = self.chance.choice((nn.BatchNorm1d(4), nn.LayerNorm(4), nn.ReLU()))
        net = nn.Sequential(nn.Linear(3, 4), middle, nn.Linear(4, 2, bias=self.chance.random() < 0.5))
        optimizer = getattr(optim, self.chance.choice(OPTIMIZERS))(net.parameters(), lr=1e-3)
        make = self.chance.choice((optim.lr_scheduler.CosineAnnealingLR, optim.lr_scheduler.StepLR))
        schedule = make(optimizer, 2)
        for _ in range(self.chance.randrange(3)):
            optimizer.zero_grad()
            (net(library.arange(6.0).reshape(2, 3) / 5) ** 2).sum().backward()
            optimizer.step()
            schedule.step()
        states = {"model": net.state_dict(), "optimizer": optimizer.state_dict(), "schedule": schedule.state_dict()}
        return {**states, "epoch": self.chance.randrange(9)}


class Description:
    """What an object consists of, as lists and texts: identities, storages, layouts and all values.

    Args:
        library: the module that the object's tensors are of.
    """

    def __init__(self, library: Any) -> None:
        self.library = library
        self.seen: dict[int, int] = {}
        self.storages: dict[int, int] = {}
        self.kept: list[Any] = []

    def of(self, value: Any) -> Any:
        """Describes a value."""
        library, name = self.library, type(value).__name__
        if isinstance(value, (list, dict, set, bytearray, library.Tensor)):
            if id(value) in self.seen:
                return ["again", self.seen[id(value)]]
            self.seen[id(value)] = len(self.seen)
            self.kept.append(value)
        if isinstance(value, library.Tensor):
            return self._tensor(value)
        if isinstance(value, library.Size):
            return ["Size", *value]
        if isinstance(value, dict):
            attributes = vars(value) if name == "OrderedDict" and vars(value) else None
            return [name, [[self.of(key), self.of(item)] for key, item in value.items()], self.of(attributes)]
        if isinstance(value, (list, tuple)):
            return [name, *map(self.of, value)]
        if isinstance(value, set):
            return [name, *sorted(map(repr, value))]
        return [name, repr(value).replace(f"{library.__name__}.", "")]

    def _tensor(self, t: Any) -> list[Any]:
        said = [type(t).__name__, str(t.dtype).partition(".")[2], [*t.shape], t.requires_grad, str(t.device)]
        if t.is_sparse:
            parts = t.detach()
            return [*said, t.is_coalesced(), self._values(parts._indices()), self._values(parts._values())]
        storage = t.untyped_storage() if hasattr(t, "untyped_storage") else t.storage().untyped()
        nbytes = storage.nbytes()
        number = self.storages.setdefault(storage.data_ptr(), len(self.storages)) if nbytes else None
        attributes = self.of(dict(sorted(vars(t).items())))
        offset = t.storage_offset() if nbytes else None
        return [*said, [*t.stride()], offset, number, nbytes, self._values(t.detach()), attributes]

    @staticmethod
    def _values(t: Any) -> str:
        return repr(t.flatten().tolist())


def _saved(library: Any, value: Any, legacy: bool) -> bytes:
    file = io.BytesIO()
    library.save(value, file, _use_new_zipfile_serialization=not legacy)
    return file.getvalue()


def write(library: Any, path: str, first: int, count: int, reload: bool) -> None:
    """Writes the archive."""

    def add(name: str, content: bytes) -> None:
        entry = tarfile.TarInfo(name)
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))

    with tarfile.open(path, "w:xz") as archive:
        for seed in range(first, first + count):
            graph = Graphs(library, seed).make()
            data = _saved(library, graph, legacy=seed % 4 == 0)
            described = Description(library).of(library.load(io.BytesIO(data)) if reload else graph)
            add(f"{seed}.pt", data)
            add(f"{seed}.json", json.dumps(described).encode())


def check(library: Any, path: str) -> tuple[int, list[str]]:
    """Returns how many graphs of an archive load, and what is wrong with the others."""
    equal, bad = 0, []
    with tarfile.open(path) as archive:
        content = {entry.name: archive.extractfile(entry).read() for entry in archive}  # type: ignore[union-attr]
    for name in [name for name in content if name.endswith(".pt")]:
        try:
            loaded = library.load(io.BytesIO(content[name]), weights_only=True)
        except Exception as error:
            bad.append(f"{name}: {type(error).__name__}: {error}")
            continue
        found = json.loads(json.dumps(Description(library).of(loaded)))
        if found == json.loads(content[f"{name[:-3]}.json"]):
            equal += 1
        else:
            bad.append(f"{name}: {found}")
    return equal, bad


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=("write", "check"))
    parser.add_argument("library", choices=("vesta", "torch"))
    parser.add_argument("file")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--reload", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    library = importlib.import_module(arguments.library)
    if arguments.task == "write":
        write(library, arguments.file, arguments.first, arguments.count, arguments.reload)
        return
    equal, bad = check(library, arguments.file)
    print(f"{equal} equal, {len(bad)} not", *bad, sep="\n")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
