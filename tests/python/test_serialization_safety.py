"""Files that are damaged, hostile or of another kind: each is one clear error, at once, and runs no code."""

from __future__ import annotations

import io
import os
import pickle
import random
import struct
import time
import tracemalloc
import zipfile
from collections import OrderedDict, defaultdict
from pathlib import Path

import numpy as np
import pytest
import vesta
from vesta import serialization
from vesta.serialization.zip_writer import ZipWriter

CHECKPOINTS = Path(__file__).resolve().parents[1] / "checkpoints"
#: What a bad file may raise.
ERRORS = (RuntimeError, ValueError, pickle.UnpicklingError, EOFError, NotImplementedError)


def archive(pickled: bytes, records=(), **extra: bytes) -> bytes:
    """Makes a file by hand from the bytes of its pickle and of its storages."""
    file = io.BytesIO()
    writer = ZipWriter(file, "archive")
    writer.add("data.pkl", pickled)
    for name, values in {"byteorder": b"little", **extra}.items():
        writer.add(name, values)
    for number, values in enumerate(records):
        writer.add(f"data/{number}", values)
    writer.finish()
    return file.getvalue()


def load(data: bytes, **options):
    return vesta.load(io.BytesIO(data), **options)


def tensor_pickle(
    numel: object = 2,
    kind: bytes = b"FloatStorage",
    offset: bytes = b"K\x00",
    size: bytes = b"K\x02\x85",
    stride: bytes = b"K\x01\x85",
    key: bytes = b"X\x01\x00\x00\x000",
    location: bytes = b"X\x03\x00\x00\x00cpu",
    requires_grad: bytes = b"\x89",
    tag: bytes = b"X\x07\x00\x00\x00storage",
) -> bytes:
    count = pickle.dumps(numel, 2)[2:-1]
    storage = b"(" + tag + b"ctorch\n" + kind + b"\n" + key + location + count + b"tQ"
    hooks = b"ccollections\nOrderedDict\n)R"
    call = b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + offset + size + stride + requires_grad + hooks + b"tR."
    return b"\x80\x02" + call


GOOD = struct.pack("<2f", 1.0, 2.0)
LONG = b"\x8a\x09" + (2**63).to_bytes(9, "little")  # LONG1 of 2**63
HUGE = b"\x8a\x08" + (2**62).to_bytes(8, "little")

BAD_TENSORS = {
    "more elements than the record": tensor_pickle(3),
    "a billion elements": tensor_pickle(10**12),
    "elements that overflow": tensor_pickle(2**63),
    "fewer elements than the record": tensor_pickle(1),
    "negative elements": tensor_pickle(-2),
    "elements are text": tensor_pickle("2"),
    "another dtype": tensor_pickle(kind=b"DoubleStorage"),
    "an unknown storage": tensor_pickle(kind=b"QuadStorage"),
    "a quantized storage": tensor_pickle(kind=b"QInt8Storage"),
    "no storage class": tensor_pickle(kind=b"Size"),
    "a missing record": tensor_pickle(key=b"X\x01\x00\x00\x001"),
    "a key with a path": tensor_pickle(key=b"X\x0b\x00\x00\x00../data.pkl"),
    "a key that is a number": tensor_pickle(key=b"K\x00"),
    "a location that is none": tensor_pickle(location=b"X\x03\x00\x00\x00moo"),
    "a location that is a number": tensor_pickle(location=b"K\x00"),
    "a size beyond the storage": tensor_pickle(size=b"K\x03\x85"),
    "a size that overflows": tensor_pickle(size=HUGE + HUGE + b"\x86", stride=b"K\x01K\x01\x86"),
    "a size of 2^63": tensor_pickle(size=LONG + b"\x85"),
    "a negative size": tensor_pickle(size=b"J\xff\xff\xff\xff\x85"),
    "a size that is text": tensor_pickle(size=b"X\x01\x00\x00\x002\x85"),
    "a size that is no tuple": tensor_pickle(size=b"K\x02"),
    "a stride beyond the storage": tensor_pickle(stride=b"K\x02\x85"),
    "a stride that overflows": tensor_pickle(stride=HUGE + b"\x85"),
    "a negative stride": tensor_pickle(stride=b"J\xff\xff\xff\xff\x85"),
    "too few strides": tensor_pickle(stride=b")"),
    "an offset beyond the storage": tensor_pickle(offset=b"K\x01"),
    "a negative offset": tensor_pickle(offset=b"J\xff\xff\xff\xff"),
    "an offset of 2^62": tensor_pickle(offset=HUGE),
    "an offset that is a bool": tensor_pickle(offset=b"\x88"),
    "65 dimensions": tensor_pickle(size=b"(" + b"K\x01" * 65 + b"t", stride=b"(" + b"K\x01" * 65 + b"t"),
    "a gradient of integers": tensor_pickle(4, kind=b"ShortStorage", requires_grad=b"\x88"),
    "a module instead of a storage": tensor_pickle(tag=b"X\x06\x00\x00\x00module"),
}


@pytest.mark.parametrize("name", BAD_TENSORS)
@pytest.mark.parametrize("weights_only", [True, False])
def test_bad_tensors_raise(name: str, weights_only: bool) -> None:
    """Numbers of a tensor that the file does not hold are refused before memory is taken for them."""
    assert load(archive(tensor_pickle(), [GOOD])).tolist() == [1.0, 2.0]
    tracemalloc.start()
    try:
        with pytest.raises((*ERRORS, AttributeError) if not weights_only else ERRORS) as caught:
            load(archive(BAD_TENSORS[name], [GOOD]), weights_only=weights_only)
        assert tracemalloc.get_traced_memory()[1] < 50 << 20
    finally:
        tracemalloc.stop()
    assert len(str(caught.value)) > 20


BAD_PICKLES = {
    "empty": b"",
    "no end": b"\x80\x02K\x01",
    "no object": b"\x80\x02.",
    "two objects": b"\x80\x02K\x01K\x02.",
    "an open mark": b"\x80\x02(K\x01.",
    "no mark": b"\x80\x02K\x01t.",
    "an unknown opcode": b"\x80\x02\xff.",
    "an old opcode": b"\x80\x02I1\n.",
    "protocol 9": b"\x80\x09K\x01.",
    "pops from nothing": b"\x80\x020.",
    "gets what was never put": b"\x80\x02h\x07.",
    "puts nothing": b"\x80\x02q\x07.",
    "a text that is cut off": b"\x80\x02X\xff\xff\xff\xffab.",
    "a text of 2^63 bytes": b"\x80\x04\x8d" + b"\xff" * 8 + b".",
    "bytes of 2^63": b"\x80\x05\x96" + b"\xff" * 8 + b".",
    "a long that is cut off": b"\x80\x02\x8b\xff\xff\xff\x7f.",
    "bad UTF-8": b"\x80\x02X\x02\x00\x00\x00\xff\xfe.",
    "a name without an end": b"\x80\x02c" + b"x" * 10**5,
    "appends to a number": b"\x80\x02K\x01K\x02a.",
    "a key without a value": b"\x80\x02}(K\x01u.",
    "a list as a key": b"\x80\x02}]K\x01s.",
    "items of a list": b"\x80\x02]K\x01K\x02s.",
    "calls a number": b"\x80\x02K\x01)R.",
    "calls with a list": b"\x80\x02ccollections\nOrderedDict\n]R.",
    "builds a number": b"\x80\x02K\x01}b.",
    "a new object of a number": b"\x80\x02K\x01)\x81.",
    "a reference that is a text": b"\x80\x02X\x01\x00\x00\x00aQ.",
    "bytes without end": b"\x80\x02cbuiltins\nbytearray\nJ\xff\xff\xff\x7f\x85R.",
    "a storage without end": b"\x80\x02ctorch.storage\nUntypedStorage\nJ\xff\xff\xff\x7f\x85R.",
    "a tensor without end": b"\x80\x02ctorch\nTensor\nJ\xff\xff\xff\x7f\x85R.",
    "a FloatTensor without end": b"\x80\x02ctorch\nFloatTensor\nJ\xff\xff\xff\x7f\x85R.",
    "a new tensor without end": b"\x80\x02ctorch\nTensor\nJ\xff\xff\xff\x7f\x85\x81.",
    "an encoding that imports": b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00aX\x04\x00\x00\x00zlib\x86R.",
    "a device that is a number": b"\x80\x02ctorch\ndevice\nK\x05\x85R.",
    "a parameter of a number": b"\x80\x02ctorch._utils\n_rebuild_parameter\nK\x01\x88}\x87R.",
    "a subclass made by bytearray": b"\x80\x02ctorch._tensor\n_rebuild_from_type_v2\n(cbuiltins\nbytearray\n"
    b"ctorch\nTensor\nJ\xff\xff\xff\x7f\x85}tR.",
    "a subclass made of a set": b"\x80\x02ctorch._tensor\n_rebuild_from_type_v2\n(cbuiltins\nset\n"
    b"ctorch\nTensor\n]\x85}tR.",
    "a subclass made by a list": b"\x80\x02ctorch._tensor\n_rebuild_from_type_v2\n(]ctorch\nTensor\n)}tR.",
    "a key of 2^40 parts": b"\x80\x02}" + b"K\x01" + b"2\x86" * 40 + b"K\x01s.",
}


def doubled(levels: int) -> bytes:
    """A tuple of a tuple twice, of a tuple twice, ...: 2^levels parts when it is hashed."""
    return b"\x80\x02}K\x01q\x00" + b"".join(b"h\x00\x86q\x00" for _ in range(levels)) + b"K\x01s."


BAD_PICKLES["a key of 2^40 parts"] = doubled(40)
BAD_PICKLES["a member of 2^40 parts"] = b"\x80\x02cbuiltins\nset\n]" + doubled(40)[3:-4] + b"a\x85R."
BAD_PICKLES["a key of depth 10^5"] = b"\x80\x02}K\x01" + b"\x85" * 10**5 + b"K\x01s."


@pytest.mark.differs
@pytest.mark.parametrize("name", BAD_PICKLES)
def test_bad_pickles_raise(name: str) -> None:
    data = archive(BAD_PICKLES[name])
    began = time.monotonic()
    tracemalloc.start()
    try:
        with pytest.raises(ERRORS) as caught:
            load(data)
        assert tracemalloc.get_traced_memory()[1] < 200 << 20
    finally:
        tracemalloc.stop()
    assert time.monotonic() - began < 10 and len(str(caught.value)) > 20


def test_deep_nesting_is_no_recursion() -> None:
    found = load(archive(b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b"."))
    for _ in range(99_999):
        (found,) = found


def test_deep_attributes_are_no_recursion() -> None:
    """A parameter with a parameter as attribute, 30 000 times, is made and freed without overflowing the stack."""
    storage = b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x02tQ"
    tensor = b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"K\x00K\x02\x85K\x01\x85\x89}tR"
    head = b"\x80\x02" + tensor + b"q\x000ctorch._utils\n_rebuild_parameter_with_state\nq\x010K\x05"
    level = b"q\x020h\x01(h\x00\x88}}X\x01\x00\x00\x00ah\x02stR"
    assert load(archive(head + level * 3 + b".", [GOOD])).a.a.a == 5
    found = load(archive(head + level * 30_000 + b".", [GOOD]))
    del found


# ---- what may be named ----


class Touch:
    """Writes a file when it is unpickled."""

    def __init__(self, path) -> None:
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("zip_format", [True, False])
def test_nothing_runs_that_is_not_allowed(tmp_path, zip_format: bool) -> None:
    file = tmp_path / "evil.pt"
    target = tmp_path / "made"
    vesta.save({"a": vesta.ones(1), "b": Touch(target)}, file, _use_new_zipfile_serialization=zip_format)
    with pytest.raises(pickle.UnpicklingError, match=r"posix\.mkdir whose module posix is blocked.*evil\.pt"):
        vesta.load(file)
    with serialization.safe_globals([os.mkdir]), pytest.raises(pickle.UnpicklingError, match="blocked"):
        vesta.load(file)
    assert not target.exists()
    vesta.load(file, weights_only=False)
    assert target.exists()


class Point:
    def __init__(self, x: int) -> None:
        self.x = x


def test_safe_globals() -> None:
    file = io.BytesIO()
    vesta.save(Point(3), file)
    name = f"{__name__}.Point"
    with pytest.raises(pickle.UnpicklingError) as caught:
        load(file.getvalue())
    assert f"vesta.serialization.add_safe_globals([{name}])" in str(caught.value)
    assert "weights_only" in str(caught.value)
    file.seek(0)
    assert serialization.get_unsafe_globals_in_checkpoint(file) == [name]
    assert serialization.get_safe_globals() == []
    with serialization.safe_globals([Point]):
        assert load(file.getvalue()).x == 3 and serialization.get_safe_globals() == [Point]
        file.seek(0)
        assert serialization.get_unsafe_globals_in_checkpoint(file) == []
    serialization.add_safe_globals([(Point, name)])
    assert load(file.getvalue()).x == 3
    serialization.clear_safe_globals()
    with pytest.raises(pickle.UnpicklingError):
        load(file.getvalue())
    renamed = archive(b"\x80\x02celsewhere\nPoint\n)\x81}X\x01\x00\x00\x00xK\x05sb.")
    with serialization.safe_globals([(Point, "elsewhere.Point")]):
        assert load(renamed).x == 5
    with serialization.safe_globals([defaultdict, dict]):
        assert load_of(defaultdict(dict, a={}))["a"] == {}
    with serialization.safe_globals([(Point, "a", "b")]), pytest.raises(ValueError, match="pairs"):
        load(renamed)


def load_of(obj):
    file = io.BytesIO()
    vesta.save(obj, file)
    return load(file.getvalue())


def test_classes_of_vesta_can_be_allowed() -> None:
    layer = vesta.nn.ReLU()
    with pytest.raises(pickle.UnpicklingError, match="torch.nn.modules.activation.ReLU"):
        load_of(layer)
    with serialization.safe_globals([vesta.nn.ReLU]):
        assert isinstance(load_of(layer), vesta.nn.ReLU)


def test_the_list_of_allowed_names() -> None:
    """The names that PyTorch allows, no more; ``allowed_globals.txt`` is its list."""
    from vesta.serialization.safe_globals import plain_globals
    from vesta.serialization.torch_names import weights_only_globals

    theirs = set((CHECKPOINTS / "allowed_globals.txt").read_text().split())
    ours = {*weights_only_globals(), *plain_globals()}
    assert theirs - ours == set() and ours - theirs == set()


def test_weights_only_and_pickle_module(monkeypatch) -> None:
    data = archive(b"\x80\x02K\x01.")
    with pytest.raises(RuntimeError, match="explicit pickle_module"):
        load(data, weights_only=True, pickle_module=pickle)
    assert load(data, pickle_module=pickle) == 1
    evil = archive(pickle.dumps(OrderedDict.fromkeys, 4))
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(pickle.UnpicklingError):
        load(evil, weights_only=False)
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(RuntimeError, match="Only one of"):
        load(evil)
    monkeypatch.delenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD")
    with pytest.warns(UserWarning, match="forcing weights_only=False"):
        load(evil)


# ---- damage ----


def checkpoint(zip_format: bool) -> bytes:
    file = io.BytesIO()
    state = {"a": vesta.arange(50.0), "b": vesta.ones(3, dtype=vesta.int64), "n": 3}
    vesta.save(state, file, _use_new_zipfile_serialization=zip_format)
    return file.getvalue()


@pytest.mark.parametrize("zip_format", [True, False])
def test_cut_files_raise(zip_format: bool) -> None:
    data = checkpoint(zip_format)
    for length in (*range(0, len(data), 41), len(data) - 1):
        with pytest.raises(ERRORS):
            load(data[:length])


def test_indices_of_an_old_file_are_checked_once_they_are_read() -> None:
    """In the format before 1.6 values follow the object: a sparse tensor is made before its indices are known."""
    file = io.BytesIO()
    sparse = vesta.sparse_coo_tensor([[0, 5], [1, 3]], [1.0, 2.0], (6, 4))
    vesta.save([sparse, sparse], file, _use_new_zipfile_serialization=False)
    data = file.getvalue()
    first, second = load(data)
    assert first is second and first.to_dense().equal(sparse.to_dense())
    at = data.index(struct.pack("<2q", 1, 3))
    for row in (6, -1, 2**62):
        bad = data[: at - 8] + struct.pack("<q", row) + data[at:]
        with pytest.raises(RuntimeError, match="index"):
            load(bad)


@pytest.mark.differs
def test_every_changed_bit_of_the_values_is_seen() -> None:
    data = bytearray(checkpoint(True))
    begin = data.index(struct.pack("<2f", 0.0, 1.0))
    for place in range(begin, begin + 200, 7):
        data[place] ^= 1
        with pytest.raises(RuntimeError, match=r"record 'archive/data/0' is damaged: its checksum"):
            load(bytes(data))
        data[place] ^= 1
    assert load(bytes(data))["n"] == 3


@pytest.mark.parametrize("zip_format", [True, False])
@pytest.mark.parametrize("weights_only", [True, False])
def test_changed_bytes_never_crash(zip_format: bool, weights_only: bool) -> None:
    """Each byte that is changed at random gives an error or another value, and no signal, hang or huge allocation."""
    data, chance = checkpoint(zip_format), random.Random(0)
    for _ in range(400):
        bad = bytearray(data)
        for _ in range(chance.choice((1, 1, 3, 10))):
            bad[chance.randrange(len(bad))] = chance.randrange(256)
        try:
            load(bytes(bad), weights_only=weights_only)
        except ERRORS:
            pass
        except Exception:
            if weights_only:  # Python's unpickler has errors of many kinds
                raise


def patched(data: bytes, mark: bytes, offset: int, value: int, width: int, which: int = 0) -> bytes:
    at = -1
    for _ in range(which + 1):
        at = data.index(mark, at + 1)
    return data[: at + offset] + value.to_bytes(width, "little") + data[at + offset + width :]


CENTRAL, LOCAL = b"PK\x01\x02", b"PK\x03\x04"
BAD_ARCHIVES = {
    "packed by an unknown method": lambda d: patched(d, CENTRAL, 10, 99, 2),
    "encrypted": lambda d: patched(d, CENTRAL, 8, 1, 2),
    "a record that begins behind the end": lambda d: patched(d, CENTRAL, 42, 2**31, 4),
    "a record that begins inside another": lambda d: patched(d, CENTRAL, 42, 0, 4, which=2),
    "a size beyond the end": lambda d: patched(d, CENTRAL, 24, 2**31, 4),
    "sizes beyond the end": lambda d: patched(patched(d, CENTRAL, 24, 2**31, 4), CENTRAL, 20, 2**31, 4),
    "64-bit sizes that are missing": lambda d: patched(d, CENTRAL, 24, 2**32 - 1, 4),
    "a packed bomb": lambda d: patched(patched(d, CENTRAL, 24, 2**31, 4), CENTRAL, 10, 8, 2),
    "a name that is another": lambda d: patched(d, LOCAL, 30, 0x41, 1),
    "a name without end": lambda d: patched(d, CENTRAL, 28, 2**16 - 1, 2),
    "a name that is no text": lambda d: patched(d, CENTRAL, 46, 0xFF, 1),
    "the directory behind the end": lambda d: patched(d, b"PK\x06\x06", 48, 2**62, 8),
    "a directory without end": lambda d: patched(d, b"PK\x06\x06", 40, 2**62, 8),
    "billions of records": lambda d: patched(d, b"PK\x06\x06", 32, 2**62, 8),
    "the end record elsewhere": lambda d: patched(d, b"PK\x06\x07", 8, 2**62, 8),
    "no 64-bit end record": lambda d: patched(d, b"PK\x06\x06", 0, 0, 4),
    "the header alone": lambda d: d[:30],
    "a comment that is not there": lambda d: d[:-2] + b"\x05\x00",
}


@pytest.mark.parametrize("name", BAD_ARCHIVES)
def test_bad_archives_raise(name: str) -> None:
    with pytest.raises(RuntimeError, match=r"expected an intact zip archive, but .* \(a BytesIO\)"):
        load(BAD_ARCHIVES[name](checkpoint(True)))


def test_records_that_repeat_or_overlap() -> None:
    file = io.BytesIO()
    writer = ZipWriter(file, "archive")
    for _ in range(2):
        writer.add("data.pkl", b"\x80\x02K\x01.")
    writer.finish()
    with pytest.raises(RuntimeError, match="two records 'archive/data.pkl'"):
        load(file.getvalue())


def test_archives_that_others_have_packed() -> None:
    """Packed records are unpacked, and never to more than they claim."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("a/", b"")
        packed.writestr("a/data.pkl", tensor_pickle(20_000))
        packed.writestr("a/data/0", bytes(80_000))
        packed.writestr("a/version", b"3\n")
    assert load(file.getvalue()).shape == (2,)
    data = file.getvalue()
    for value in (79_999, 80_001):
        size = data.rindex(b"a/data/0") - 22
        bad = data[:size] + value.to_bytes(4, "little") + data[size + 4 :]
        with pytest.raises(RuntimeError, match="longer|shorter|claims"):
            load(bad)


def test_files_of_other_byte_order() -> None:
    values = struct.pack(">2f", 1.0, 2.0)
    assert load(archive(tensor_pickle(), [values], byteorder=b"big")).tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="byte order"):
        load(archive(tensor_pickle(), [values], byteorder=b"middle"))
    bare = archive(tensor_pickle(), [values]).replace(b"byteorder", b"byteordex")
    try:
        serialization.set_default_load_endianness(serialization.LoadEndianness.BIG)
        assert load(bare).tolist() == [1.0, 2.0]
    finally:
        serialization.set_default_load_endianness(None)
    assert serialization.get_default_load_endianness() is None and load(bare).tolist() != [1.0, 2.0]
    with pytest.raises(TypeError):
        serialization.set_default_load_endianness("big")


def test_texts_of_python_2() -> None:
    data = archive(b"\x80\x02}U\x02hiU\x02\xc3\xbcs.")
    assert vesta.load(io.BytesIO(data)) == {"hi": "ü"}
    assert vesta.load(io.BytesIO(data), weights_only=False, encoding="latin1") == {"hi": "Ã¼"}
    assert vesta.load(io.BytesIO(data), weights_only=False, encoding="bytes") == {b"hi": b"\xc3\xbc"}


# ---- other kinds of files ----


def other_kinds(folder: Path) -> dict[str, tuple[bytes, str]]:
    vesta.save_file({"a": vesta.ones(2)}, folder / "x.safetensors")
    npy, npz = io.BytesIO(), io.BytesIO()
    np.save(npy, np.ones(2))
    np.savez(npz, a=np.ones(2))
    script = archive(b"\x80\x02K\x01.", **{"constants.pkl": b"\x80\x02)."})
    word = io.BytesIO()
    with zipfile.ZipFile(word, "w") as packed:
        packed.writestr("[Content_Types].xml", "x")
    return {
        "safetensors": ((folder / "x.safetensors").read_bytes(), "safetensors file: use vesta.load_file"),
        "HDF5": (b"\x89HDF\r\n\x1a\n" + bytes(100), "HDF5"),
        "npy": (npy.getvalue(), r"NumPy array \(.npy\)"),
        "npz": (npz.getvalue(), r"NumPy archive \(.npz\)"),
        "TorchScript": (script, "TorchScript archive"),
        "gzip": (b"\x1f\x8b\x08" + bytes(20), "gzip"),
        "web page": (b"<!DOCTYPE html><html>404", "web page"),
        "pointer": (b"version https://git-lfs.github.com/spec/v1\noid", "Git LFS"),
        "pickle": (pickle.dumps({"a": 1}), "pickle.load"),
        "text": (b"hello world, this is text", "begins with b'hello world"),
        "document": (word.getvalue(), "zip archive of another program"),
        "empty": (b"", "empty"),
    }


def test_other_kinds_of_files_are_named(tmp_path) -> None:
    for name, (data, message) in other_kinds(tmp_path).items():
        path = tmp_path / f"{name}.pt"
        path.write_bytes(data)
        with pytest.raises((RuntimeError, EOFError), match=message) as caught:
            vesta.load(path)
        assert f"{name}.pt" in str(caught.value)
    with pytest.raises(IsADirectoryError, match="directory"):
        vesta.load(tmp_path)
    with pytest.raises(FileNotFoundError):
        vesta.load(tmp_path / "missing.pt")
    assert vesta.load(tmp_path / "x.safetensors")["a"].tolist() == [1.0, 1.0]  # as PyTorch does, by the name
