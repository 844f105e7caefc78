"""Where files are saved to and loaded from: paths, file objects, devices, mapped memory, the cache of weights."""

from __future__ import annotations

import doctest
import gc
import gzip
import importlib
import io
import mmap
import os
import pickle
import stat
import struct
import sys
import tarfile
import textwrap
import threading
import zipfile
from collections import OrderedDict
from pathlib import Path

import pytest
import vesta
from vesta import hub, serialization
from vesta.utils import model_zoo


def state() -> dict:
    return {"a": vesta.arange(6.0).view(2, 3), "b": vesta.ones(2, dtype=vesta.int64)}


def same(found) -> bool:
    return all(found[key].tolist() == value.tolist() for key, value in state().items())


class Pipe(io.RawIOBase):
    """A file that cannot seek, and takes and gives a few bytes at a time."""

    def __init__(self, data: bytes = b"") -> None:
        self.data = bytearray(data)

    def writable(self) -> bool:
        return True

    readable = writable

    def write(self, block) -> int:
        self.data += bytes(block)[:1000]
        return min(len(block), 1000)

    def readinto(self, block) -> int:
        part = self.data[: min(len(block), 1000)]
        block[: len(part)] = part
        del self.data[: len(part)]
        return len(part)


# ---- paths and file objects ----


@pytest.mark.differs
@pytest.mark.parametrize("zip_format", [True, False])
def test_targets(tmp_path, zip_format: bool) -> None:
    def save(f) -> None:
        vesta.save(state(), f, _use_new_zipfile_serialization=zip_format)

    for path in (str(tmp_path / "a.pt"), tmp_path / "b.pt", tmp_path / "ünï code.pt"):
        save(path)
        assert same(vesta.load(path))
    with open(tmp_path / "c.pt", "w+b") as file:
        file.write(b"ahead")
        save(file)
        save(file)
        file.seek(5)
        if not zip_format:  # one after the other
            assert same(vesta.load(file)) and same(vesta.load(file)) and not file.read()
    buffer = io.BytesIO()
    save(buffer)
    pipe = Pipe()
    save(pipe)
    assert bytes(pipe.data) == buffer.getvalue() or not zip_format
    assert same(vesta.load(Pipe(bytes(pipe.data))))
    with gzip.open(tmp_path / "d.pt.gz", "wb") as file:
        save(file)
    with gzip.open(tmp_path / "d.pt.gz") as file:
        assert same(vesta.load(file))
    with open(tmp_path / "a.pt", "rb", buffering=0) as file:
        assert same(vesta.load(file))


def test_an_archive_inside_a_file(tmp_path) -> None:
    path = tmp_path / "both"
    first = io.BytesIO()
    vesta.save(state(), first)
    path.write_bytes(b"0123456789" + first.getvalue())
    with open(path, "rb") as file:
        file.seek(10)
        assert same(vesta.load(file))
    buffer = io.BytesIO(path.read_bytes())
    buffer.seek(10)
    assert same(vesta.load(buffer))


def test_bad_targets(tmp_path) -> None:
    with pytest.raises(AttributeError, match=r"save: expected a path or a file object with write\(\), got int"):
        vesta.save(1, 3)
    with pytest.raises(TypeError, match=r"load: expected a path or a file object with read\(\), got bytes"):
        vesta.load(b"abc")
    with pytest.raises(FileNotFoundError):
        vesta.save(1, tmp_path / "no" / "such.pt")
    with pytest.raises(IsADirectoryError):
        vesta.save(1, tmp_path)
    with pytest.raises(ValueError, match="pickle_protocol"):
        vesta.save(1, io.BytesIO(), pickle_protocol=99)
    assert not os.listdir(tmp_path)
    vesta.save(1, "/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


class Fails:
    def __reduce__(self):
        raise ZeroDivisionError


@pytest.mark.differs
def test_saving_is_atomic(tmp_path, monkeypatch) -> None:
    path, link = tmp_path / "a.pt", tmp_path / "link.pt"
    vesta.save(state(), path)
    os.chmod(path, 0o640)
    link.symlink_to("a.pt")
    before = path.read_bytes()
    for zip_format in (True, False):
        with pytest.raises(ZeroDivisionError):
            vesta.save([vesta.ones(10), Fails()], path, _use_new_zipfile_serialization=zip_format)
    monkeypatch.setattr(os, "fsync", lambda descriptor: (_ for _ in ()).throw(OSError(28, "no space")))
    with pytest.raises(OSError, match="no space"):
        vesta.save(1, path)
    monkeypatch.undo()
    assert path.read_bytes() == before and sorted(os.listdir(tmp_path)) == ["a.pt", "link.pt"]
    vesta.save({"a": 1}, link)
    assert link.is_symlink() and vesta.load(path) == {"a": 1} and stat.S_IMODE(path.stat().st_mode) == 0o640
    assert sorted(os.listdir(tmp_path)) == ["a.pt", "link.pt"]


@pytest.mark.parametrize("size", [3 << 20, (9 << 20) + 5])
def test_long_records_in_threads(tmp_path, size: int) -> None:
    """Values of more than a part: written and read in threads, with the checksum of the whole."""
    values = vesta.randint(0, 256, (size,), dtype=vesta.uint8)
    path, buffer = tmp_path / "a.pt", io.BytesIO()
    vesta.save([values, values[1:].clone()], path)
    vesta.save([values, values[1:].clone()], buffer)
    begin = path.read_bytes().index(bytes(values[:100].numpy()))
    assert path.read_bytes()[begin : begin + size] == bytes(values.numpy())
    buffer.seek(0)
    for source in (path, buffer):
        found = vesta.load(source)
        assert vesta.equal(found[0], values) and vesta.equal(found[1], values[1:])
    data = bytearray(path.read_bytes())
    data[len(data) // 4] ^= 1
    path.write_bytes(data)
    with pytest.raises(RuntimeError, match="checksum"):
        vesta.load(path)


def test_archives_of_more_than_4_gb(tmp_path) -> None:
    """Sizes and offsets beyond 32 bits, in a file that is nearly all hole."""
    from vesta.serialization.source import open_source
    from vesta.serialization.zip_reader import ZipReader
    from vesta.serialization.zip_writer import ZipWriter

    path = tmp_path / "large.pt"
    with open(path, "wb") as file:
        writer = ZipWriter(file, "large", own=True)
        writer.add("data.pkl", b"\x80\x02K\x01.")
        writer.add_empty_space("data/0", (1 << 32) + 5)
        writer.add("data/1", b"behind")
        writer.finish()
    source = open_source(path)
    reader = ZipReader(source)
    assert reader.records["data/0"].size == (1 << 32) + 5 and reader.read("data/1") == b"behind"
    assert all(record.offset % 64 == 0 for record in reader.records.values())
    source.close()
    with zipfile.ZipFile(path) as archive:  # the standard library reads it alike
        assert archive.getinfo("large/data/0").file_size == (1 << 32) + 5
        assert archive.read("large/data/1") == b"behind"
    assert vesta.load(path, mmap=True) == 1


def test_checksums_of_parts() -> None:
    import zlib

    from vesta.serialization import checksum

    data = os.urandom(10_000)
    for cut in (0, 1, 4096, 9_999, 10_000):
        first, second = data[:cut], data[cut:]
        assert checksum.combine(zlib.crc32(first), zlib.crc32(second), len(second)) == zlib.crc32(data)
    assert checksum.of_block(memoryview(data * 1000)) == zlib.crc32(data * 1000)


def test_threads_at_once(tmp_path) -> None:
    path, errors = tmp_path / "a.pt", []
    vesta.save(state(), path)

    def work() -> None:
        try:
            for _ in range(20):
                vesta.save(state(), path)
                assert same(vesta.load(path))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and os.listdir(tmp_path) == ["a.pt"]


# ---- settings ----


def test_checksums_can_be_left_out(tmp_path) -> None:
    path = tmp_path / "a.pt"
    assert serialization.get_crc32_options() is True
    try:
        serialization.set_crc32_options(False)
        vesta.save({"long": vesta.ones(3 << 20), **state()}, path)
    finally:
        serialization.set_crc32_options(True)
    data = bytearray(path.read_bytes())
    data[data.index(struct.pack("<2f", 1.0, 2.0))] ^= 1
    path.write_bytes(data)
    assert not same(vesta.load(path))


def test_data_can_be_left_out(tmp_path) -> None:
    path = tmp_path / "a.pt"
    with serialization.skip_data():
        vesta.save({"long": vesta.ones(10 << 20), **state()}, path)
        with pytest.raises(RuntimeError, match="skip_data"):
            vesta.save(1, path, _use_new_zipfile_serialization=False)
    assert path.stat().st_blocks * 512 < 1 << 20  # the place of the values is a hole
    assert vesta.load(path)["long"].sum().item() == 0
    vesta.save(state(), path)
    with serialization.skip_data():
        assert vesta.load(path)["a"].tolist() == [[0.0] * 3] * 2
    assert same(vesta.load(path))


def test_mapped_files(tmp_path) -> None:
    path = tmp_path / "a.pt"
    vesta.save(state(), path)
    before = path.read_bytes()
    found = vesta.load(path, mmap=True)
    assert same(found)
    found["a"].fill_(7.0)  # the file stays as it is
    assert path.read_bytes() == before and same(vesta.load(path, mmap=True))
    with serialization.set_default_mmap_options(mmap.MAP_SHARED):
        assert serialization.get_default_mmap_options() == mmap.MAP_SHARED
        shared = vesta.load(path, mmap=True)
    shared["b"].fill_(9)
    del found, shared
    gc.collect()
    assert vesta.load(path, mmap=True)["b"].tolist() == [9, 9]
    with pytest.raises(RuntimeError, match="damaged: its checksum"):  # it was written through the mapping
        vesta.load(path)
    with pytest.raises(ValueError, match="file path"):
        vesta.load(io.BytesIO(before), mmap=True)
    vesta.save(state(), path, _use_new_zipfile_serialization=False)
    with pytest.raises(RuntimeError, match="mmap can only be used"):
        vesta.load(path, mmap=True)
    with pytest.raises(ValueError, match="MAP_PRIVATE"):
        serialization.set_default_mmap_options(17)


# ---- devices ----


def tagged(location: str, zip_format: bool = True) -> io.BytesIO:
    """Makes a file whose storages say that they come from elsewhere."""
    file = io.BytesIO()
    vesta.save(state(), file, _use_new_zipfile_serialization=zip_format)
    old = b"X\x03\x00\x00\x00cpu"
    if zip_format:
        return retagged(file.getvalue(), old, location)
    return io.BytesIO(file.getvalue().replace(old, b"X" + struct.pack("<I", len(location)) + location.encode()))


def retagged(data: bytes, old: bytes, location: str) -> io.BytesIO:
    from vesta.serialization.source import open_source
    from vesta.serialization.zip_reader import ZipReader
    from vesta.serialization.zip_writer import ZipWriter

    source = open_source(io.BytesIO(data))
    reader, file = ZipReader(source), io.BytesIO()
    writer = ZipWriter(file, "archive")
    for name in reader.records:
        values = reader.read(name)
        if name not in ("version", ".data/serialization_id"):
            writer.add(name, values.replace(old, b"X" + struct.pack("<I", len(location)) + location.encode()))
    writer.finish()
    source.close()
    file.seek(0)
    return file


@pytest.mark.parametrize("zip_format", [True, False])
def test_map_location(zip_format: bool) -> None:
    def load(location: str, map_location=None):
        return vesta.load(tagged(location, zip_format), map_location=map_location)

    for place in ("cpu", vesta.device("cpu"), b"cpu", {"tpu:1": "cpu"}, lambda storage, location: storage):
        assert same(load("tpu:1", place))
    asked = []

    def place(storage, location):
        asked.append((storage.nbytes(), location))

    assert same(load("cpu", place)) and asked == [(24, "cpu"), (16, "cpu")]
    with pytest.raises(RuntimeError, match=r"expected a device of this build, got 'tpu:1'.*map_location='cpu'"):
        load("tpu:1")
    with pytest.raises(RuntimeError, match="tpu:1"):
        load("tpu:1", {"cuda:0": "cpu"})
    with pytest.raises(TypeError, match="map_location"):
        load("cpu", 3)
    with pytest.raises(RuntimeError, match="expected map_location to return None or a storage"):
        load("cpu", lambda storage, location: 3)
    with pytest.raises(ZeroDivisionError):
        load("cpu", lambda storage, location: 1 // 0)
    if not vesta.cuda.is_available():
        with pytest.raises(RuntimeError, match="vesta.cuda.is_available"):
            load("cuda:0")


def test_packages_of_devices() -> None:
    from vesta.serialization import locations

    before = list(locations._packages)
    try:
        serialization.register_package(
            5,
            lambda storage: "moon:0" if storage.nbytes() == 24 else None,
            lambda storage, location: storage.clone() if location == "moon:0" else None,
        )
        file = io.BytesIO()
        vesta.save(state(), file)
        assert b"moon:0" in file.getvalue()
        file.seek(0)
        assert same(vesta.load(file))
        assert serialization.location_tag(vesta.UntypedStorage(24)) == "moon:0"
    finally:
        locations._packages[:] = before


# ---- storages ----


def test_storages() -> None:
    storage = vesta.UntypedStorage(8)
    storage._bytes.copy_(vesta.arange(8, dtype=vesta.uint8))
    assert storage.tolist() == list(range(8)) and len(storage) == storage.size() == 8 and storage[3] == 3
    file = io.BytesIO()
    vesta.save([storage, storage], file)
    file.seek(0)
    first, second = vesta.load(file)
    assert first is second and type(first) is vesta.TypedStorage and first.tolist() == list(range(8))
    assert first.cpu().untyped().clone().nbytes() == 8 and "TypedStorage" in repr(first)


# ---- older formats ----


def tar_file(path: Path) -> None:
    """Writes a file as PyTorch 0.1 did."""

    def dump(*values) -> bytes:
        return b"".join(pickle.dumps(value, 2) for value in values)

    def named(name: str) -> bytes:
        return b"ctorch\n" + name.encode() + b"\n"

    key = pickle.dumps(7, 2)[2:-1]
    storages = dump(1) + b"\x80\x02" + key + b"X\x03\x00\x00\x00cpu" + named("FloatStorage") + b"\x87."
    storages += struct.pack("<q6f", 6, *range(6)) + dump([(8, 7, 2, 3)])
    tensors = dump(2)
    for number, storage, offset in ((1, 7, 0), (2, 8, 1)):
        tensors += b"\x80\x02K" + bytes([number]) + b"K" + bytes([storage]) + named("FloatTensor") + b"\x87."
        tensors += struct.pack("<qqqq", 1, 2, 1, offset)
    obj = b"\x80\x02}(X\x01\x00\x00\x00aX\x01\x00\x00\x001QX\x01\x00\x00\x00bX\x01\x00\x00\x002Qu."
    with tarfile.open(path, "w") as tar:
        for name, data in (("storages", storages), ("tensors", tensors), ("pickle", obj)):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


def test_tar_files(tmp_path) -> None:
    path = tmp_path / "old.pt"
    tar_file(path)
    with pytest.raises(RuntimeError, match="legacy .tar format"):
        vesta.load(path)
    found = vesta.load(path, weights_only=False)
    assert found["a"].tolist() == [0.0, 1.0] and found["b"].tolist() == [3.0, 4.0]
    data = path.read_bytes()
    for length in range(520, 1600, 64):
        path.write_bytes(data[:length])
        with pytest.raises((RuntimeError, pickle.UnpicklingError)):
            vesta.load(path, weights_only=False)


# ---- the cache of weights ----


def test_the_cache(tmp_path, monkeypatch) -> None:
    for name in ("VESTA_HOME", "TORCH_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert hub.get_dir() == os.path.expanduser("~/.cache/torch/hub")
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert hub.get_dir() == "/x/torch/hub"
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    assert hub.get_dir() == str(tmp_path / "hub")
    monkeypatch.setenv("VESTA_HOME", "/v")
    assert hub.get_dir() == "/v/hub"
    monkeypatch.setattr(hub, "_hub_dir", None)
    hub.set_dir(tmp_path / "cache")
    assert hub.get_dir() == str(tmp_path / "cache")
    url = "https://example.org/models/net-0123.pth?x=1"
    with pytest.raises(FileNotFoundError, match="downloads nothing.*put it here") as caught:
        hub.load_state_dict_from_url(url)
    assert caught.value.filename == str(tmp_path / "cache" / "checkpoints" / "net-0123.pth")
    os.makedirs(tmp_path / "cache" / "checkpoints")
    vesta.save(state(), tmp_path / "cache" / "checkpoints" / "net-0123.pth")
    assert same(hub.load_state_dict_from_url(url)) and same(model_zoo.load_url(url, map_location="cpu"))
    with pytest.raises(RuntimeError, match="invalid hash value"):
        hub.load_state_dict_from_url(url, check_hash=True)
    assert not os.path.exists(tmp_path / "checkpoints")


def test_models_of_repositories(tmp_path, monkeypatch) -> None:
    """From a folder and from the cache; nothing is downloaded."""
    code = """
        import layers, vesta
        dependencies = ["torch", "pickle"]
        def net(n, bias=True):
            "Makes a net."
            return layers.make(n, bias)
        def needs(): ...
        def _own(): ...
    """
    folder = tmp_path / "hub" / "someone_nets_master"
    folder.mkdir(parents=True)
    (folder / "hubconf.py").write_text(textwrap.dedent(code))
    (folder / "layers.py").write_text("import vesta\ndef make(n, bias): return vesta.nn.Linear(n, 1, bias=bias)\n")
    monkeypatch.setattr(hub, "_hub_dir", str(tmp_path / "hub"))
    before = list(sys.path)
    try:
        for where, source in ((str(folder), "local"), ("someone/nets", "github"), ("someone/nets:master", "github")):
            assert hub.load(where, "net", 3, source=source, bias=False, trust_repo=True).weight.shape == (1, 3)
        assert hub.list("someone/nets") == ["net", "needs"] and hub.help("someone/nets", "net") == "Makes a net."
        with pytest.raises(RuntimeError, match="Cannot find callable nothing in hubconf"):
            hub.load(str(folder), "nothing", source="local")
        (folder / "hubconf.py").write_text("dependencies = ['no_such_package']\ndef net(): ...\n")
        with pytest.raises(RuntimeError, match="Missing dependencies: no_such_package"):
            hub.load("someone/nets", "net")
    finally:
        sys.modules.pop("layers", None)
    with pytest.raises(FileNotFoundError, match=r"Vesta downloads nothing.*someone_nets_v1"):
        hub.load("someone/nets:v1", "net")
    for arguments in ({"source": "gitlab"}, {}):
        with pytest.raises(ValueError, match="Unknown source|owner/name"):
            hub.load("a folder", "net", **arguments)
    assert sys.path == before


def test_urls_of_files(tmp_path) -> None:
    path = tmp_path / "a b.pt"
    vesta.save(state(), path)
    assert same(hub.load_state_dict_from_url(path.as_uri(), model_dir=str(tmp_path / "none")))
    hub.download_url_to_file(path.as_uri(), str(tmp_path / "copy.pt"))
    assert (tmp_path / "copy.pt").read_bytes() == path.read_bytes()
    with pytest.raises(RuntimeError, match="invalid hash value"):
        hub.download_url_to_file(path.as_uri(), str(tmp_path / "copy2.pt"), "xyz")
    with pytest.raises(RuntimeError, match="downloads nothing"):
        hub.download_url_to_file("https://example.org/a.pt", str(tmp_path / "copy2.pt"))
    assert sorted(os.listdir(tmp_path)) == ["a b.pt", "copy.pt"]


@pytest.mark.differs
def test_weights_of_urls_run_no_code(tmp_path) -> None:
    path = tmp_path / "a.pt"
    vesta.save(OrderedDict.fromkeys, path)
    with pytest.raises(pickle.UnpicklingError):
        hub.load_state_dict_from_url(path.as_uri())
    assert hub.load_state_dict_from_url(path.as_uri(), weights_only=False) is not None


MODULES = (
    "hub storage serialization.loading serialization.options serialization.safe_globals serialization.saving".split()
)


@pytest.mark.parametrize("name", [*MODULES, "serialization.locations", "utils.serialization.config"])
def test_examples_run(name: str) -> None:
    from vesta.serialization import locations

    before = list(locations._packages)
    failed, count = doctest.testmod(importlib.import_module(f"vesta.{name}"))
    locations._packages[:] = before
    assert count and not failed


def test_the_page_about_checkpoints(tmp_path, monkeypatch) -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "checkpoints.md"
    monkeypatch.chdir(tmp_path)
    failed, count = doctest.testfile(str(page), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert count > 10 and not failed


def test_names_are_where_pytorch_has_them() -> None:
    for name in serialization.__all__:
        assert getattr(vesta.serialization, name).__doc__
    assert vesta.save is serialization.save and vesta.load is serialization.load
    assert vesta.utils.serialization.config.save.storage_alignment == 64
    assert vesta.utils.model_zoo.load_url is vesta.hub.load_state_dict_from_url
    with pytest.raises(AttributeError):
        vesta.utils.no_such_name  # noqa: B018
