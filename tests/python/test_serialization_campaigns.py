"""Files in numbers: graphs of two versions of PyTorch, flipped bits, cuts, hostile pickles, and kills while saving.

``make test`` runs a sample of each campaign, ``make campaign`` all of it.
"""

from __future__ import annotations

import functools
import io
import os
import pickle
import random
import signal
import struct
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import vesta
from sanitized import SANITIZED
from vesta.serialization.zip_writer import ZipWriter

CHECKPOINTS = Path(__file__).resolve().parents[1] / "checkpoints"
sys.path.insert(0, str(CHECKPOINTS))
from random_graphs import Description, Graphs, check  # noqa: E402

ERRORS = (RuntimeError, ValueError, pickle.UnpicklingError, EOFError, NotImplementedError)


def campaign(*numbers: int) -> pytest.MarkDecorator:
    """Runs a test with the first number, and in ``make campaign`` with the last one too."""
    return pytest.mark.parametrize("count", [numbers[0], pytest.param(numbers[-1], marks=pytest.mark.campaign)])


# ---- graphs ----


@pytest.mark.parametrize("version", ["1_13", "2_15"])
def test_graphs_of_pytorch_load_equal(version: str) -> None:
    """A hundred graphs of each version: identities, shared storages, layouts, dtypes, values."""
    equal, bad = check(vesta, str(CHECKPOINTS / f"graphs_{version}.tar.xz"))
    assert (equal, bad) == (100, [])


@campaign(200, 1000)
@pytest.mark.filterwarnings("ignore")
def test_graphs_come_back_as_they_were_saved(count: int) -> None:
    for seed in range(count):
        graph, file = Graphs(vesta, seed).make(), io.BytesIO()
        vesta.save(graph, file, _use_new_zipfile_serialization=seed % 4 != 0)
        file.seek(0)
        assert Description(vesta).of(vesta.load(file)) == Description(vesta).of(graph), f"seed {seed}"


# ---- damage ----


@functools.lru_cache
def saved() -> tuple[bytes, str]:
    """Returns a file with some of everything, and the description of what is in it."""
    graph = [Graphs(vesta, 3).make(), {"weight": vesta.arange(300.0), "steps": 7, "name": "text"}]
    file = io.BytesIO()
    vesta.save(graph, file)
    return file.getvalue(), repr(Description(vesta).of(graph))


def loaded(data: bytes, **options: bool) -> str | None:
    """Returns the description of what a file gives, None after an error that says so."""
    try:
        return repr(Description(vesta).of(vesta.load(io.BytesIO(data), **options)))
    except ERRORS:
        return None


@campaign(200, 2000)
@pytest.mark.filterwarnings("ignore")
def test_a_flipped_bit_is_seen_or_changes_nothing(count: int) -> None:
    """Some bits of an archive, such as those of dates, have no meaning."""
    data, want = saved()
    chance, refused = random.Random(1), 0
    for bit in chance.sample(range(8 * len(data)), count):
        bad = bytearray(data)
        bad[bit // 8] ^= 1 << bit % 8
        for weights_only in (True, False):
            found = loaded(bytes(bad), weights_only=weights_only)
            assert found in (None, want), f"bit {bit % 8} of byte {bit // 8}"
            refused += found is None
    assert refused > count


@campaign(100, 500)
@pytest.mark.parametrize("zip_format", [True, False])
@pytest.mark.filterwarnings("ignore")
def test_no_part_of_a_file_loads(zip_format: bool, count: int) -> None:
    data = saved()[0]
    if not zip_format:
        file = io.BytesIO()
        vesta.save(vesta.load(io.BytesIO(data)), file, _use_new_zipfile_serialization=False)
        data = file.getvalue()
    for length in random.Random(2).sample(range(len(data)), count):
        assert loaded(data[:length]) is None, f"cut after {length} of {len(data)} bytes"


# ---- hostile pickles ----


def text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def name(module: str, attribute: str, way: str) -> bytes:
    """Pushes a global in one of the ways that pickles have."""
    if way == "stack":
        return text(module) + text(attribute) + b"\x93"
    return f"c{module}\n{attribute}\n".encode()


def evil_calls(target: str) -> list[tuple[str, str, bytes]]:
    """Returns what would make the file ``target``: module, name, and the pickled tuple of arguments."""
    code = f"open({target!r}, 'w').close()"
    shell = text(f"touch {target}") + b"\x85"
    return [
        ("os", "system", shell),
        ("posix", "system", shell),
        ("nt", "system", shell),
        ("subprocess", "call", b"]" + text("touch") + b"a" + text(target) + b"a\x85"),
        ("subprocess", "Popen", b"]" + text("touch") + b"a" + text(target) + b"a\x85"),
        ("builtins", "eval", text(code) + b"\x85"),
        ("builtins", "exec", text(code) + b"\x85"),
        ("__builtin__", "exec", text(code) + b"\x85"),
        ("builtins", "open", text(target) + text("w") + b"\x86"),
        ("io", "open", text(target) + text("w") + b"\x86"),
        ("os", "mkdir", text(target) + b"\x85"),
        ("pathlib", "Path.touch", text(target) + b"\x85"),
        ("vesta.serialization.saving", "os.mkdir", text(target) + b"\x85"),
        ("torch.serialization", "os.mkdir", text(target) + b"\x85"),
        ("torch", "save", b"K\x01" + text(target) + b"\x86"),
        ("vesta", "save", b"K\x01" + text(target) + b"\x86"),
        ("torch", "load", text(target) + b"\x85"),
        ("torch.storage", "os.mkdir", text(target) + b"\x85"),
        ("runpy", "run_path", text(target) + b"\x85"),
        ("code", "interact", b")"),
        ("builtins", "getattr", name("os", "path", "global") + text("join") + b"\x86"),
        ("builtins", "__import__", text("antigravity") + b"\x85"),
        ("timeit", "timeit", text(code) + b"\x85"),
        ("torch._utils", "os.mkdir", text(target) + b"\x85"),
    ]


def programs(call: tuple[str, str, bytes]) -> Iterator[bytes]:
    """Yields pickles that try to run a call, in all ways that a pickle can."""
    module, attribute, arguments = call
    for way in ("global", "stack"):
        f = name(module, attribute, way)
        yield f + arguments + b"R"
        yield f + arguments + b"\x81"  # NEWOBJ
        yield f + arguments + b"}\x92"  # NEWOBJ_EX
        yield b"(" + f + arguments + b"o"  # OBJ
        wrap = name("torch._tensor", "_rebuild_from_type_v2", way)
        yield wrap + b"(" + f + name("torch", "Tensor", way) + arguments + b"}tR"
        yield name("collections", "OrderedDict", way) + b")R" + f + arguments + b"Rb"  # as the state of a dict
        yield b"}" + text("key") + f + arguments + b"Rs"
        yield (
            name("torch._utils", "_rebuild_tensor_v2", way) + b"(" + f + arguments + b"RK\x00K\x01\x85K\x01\x85\x89}tR"
        )
    yield b"(" + arguments + f"i{module}\n{attribute}\n".encode()  # INST
    yield name(module, attribute, "global") + b"Q"  # as a persistent id


def containers(program: bytes) -> Iterator[bytes]:
    """Yields files whose object is a pickle."""
    file = io.BytesIO()
    writer = ZipWriter(file, "archive")
    writer.add("data.pkl", b"\x80\x02" + program + b".")
    writer.add("byteorder", b"little")
    writer.finish()
    yield file.getvalue()
    head = b"".join(pickle.dumps(part, 2) for part in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}))
    yield head + b"\x80\x02" + program + b"." + pickle.dumps([], 2)
    yield b"\x80\x02" + program + b"."  # no file of ours at all


def test_no_hostile_pickle_runs(tmp_path: Path) -> None:
    """Neither is anything made on the disk nor does the interpreter compile, import, start or open for writing."""
    target = tmp_path / "made"
    files = [f for call in evil_calls(str(target)) for program in programs(call) for f in containers(program)]
    happened: list[str] = []
    watched = {"os.system", "subprocess.Popen", "exec", "compile", "import", "os.mkdir", "os.posix_spawn", "os.fork"}

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if watching and (event in watched or (event == "open" and "w" in str(arguments[1]))):
            happened.append(f"{event} {arguments!r:.100}")

    watching = False
    sys.addaudithook(hook)  # for the rest of this process; it looks nowhere else
    for data in files[:30]:  # what Vesta itself imports when it is first needed
        assert loaded(data) is None
    for data in files:
        watching = True
        try:
            vesta.load(io.BytesIO(data))
        except ERRORS:
            pass
        else:
            pytest.fail(f"a hostile file was loaded: {data!r}")
        finally:
            watching = False
        assert not happened and not target.exists(), data
    assert len(files) > 1000


# ---- kills ----

SAVING = """
    import io, os, sys
    import vesta

    def run(path, first):
        state = {"step": first, "weights": [vesta.full((n,), float(first)) for n in (10, 30_000)]}
        for step in range(first, first + 1000):
            state["step"] = step
            for weight in state["weights"]:
                weight.fill_(step)
            vesta.save(state, path, _use_new_zipfile_serialization=step % 5 != 0)

    for zip_format in (True, False):  # what is imported when it is first needed
        vesta.save([vesta.ones(1)], io.BytesIO(), _use_new_zipfile_serialization=zip_format)
    for line in sys.stdin:  # a process for each attempt, which need not import
        child = os.fork()
        if child == 0:
            run(sys.argv[1], int(line))
            os._exit(0)
        print(child, flush=True)
        os.waitpid(child, 0)
        print("ended", flush=True)
"""


@campaign(20, 1000)
def test_a_kill_while_saving_leaves_a_whole_file(count: int, tmp_path: Path) -> None:
    """At any moment the old file or the new one is there, and is whole."""
    path, chance, step, saves = tmp_path / "a.pt", random.Random(4), 0, 0
    vesta.save({"step": 0, "weights": []}, path)
    longest = 0.12 if SANITIZED else 0.03  # seconds, of several saves
    command = [sys.executable, "-c", textwrap.dedent(SAVING), str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as parent:
        for attempt in range(count):
            parent.stdin.write(f"{step + 1}\n")
            child = int(parent.stdout.readline())
            time.sleep(chance.random() * longest)
            os.kill(child, signal.SIGKILL)
            assert parent.stdout.readline() == "ended\n"
            state = vesta.load(path)
            assert state["step"] >= step, f"attempt {attempt}: an older file than before"
            assert all(bool((weight == state["step"]).all()) for weight in state["weights"])
            saves += state["step"] > step
            step = state["step"]
            for left in tmp_path.glob("a.pt.tmp*"):
                left.unlink()
        parent.stdin.close()
    assert saves > count // 4  # the kills came while files were written
