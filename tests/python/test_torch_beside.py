"""PyTorch in the same process: ``from_torch``, ``to_torch``, and what happens without them. Row 26 of EXCEPTIONS.md."""

from __future__ import annotations

import collections
import gc
import subprocess
import sys
from typing import Any

import pytest
import vesta
from torch_beside import same, torch
from vesta import nn

pytestmark = pytest.mark.no_leak_check  # PyTorch's tape keeps tensors until the collector runs


# ---- tensors and structures -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", "float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 bool complex64".split())
def test_a_tensor_shares_its_memory_both_ways(name: str) -> None:
    theirs = (torch.arange(12).reshape(3, 4) % 5).to(getattr(torch, name)).t()[1:]
    ours = vesta.from_torch(theirs)
    assert ours.dtype == getattr(vesta, name) and ours.shape == (3, 3) and ours.stride() == theirs.stride()
    assert ours.tolist() == theirs.tolist() and ours.data_ptr() == theirs.data_ptr()
    back = vesta.to_torch(ours)
    assert back.dtype == theirs.dtype and back.data_ptr() == theirs.data_ptr()
    ours[0, 0] = 1
    assert theirs[0, 0] == 1
    apart = vesta.from_torch(theirs, copy=True)
    assert apart.data_ptr() != theirs.data_ptr() and apart.tolist() == theirs.tolist()


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3)])
def test_tensors_of_any_shape(shape: tuple[int, ...]) -> None:
    assert vesta.from_torch(torch.ones(shape)).shape == shape and vesta.to_torch(vesta.ones(shape)).shape == shape


def test_the_memory_lives_as_long_as_either_tensor() -> None:
    ours = vesta.from_torch(torch.full((1000,), 3.0))
    theirs = vesta.to_torch(vesta.full((1000,), 4.0))
    gc.collect()
    assert ours.sum().item() == 3000 and theirs.sum().item() == 4000


def test_bits_of_conjugates_and_negatives_are_computed() -> None:
    assert vesta.from_torch(torch.tensor([1 + 2j]).conj()).tolist() == [1 - 2j]
    assert vesta.from_torch(torch.tensor([1 + 2j]).conj().imag).tolist() == [-2]


def test_leaves_keep_requires_grad_and_parameters_their_class() -> None:
    assert vesta.from_torch(torch.ones(2, requires_grad=True)).requires_grad
    made = vesta.from_torch(torch.nn.Parameter(torch.ones(2), requires_grad=False))
    assert type(made) is nn.Parameter and not made.requires_grad
    assert type(vesta.to_torch(nn.Parameter(vesta.ones(2)))) is torch.nn.Parameter
    with pytest.raises(RuntimeError, match=r"from_torch: expected a leaf.*tape of torch \(obj\['a'\]\).*detach"):
        vesta.from_torch({"a": torch.ones(2, requires_grad=True) * 2})
    with pytest.raises(RuntimeError, match=r"to_torch: expected a leaf.*tape of vesta"):
        vesta.to_torch(vesta.ones(2, requires_grad=True) * 2)


def test_structures_keep_their_classes_order_attributes_and_ties() -> None:
    Pair = collections.namedtuple("Pair", "a b")
    weight = torch.ones(2)
    given = collections.OrderedDict(b=weight, a=[weight, (3, "x")], c=Pair(None, torch.float16), d=torch.Size([2]))
    given._metadata = {"": {"version": 1}}  # type: ignore[attr-defined]
    made = vesta.from_torch(given)
    assert type(made) is collections.OrderedDict and list(made) == ["b", "a", "c", "d"]
    assert made._metadata == {"": {"version": 1}} and made["b"] is made["a"][0] and made["a"][1] == (3, "x")
    assert made["c"] == Pair(None, vesta.float16) and type(made["d"]) is vesta.Size
    assert given["b"] is weight and vesta.to_torch(made)["c"].b is torch.float16
    assert vesta.from_torch(torch.device("cpu")) == vesta.device("cpu")
    default = vesta.from_torch(collections.defaultdict(list, a=weight))
    assert default["z"] == [] and isinstance(default["a"], vesta.Tensor)
    assert vesta.from_torch("x") == "x" and vesta.from_torch(made) is not made and vesta.from_torch(vesta.ones(1)) == 1


def test_what_has_no_counterpart_is_named_with_its_place() -> None:
    ring: list[Any] = []
    ring.append(ring)
    for given, error, message in [
        ({"a": [torch.ones(2, dtype=torch.uint16)]}, TypeError, r"dtype that vesta has, got torch.uint16 \(obj\['a'\]"),
        (torch.ones(2).to_sparse(), TypeError, r"dense tensor, got torch.sparse_coo \(obj\). Use .to_dense"),
        (torch.optim.SGD([torch.ones(1)]), TypeError, r"an optimizer's state_dict\(\)"),
        (ring, ValueError, r"do not contain themselves \(obj\[0\]\)"),
    ]:
        with pytest.raises(error, match=f"from_torch: expected .*{message}"):
            vesta.from_torch(given)
    with pytest.raises(TypeError, match="from_torch: expected True or False, got 1"):
        vesta.from_torch([], copy=1)  # type: ignore[arg-type]


def test_the_meta_device_has_sizes_and_no_memory() -> None:
    ours = vesta.from_torch(torch.ones(2, 3, device="meta", dtype=torch.bfloat16).t())
    assert ours.device.type == "meta" and ours.dtype == vesta.bfloat16 and ours.stride() == (1, 3)


def test_tensor_and_as_tensor_take_pytorchs() -> None:
    theirs = torch.ones(2, requires_grad=True)
    assert vesta.tensor(theirs).tolist() == [1, 1] and vesta.tensor(theirs).data_ptr() != theirs.data_ptr()
    assert vesta.as_tensor(theirs).data_ptr() == theirs.data_ptr() == vesta.asarray(theirs).data_ptr()
    assert vesta.tensor(theirs.bfloat16(), dtype=vesta.float64).dtype == vesta.float64


def test_without_pytorch() -> None:
    code = """
        import sys, vesta
        sys.modules["torch"] = None
        given = {"a": 1}
        assert vesta.from_torch(given) is given
        try: vesta.to_torch(given)
        except ImportError as error: print(error)
    """
    lines = "\n".join(line.strip() for line in code.splitlines())
    out = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, check=True).stdout
    assert out == "to_torch: expected PyTorch to be installed: pip install torch.\n"


def test_both_names_are_vestas_own_under_as_torch() -> None:
    code = (
        "import vesta.as_torch as a; a.install(); import torch, vesta; x = torch.ones(2)\n"
        "print(vesta.from_torch(x) is x, vesta.to_torch(x) is x)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "True True\n"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda v, t: v + t, "add: expected a vesta.Tensor or a number, got a torch.Tensor. Convert it with vesta"),
        (lambda v, t: t - v, "sub: expected a vesta.Tensor or a number, got a torch.Tensor"),
        (lambda v, t: v == t, "eq: expected"),
        (lambda v, t: v @ t, "matmul: expected"),
        (lambda v, t: v.__iadd__(t), "add_: expected"),
        (
            lambda v, t: v[t.long()],
            "index: expected a vesta.Tensor, got a torch.Tensor. Convert it with vesta.from_torch",
        ),
        (lambda v, t: v[0, t.long()[:1]], "index: expected a vesta.Tensor"),
        (lambda v, t: v.__setitem__(0, t), "__setitem__: expected a vesta.Tensor or a number, got a torch.Tensor"),
        (lambda v, t: vesta.relu(t), r"relu\(\): .* must be Tensor, not torch.Tensor. Convert it with vesta"),
        (lambda v, t: torch.relu(v), "relu: expected tensors of that library, got a vesta.Tensor.*vesta.to_torch"),
        (lambda v, t: vesta.cat([v, t]), "torch.Tensor. Convert it with vesta.from_torch"),
        (lambda v, t: nn.Sequential(torch.nn.ReLU()), "not a Module subclass. Convert it with vesta.from_torch"),
        (lambda v, t: vesta.optim.SGD([t]), "one of the params is Tensor. Convert it with vesta.from_torch"),
    ],
)
def test_one_librarys_tensor_in_the_others_operation_says_how_to_convert(call: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call(vesta.ones(2), torch.ones(2))


def test_a_state_dict_of_the_other_library_says_how_to_convert() -> None:
    with pytest.raises(RuntimeError, match='"weight".*torch.Tensor.*Convert it with vesta.from_torch'):
        nn.Linear(2, 2).load_state_dict(torch.nn.Linear(2, 2).state_dict())


class Numbers(torch.utils.data.Dataset):  # type: ignore[misc]
    """Ten samples, as a dataset written for PyTorch gives them."""

    def __len__(self) -> int:
        return 10

    def __getitem__(self, i: int) -> Any:
        return {"x": torch.full((3,), float(i)), "y": i}


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_takes_a_dataset_written_for_pytorch(workers: int) -> None:
    batches = list(vesta.utils.data.DataLoader(Numbers(), batch_size=5, num_workers=workers))
    assert [batch["y"].tolist() for batch in batches] == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    assert all(isinstance(batch["x"], vesta.Tensor) for batch in batches) and batches[1]["x"][:, 0].tolist()[0] == 5
    with pytest.raises(RuntimeError, match=r"sample 0 of the batch has shape \(1,\), sample 1 of the batch \(2,\)"):
        vesta.utils.data.default_collate([torch.ones(1), torch.ones(2)])
    with pytest.raises(RuntimeError, match="sample 1 of the batch <class 'vesta.Tensor'>"):
        vesta.utils.data.default_collate([torch.ones(1), vesta.ones(1)])


class Draws(torch.utils.data.Dataset):  # type: ignore[misc]
    """Samples that PyTorch's generator draws."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, i: int) -> Any:
        return torch.rand(())


class Stream(torch.utils.data.IterableDataset):  # type: ignore[misc]
    def __iter__(self) -> Any:
        return iter(torch.arange(5))


def test_pytorchs_random_numbers_do_not_depend_on_workers() -> None:
    def draws(workers: int) -> list[float]:
        generator = vesta.Generator().manual_seed(3)
        return vesta.cat(
            list(vesta.utils.data.DataLoader(Draws(), 2, num_workers=workers, generator=generator))
        ).tolist()

    before = torch.get_rng_state()
    alone = draws(0)
    assert torch.get_rng_state().equal(before) and len(set(alone)) == 8
    assert draws(2) == alone == draws(3)


def test_a_stream_written_for_pytorch() -> None:
    batches = vesta.utils.data.DataLoader(Stream(), batch_size=2)
    assert [batch.tolist() for batch in batches] == [[0, 1], [2, 3], [4]]
    with pytest.raises(ValueError, match="expected num_workers=0 for an IterableDataset of PyTorch's"):
        vesta.utils.data.DataLoader(Stream(), num_workers=2)


def test_a_member_of_pytorchs_is_refused() -> None:
    module = nn.Module()
    for value in (torch.nn.Linear(2, 2), torch.nn.Parameter(torch.ones(1))):
        with pytest.raises(TypeError, match="Module.encoder: expected a member of Vesta's.*from_torch.*into a list"):
            module.encoder = value
    module.encoder = [torch.nn.Linear(2, 2)]
    module.encoder = torch.ones(1)


# ---- training goes on in the other library -----------------------------------------------------------------------


def network(lib: Any) -> Any:
    return lib.nn.Sequential(lib.nn.Linear(3, 8, bias=False), lib.nn.BatchNorm1d(8), lib.nn.Tanh(), lib.nn.Linear(8, 2))


def train(net: Any, optimizer: Any, scheduler: Any, batches: Any) -> None:
    for x in batches:
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()
        scheduler.step()


def made(lib: Any, name: str) -> tuple[Any, Any, Any]:
    net = network(lib)
    options = {"SGD": {"lr": 0.05, "momentum": 0.9}}.get(name, {"lr": 0.01})
    optimizer = getattr(lib.optim, name)(net.parameters(), **options)
    return net, optimizer, lib.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)


@pytest.mark.parametrize("name", "SGD Adam AdamW NAdam RAdam Adamax Adagrad Adadelta RMSprop Rprop ASGD".split())
def test_training_goes_on_in_the_other_library(name: str) -> None:
    """Three steps here, three there: as six in PyTorch. Then back."""
    torch.manual_seed(0)
    batches = [torch.randn(5, 3) for _ in range(9)]
    ours = vesta.from_torch(batches)
    theirs = made(torch, name)
    train(*theirs, batches[:3])
    moved = made(vesta, name)
    for to, of in zip(moved, theirs):
        to.load_state_dict(vesta.from_torch(of.state_dict(), copy=True))
    train(*moved, ours[3:6])
    train(*theirs, batches[3:6])
    assert all(same(a, b) for a, b in zip(moved[0].parameters(), theirs[0].parameters()))
    back = made(torch, name)
    for to, of in zip(back, moved):
        to.load_state_dict(vesta.to_torch(of.state_dict(), copy=True))
    train(*back, batches[6:])
    train(*theirs, batches[6:])
    assert all(same(a, b) for a, b in zip(back[0].state_dict().values(), theirs[0].state_dict().values()))
    assert back[2].get_last_lr() == theirs[2].get_last_lr()
