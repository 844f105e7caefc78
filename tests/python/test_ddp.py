"""DistributedDataParallel on 2 and 4 processes: each feature against one process with whole batches, and its errors."""

from __future__ import annotations

import importlib
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import ddp_scenarios
import pytest
import vesta
import vesta.distributed as dist
from distributed_ranks import run_ranks
from vesta import nn
from vesta.distributed.algorithms import ddp_comm_hooks
from vesta.distributed.algorithms.join import Join
from vesta.nn.parallel import DistributedDataParallel

LIMIT = 300  # seconds; enough for a loaded machine


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[int, list[dict[str, vesta.Tensor]]]:
    """Runs all scenarios on 2 and on 4 processes; returns each rank's final state, by number of processes."""
    found = {}
    for world in (2, 4):
        out = tmp_path_factory.mktemp(f"ranks{world}")
        command = [
            sys.executable,
            "-m",
            "vesta.distributed.run",
            f"--nproc-per-node={world}",
            ddp_scenarios.__file__,
            out,
        ]
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("PET_", "TORCHELASTIC"))}
        done = subprocess.run(
            [*map(str, command)],
            capture_output=True,
            text=True,
            timeout=LIMIT,
            env={**environment, "OMP_NUM_THREADS": "1"},
        )
        assert done.returncode == 0, done.stdout + done.stderr
        found[world] = [vesta.load_file(out / f"{rank}.safetensors") for rank in range(world)]
    return found


@pytest.fixture(scope="module")
def alone() -> dict[int, dict[str, dict[str, vesta.Tensor]]]:
    """Trains every scenario in this process on whole batches, cut as 2 and as 4 ranks cut them."""
    threads = vesta.get_num_threads()
    vesta.set_num_threads(1)
    found = {world: dict(ddp_scenarios.results(-1, world)) for world in (2, 4)}
    vesta.set_num_threads(threads)
    return found


@pytest.mark.no_leak_check  # the fixtures' results live as long as the module
@pytest.mark.parametrize("world", [2, 4])
@pytest.mark.parametrize("name", ddp_scenarios.SCENARIOS)
def test_it_equals_one_process(trained, alone, name: str, world: int) -> None:
    sixteen = "16" in name
    for key, expected in alone[world][name].items():
        ranks = [rank[f"{name}/{key}"] for rank in trained[world]]
        for other in ranks[1:]:
            assert vesta.equal(other, ranks[0]), f"{key} differs between ranks"
        difference = (ranks[0] - expected).abs().max().item()
        # With 4 ranks the order in which 16-bit numbers are added makes a difference.
        limit = 1e-6 if not sixteen or world == 2 else {"fp": 2e-4, "bf": 2e-3}["fp" if "fp16" in name else "bf"]
        assert difference <= limit, f"{key} is off by {difference}"


@pytest.fixture
def group() -> Iterator[None]:
    """Makes this process the only rank of the default group."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


class Two(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.used = nn.Linear(3, 2)
        self.spare = nn.Linear(3, 2)
        self.register_buffer("count", vesta.zeros(()))

    def forward(self, x, spare=False):
        return self.spare(x) if spare else self.used(x)


def test_names_arguments_and_state(group) -> None:
    model = Two()
    ddp = DistributedDataParallel(model, find_unused_parameters=True, bucket_cap_mb=3)
    assert ddp.module is model and ddp.process_group is dist.group.WORLD and ddp.device_ids is None
    assert list(ddp.state_dict()) == [f"module.{name}" for name in model.state_dict()]
    assert dict(ddp.named_parameters()).keys() == {f"module.{name}" for name, _ in model.named_parameters()}
    assert "Linear(in_features=3" in repr(ddp) and repr(ddp).startswith("DistributedDataParallel(")
    assert ddp(vesta.zeros(1, 3), spare=True).shape == (1, 2)
    assert ddp.eval().training is False and model.training is False
    assert nn.parallel.DistributedDataParallel is DistributedDataParallel


def test_copies_and_pickles_have_a_reducer_of_their_own(group) -> None:
    ddp = DistributedDataParallel(Two(), find_unused_parameters=True)
    copied = pickle.loads(pickle.dumps(ddp))
    copied(vesta.ones(1, 3)).sum().backward()
    assert copied.module.used.weight.grad is not None and ddp.module.used.weight.grad is None
    assert copied._get_ddp_logging_data()["iteration"] == 1
    other = DistributedDataParallel(Two(), process_group=dist.new_group([0]))
    with pytest.raises(RuntimeError, match="DDP Pickling/Unpickling are only supported"):
        pickle.dumps(other)


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"device_ids": [0]}, ValueError, "only work with single-device GPU"),
        ({"device_ids": [0, 1]}, ValueError, "device_ids can only be None or contain a single element"),
        ({"bucket_cap_mb": 0}, ValueError, "expected a positive size"),
        ({"device_mesh": 1}, NotImplementedError, "device_mesh does not exist here yet"),
        ({"mixed_precision": 1}, NotImplementedError, "mixed_precision does not exist here yet"),
    ],
)
def test_wrong_arguments(group, arguments, kind, words) -> None:
    with pytest.raises(kind, match=words):
        DistributedDataParallel(Two(), **arguments)


def test_a_model_without_gradients_needs_none(group) -> None:
    with pytest.raises(RuntimeError, match="is not needed when a module doesn't have any parameter"):
        DistributedDataParallel(Two().requires_grad_(False))


def test_without_a_group() -> None:
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        DistributedDataParallel(Two())


def test_frozen_parameters_stay(group) -> None:
    model = Two()
    model.spare.requires_grad_(False)
    ddp = DistributedDataParallel(model)
    for _ in range(3):
        ddp(vesta.ones(2, 3)).sum().backward()
    assert model.spare.weight.grad is None and model.used.weight.grad is not None


def test_parameters_may_be_left_out(group) -> None:
    model = Two()
    DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(model, ["spare.weight", "spare.bias", "count"])
    ddp = DistributedDataParallel(model)
    assert ddp.modules_buffers == []
    for _ in range(3):
        ddp(vesta.ones(2, 3)).sum().backward()  # they are not needed


@pytest.mark.differs
def test_unused_parameters_are_named_once_and_it_can_go_on(group) -> None:
    ddp = DistributedDataParallel(Two())
    ddp(vesta.ones(2, 3)).sum().backward()
    with pytest.raises(RuntimeError, match=r"rank 0 2 of 4 parameters got no gradient: spare\.weight, spare\.bias\."):
        ddp(vesta.ones(2, 3))
    (ddp(vesta.ones(2, 3)) + ddp(vesta.ones(2, 3), spare=True)).sum().backward()
    assert ddp.module.spare.weight.grad is not None


@pytest.mark.differs
def test_gradients_lie_in_buckets_and_nobody_can_tell(group) -> None:
    ddp = DistributedDataParallel(nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)))
    ddp(vesta.ones(2, 3)).sum().backward()
    grads = [p.grad for p in ddp.parameters()]
    for p, g in zip(ddp.parameters(), grads):
        assert g.is_leaf and not g._is_view() and g.storage_offset() == 0
        assert g.stride() == p.stride()
        g.detach_()
    values = [g.clone() for g in grads]
    ddp.zero_grad(set_to_none=True)
    (ddp(vesta.ones(2, 3)).sum() * 3).backward()
    assert all(vesta.equal(g, v) for g, v in zip(grads, values))
    assert all(vesta.allclose(p.grad, 3 * v) for p, v in zip(ddp.parameters(), values))
    saved = ddp.module[1].bias.grad
    y = (saved * vesta.ones(2, requires_grad=True)).sum()  # keeps the gradient for its backward
    ddp.module[0].bias.grad.add_(1)  # in the same bucket
    y.backward()


def test_buffers_travel_together(group) -> None:
    norms = [nn.BatchNorm2d(2) for _ in range(4)]
    ddp = DistributedDataParallel(nn.Sequential(*norms))
    before = ddp.process_group._sequence_number()
    ddp(vesta.ones(2, 2, 3, 3))
    assert ddp.process_group._sequence_number() - before == 2  # the statistics, and the counts of batches


def test_the_command_is_installed() -> None:
    text = (Path(__file__).resolve().parents[2] / "pyproject.toml").read_text()
    module, _, function = re.search(r'vestarun = "(.*)"', text)[1].partition(":")
    assert callable(getattr(importlib.import_module(module), function))


def test_autograd_grad_is_no_step(group) -> None:
    ddp = DistributedDataParallel(Two(), find_unused_parameters=True)
    x = vesta.ones(2, 3, requires_grad=True)
    out = ddp(x)
    (slope,) = vesta.autograd.grad(out.sum(), x, create_graph=True)
    assert ddp._get_ddp_logging_data()["iteration"] == 0
    (out.sum() + slope.square().sum()).backward()
    assert ddp._get_ddp_logging_data()["iteration"] == 1


def test_outputs_of_any_form(group) -> None:
    class Forms(Two):
        def forward(self, x):
            return {"a": [self.used(x)], "b": (None, "text", (self.spare(x),))}

    ddp = DistributedDataParallel(Forms(), find_unused_parameters=True)
    out = ddp(vesta.ones(2, 3))
    (out["a"][0].sum() + out["b"][2][0].sum()).backward()
    assert ddp.module.spare.weight.grad is not None


def test_hooks_see_their_buckets(group) -> None:
    seen = []

    def hook(state, bucket: dist.GradBucket):
        assert state == "state"
        seen.append((bucket.index(), bucket.is_last(), [tuple(p.shape) for p in bucket.parameters()]))
        for g, p in zip(bucket.gradients(), bucket.parameters()):
            assert g.shape == p.shape
        assert bucket.buffer().numel() == sum(g.numel() for g in bucket.gradients())
        work = dist.all_reduce(bucket.buffer(), async_op=True)
        return work.get_future().then(lambda future: [future.value()[0] * 2])

    ddp = DistributedDataParallel(nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)), bucket_cap_mb=1e-5)
    ddp.register_comm_hook("state", hook)
    for _ in range(2):
        ddp.zero_grad()
        ddp(vesta.ones(2, 3)).sum().backward()
    assert vesta.equal(ddp.module[1].bias.grad, vesta.full((2,), 4.0))
    assert seen[0] == (0, True, [(4, 3), (4,), (2, 4), (2,)])
    assert [index for index, _, _ in seen[1:]] == list(range(len(seen) - 1)) and len(seen) > 3
    with pytest.raises(RuntimeError, match="can only be called once"):
        ddp.register_comm_hook(None, hook)


@pytest.mark.parametrize(
    ("hook", "words"),
    [
        (lambda state, bucket: bucket.buffer(), "expected a future to be returned, got"),
        (lambda state, bucket: 1 / 0, "division by zero"),
        (
            lambda state, bucket: ddp_comm_hooks.debugging.noop_hook(None, type("B", (), {"buffer": lambda s: 3})()),
            "expected",
        ),
        (
            lambda state, bucket: ddp_comm_hooks.debugging.noop_hook(
                None, type("B", (), {"buffer": lambda s: vesta.zeros(2)})()
            ),
            "expected a tensor of 16 elements",
        ),
    ],
)
def test_hooks_that_go_wrong(group, hook, words) -> None:
    ddp = DistributedDataParallel(Two())
    ddp.register_comm_hook(None, hook)
    out = (ddp(vesta.ones(2, 3)) + ddp(vesta.ones(2, 3), spare=True)).sum()
    with pytest.raises(Exception, match=words):
        out.backward()


def test_hooks_are_callable_and_come_first(group) -> None:
    ddp = DistributedDataParallel(Two(), find_unused_parameters=True)
    with pytest.raises(TypeError, match="Communication hook must be callable"):
        ddp.register_comm_hook(None, 3)

    def annotated(state, bucket: int):
        return None

    with pytest.raises(ValueError, match="bucket annotation should be dist.GradBucket"):
        ddp.register_comm_hook(None, annotated)
    ddp(vesta.ones(2, 3)).sum().backward()
    with pytest.raises(RuntimeError, match="expected to be called before the first backward"):
        ddp.register_comm_hook(None, ddp_comm_hooks.default.allreduce_hook)


def test_join_needs_joinables(group) -> None:
    with pytest.raises(ValueError, match="requires at least one joinable"):
        Join([])
    ddp = DistributedDataParallel(Two(), find_unused_parameters=True)
    with pytest.raises(KeyError), ddp.join():
        raise KeyError("goes on as it is")
    with ddp.join(enable=False):
        ddp(vesta.ones(2, 3)).sum().backward()


def test_data_parallel_with_one_device_is_the_model() -> None:
    model = Two()
    wrapped = nn.DataParallel(model, device_ids=[])
    x = vesta.ones(2, 3)
    assert vesta.equal(wrapped(x), model(x)) and wrapped.module is model
    assert list(wrapped.state_dict()) == [f"module.{name}" for name in model.state_dict()]
    with pytest.raises(NotImplementedError, match="at most one device, got 2"):
        nn.DataParallel(model, device_ids=[0, 1])


# ---- errors on two processes


def test_ranks_with_other_models_all_hear_of_it() -> None:
    outputs = run_ranks(
        2,
        """
        from vesta import nn
        dist.init_process_group("gloo")
        models = {
            "size": lambda: nn.Linear(3, 2 + rank),
            "name": lambda: nn.Sequential(nn.Identity(), nn.Linear(2, 2)) if rank else nn.Sequential(nn.Linear(2, 2)),
            "number": lambda: nn.Linear(3, 2, bias=rank == 0),
            "dtype": lambda: nn.Linear(3, 2).to(vesta.float64 if rank else vesta.float32),
            "frozen": lambda: (lambda m: (m.bias.requires_grad_(rank == 0), m)[1])(nn.Linear(3, 2)),
            "order": lambda: nn.ParameterDict({k: nn.Parameter(vesta.ones(1)) for k in ("ab" if rank else "ba")}),
        }
        for name, make in models.items():
            try:
                nn.parallel.DistributedDataParallel(make())
            except RuntimeError as error:
                print(name, "|", str(error).partition(", but ")[2])
        dist.destroy_process_group()
        """,
    )
    assert outputs[0] == outputs[1]
    said = dict(line.split(" | ") for line in outputs[0].splitlines())
    assert said["size"].startswith(
        "parameter 0 is weight of shape [2, 3], float32 on rank 0 and weight of shape [3, 3], "
    )
    assert said["name"].startswith("parameter 0 is 0.weight of shape [2, 2], float32 on rank 0 and 1.weight of shape")
    assert "parameter 1 is bias of shape [2], float32 on rank 0 and none on rank 1 (they have 2 and 1" in said["number"]
    assert "float32 on rank 0 and weight of shape [2, 3], float64 on rank 1" in said["dtype"]
    assert "bias of shape [2], float32, no grad required on rank 1" in said["frozen"]
    assert "parameter 0 is b of shape [1], float32 on rank 0 and a of shape" in said["order"]


def test_uneven_inputs_raise_where_they_are_told_to() -> None:
    outputs = run_ranks(
        2,
        """
        from vesta import nn
        dist.init_process_group("gloo")
        model = nn.parallel.DistributedDataParallel(nn.Linear(3, 2))
        steps = 0
        try:
            with model.join(throw_on_early_termination=True):
                for _ in range(3 + rank):
                    model(vesta.ones(1, 3)).sum().backward()
                    steps += 1
        except RuntimeError as error:
            print(steps, error)
        dist.destroy_process_group()
        """,
    )
    assert outputs[0] == "3 Rank 0 exhausted all inputs.\n"
    assert outputs[1] == "3 Detected at least one rank that exhausted inputs. Throwing across all ranks.\n"


def test_a_rank_that_dies_in_backward_is_named() -> None:
    outputs = run_ranks(
        2,
        """
        from vesta import nn
        dist.init_process_group("gloo")
        model = nn.parallel.DistributedDataParallel(nn.Linear(3, 2))
        model(vesta.ones(1, 3)).sum().backward()
        out = model(vesta.ones(1, 3))
        if rank == 1:
            os._exit(0)
        try:
            out.sum().backward()
        except dist.DistributedError as error:
            print("DistributedDataParallel" in str(error), "rank 1" in str(error))
        """,
    )
    assert outputs[0] == "True True\n"
