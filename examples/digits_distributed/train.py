"""Trains the network of examples/digits in several processes, and continues where it stopped when it is started again.

    python -m vesta.distributed.run --nproc-per-node 2 examples/digits_distributed/train.py [--epochs 6] [--out out]

With --backend nccl each process trains on its own GPU.

Each process has a replica of the network and a part of every batch; gradients are averaged during backward. Every 25
steps rank 0 writes checkpoint.safetensors into the output folder: weights, optimizer, schedule, random states and the
place in the data. A run that is killed and started again with the same arguments ends with the same weights, bit by
bit, as an uninterrupted run. With --max-restarts N the launcher restarts it by itself.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any

import vesta
import vesta.distributed as dist
from vesta import Tensor, nn
from vesta.nn.parallel import DistributedDataParallel
from vesta.utils.data import DataLoader, DistributedSampler, TensorDataset

HERE = Path(__file__).resolve().parent


def digits_example() -> Any:
    """Returns examples/digits/train.py as a module: the data and the network are the same."""
    folder = HERE.parent / "digits"
    sys.path.append(str(folder))
    spec = importlib.util.spec_from_file_location("digits_train", folder / "train.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Run:
    """The state that training changes, which is also everything that a checkpoint holds."""

    def __init__(self, model: nn.Module, data: TensorDataset, options: argparse.Namespace) -> None:
        self.options = options
        self.device = next(model.parameters()).device
        self.model = DistributedDataParallel(model)
        self.sampler = DistributedSampler(data, seed=options.seed, drop_last=True)
        self.loader = DataLoader(data, batch_size=options.batch_size // dist.get_world_size(), sampler=self.sampler)
        self.optimizer = vesta.optim.Adam(model.named_parameters(), lr=3e-3)
        self.schedule = vesta.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, T_max=options.epochs)
        self.epoch = self.step = 0  # of the next batch
        self.resumed: list[dict[str, Any]] | None = None  # where each rank was in the data
        self.path = options.out / "checkpoint.safetensors"

    def random_states(self) -> dict[str, Tensor]:
        """Returns the states of this process's generators."""
        gpu = {"cuda": vesta.cuda.get_rng_state(self.device)} if self.device.type == "cuda" else {}
        return {"cpu": vesta.get_rng_state(), **gpu}

    def save(self, within_epoch: bool) -> None:
        """Writes the checkpoint; all ranks call it, rank 0 writes. The old file stays until the new one is complete."""
        mine = {"random": self.random_states(), "loader": self.loader.state_dict() if within_epoch else None}
        ranks: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(ranks, mine)
        if dist.get_rank() != 0:
            return
        tensors = {f"model/{name}": value for name, value in self.model.module.state_dict().items()}
        tensors |= {f"random/{rank}/{kind}": s for rank, each in enumerate(ranks) for kind, s in each["random"].items()}
        for number, state in self.optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer/{number}/{name}": value for name, value in state.items()}
        place = {
            "epoch": self.epoch,
            "step": self.step,
            "rate": [group["lr"] for group in self.optimizer.param_groups],
            "schedule": self.schedule.state_dict(),
            "loader": [each["loader"] for each in ranks] if within_epoch else None,
        }
        vesta.save_file(tensors, self.path, {"place": json.dumps(place)})

    def load(self) -> None:
        """Loads the checkpoint on every rank; all ranks call it."""
        tensors, place = vesta.load_file(self.path), json.loads(vesta.safetensors.load_metadata(self.path)["place"])
        parts: dict[str, dict[str, Tensor]] = {"model": {}, "optimizer": {}, "random": {}}
        for name, value in tensors.items():
            kind, _, rest = name.partition("/")
            parts[kind][rest] = value
        processes = len({name.partition("/")[0] for name in parts["random"]})
        if processes != dist.get_world_size():
            raise ValueError(
                f"{self.path.name}: expected a checkpoint of {dist.get_world_size()} processes, got one of "
                f"{processes}. Start as many as before, or remove it."
            )
        self.model.module.load_state_dict(parts["model"])
        optimizer = self.optimizer.state_dict()
        for name, value in parts["optimizer"].items():
            number, _, key = name.partition("/")
            optimizer["state"].setdefault(int(number), {})[key] = value
        for group, rate in zip(optimizer["param_groups"], place["rate"]):
            group["lr"] = rate
        self.optimizer.load_state_dict(optimizer)
        self.schedule.load_state_dict(place["schedule"])
        self.epoch, self.step, self.resumed = place["epoch"], place["step"], place["loader"]
        vesta.set_rng_state(parts["random"][f"{dist.get_rank()}/cpu"])
        if self.device.type == "cuda":
            vesta.cuda.set_rng_state(parts["random"][f"{dist.get_rank()}/cuda"], self.device)
        dist.barrier()  # no rank writes the next checkpoint before all have read this one

    def batches(self) -> Any:
        """Begins the pass of this epoch, or continues it; continuing leaves the random state as it was."""
        self.sampler.set_epoch(self.epoch)
        if self.resumed is None:
            return iter(self.loader)
        random = vesta.get_rng_state()
        self.loader.load_state_dict(self.resumed[dist.get_rank()])
        self.resumed = None
        batches = iter(self.loader)
        vesta.set_rng_state(random)
        return batches

    def train(self) -> None:
        """Trains to the end, with a checkpoint every ``--checkpoint-every`` steps and after each epoch."""
        criterion = nn.CrossEntropyLoss()
        self.model.train()
        while self.epoch < self.options.epochs:
            total = seen = 0.0
            for images, labels in self.batches():
                loss = criterion(self.model(images.to(self.device)), labels.to(self.device))
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                self.step += 1
                total, seen = total + loss.item(), seen + 1
                if self.step % self.options.checkpoint_every == 0:
                    self.save(within_epoch=True)
            self.schedule.step()
            self.epoch += 1
            self.save(within_epoch=False)
            if dist.get_rank() == 0:
                print(f"epoch {self.epoch}/{self.options.epochs} loss {total / max(seen, 1):.4f}", flush=True)


def main() -> None:
    """Trains the network; rank 0 evaluates and writes it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch-size", type=int, default=64, help="of all processes together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--backend", choices=["gloo", "nccl"], default="gloo", help="nccl: on GPUs")
    parser.add_argument("--checkpoint-every", type=int, default=25, metavar="STEPS")
    parser.add_argument("--data", type=Path, default=HERE.parent / "data" / "digits")
    parser.add_argument("--out", type=Path, default=HERE.parent.parent / "out")
    options = parser.parse_args()

    dist.init_process_group(options.backend)
    digits = digits_example()
    vesta.manual_seed(options.seed)
    model = digits.make_model()
    if options.backend == "nccl":
        vesta.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
        model.cuda()
    vesta.manual_seed(options.seed * 1000 + dist.get_rank() + 1)  # each rank drops different units
    options.out.mkdir(parents=True, exist_ok=True)
    run = Run(model, TensorDataset(*digits.with_shifts(*digits.load(options.data, "train"))), options)
    if run.path.exists():
        run.load()
        if dist.get_rank() == 0:
            print(f"goes on at step {run.step}", flush=True)
    run.train()
    if dist.get_rank() == 0:
        images, labels = digits.load(options.data, "t10k")
        right = (digits.evaluate(model, images).argmax(1) == labels).sum().item()
        print(f"test accuracy {100 * right / len(labels):.2f}%")
        vesta.save_file(model.state_dict(), options.out / "digits.safetensors")
        run.path.unlink()  # the next run starts from the beginning
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
