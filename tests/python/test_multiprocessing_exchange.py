"""Processes that pass blocks on and are killed at any time: a block never changes while a process holds it."""

from __future__ import annotations

import contextlib
import random
import signal
import time

import pytest
import vesta
import vesta.multiprocessing as mp
from shared_checks import LIMIT, nothing_shared_is_left, standard_helpers  # noqa: F401
from vesta._C import _shared


def taken(pipe: tuple, most: int = 1000) -> list:
    """Receives at most ``most`` of the blocks that are in the pipe."""
    blocks: list = []
    with contextlib.suppress(TimeoutError):
        while len(blocks) < most:
            blocks.append(pipe[0].recv(timeout=0.001))
    return blocks


def give(pipe: tuple, block: vesta.Tensor) -> None:
    """Sends a block, if there is room in the pipe."""
    with contextlib.suppress(TimeoutError):
        pipe[1].send(block, timeout=0.001)


def trade(seed: int, pipes: list, mine: int, seconds: float) -> None:
    """Receives blocks, keeps some, passes some on, makes some; each block is filled with its own number."""
    chance, kept, arena = random.Random(seed), [], _shared.Arena()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        act = chance.random()
        if act < 0.4:
            for block in taken(pipes[mine], 1):
                kept.append((float(block[0]), block))
        elif act < 0.6 or not kept:
            block = arena.empty((chance.randrange(1, 3000),), vesta.float32)
            block.fill_(float(seed % 997 + len(kept)))
            kept.append((float(block[0]), block))
        else:
            number, block = chance.choice(kept)
            assert (block == number).all(), "somebody wrote into a block that this process holds"
            give(chance.choice(pipes), block)
        if len(kept) > 50:
            chance.shuffle(kept)
            for number, block in kept[25:]:
                assert (block == number).all(), "somebody wrote into a block that this process holds"
            del kept[25:]


def exchange(rounds: int, seed: int) -> None:
    context, chance = mp.get_context("fork"), random.Random(seed)
    pipes = [mp.Pipe(duplex=False) for _ in range(3)]
    ours, arena = [], _shared.Arena()
    for turn in range(rounds):
        processes = [
            context.Process(target=trade, args=(seed * 1000 + turn * 10 + i, pipes, i, LIMIT)) for i in range(3)
        ]
        for process in processes:
            process.start()
        end = time.monotonic() + 0.3
        while time.monotonic() < end:  # the parent takes part too
            number = float(chance.randrange(1000))
            ours.append((number, arena.empty((chance.randrange(1, 3000),), vesta.float32).fill_(number)))
            give(chance.choice(pipes), ours[-1][1])
            taken(pipes[0], 2)
            for number, block in ours:
                assert (block == number).all()
            del ours[:-20]
        for process in processes:
            time.sleep(chance.random() * 0.05)
            failed = process.exitcode
            process.kill()
            process.join(LIMIT)
            assert failed is None and process.exitcode == -signal.SIGKILL
    ours.clear()
    del block
    for reader, writer in pipes:
        reader.close()
        writer.close()
    _shared.collect()
    assert [(arena["live"], arena["lent"]) for arena in _shared.stats()] == [(0, 0)]


def test_blocks_are_nobodys_but_their_holders():
    exchange(rounds=3, seed=0)


@pytest.mark.campaign
def test_campaign_blocks_are_nobodys_but_their_holders():
    exchange(rounds=120, seed=1)
