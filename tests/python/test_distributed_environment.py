"""The rank of a process: from torchrun's variables, Open MPI, PMI, Slurm and its lists of nodes."""

from __future__ import annotations

import pytest
from vesta.distributed import rendezvous
from vesta.distributed._environment import FIRST_PORT, Place, complete, detect, expand_nodes

NODES = {
    "": [],
    "login": ["login"],
    "a,b,c": ["a", "b", "c"],
    "n[001-003]": ["n001", "n002", "n003"],
    "n[1-3,7]": ["n1", "n2", "n3", "n7"],
    "n[001-004,7]": ["n001", "n002", "n003", "n004", "n7"],
    "n[08-11]": ["n08", "n09", "n10", "n11"],
    "n[9-11]": ["n9", "n10", "n11"],
    "gpu[1-2],cpu5,big[3]": ["gpu1", "gpu2", "cpu5", "big3"],
    "rack[1-2]n[1-2]": ["rack1n1", "rack1n2", "rack2n1", "rack2n2"],
    "n[1-2]-ib": ["n1-ib", "n2-ib"],
    "a-b-[10-12].example.org": ["a-b-10.example.org", "a-b-11.example.org", "a-b-12.example.org"],
    " n[1, 3] , m ": ["n1", "n3", "m"],
}


@pytest.mark.parametrize("text", NODES)
def test_node_lists(text):
    assert expand_nodes(text) == NODES[text]


@pytest.mark.parametrize("text", ("n[1-2", "n1-2]", "n[2-1]", "n[a-b]", "n[]", "n[1[2]]"))
def test_node_lists_that_are_none(text):
    with pytest.raises(ValueError, match="node list"):
        expand_nodes(text)


CASES = {
    "nothing": ({}, None),
    "rank alone": ({"RANK": "1"}, None),
    "torchrun": (
        {
            "RANK": "3",
            "WORLD_SIZE": "8",
            "LOCAL_RANK": "1",
            "LOCAL_WORLD_SIZE": "2",
            "MASTER_ADDR": "h",
            "MASTER_PORT": "29500",
        },
        Place(3, 8, 1, 2, "h", 29500, "run"),
    ),
    "torchrun before mpirun": (
        {"RANK": "0", "WORLD_SIZE": "1", "OMPI_COMM_WORLD_RANK": "5", "OMPI_COMM_WORLD_SIZE": "6"},
        Place(0, 1, launcher="run"),
    ),
    "Open MPI, two machines": (
        {
            "OMPI_COMM_WORLD_RANK": "2",
            "OMPI_COMM_WORLD_SIZE": "4",
            "OMPI_COMM_WORLD_LOCAL_RANK": "0",
            "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
            "MASTER_ADDR": "h",
            "MASTER_PORT": "1",
        },
        Place(2, 4, 0, 2, "h", 1, "Open MPI"),
    ),
    "Slurm": (
        {
            "SLURM_PROCID": "5",
            "SLURM_NTASKS": "6",
            "SLURM_LOCALID": "1",
            "SLURM_NODEID": "1",
            "SLURM_STEP_TASKS_PER_NODE": "4,2",
            "SLURM_STEP_NODELIST": "n[07-08]",
            "SLURM_JOB_ID": "61234",
            "SLURM_STEP_ID": "1",
        },
        Place(5, 6, 1, 2, "n07", FIRST_PORT + 61235 % 20000, "Slurm"),
    ),
    "Slurm, equal nodes": (
        {
            "SLURM_PROCID": "0",
            "SLURM_NTASKS": "6",
            "SLURM_LOCALID": "0",
            "SLURM_NODEID": "2",
            "SLURM_TASKS_PER_NODE": "2(x3)",
            "SLURM_NODELIST": "a,b,c",
            "SLURM_JOB_ID": "7",
        },
        Place(0, 6, 0, 2, "a", FIRST_PORT + 7, "Slurm"),
    ),
    "a shell inside an allocation of Slurm": ({"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_JOB_ID": "7"}, None),
    "PMI": (
        {
            "PMI_RANK": "1",
            "PMI_SIZE": "3",
            "MPI_LOCALRANKID": "1",
            "MPI_LOCALNRANKS": "2",
            "MASTER_ADDR": "h",
            "MASTER_PORT": "9",
        },
        Place(1, 3, 1, 2, "h", 9, "PMI"),
    ),
    "PMIx": ({"PMIX_RANK": "0", "PMIX_SIZE": "2"}, Place(0, 2, launcher="PMI")),
}


@pytest.mark.parametrize("name", CASES)
def test_detect(name):
    env, expected = CASES[name]
    assert detect(env) == expected


def test_one_machine_needs_no_address():
    mpi = {
        "OMPI_COMM_WORLD_RANK": "1",
        "OMPI_COMM_WORLD_SIZE": "2",
        "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
        "OMPI_MCA_orte_hnp_uri": "3840.0;tcp://10.0.0.1:1234",
    }
    first, second = detect(mpi), detect({**mpi, "OMPI_COMM_WORLD_RANK": "0"})
    assert first.master_addr == "127.0.0.1" and first.master_port == second.master_port >= FIRST_PORT


def test_what_is_missing_is_named():
    with pytest.raises(ValueError, match="environment variable RANK expected, but not set"):
        complete({})
    with pytest.raises(ValueError, match="environment variable WORLD_SIZE expected"):
        complete({}, rank=0)
    with pytest.raises(ValueError, match="environment variable WORLD_SIZE expected"):
        complete({"RANK": "0", "MASTER_ADDR": "h", "MASTER_PORT": "1"})
    with pytest.raises(ValueError, match="environment variable RANK expected"):
        complete({"WORLD_SIZE": "2", "MASTER_ADDR": "h", "MASTER_PORT": "1"})
    with pytest.raises(ValueError, match="environment variable MASTER_PORT expected"):
        complete({"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "h"})
    with pytest.raises(ValueError, match="expected a number in RANK, got 'zero'"):
        complete({"RANK": "zero", "WORLD_SIZE": "1"})
    assert complete({"MASTER_ADDR": "h", "MASTER_PORT": "1"}, rank=2, world_size=4).rank == 2


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("tcp://127.0.0.1:1", "rank parameter missing"),
        ("tcp://127.0.0.1?rank=0&world_size=1", "port number missing"),
        ("file://?rank=0&world_size=1", "path missing"),
        ("file:///x?rank=0", "world size parameter missing"),
        ("env://", "environment variable RANK expected"),
        ("nothing://", "No rendezvous handler for nothing://"),
        ("tcp://127.0.0.1:1?rank=3&world_size=2", r"expected a rank from 0 to 1, got 3 \(RANK, rank\)"),
        ("file:///x?rank=-2&world_size=2", "expected a rank from 0 to 1, got -2"),
        ("tcp://127.0.0.1:1?rank=0&world_size=0", "expected at least 1 process, got 0"),
    ],
)
def test_init_methods_that_cannot_work(url, message, monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises((ValueError, RuntimeError), match=message):
        next(rendezvous(url))
