"""Datasets that tests send to worker processes: importable by a process that was not forked."""

from __future__ import annotations

import mmap
import os
import random
import signal
import tempfile
import time

import vesta
from vesta.utils import data


class Augmented(data.Dataset):
    """Samples that use every generator."""

    def __init__(self, count: int = 37) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> dict:
        import numpy as np

        row = {"i": index, "v": vesta.rand(2), "r": random.gauss(0, 1), "n": np.random.randn(), "s": f"name {index}"}
        return {**row, "a": np.full(3, index, np.int16), "l": [random.random(), (1, vesta.randn(()))]}


class Split(data.IterableDataset):
    """A stream that the workers divide among themselves."""

    def __init__(self, count: int = 23) -> None:
        self.count = count

    def __iter__(self):
        info = data.get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        for i in range(first, self.count, step):
            yield {"i": i, "r": random.random()}


class KnowsItsPlace(Split):
    """The same stream, with its own state."""

    at = None

    def __iter__(self):
        info = data.get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        self.at = first if self.at is None else self.at
        while self.at < self.count:
            self.at += step
            yield {"i": self.at - step, "r": random.random()}

    def state_dict(self) -> dict:
        return {"at": self.at}

    def load_state_dict(self, state: dict) -> None:
        self.at = state["at"]


class TwoArguments(Exception):
    def __init__(self, first, second) -> None:
        super().__init__(f"{first} and {second}")
        self.first, self.second = first, second


class KeywordOnly(ValueError):
    def __init__(self, *, code) -> None:
        super().__init__("keyword only")
        self.code = code


class HoldsALock(RuntimeError):
    def __init__(self, text) -> None:
        import threading

        super().__init__(text)
        self.lock = threading.Lock()


class Odd(Exception):
    """An exception that changes its text when it is constructed."""

    def __init__(self, text) -> None:
        super().__init__(text.upper())


class Refusing(Exception):
    def __reduce__(self):
        raise TypeError("this exception cannot be pickled")


def _raise_chained() -> None:
    try:
        raise ValueError("first")
    except ValueError as error:
        raise LookupError("second") from error


def _errors() -> dict:
    class Local(Exception):
        pass

    return {
        "ValueError": lambda: ValueError("plain"), "KeyError": lambda: KeyError("key"),
        "IndexError": lambda: IndexError("out of range"), "OSError": lambda: OSError(2, "no such", "file.txt"),
        "FileNotFoundError": lambda: FileNotFoundError(2, "no such", "a", None, "b"), "empty": lambda: RuntimeError(),
        "UnicodeDecodeError": lambda: UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad byte"),
        "MemoryError": lambda: MemoryError("too much"), "AssertionError": lambda: AssertionError(),
        "TwoArguments": lambda: TwoArguments(1, "b"), "KeywordOnly": lambda: KeywordOnly(code=7),
        "HoldsALock": lambda: HoldsALock("held"), "Odd": lambda: Odd("text"), "Refusing": lambda: Refusing("r", 2),
        "Local": lambda: Local("local"), "StopIteration": lambda: StopIteration(3), "SystemExit": lambda: SystemExit(3),
        "KeyboardInterrupt": lambda: KeyboardInterrupt(), "GeneratorExit": lambda: GeneratorExit(),
        "NotImplementedError": lambda: NotImplementedError("not yet"),
    }  # fmt: skip


class Raising(data.Dataset):
    """A dataset that raises at one index."""

    def __init__(self, kind: str, at: int = 5) -> None:
        self.kind, self.at = kind, at

    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> int:
        if index != self.at:
            return index
        if self.kind == "chained":
            _raise_chained()
        raise _errors()[self.kind]()


def touch_missing_page() -> None:
    """Causes a SIGBUS in this process: reads a mapped file past its end."""
    with tempfile.TemporaryFile() as file:
        file.truncate(1 << 16)
        memory = mmap.mmap(file.fileno(), 1 << 16)
        file.truncate(0)
        memory[4096]


def exhaust_memory() -> None:
    """Allocates more memory than the process may have."""
    import resource

    with open("/proc/self/statm") as file:
        limit = int(file.read().split()[0]) * 4096 + (64 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    bytearray(1 << 31)


def read_null() -> None:
    """Causes a real SIGSEGV in this process."""
    import ctypes
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    ctypes.string_at(0)


WAYS = {
    "SIGKILL": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "SIGSEGV": read_null,
    "SIGBUS": touch_missing_page,
    "SIGSTOP": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "exit": lambda: os._exit(3),
    "exception": lambda: [][0],
    "memory": exhaust_memory,
    "SIGTERM": lambda: os.kill(os.getpid(), signal.SIGTERM),
    "sleep": lambda: time.sleep(60),
    "busy": lambda: sum(1 for _ in iter(int, 1)),
}


class Failing(data.Dataset):
    """A dataset that ends its process at one index, in one of many ways."""

    def __init__(self, way: str, at: int, count: int = 64) -> None:
        self.way, self.at, self.count = way, at, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> int:
        if index == self.at:
            WAYS[self.way]()
        return index


class Counting(data.Dataset):
    """A dataset that counts its samples in shared memory."""

    def __init__(self) -> None:
        self.count = vesta.zeros(8, dtype=vesta.int64).share_memory_()

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> int:
        self.count[index] += 1
        return index


class Slow(data.Dataset):
    """A slow dataset; each sample tells which process made it."""

    def __init__(self, count: int = 1000, seconds: float = 0.002) -> None:
        self.count, self.seconds = count, seconds

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> vesta.Tensor:
        time.sleep(self.seconds)
        return vesta.tensor([index, os.getpid()])


def set_marker(worker: int) -> None:
    """Marks the dataset, as a worker_init_fn."""
    data.get_worker_info().dataset.marker = worker


def fail_to_start(worker: int) -> None:
    raise ValueError(f"worker {worker} cannot start")


class Marked(data.Dataset):
    marker = -1

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> vesta.Tensor:
        info = data.get_worker_info()
        return vesta.tensor([index, self.marker, info.id if info else -1, info.num_workers if info else 0])
