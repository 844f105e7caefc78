"""DistributedDataParallel of a model on a GPU, or on the emulated device, over Gloo: the same results as on the CPU."""

from __future__ import annotations

import pytest
import vesta
from distributed_ranks import run_ranks

pytestmark = [
    pytest.mark.skipif(not vesta.cuda.is_available(), reason="needs a GPU or the emulated device"),
    pytest.mark.skipif(not vesta.distributed.is_gloo_available(), reason="needs Gloo"),
]

PROGRAM = """
import contextlib
from vesta import nn
from vesta.distributed.algorithms import ddp_comm_hooks as hooks
dist.init_process_group("gloo")

def train(device, hook=None):
    vesta.manual_seed(5)
    net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 16, bias=False), nn.Linear(16, 3)).to(device)
    net.register_buffer("count", vesta.full((1,), float(rank), device=device))
    x, y = vesta.randn(8, 6), vesta.randn(8, 3)
    mine = slice(4 * rank, 4 * rank + 4)
    ids = [0] if device == "cuda" else None
    model = nn.parallel.DistributedDataParallel(net, device_ids=ids, bucket_cap_mb=0.0005, find_unused_parameters=True)
    if hook:
        hooks.register_ddp_comm_hook(hooks.DDPCommHookType[hook], model)
    optimizer = vesta.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for step in range(4):
        optimizer.zero_grad(set_to_none=step % 2 == 0)
        with model.no_sync() if step == 2 else contextlib.nullcontext():
            model(x[mine]).sub(y[mine].to(device)).square().mean().backward()
        if step != 2:
            optimizer.step()
    assert net[0].weight.grad.device.type == device
    return [v.cpu() for v in net.state_dict().values()]

for hook in (None, "ALLREDUCE", "FP16_COMPRESS"):
    for a, b in zip(train("cpu", hook), train("cuda", hook)):
        assert (a - b).abs().max().item() < 1e-5, (hook, a, b)
print("equal")
dist.destroy_process_group()
"""


def test_it_learns_what_the_cpu_learns() -> None:
    assert run_ranks(2, PROGRAM) == ["equal\n"] * 2
