"""The process's place in its job, from the environment variables of its launcher.

The variables of ``vesta.distributed.run`` (and of torchrun) come first; without them those of Open MPI, PMI and Slurm
are tried. ``complete()`` returns what ``env://`` needs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

#: The port of jobs without a MASTER_PORT, plus a number of the job, so that two jobs on one machine do not meet.
FIRST_PORT = 20000


@dataclass
class Place:
    """One process among those of its job; None for what the launcher does not say."""

    rank: int
    world_size: int
    local_rank: int | None = None
    local_world_size: int | None = None
    master_addr: str | None = None
    master_port: int | None = None
    launcher: str = ""


def _number(env: Mapping[str, str], *names: str) -> int | None:
    """Returns the first of the variables that is set, as a number."""
    for name in names:
        text = env.get(name, "").strip()
        if text:
            try:
                return int(text)
            except ValueError:
                raise ValueError(f"vesta.distributed: expected a number in {name}, got {text!r}") from None
    return None


def expand_nodes(text: str) -> list[str]:
    """Expands Slurm's list of nodes: ``n[001-003,7],login`` gives n001, n002, n003, n7 and login.

    Several brackets in one name multiply, the last one fastest, as in ``scontrol show hostnames``.
    """
    names: list[str] = []
    for item in _split_outside_brackets(text):
        names.extend(_expand_one(item))
    return names


def _split_outside_brackets(text: str) -> list[str]:
    items, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        if letter == "[":
            depth += 1
        elif letter == "]":
            depth -= 1
        elif letter == "," and depth == 0:
            items.append(text[start:at])
            start = at + 1
        if depth not in (0, 1):
            raise ValueError(f"node list: brackets do not match in {text!r}")
    if depth:
        raise ValueError(f"node list: brackets do not match in {text!r}")
    items.append(text[start:])
    return [item.strip() for item in items if item.strip()]


def _expand_one(item: str) -> list[str]:
    match = re.search(r"\[([^\]]*)\]", item)
    if not match:
        return [item]
    head, tails = item[: match.start()], _expand_one(item[match.end() :])
    numbers: list[str] = []
    for part in match[1].split(","):
        span = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part)
        if not span:
            raise ValueError(
                f"node list: expected numbers and ranges like 001-004 in brackets, got {part!r} in {item!r}"
            )
        first, last = span[1], span[2] or span[1]
        if int(last) < int(first):
            raise ValueError(f"node list: expected an increasing range, got {part!r} in {item!r}")
        numbers.extend(str(n).zfill(len(first)) for n in range(int(first), int(last) + 1))
    return [head + number + tail for number in numbers for tail in tails]


def _first_of_counts(text: str, node: int) -> int | None:
    """Returns the number of a node's tasks, from Slurm's ``2(x3),1``."""
    counts: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part.strip())
        if not match:
            return None
        counts.extend([int(match[1])] * int(match[2] or 1))
    return counts[node] if 0 <= node < len(counts) else None


def _torchrun(env: Mapping[str, str]) -> Place | None:
    rank, size = _number(env, "RANK"), _number(env, "WORLD_SIZE")
    if rank is None or size is None:
        return None
    return Place(rank, size, _number(env, "LOCAL_RANK"), _number(env, "LOCAL_WORLD_SIZE"), launcher="run")


def _open_mpi(env: Mapping[str, str]) -> Place | None:
    rank, size = _number(env, "OMPI_COMM_WORLD_RANK"), _number(env, "OMPI_COMM_WORLD_SIZE")
    if rank is None or size is None:
        return None
    place = Place(rank, size, launcher="Open MPI")
    place.local_rank = _number(env, "OMPI_COMM_WORLD_LOCAL_RANK")
    place.local_world_size = _number(env, "OMPI_COMM_WORLD_LOCAL_SIZE")
    if place.local_world_size == size:  # one machine
        place.master_addr = "127.0.0.1"
        place.master_port = FIRST_PORT + (_number_in(env.get("OMPI_MCA_orte_hnp_uri", "")) % 20000)
    return place


def _slurm(env: Mapping[str, str]) -> Place | None:
    rank, size = _number(env, "SLURM_PROCID"), _number(env, "SLURM_NTASKS", "SLURM_NPROCS", "SLURM_STEP_NUM_TASKS")
    if rank is None or size is None or (size > 1 and "SLURM_LOCALID" not in env):
        return None  # inside an allocation, but not started by srun
    place = Place(rank, size, _number(env, "SLURM_LOCALID"), launcher="Slurm")
    tasks = env.get("SLURM_STEP_TASKS_PER_NODE") or env.get("SLURM_TASKS_PER_NODE", "")
    place.local_world_size = _first_of_counts(tasks, _number(env, "SLURM_NODEID") or 0)
    nodes = expand_nodes(
        env.get("SLURM_STEP_NODELIST") or env.get("SLURM_NODELIST") or env.get("SLURM_JOB_NODELIST", "")
    )
    if nodes:
        place.master_addr = nodes[0]
    job = _number(env, "SLURM_JOB_ID", "SLURM_JOBID") or 0
    place.master_port = FIRST_PORT + (job + (_number(env, "SLURM_STEP_ID") or 0)) % 20000
    return place


def _pmi(env: Mapping[str, str]) -> Place | None:
    rank, size = _number(env, "PMI_RANK", "PMIX_RANK"), _number(env, "PMI_SIZE", "PMIX_SIZE")
    if rank is None or size is None:
        return None
    place = Place(rank, size, launcher="PMI")
    place.local_rank = _number(env, "MPI_LOCALRANKID", "PMI_LOCAL_RANK", "PALS_LOCAL_RANKID")
    place.local_world_size = _number(env, "MPI_LOCALNRANKS", "PMI_LOCAL_SIZE", "PALS_LOCAL_SIZE")
    if place.local_world_size == size:
        place.master_addr = "127.0.0.1"
        place.master_port = FIRST_PORT + _number_in(env.get("PMI_ID", "") + env.get("PMI_FD", "")) % 20000
    return place


def _number_in(text: str) -> int:
    """Returns a number that is the same for the same text on all processes."""
    return sum((i + 1) * ord(letter) for i, letter in enumerate(text))


def detect(env: Mapping[str, str]) -> Place | None:
    """Returns this process's place by the first launcher that is recognised, or None."""
    for look in (_torchrun, _open_mpi, _slurm, _pmi):
        place = look(env)
        if place is not None:
            break
    else:
        return None
    if env.get("MASTER_ADDR"):
        place.master_addr = env["MASTER_ADDR"]
    port = _number(env, "MASTER_PORT")
    if port is not None:
        place.master_port = port
    return place


def complete(env: Mapping[str, str], rank: int = -1, world_size: int = -1) -> Place:
    """Returns a complete place: from the caller's values, else from the environment. ValueError names what is
    missing."""
    place = detect(env)
    if place is None:  # one of RANK and WORLD_SIZE may be set, and the caller may give the other
        found = _number(env, "RANK"), _number(env, "WORLD_SIZE")
        place = Place(*(-1 if number is None else number for number in found))
    if rank != -1:
        place.rank = rank
    if world_size != -1:
        place.world_size = world_size
    if place.master_addr is None:
        place.master_addr = env.get("MASTER_ADDR") or None
    if place.master_port is None:
        place.master_port = _number(env, "MASTER_PORT")
    for name, value in (
        ("RANK", place.rank),
        ("WORLD_SIZE", place.world_size),
        ("MASTER_ADDR", place.master_addr),
        ("MASTER_PORT", place.master_port),
    ):
        if value in (-1, None):
            raise ValueError(
                "Error initializing vesta.distributed using env:// rendezvous: environment variable "
                f"{name} expected, but not set. Start with `python -m vesta.distributed.run`, mpirun or srun."
            )
    return place
