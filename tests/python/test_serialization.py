"""``vesta.save`` and ``vesta.load``: PyTorch's files both ways. ``tests/checkpoints`` holds files of PyTorch."""

from __future__ import annotations

import copy
import io
import math
import pickle
import struct
import subprocess
import sys
import types
import zipfile
from collections import Counter, OrderedDict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import op_db_check as check
import pytest
import vesta
import vesta.nn.functional as F
from op_db_row import DTYPES
from vesta import nn

CHECKPOINTS = Path(__file__).resolve().parents[1] / "checkpoints"


def through(obj, weights_only: bool = True, **options):
    """Returns what is loaded of what was saved."""
    file = io.BytesIO()
    vesta.save(obj, file, **options)
    file.seek(0)
    return vesta.load(file, weights_only=weights_only)


def pickle_of(data: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return archive.read(next(name for name in archive.namelist() if name.endswith("/data.pkl")))


# ---- files of PyTorch ----


@pytest.mark.parametrize("weights_only", [True, False])
class TestFilesOfPyTorch:
    def load(self, name: str, weights_only: bool):
        return vesta.load(CHECKPOINTS / f"{name}.pt", weights_only=weights_only)

    def test_every_dtype(self, weights_only: bool) -> None:
        found = self.load("every_dtype", weights_only)
        assert list(found) == [str(t.dtype).split(".")[1] for t in found.values()] and len(found) == len(DTYPES)
        for name, tensor in found.items():
            last = tensor[2:].tolist()
            assert last == ([True, True] if name == "bool" else [2, 100])
            if tensor.is_floating_point():
                assert math.isnan(tensor[0].item()) and tensor[1].item() == -math.inf

    @pytest.mark.parametrize("name", ["views", "views_legacy"])
    def test_views(self, weights_only: bool, name: str) -> None:
        found = self.load(name, weights_only)
        assert found["transposed"].stride() == (1, 6) and found["transposed"][2].tolist() == [2.0, 8.0, 14.0, 20.0]
        assert found["column"].tolist() == [2.0, 8.0, 14.0, 20.0] and found["number"].item() == 7.0
        assert found["every second"].stride() == (2,) and found["every second"].storage_offset() == 1
        assert found["expanded"].stride() == (0,) and found["expanded"].tolist() == [3.0] * 5
        assert found["empty"].shape == (0, 3) and found["small part"].tolist() == [10, 11]
        assert found["channels_last"].is_contiguous(memory_format=vesta.channels_last)
        assert found["channels_last"].flatten().tolist() == list(range(24))
        found["base"][8] = -1.0  # one storage under all of them
        assert found["transposed"][2, 1].item() == found["column"][1].item() == -1.0

    @pytest.mark.parametrize("name", ["parameters", "parameters_legacy"])
    def test_parameters(self, weights_only: bool, name: str) -> None:
        found = self.load(name, weights_only)
        for key, (kind, wants, value) in {
            "trained": (nn.Parameter, True, 1.0),
            "frozen": (nn.Parameter, False, 2.0),
            "named": (nn.Parameter, True, 3.0),
            "tensor": (vesta.Tensor, False, 4.0),
            "leaf": (vesta.Tensor, True, 5.0),
            "result": (vesta.Tensor, True, 6.0),
            "buffer": (nn.Buffer, False, 6.0),
        }.items():
            tensor = found[key]
            assert type(tensor) is kind and tensor.requires_grad is wants and tensor.item() == value, key
            assert tensor.is_leaf and tensor.grad is None
        assert found["named"].note == "an attribute" and found["tensor"].note == [1, 2]
        assert found["buffer"].persistent is True

    def test_values(self, weights_only: bool) -> None:
        found = self.load("values", weights_only)
        assert found["numbers"] == (0, -1, 255, 65536, 2**31, -(2**40), 10**30, 1.5, math.inf, 2 - 3j, True)
        assert found["texts"] == ("", "ünï", "line\nline", b"bytes\xff", bytearray(b"ab"))
        expected = [[], (), {}, {1, 2}, OrderedDict(b=1, a=2), Counter("aab"), {("t", 1): {"deep": [None]}}]
        assert found["containers"] == expected and list(map(type, found["containers"])) == list(map(type, expected))
        assert found["shared"][0] is found["shared"][1] and found["many"] == list(range(2000))
        assert found["size"] == vesta.Size([2, 3]) and type(found["size"]) is vesta.Size
        assert found["dtype"] is vesta.bfloat16 and found["layout"] is vesta.strided and found["none"] is None
        assert found["devices"] == [vesta.device("cpu"), vesta.device("cuda", 1), vesta.device("cuda")]

    def test_a_training_goes_on(self, weights_only: bool) -> None:
        found = self.load("training", weights_only)
        net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.BatchNorm1d(4), nn.LayerNorm(4), nn.Linear(4, 2))
        net.load_state_dict(found["model"])
        optimizer = vesta.optim.Adam(net.parameters(), lr=0.5)
        optimizer.load_state_dict(found["optimizer"])
        schedule = vesta.optim.lr_scheduler.StepLR(optimizer, 2)
        schedule.load_state_dict(found["schedule"])
        assert schedule.last_epoch == 3 and optimizer.param_groups[0]["lr"] == pytest.approx(0.001)
        assert net[2].num_batches_tracked.item() == 3 and found["model"]._metadata["2"] == {"version": 2}
        net(vesta.ones(5, 3)).sum().backward()
        optimizer.step()
        assert optimizer.state_dict()["state"][0]["step"].item() == 4

    @pytest.mark.differs
    @pytest.mark.parametrize("name", ["marks", "marks_legacy"])
    def test_marks_of_conjugation_are_applied(self, weights_only: bool, name: str) -> None:
        found = self.load(name, weights_only)
        assert found["conj"].tolist() == [1 - 2j] and ("neg" not in found or found["neg"].tolist() == [-2.0])

    def test_other_protocols_and_no_checksums(self, weights_only: bool) -> None:
        for name in ("protocol4", "no_checksums"):
            assert self.load(name, weights_only)["a"].tolist() == [1.0, 1.0]
        storage = self.load("storage", weights_only)
        assert type(storage) is vesta.TypedStorage and storage.tolist() == [0, 0, 128, 63] * 2

    def test_sparse_tensors(self, weights_only: bool) -> None:
        for name in ("sparse", "sparse_legacy"):
            made = self.load(name, weights_only)
            assert made.is_sparse and made.is_coalesced() and made.to_dense().tolist() == [[1, 0], [0, 1]]

    def test_what_vesta_lacks_is_named(self, weights_only: bool) -> None:
        with pytest.raises(NotImplementedError, match="the dtype torch.uint16"):
            self.load("uint16", weights_only)


def test_whole_modules_and_arrays_of_pytorch() -> None:
    net = vesta.load(CHECKPOINTS / "module.pt", weights_only=False)
    assert repr(net[2]).startswith("BatchNorm1d(4") and not net.training
    net.load_state_dict(nn.Sequential(*map(copy.deepcopy, net)).state_dict())
    assert net(vesta.ones(1, 3)).shape == (1, 2)
    found = vesta.load(CHECKPOINTS / "numpy.pt", weights_only=False)
    assert found["array"].tolist() == [0, 1, 2] and found["scalar"] == 1.5
    for name in ("module", "numpy"):
        with pytest.raises(pickle.UnpicklingError, match="was not an allowed global"):
            vesta.load(CHECKPOINTS / f"{name}.pt")


@pytest.mark.parametrize("name", ["every_dtype", "views", "parameters", "training", "module", "numpy", "protocol4"])
def test_the_same_bytes_as_pytorch(name: str, tmp_path) -> None:
    """What PyTorch wrote, loaded and saved again, is the same file but for the identity of its contents."""
    path = CHECKPOINTS / f"{name}.pt"
    again = tmp_path / path.name
    vesta.save(vesta.load(path, weights_only=False), again, pickle_protocol=4 if name == "protocol4" else 2)
    assert pickle_of(again.read_bytes()) == pickle_of(path.read_bytes())
    theirs, ours = path.read_bytes(), again.read_bytes()
    end = theirs.index(f"{name}/.data/serialization_id".encode()) + 40
    assert len(ours) == len(theirs) and ours[:end] == theirs[:end]


# ---- what is written ----


def test_the_layout_of_a_file() -> None:
    """Records, their order and alignment, and the names in the pickle, as PyTorch has them."""
    file = io.BytesIO()
    state = OrderedDict(w=vesta.ones(3), p=nn.Parameter(vesta.zeros(2, dtype=vesta.float16)))
    vesta.save(state, file)
    data = file.getvalue()
    with zipfile.ZipFile(file) as archive:
        assert archive.testzip() is None
        names = [info.filename for info in archive.infolist()]
        records = "data.pkl .format_version .storage_alignment byteorder data/0 data/1 version .data/serialization_id"
        assert names == [f"archive/{name}" for name in records.split()]
        assert archive.read("archive/version") == b"3\n" and archive.read("archive/byteorder") == b"little"
        assert archive.read("archive/.format_version") == b"1"
        assert archive.read("archive/.storage_alignment") == b"64"
        identity = archive.read("archive/.data/serialization_id")
        assert len(identity) == 40 and identity.isdigit()
        for info in archive.infolist():
            sizes = struct.unpack("<2H", data[info.header_offset + 26 : info.header_offset + 30])
            assert (info.header_offset + 30 + sum(sizes)) % 64 == 0 and info.compress_type == zipfile.ZIP_STORED
        text = archive.read("archive/data.pkl")
    for name in (
        b"ctorch._utils\n_rebuild_tensor_v2\n",
        b"ctorch._utils\n_rebuild_parameter\n",
        b"ctorch\nFloatStorage\n",
        b"ctorch\nHalfStorage\n",
        b"ccollections\nOrderedDict\n",
    ):
        assert name in text
    assert b"vesta" not in data and text.startswith(b"\x80\x02")


def test_the_folder_has_the_name_of_the_file(tmp_path) -> None:
    for name, folder in {"a.b.pt": "a.b", "plain": "plain", "ünï.pt": "archive", ".pt": "archive"}.items():
        vesta.save(1, tmp_path / name)
        assert zipfile.ZipFile(tmp_path / name).namelist()[0] == f"{folder}/data.pkl"
        assert vesta.load(tmp_path / name) == 1


@pytest.mark.parametrize("zip_format", [True, False])
@pytest.mark.parametrize("dtype", list(DTYPES))
def test_round_trip(dtype: str, zip_format: bool) -> None:
    spec = DTYPES[dtype]
    edge = np.array([0.0, -0.0, np.nan, np.inf, 1.5]) if spec.bits else np.array([0, 1, 1, 0, 1])
    tensors = [
        check.tensor_of(edge.astype(spec.carrier), dtype),
        check.tensor_of(np.ones((2, 3), spec.carrier), dtype).t(),
        check.tensor_of(np.array(1, spec.carrier), dtype),
        check.tensor_of(np.ones((0, 3), spec.carrier), dtype),
    ]
    for before, after in zip(tensors, through(tensors, _use_new_zipfile_serialization=zip_format)):
        check.assert_same_bits(after, before)
        assert after.stride() == before.stride()


def test_storages_are_saved_whole_and_once() -> None:
    base = vesta.arange(1000.0)
    file = io.BytesIO()
    vesta.save([base[3:5], base[4:6]], file)
    assert 4000 < len(file.getvalue()) < 8000
    file.seek(0)
    first, second = vesta.load(file)
    first[1] = -1.0
    assert second[0].item() == -1.0
    with pytest.raises(RuntimeError, match="view the same data as different types"):
        vesta.save([base, vesta._C._over(base, vesta.int32, (2,), (1,), 0)], io.BytesIO())


def test_objects_of_any_class() -> None:
    class_of_here = Net(3)
    found = through([class_of_here, slice(1, 2), np.float32(2.5), np.ones(2), OrderedDict], weights_only=False)
    assert isinstance(found[0], Net) and found[0].layer.weight.tolist() == class_of_here.layer.weight.tolist()
    assert found[1] == slice(1, 2) and found[2] == 2.5 and found[3].tolist() == [1, 1] and found[4] is OrderedDict
    assert type(found[0]._parameters).__name__ == "Registry" and "_has_hooks" in found[0].__dict__
    found[0](vesta.ones(1, 3)).sum().backward()


class Net(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.layer = nn.Linear(width, 2)
        self.register_buffer("mean", vesta.zeros(width), persistent=False)

    def forward(self, x):
        return self.layer(x - self.mean)


class Tagged(vesta.Tensor):
    pass


def test_subclasses_and_attributes() -> None:
    tensor = vesta.ones(2).as_subclass(Tagged)
    tensor.tag = "x"
    found = through(tensor, weights_only=False)
    assert type(found) is Tagged and found.tag == "x"
    with pytest.raises(pickle.UnpicklingError, match="Tagged"):
        through(tensor)
    with vesta.serialization.safe_globals([Tagged]):
        assert through(tensor).tag == "x"


class OtherPickler(pickle.Pickler):
    """A pickler over C's, as that of cloudpickle is."""

    def reducer_override(self, obj):
        return NotImplemented


def test_other_pickle_modules() -> None:
    """One over Python's pickler writes PyTorch's names; one over C's writes Vesta's, and Vesta loads them."""
    in_python = SimpleNamespace(
        Pickler=pickle._Pickler, Unpickler=pickle._Unpickler, dump=pickle.dump, load=pickle.load
    )
    in_c = SimpleNamespace(Pickler=OtherPickler, Unpickler=pickle.Unpickler, dump=pickle.dump, load=pickle.load)
    state = {"w": nn.Parameter(vesta.ones(2)), "s": vesta.Size([1]), "d": vesta.float16, "net": Net(2)}
    for module in (in_python, in_c):
        for zip_format in (True, False):
            file = io.BytesIO()
            vesta.save(state, file, module, _use_new_zipfile_serialization=zip_format)
            file.seek(0)
            found = vesta.load(file, pickle_module=module)
            assert found["w"].tolist() == [1.0, 1.0] and found["w"].requires_grad
            assert found["s"] == state["s"] and found["d"] is vesta.float16
            assert found["net"].layer.weight.tolist() == state["net"].layer.weight.tolist()


@pytest.mark.differs
@pytest.mark.parametrize("protocol", range(1, pickle.HIGHEST_PROTOCOL + 1))
def test_protocols(protocol: int) -> None:
    obj = {"w": vesta.ones(2), "s": {1, 2}, "f": frozenset([3]), "n": [2**70, -1, 1.5] * 100, "d": vesta.float16}
    found = through(obj, weights_only=False, pickle_protocol=protocol)
    assert found.pop("w").tolist() == [1.0, 1.0] and found == {key: obj[key] for key in "sfnd"}
    if protocol >= 4:  # sets have opcodes of their own there
        assert through(obj, pickle_protocol=protocol)["f"] == frozenset([3])


def test_pickle_and_deepcopy_are_as_they_were() -> None:
    net = Net(3)
    for copied in (pickle.loads(pickle.dumps(net)), copy.deepcopy(net), through(net, weights_only=False)):
        assert copied.layer.weight.tolist() == net.layer.weight.tolist() and copied.layer.weight is not net.layer.weight
    assert b"torch" not in pickle.dumps(vesta.ones(2))


def test_import_stays_lean() -> None:
    """``import vesta`` brings in nothing of what saving needs, and saving brings in no torch and no NumPy."""
    code = """if True:
        import sys, vesta
        assert not {"pickle", "zlib", "mmap", "vesta.serialization", "vesta.storage"} & set(sys.modules)
        import io
        file = io.BytesIO(); vesta.save(vesta.ones(2), file); file.seek(0); vesta.load(file)
        assert not {"torch", "numpy", "zipfile", "pickletools"} & set(sys.modules), sys.modules.keys()
    """
    subprocess.run([sys.executable, "-c", code], check=True)


HOMES = {"": vesta, "nn.functional": F, "fft": vesta.fft, "linalg": vesta.linalg, "special": vesta.special}


@pytest.mark.parametrize("home", HOMES)
def test_functions_can_be_saved(home: str) -> None:
    """Layers keep functions, such as an activation."""
    for name in dir(HOMES[home]):
        function = getattr(HOMES[home], name)
        if isinstance(function, types.BuiltinFunctionType):
            assert pickle.loads(pickle.dumps(function)) is function, name
            assert home == "" or through(function, weights_only=False) is function, name


def test_a_whole_layer_with_an_activation() -> None:
    layer = vesta.nn.TransformerEncoderLayer(4, 2, 8, activation="gelu").eval()
    x = vesta.randn(2, 3, 4)
    vesta.testing.assert_close(through(layer, weights_only=False)(x), layer(x), rtol=0, atol=0)


@pytest.mark.parametrize(
    "module, name, function",
    [
        ("torch._C._nn", "gelu", F.gelu),
        ("torch._C._nn", "log_sigmoid", F.logsigmoid),
        ("torch._C._fft", "fft_rfftn", vesta.fft.rfftn),
        ("torch._C._linalg", "linalg_inv", vesta.linalg.inv),
        ("torch._C._special", "special_entr", vesta.special.entr),
        ("torch.functional", "norm", vesta.norm),
        ("torch.nn.functional", "relu", F.relu),
        ("torch._C.TensorBase", "relu", vesta.Tensor.relu),
        ("torch._C._VariableFunctionsClass", "conv2d", vesta.conv2d),
    ],
)
def test_functions_in_files_of_pytorch(module: str, name: str, function: Any) -> None:
    """They are named as inside of PyTorch's library, or are attributes of a class there."""
    above, _, last = module.rpartition(".")
    if last in ("TensorBase", "_VariableFunctionsClass"):
        data = f"c__builtin__\ngetattr\n(c{above}\n{last}\nX".encode() + struct.pack("<I", len(name)) + name.encode()
        data += b"tR."
    else:
        data = f"c{module}\n{name}\n.".encode()
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02" + data)
        archive.writestr("archive/version", b"3\n")
    file.seek(0)
    assert vesta.load(file, weights_only=False) == function


def test_methods_can_be_saved() -> None:
    """Those written in Python, also once calls of them are looked at for classes that take them over."""

    class Seen:
        @classmethod
        def __torch_function__(cls, function: object, types: object, args: object = (), kwargs: object = None) -> int:
            return 1

    methods = {name: value for name in dir(vesta.Tensor) if callable(value := getattr(vesta.Tensor, name))}
    for name in methods:
        if name != "_make_subclass":
            assert pickle.loads(pickle.dumps(methods[name])) == methods[name], name
    assert vesta.relu(Seen()) == 1  # type: ignore[arg-type]
    for name in ("storage", "typed_storage", "stft", "unique", "new"):
        assert pickle.loads(pickle.dumps(methods[name])) is methods[name], name
    assert methods["typed_storage"].__name__ == "typed_storage"
