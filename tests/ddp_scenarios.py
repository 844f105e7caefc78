"""The scenarios that test_ddp.py trains, one per feature: run by the ranks of a group, and by one process on whole
batches.

As a program (one process of a launch): ``ddp_scenarios.py OUT [--backend nccl] [--names NAME...]`` runs all scenarios,
or some, twice, and writes the final state of each into OUT/RANK.safetensors under names "scenario/parameter". A second
run that differs in one bit raises. With the backend nccl the models are on a GPU.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import vesta
from vesta import Tensor, nn
from vesta.distributed.algorithms import ddp_comm_hooks as hooks

STEPS = 20
ROWS = 16  # of a whole batch
where = "cpu"  # the device of models and batches; `results` sets it


class Net(nn.Module):
    """A model with a layer used twice, one used sometimes, one never used, and a buffer that counts."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Linear(6, 32)
        self.twice = nn.Linear(32, 32)
        self.at_times = nn.Linear(32, 32, bias=False)
        self.never = nn.Linear(3, 3)
        self.leave = nn.Linear(32, 4)
        self.tied = nn.Linear(6, 32)
        self.tied.weight = self.enter.weight  # one parameter under two names
        self.register_buffer("scale", vesta.ones(()))
        self.detour = False
        self.everything = True

    def forward(self, x: Tensor) -> dict[str, Any]:
        h = vesta.tanh(self.enter(x) + self.tied(x))
        h = vesta.tanh(self.twice(vesta.tanh(self.twice(h)))) * self.scale
        if self.detour or self.everything:
            h = h + self.at_times(h)
        y = self.leave(h)
        if self.everything:
            y = y + self.never(vesta.ones(3, device=where)).sum()
        return {"y": y, "nested": [h]}


def make_net(rank: int) -> Net:
    """Builds the model; ranks other than 0 start with different values."""
    vesta.manual_seed(11 + max(rank, 0))
    return Net().to(where)


def batch(step: int, rows: slice | None = None) -> tuple[Tensor, Tensor]:
    """Returns the inputs and targets of a step: all rows, or some."""
    generator = vesta.Generator().manual_seed(1000 + step)
    data = vesta.randn(ROWS, 10, generator=generator).to(where)
    rows = rows or slice(None)
    return data[rows, :6].contiguous(), data[rows, 6:].contiguous()


def part(rank: int, world: int) -> slice:
    """Returns a rank's rows of a whole batch."""
    each = ROWS // world
    return slice(rank * each, (rank + 1) * each)


class Side:
    """One side of the comparison: a rank of a group, or (rank -1) the process that sees whole batches."""

    def __init__(self, rank: int, world: int, **arguments: Any) -> None:
        self.rank, self.world = rank, world
        self.net = make_net(rank)
        self.model: Any = self.net
        if rank >= 0:
            self.model = nn.parallel.DistributedDataParallel(self.net, **arguments)
        self.optimizer = vesta.optim.SGD(self.net.parameters(), lr=0.01, momentum=0.5)

    def batch(self, step: int) -> tuple[Tensor, Tensor]:
        return batch(step, part(self.rank, self.world) if self.rank >= 0 else slice(None))

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.model(x)["y"] - y).square().mean()

    def local(self) -> contextlib.AbstractContextManager[None]:
        return self.model.no_sync() if self.rank >= 0 else contextlib.nullcontext()

    def train(self, step_of: Callable[[int], None], set_to_none: Callable[[int], bool] = lambda step: True) -> None:
        for step in range(STEPS):
            self.optimizer.zero_grad(set_to_none=set_to_none(step))
            step_of(step)
            self.optimizer.step()

    def train_plainly(self, **how: Any) -> None:
        self.train(lambda step: self.loss(*self.batch(step)).backward(), **how)


def plain(rank: int, world: int, **arguments: Any) -> Side:
    side = Side(rank, world, **arguments)
    side.train_plainly()
    return side


def kept_gradients(rank: int, world: int) -> Side:
    """Clears gradients in both ways, and keeps some across steps: those that are kept do not change."""
    side = Side(rank, world, bucket_cap_mb=0.001, gradient_as_bucket_view=True)
    kept: list[tuple[Tensor, Tensor]] = []

    def step_of(step: int) -> None:
        side.loss(*side.batch(step)).backward()
        for old, copied in kept:
            assert vesta.equal(old, copied)
        kept[:] = [(p.grad, p.grad.clone()) for p in side.net.parameters() if (step + p.dim()) % 3 == 0]

    side.train(step_of)
    kept.clear()
    side.train_plainly(set_to_none=lambda step: step % 2 == 0)
    return side


def no_sync(rank: int, world: int) -> Side:
    side = Side(rank, world)

    def step_of(step: int) -> None:
        x, y = side.batch(step)
        with side.local():
            side.loss(x * 0.5, y).backward()
            side.loss(x * 2, y).backward()
        side.loss(x, y).backward()

    side.train(step_of)
    return side


def unused(rank: int, world: int, **arguments: Any) -> Side:
    """Changes which parameters are used from step to step, and within no_sync."""
    side = Side(rank, world, find_unused_parameters=True, **arguments)
    side.net.everything = False

    def step_of(step: int) -> None:
        x, y = side.batch(step)
        if step % 2:
            side.net.detour = step % 3 == 1
            with side.local():
                side.loss(x * 0.5, y).backward()
        side.net.detour = step % 3 == 2
        side.loss(x, y).backward()

    side.train(step_of, set_to_none=lambda step: step % 5 != 4)
    return side


def unused_on_some(rank: int, world: int) -> Side:
    """Uses a layer on rank 0 that the other ranks do not use."""
    side = Side(rank, world, find_unused_parameters=True)
    side.net.everything = False

    def step_of(step: int) -> None:
        total = vesta.zeros((), device=where)
        for r in range(world) if rank < 0 else [rank]:
            side.net.detour = r == 0
            total = total + side.loss(*batch(step, part(r, world))) / (world if rank < 0 else 1)
        total.backward()

    side.train(step_of)
    return side


def static_graph(rank: int, world: int) -> Side:
    """Builds the same graph in every step, with parameters that are never used."""
    side = Side(rank, world, static_graph=True, bucket_cap_mb=0.001)
    side.net.everything = False
    side.train_plainly()
    return side


def buffers(rank: int, world: int) -> Side:
    """Changes a buffer in every forward, by a different number on each rank: rank 0's value counts."""
    side = Side(rank, world)
    side.net.scale.fill_(1.0 + max(rank, 0))

    def step_of(step: int) -> None:
        side.loss(*side.batch(step)).backward()
        side.net.scale.mul_(1.01 if rank <= 0 else 1.5)

    side.train(step_of)
    if rank > 0:
        side.net.scale.copy_(side.net.scale / 1.5)  # the last change was not sent
        side.net.scale.mul_(1.01)
    return side


def several_forwards(rank: int, world: int) -> Side:
    side = Side(rank, world)

    def step_of(step: int) -> None:
        x, y = side.batch(step)
        first, second = side.loss(x, y), side.loss(x * 2, y)
        (first + second).backward()

    side.train(step_of)
    return side


def several_backwards(rank: int, world: int, **arguments: Any) -> Side:
    """Runs two forwards, then their backwards in turn; then one forward whose graph is used twice."""
    side = Side(rank, world, **arguments)

    def step_of(step: int) -> None:
        x, y = side.batch(step)
        first, second = side.loss(x, y), side.loss(x * 2, y)
        first.backward()
        second.backward()
        with vesta.no_grad():
            side.model(x)  # an evaluation in between changes nothing
        third = side.loss(x * 0.5, y)
        third.backward(retain_graph=True)
        third.backward()

    side.train(step_of)
    return side


def joined(rank: int, world: int, divide_by_initial_world_size: bool, **arguments: Any) -> Side:
    """Gives rank r r batches less; a rank that is done takes part with zeros."""
    side = Side(rank, world, **arguments)
    counts = [STEPS - r for r in range(world)]

    def step_of(step: int, ranks: list[int]) -> None:
        side.optimizer.zero_grad()
        total = vesta.zeros((), device=where)
        for r in ranks:
            total = total + side.loss(*batch(step, part(r, world)))
        total.backward()
        side.optimizer.step()

    if rank >= 0:
        with side.model.join(divide_by_initial_world_size=divide_by_initial_world_size):
            for step in range(counts[rank]):
                step_of(step, [rank])
        side.optimizer.state.clear()  # a rank that was done early has an old momentum
        side.train_plainly()  # and training continues without it
        return side
    for step in range(STEPS):
        active = [r for r in range(world) if step < counts[r]]
        divisor = world if divide_by_initial_world_size else len(active)
        side.optimizer.zero_grad()
        total = vesta.zeros((), device=where)
        for r in active:
            total = total + side.loss(*batch(step, part(r, world))) / divisor
        total.backward()
        side.optimizer.step()
    side.optimizer.state.clear()
    side.train_plainly()
    return side


def in_16_bits(rank: int, world: int, dtype: Any, register: Callable[[Any], None]) -> Side:
    """Sends gradients in 16 bits; the one process does the same to the gradients of its parts."""
    side = Side(rank, world)
    if rank >= 0:
        register(side.model)
        side.train_plainly()
        return side

    def step_of(step: int) -> None:
        sums: list[Any] = [None] * len(list(side.net.parameters()))
        for r in range(world):
            side.net.zero_grad()
            side.loss(*batch(step, part(r, world))).backward()
            for i, p in enumerate(side.net.parameters()):
                mine = p.grad.to(dtype).div_(world)
                sums[i] = mine if sums[i] is None else sums[i] + mine
        for p, total in zip(side.net.parameters(), sums):
            p.grad = total.to(vesta.float32)

    side.train(step_of)
    return side


def hooked(rank: int, world: int, name: str) -> Side:
    """Averages gradients by a communication hook in Python."""
    side = Side(rank, world, bucket_cap_mb=0.002)
    if rank >= 0:
        hooks.register_ddp_comm_hook(hooks.DDPCommHookType[name], side.model, state=None)
    side.train_plainly()
    return side


def compressed(name: str) -> Callable[[Any], None]:
    def register(model: Any) -> None:
        if name.startswith("builtin"):
            kind = vesta._C._ddp.BuiltinCommHookType
            model._register_builtin_comm_hook(
                {"builtin_fp16": kind.FP16_COMPRESS, "builtin_bf16": kind.BF16_COMPRESS}[name]
            )
        elif name.endswith("wrapper"):
            wrapper = {
                "fp16_wrapper": hooks.default.fp16_compress_wrapper,
                "bf16_wrapper": hooks.default.bf16_compress_wrapper,
            }
            model.register_comm_hook(None, wrapper[name](hooks.default.allreduce_hook))
        else:
            hooks.register_ddp_comm_hook(hooks.DDPCommHookType[f"{name.upper()}_COMPRESS"], model, None)

    return register


def _sixteen(name: str) -> Callable[[int, int], Side]:
    dtype = vesta.float16 if "fp16" in name else vesta.bfloat16
    return lambda rank, world: in_16_bits(rank, world, dtype, compressed(name))


SCENARIOS: dict[str, Callable[[int, int], Side]] = {
    "plain": plain,
    "small buckets": lambda r, w: plain(r, w, bucket_cap_mb=0.001),
    "listed buckets": lambda r, w: plain(r, w, bucket_cap_mb_list=[0.001, 0.003]),
    "kept gradients": kept_gradients,
    "no_sync": no_sync,
    "unused": unused,
    "unused, small buckets": lambda r, w: unused(r, w, bucket_cap_mb=0.001),
    "unused, skipped": lambda r, w: plain(r, w, find_unused_parameters=True, skip_all_reduce_unused_params=True),
    "unused on some": unused_on_some,
    "static graph": static_graph,
    "buffers": buffers,
    "several forwards": several_forwards,
    "several backwards": several_backwards,
    "several backwards, unused": lambda r, w: several_backwards(r, w, find_unused_parameters=True),
    "join": lambda r, w: joined(r, w, True),
    "join, dividing by those at work": lambda r, w: joined(r, w, False),
    "join, unused": lambda r, w: joined(r, w, True, find_unused_parameters=True),
    "join, static graph": lambda r, w: joined(r, w, True, static_graph=True),
    "hook": lambda r, w: hooked(r, w, "ALLREDUCE"),
    **{
        name: _sixteen(name)
        for name in ("fp16", "bf16", "builtin_fp16", "builtin_bf16", "fp16_wrapper", "bf16_wrapper")
    },
}


def results(
    rank: int, world: int, device: str = "cpu", names: Iterable[str] = SCENARIOS
) -> Iterator[tuple[str, dict[str, Tensor]]]:
    """Runs scenarios; yields the name and the final state of each."""
    global where
    where = device
    for name in names:
        state = {key: value.cpu().clone() for key, value in SCENARIOS[name](rank, world).net.state_dict().items()}
        assert not any(vesta.isnan(value).any() for value in state.values()), f"{name} diverged"
        yield name, state


def main() -> None:
    """Runs the program of one rank."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--names", nargs="+", default=list(SCENARIOS))
    parser.add_argument("--backend", default="gloo")
    options = parser.parse_args()
    dist = vesta.distributed
    dist.init_process_group(options.backend)
    rank, world = dist.get_rank(), dist.get_world_size()
    device = "cuda" if options.backend == "nccl" else "cpu"
    first, again = (dict(results(rank, world, device, options.names)) for _ in range(2))
    for name, state in first.items():
        for key, value in state.items():
            assert vesta.equal(value, again[name][key]), f"{name}: {key} differs from run to run"
    flat = {f"{name}/{key}": value for name, state in first.items() for key, value in state.items()}
    vesta.save_file(flat, options.out / f"{rank}.safetensors")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
