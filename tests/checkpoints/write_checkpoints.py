"""Writes the .pt files of this folder with PyTorch, by hand: ``python tests/checkpoints/write_checkpoints.py``.

It needs PyTorch 2.15 and NumPy; the tests need neither PyTorch nor this script.
``tests/python/test_serialization.py`` says what each file must give.
"""

from __future__ import annotations

import pickle
import warnings
from collections import Counter, OrderedDict
from pathlib import Path

import numpy as np
import torch

HERE = Path(__file__).parent
DTYPES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split()


def every_dtype() -> dict[str, torch.Tensor]:
    found = {}
    for name in DTYPES:
        values = torch.tensor([0, 1, 2, 100]).to(getattr(torch, name))
        if values.is_floating_point() or values.is_complex():
            values[0], values[1] = float("nan"), float("-inf")
        found[name] = values
    return found


def views() -> dict[str, torch.Tensor]:
    base = torch.arange(24.0)
    matrix = base.view(4, 6)
    return {
        "base": base,
        "transposed": matrix.t(),
        "column": matrix[:, 2],
        "every second": base[1::2],
        "expanded": base[3:4].expand(5),
        "number": base[7],
        "empty": base[:0].view(0, 3),
        "channels_last": torch.arange(24.0).view(1, 2, 3, 4).contiguous(memory_format=torch.channels_last),
        "small part": torch.arange(1000)[10:12],
    }


def parameters() -> dict[str, torch.Tensor]:
    named = torch.nn.Parameter(torch.tensor([3.0]))
    named.note = "an attribute"
    with_note = torch.tensor([4.0])
    with_note.note = [1, 2]
    return {
        "trained": torch.nn.Parameter(torch.tensor([1.0])),
        "frozen": torch.nn.Parameter(torch.tensor([2.0]), requires_grad=False),
        "named": named,
        "tensor": with_note,
        "leaf": torch.tensor([5.0], requires_grad=True),
        "result": torch.tensor([3.0], requires_grad=True) * 2,
        "buffer": torch.nn.Buffer(torch.tensor([6.0])),
    }


def values() -> dict[str, object]:
    shared = [1, 2]
    return {
        "none": None,
        "numbers": (0, -1, 255, 65536, 2**31, -(2**40), 10**30, 1.5, float("inf"), 2 - 3j, True),
        "texts": ("", "ünï", "line\nline", b"bytes\xff", bytearray(b"ab")),
        "containers": [[], (), {}, {1, 2}, OrderedDict(b=1, a=2), Counter("aab"), {("t", 1): {"deep": [None]}}],
        "shared": [shared, shared],
        "size": torch.Size([2, 3]),
        "dtype": torch.bfloat16,
        "devices": [torch.device("cpu"), torch.device("cuda", 1), torch.device("cuda")],
        "layout": torch.strided,
        "many": list(range(2000)),
    }


def model() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.BatchNorm1d(4), torch.nn.LayerNorm(4), torch.nn.Linear(4, 2)
    )


def training() -> dict[str, object]:
    net = model()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    for _ in range(3):
        optimizer.zero_grad()
        net(torch.ones(5, 3) * torch.arange(5.0)[:, None]).square().sum().backward()
        optimizer.step()
        schedule.step()
    return {"model": net.state_dict(), "optimizer": optimizer.state_dict(), "schedule": schedule.state_dict()}


def main() -> None:
    save = torch.save
    save(every_dtype(), HERE / "every_dtype.pt")
    save(views(), HERE / "views.pt")
    save(parameters(), HERE / "parameters.pt")
    save(values(), HERE / "values.pt")
    save(training(), HERE / "training.pt")
    save(model().eval(), HERE / "module.pt")
    save({"array": np.arange(3), "scalar": np.float64(1.5)}, HERE / "numpy.pt")
    save({"conj": torch.tensor([1 + 2j]).conj(), "neg": torch.tensor([1 + 2j]).conj().imag}, HERE / "marks.pt")
    save(views(), HERE / "views_legacy.pt", _use_new_zipfile_serialization=False)
    save(parameters(), HERE / "parameters_legacy.pt", _use_new_zipfile_serialization=False)
    save({"conj": torch.tensor([1 + 2j]).conj()}, HERE / "marks_legacy.pt", _use_new_zipfile_serialization=False)
    save({"a": torch.ones(2)}, HERE / "protocol4.pt", pickle_protocol=4)
    save(torch.eye(2).to_sparse(), HERE / "sparse.pt")
    save(torch.eye(2).to_sparse(), HERE / "sparse_legacy.pt", _use_new_zipfile_serialization=False)
    save(torch.ones(2, dtype=torch.uint16), HERE / "uint16.pt")
    note = torch.ones(2)
    note.text = "note"
    plain = {
        "t": torch.arange(6.0).view(2, 3).t(),
        "p": torch.nn.Parameter(torch.ones(1)),
        "sparse": torch.eye(2).to_sparse(),
    }
    plain |= {"note": note, "net": torch.nn.Linear(2, 1), "dtype": torch.bfloat16, "size": torch.Size([3])}
    (HERE / "plain.pickle").write_bytes(pickle.dumps(plain))
    save(torch.ones(2).untyped_storage(), HERE / "storage.pt")
    allowed = sorted(torch._weights_only_unpickler._get_allowed_globals())
    (HERE / "allowed_globals.txt").write_text("\n".join(allowed) + "\n", encoding="utf-8")
    torch.serialization.set_crc32_options(False)
    save({"a": torch.ones(2)}, HERE / "no_checksums.pt")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
