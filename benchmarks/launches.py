"""Counts launches, bytes and layout copies of training steps, without a GPU, beside the least that ops could move.

    .venv/bin/python benchmarks/launches.py                    ResNet-50 in channels_last, GPT-2 under autocast, an MLP
    .venv/bin/python benchmarks/launches.py --only gpt2 --kernels --rows 50
    .venv/bin/python benchmarks/launches.py --full             sizes of real training; takes hours

The emulated device runs the kernels, and counts the sectors of 32 bytes that each launch reads and writes
(cuda/emulation/counting; built first where it is missing). cuBLASLt and cuDNN are the stand-ins of the tests, whose
calls read their operands and write their results once. The ideal is that of each call of the program, and of each step
of backward, however many ops it is made of: it reads once what others have written, and writes once what others read,
be it in the next step. What passes between its own launches does not count, nor what nobody reads. "blocks" counts a
sector for each block that touches it: the bytes that pass between the L2 cache and the blocks, and from memory for what
the cache cannot hold.

Small models tell the same ratios as large ones but for constants: what a launch moves for scalars, and vectors of
channels beside activations. Networks are narrower by default (a quarter of the channels, two layers), in the same
proportions; the ratio of the whole step falls a little with the size. The first step, which makes the optimizer's
state, is not counted; the one behind the counted one tells what is read later.
"""

from __future__ import annotations

import argparse
import bisect
import ctypes
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("VESTA_BUILD", ROOT / "build")).resolve()
LIBRARY = BUILD / "lib" / "libvesta_cuda_counting.so"
TARGETS = ("vesta_cuda_counting", "counting_libraries")
BAR = 1.3  # most bytes of a whole step, as a multiple of the ideal


class Launch(ctypes.Structure):
    """What one launch, copy or call of a library has moved (cuda/emulation/counting/accesses.cpp)."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("time", ctypes.c_int64),
        ("read", ctypes.c_uint64),
        ("written", ctypes.c_uint64),
        ("block_read", ctypes.c_uint64),
        ("block_written", ctypes.c_uint64),
    ]


class Counter:
    """The counting device of this process: ``with Counter() as counter: ...``, then ``counter.launches``."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL(str(LIBRARY))
        self.library.vesta_counting_stop.restype = ctypes.c_size_t
        self.library.vesta_counting_records.restype = ctypes.POINTER(Launch)
        self.library.vesta_counting_size.restype = ctypes.c_size_t
        self.launches: list[Launch] = []

    def __len__(self) -> int:
        return int(self.library.vesta_counting_size())

    def needed(self, calls: list[int], count: int) -> list[int]:
        """Returns the bytes that each of so many calls must move; ``calls`` has the number of each launch's call."""
        found = (ctypes.c_uint64 * count)()
        self.library.vesta_counting_needed((ctypes.c_uint32 * len(calls))(*calls), found)
        return list(found)

    def __enter__(self) -> Counter:
        self.library.vesta_counting_start()
        return self

    def __exit__(self, *_: object) -> None:
        count = self.library.vesta_counting_stop()
        records = self.library.vesta_counting_records()
        self.launches = [Launch.from_buffer_copy(records[i]) for i in range(count)]


class Row:
    """Sums over the calls of one op, or the launches of one kernel."""

    def __init__(self) -> None:
        self.calls = self.launches = self.read = self.written = self.blocks = 0
        self.ideal = 0.0

    @property
    def bytes(self) -> int:
        return self.read + self.written

    @property
    def ratio(self) -> float:
        return self.bytes / self.ideal if self.ideal else float("inf") if self.bytes else 1.0

    def merge(self, other: Row) -> None:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    def add(self, launch: Launch) -> None:
        self.launches += 1
        self.read, self.written = self.read + launch.read, self.written + launch.written
        self.blocks += launch.block_read + launch.block_written


class Model(NamedTuple):
    """A model with its input and what is minimized."""

    module: Any
    step: Callable[[], None]


def resnet50(full: bool) -> Model:
    """ResNet-50 in channels_last, SGD with momentum; by default of a quarter of the channels, on 4 images of 64x64."""
    import vesta
    from vesta import nn

    width, size, batch = (64, 224, 32) if full else (16, 64, 4)

    class Bottleneck(nn.Module):
        def __init__(self, inputs: int, channels: int, stride: int) -> None:
            super().__init__()
            outputs = 4 * channels
            self.body = nn.Sequential(
                nn.Conv2d(inputs, channels, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(),
                nn.Conv2d(channels, channels, 3, stride, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(),
                nn.Conv2d(channels, outputs, 1, bias=False), nn.BatchNorm2d(outputs),
            )  # fmt: skip
            self.short: nn.Module = nn.Identity()
            if stride > 1 or inputs != outputs:
                self.short = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
            self.relu = nn.ReLU()

        def forward(self, x: Any) -> Any:
            return self.relu(self.body(x) + self.short(x))

    layers = [nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    inputs = width
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for i in range(blocks):
            layers.append(Bottleneck(inputs, width << stage, 2 if i == 0 and stage > 0 else 1))
            inputs = 4 * (width << stage)
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000)]
    model = nn.Sequential(*layers).cuda().to(memory_format=vesta.channels_last)
    x = vesta.randn(batch, 3, size, size).cuda().contiguous(memory_format=vesta.channels_last)
    target = vesta.randint(0, 1000, (batch,)).cuda()
    optimizer = vesta.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), target).backward()
        optimizer.step()

    return Model(model, step)


def gpt2(full: bool) -> Model:
    """GPT-2 small under autocast to bfloat16, AdamW; by default two layers of a quarter of the width, 128 positions."""
    import vesta
    from vesta import nn

    layers, width, heads, length, batch, words = (12, 768, 12, 1024, 4, 50304) if full else (2, 192, 3, 128, 2, 2048)

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            n, t, _ = x.shape
            parts = self.qkv(self.norm1(x)).split(width, dim=2)
            q, k, v = (p.view(n, t, heads, width // heads).transpose(1, 2) for p in parts)
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.proj(y.transpose(1, 2).reshape(n, t, width))
            return x + self.down(nn.functional.gelu(self.up(self.norm2(x)), approximate="tanh"))

    class GPT(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
            self.blocks = nn.Sequential(*[Block() for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
            self.head.weight = self.tokens.weight

        def forward(self, tokens: Any) -> Any:
            x = self.tokens(tokens) + self.places(vesta.arange(tokens.shape[1], device=tokens.device))
            return self.head(self.norm(self.blocks(x)))

    model = GPT().cuda()
    tokens = vesta.randint(0, words, (batch, length)).cuda()
    target = vesta.randint(0, words, (batch * length,)).cuda()
    optimizer = vesta.optim.AdamW(model.parameters(), lr=1e-4)

    def step() -> None:
        optimizer.zero_grad()
        with vesta.autocast("cuda", dtype=vesta.bfloat16):
            loss = nn.functional.cross_entropy(model(tokens).view(-1, words), target)
        loss.backward()
        optimizer.step()

    return Model(model, step)


def mlp(full: bool) -> Model:
    """784-1024-1024-10 with relu, Adam, batches of 256; by default a quarter of all."""
    import vesta
    from vesta import nn

    width, batch = (1024, 256) if full else (256, 64)
    model = nn.Sequential(
        nn.Linear(784, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10)
    ).cuda()  # fmt: skip
    x, target = vesta.randn(batch, 784).cuda(), vesta.randint(0, 10, (batch,)).cuda()
    optimizer = vesta.optim.Adam(model.parameters(), lr=1e-3)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), target).backward()
        optimizer.step()

    return Model(model, step)


MODELS = {"resnet50": resnet50, "gpt2": gpt2, "mlp": mlp}


def outermost(events: list[Any]) -> list[Any]:
    """Returns the calls that no other call contains: ops of the program, and steps of backward."""
    calls, end = [], -1.0
    for event in sorted(events, key=lambda e: (e.time_range.start, -e.time_range.end)):
        if event.kind in (0, 3, 4) and event.time_range.start >= end:  # an op, a step of backward, its formula
            calls.append(event)
            end = event.time_range.end
    return calls


def rows_of(recording: Any, counter: Counter, steps: int) -> tuple[dict[str, Row], dict[str, Row]]:
    """Returns the sums by op and by kernel over the first ``steps`` launches, which ``recording`` saw. A launch belongs
    to the call that ran then: queues are run at once."""
    calls = outermost(recording.events())
    starts = [call.time_range.start for call in calls]
    outside, later = len(calls), len(calls) + 1

    def number_at(time: float) -> int:
        i = bisect.bisect_right(starts, time) - 1
        return i if i >= 0 and time <= calls[i].time_range.end else outside

    rows = [Row() for _ in range(later + 1)]
    kernels: dict[str, Row] = defaultdict(Row)
    numbers = [number_at(launch.time * 1e-3 - recording.began * 1e6) for launch in counter.launches[:steps]]
    for number, launch in zip(numbers, counter.launches):
        rows[number].add(launch)
        kernels[launch.name.decode()].add(launch)
    needed = counter.needed(numbers + [later] * (len(counter.launches) - steps), later + 1)
    ops: dict[str, Row] = defaultdict(Row)
    for call, row, ideal in zip([*calls, None], rows, needed):
        if not row.launches:
            continue  # a view; a step of backward that hands its gradient on
        name = call.name if call else "(no op)"
        total = ops[name.replace("autograd::engine::evaluate_function: ", "").replace("aten::", "")]
        row.calls, row.ideal = 1, float(ideal)
        total.merge(row)
    return ops, kernels


def print_rows(title: str, rows: dict[str, Row], most: int, with_ideal: bool) -> None:
    print(f"{title:44}{'calls':>7}{'launches':>9}{'MB read':>9}{'written':>9}{'blocks':>9}{'ideal':>9}{'ratio':>7}")
    listed = sorted(rows.items(), key=lambda entry: -entry[1].bytes)
    for name, row in listed[:most]:
        ideal = (f"{row.ideal / 1e6:9.2f}", f"{row.ratio:7.2f}") if with_ideal else ("", "")
        print(
            f"{name[:43]:44}{row.calls or '':>7}{row.launches:9}{row.read / 1e6:9.2f}{row.written / 1e6:9.2f}"
            f"{row.blocks / 1e6:9.2f}{''.join(ideal)}"
        )
    if len(listed) > most:
        print(f"... and {len(listed) - most} more")


def count(name: str, full: bool, most: int, by_kernel: bool) -> float:
    """Prints one model's tables; returns the bytes of its step as a multiple of the ideal."""
    import vesta
    from vesta import _C_cuda
    from vesta.autograd.recording import Recording

    vesta.manual_seed(0)
    model = MODELS[name](full)
    model.step()
    vesta.cuda.synchronize()
    before = dict(_C_cuda.counters())["layouts_made"]
    recording, counter = Recording(), Counter()
    with counter:
        recording.start()
        model.step()
        recording.stop()
        vesta.cuda.synchronize()
        made = dict(_C_cuda.counters())["layouts_made"] - before
        launches = len(counter)
        model.step()
        vesta.cuda.synchronize()
    ops, kernels = rows_of(recording, counter, launches)
    print(f"\n== {name}: {MODELS[name].__doc__}")
    print_rows("op", ops, most, True)
    if by_kernel:
        print_rows("kernel", kernels, most, False)
    moved, ideal = sum(row.bytes for row in ops.values()), sum(row.ideal for row in ops.values())
    print(
        f"total: {launches} launches, {moved / 1e6:.2f} MB, ideal {ideal / 1e6:.2f} MB, ratio "
        f"{moved / ideal:.2f} (bar {BAR}), {made} layout copies"
    )
    return moved / ideal


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=MODELS, help="one model")
    parser.add_argument("--full", action="store_true", help="real sizes")
    parser.add_argument("--rows", type=int, default=25, help="most rows of a table")
    parser.add_argument("--kernels", action="store_true", help="a table by kernel besides")
    options = parser.parse_args()
    if os.environ.get("VESTA_CUDA_LIBRARY") == str(LIBRARY):  # set below, for a process of each model
        count(options.only, options.full, options.rows, options.kernels)
        return
    subprocess.run(["cmake", "--build", BUILD, "--target", *TARGETS, "--", "--quiet"], check=True)
    environment = {
        **os.environ,
        "PYTHONPATH": str(BUILD / "python"),
        "VESTA_CUDA_LIBRARY": str(LIBRARY),
        "VESTA_CUDA_LIB_DIR": str(BUILD / "fakes" / "counting"),
        "VESTA_EMULATION_SCHEDULE": "eager",
        "VESTA_EMULATION_DEVICES": "1",
    }
    for name in [options.only] if options.only else MODELS:
        given = [a for a in sys.argv[1:] if a not in ("--only", options.only)]
        subprocess.run([sys.executable, __file__, "--only", name, *given], env=environment, check=True)


if __name__ == "__main__":
    main()
