"""DistributedDataParallel over NCCL, with models on the emulated device and the stand-in for NCCL.

The scenarios are those of test_ddp.py; here they are compared with one process that trains on the same device.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import ddp_scenarios
import fake_nccl
import pytest
import vesta
from distributed_ranks import run_ranks

pytestmark = fake_nccl.needed
LIMIT = 400  # seconds; enough for a loaded machine
SOME = (
    "plain",
    "small buckets",
    "kept gradients",
    "no_sync",
    "unused, small buckets",
    "static graph",
    "join, dividing by those at work",
    "bf16",
    "builtin_fp16",
)


@pytest.mark.parametrize(
    ("names", "schedule"),
    [
        pytest.param(SOME, "random", id="some"),
        *(
            pytest.param(tuple(ddp_scenarios.SCENARIOS), schedule, id=f"all-{schedule}", marks=pytest.mark.campaign)
            for schedule in ("eager", "lazy", "random")
        ),
    ],
)
def test_it_equals_one_process(tmp_path: Path, names: tuple[str, ...], schedule: str) -> None:
    launch = [sys.executable, "-m", "vesta.distributed.run", "--nproc-per-node=2", ddp_scenarios.__file__]
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PET_", "TORCHELASTIC"))}
    environment |= {**fake_nccl.ENVIRONMENT, "VESTA_EMULATION_SCHEDULE": schedule, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*launch, str(tmp_path), "--backend=nccl", "--names", *names],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        env=environment,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    ranks = [vesta.load_file(tmp_path / f"{rank}.safetensors") for rank in range(2)]
    for name, state in ddp_scenarios.results(-1, 2, "cuda", names):
        for key, expected in state.items():
            first, second = (rank[f"{name}/{key}"] for rank in ranks)
            assert vesta.equal(first, second), f"{name}: {key} differs between ranks"
            difference = (first - expected).abs().max().item()
            assert difference <= 1e-6, f"{name}: {key} is off by {difference}"


PROGRAM = """
import contextlib, ctypes
from vesta import nn
from vesta.distributed.algorithms import ddp_comm_hooks as hooks
fake = ctypes.CDLL(os.environ["VESTA_CUDA_LIB_DIR"] + "/libnccl.so.2")
fake.fake_nccl_stream.restype = ctypes.c_void_p
dist.init_process_group("nccl")
assert dist.get_backend() == "nccl"

store = dist.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]), None, False)
rounds = 0

def waits():
    return dict(vesta._C_cuda.counters())["synchronizations"]

def train(stream, hook=None, **arguments):
    vesta.manual_seed(5)
    net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 3)).to("cuda")
    x, y = vesta.randn(8, 6).cuda(), vesta.randn(8, 3).cuda()
    mine = slice(4 * rank, 4 * rank + 4)
    global rounds
    blocks = []
    def watched(state, bucket):
        blocks.append((bucket.buffer().data_ptr(), bucket.buffer().nbytes))
        return hook(state, bucket)
    with vesta.cuda.stream(stream):
        stream.wait_stream(vesta.cuda.default_stream())
        model = nn.parallel.DistributedDataParallel(net, device_ids=[0], bucket_cap_mb=0.0005, **arguments)
        if hook:
            model.register_comm_hook(None, watched)
        optimizer = vesta.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        for step in range(5):
            optimizer.zero_grad()
            loss = (model(x[mine]) - y[mine]).square().mean()
            blocks.clear()
            before = waits()
            if step > 1 and rank == step % 2:  # begins when the other's backward is over, which needs what comes now
                store.wait([f"over{rounds}"])
            loss.backward()
            if step > 1:  # buckets are as they stay
                if rank != step % 2: store.set(f"over{rounds}", "")
                rounds += 1
                assert waits() == before, (hook, arguments, waits() - before)
                assert fake.fake_nccl_stream() not in (stream.cuda_stream, vesta.cuda.default_stream().cuda_stream)
            if hook and step > 1:
                assert len(blocks) > 1
                assert all(any(a <= p.grad.data_ptr() < a + n for a, n in blocks) for p in net.parameters())
            optimizer.step()
        vesta.cuda.default_stream().wait_stream(stream)
    return [v.cpu() for v in net.state_dict().values()]

default = vesta.cuda.default_stream()
want = train(default)
for stream in (default, vesta.cuda.Stream()):
    for hook in (None, hooks.default.allreduce_hook, hooks.default.bf16_compress_hook):
        for arguments in ({}, {"static_graph": True}):
            got = train(stream, hook, **arguments)
            limit = 2e-2 if hook is hooks.default.bf16_compress_hook else 1e-6
            for a, b in zip(got, want):
                assert (a - b).abs().max().item() <= limit, (stream, hook, arguments, a, b)
dist.destroy_process_group()
print("equal")
"""


@pytest.mark.parametrize("schedule", ["lazy", "random"])
def test_backward_does_not_wait_for_the_device(schedule: str) -> None:
    """Buckets are sent on their own stream, also by hooks in Python: the current stream waits, the host does not."""
    environment = {**fake_nccl.ENVIRONMENT, "VESTA_EMULATION_SCHEDULE": schedule}
    assert run_ranks(2, PROGRAM, environment=environment) == ["equal\n"] * 2


BY_DEVICE = """
from vesta import nn
dist.init_process_group(BACKEND)
assert dist.get_backend_config() == "cpu:gloo,cuda:nccl", dist.get_backend_config()
for device in ("cpu", "cuda"):
    t = vesta.full((3,), float(rank + 1), device=device)
    dist.all_reduce(t)
    assert t.tolist() == [3.0] * 3 and t.device.type == device
    net = nn.Linear(4, 2).to(device)
    model = nn.parallel.DistributedDataParallel(net)
    model(vesta.full((2, 4), float(rank), device=device)).sum().backward()
    assert net.weight.grad.cpu().tolist() == [[1.0] * 4] * 2 and net.bias.grad.cpu().tolist() == [2.0] * 2
got = [None, None]
dist.all_gather_object(got, rank)
assert got == [0, 1]
dist.barrier()
dist.destroy_process_group()
print("done")
"""


@pytest.mark.parametrize("backend", ["'cpu:gloo,cuda:nccl'", "None"])
def test_a_process_with_tensors_on_both_devices(backend: str) -> None:
    program = BY_DEVICE.replace("BACKEND", backend)
    assert run_ranks(2, program, environment=fake_nccl.ENVIRONMENT) == ["done\n"] * 2
