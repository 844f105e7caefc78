"""The settings of all Python tests: the import path of the op table, quick garbage collection, and the leak check."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# The same examples in every run: a failure without a change in the code would be of no use.
settings.register_profile(
    "vesta", derandomize=True, deadline=None, max_examples=100, database=None, suppress_health_check=list(HealthCheck)
)
settings.load_profile("vesta")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import budget  # noqa: E402, from the folder above

# Tests that a shell starts in the background ignore Ctrl-C, and so would programs that the tests start.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Without a GPU the CUDA backend runs on the emulated device of the build tree (cuda/emulation/README.md).
HAS_GPU = os.path.exists("/dev/nvidia0")
EMULATION = Path(os.environ.get("VESTA_BUILD", "build")).resolve() / "lib" / "libvesta_cuda_emulation.so"
if not HAS_GPU and EMULATION.exists():
    os.environ.setdefault("VESTA_CUDA_LIBRARY", str(EMULATION))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "differs: promises something else than PyTorch does (docs/differences.md)")
    config.addinivalue_line("markers", "no_leak_check: leaves tensors alive on purpose and says why")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Moves generated tests that do not fit into the time of ``make test`` to the campaign (tests/budget.py)."""
    generated = {}
    for item in items:
        values = item.callspec.params if hasattr(item, "callspec") and item.path.name.startswith("test_op_db") else {}
        if "row" in values:
            device, dtype = values.get("device", "cpu"), values.get("dtype", "")
            row = f"{values['row'].where}.{values['row'].name}"
            generated[budget.Case(item.nodeid, row, device, item.originalname, dtype)] = item
    left = budget.left_out(generated)
    for case, item in generated.items():
        if case.id in left:
            item.add_marker(pytest.mark.campaign)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Freezes the objects that exist now, so that a garbage collection takes 1 ms instead of 50.

    On a GPU the driver is started first: the pipes and files that it opens belong to no test.
    """
    vesta = sys.modules.get("vesta")
    if HAS_GPU and vesta and vesta.cuda.is_available():
        (vesta.zeros(1, device="cuda") + 1).item()
    collect_garbage()


def collect_garbage() -> None:
    """Collects garbage and freezes what is left: modules, tests and reports cost the next collection nothing."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo) -> Iterator[None]:
    """Records on the item whether its body failed: the traceback of a failed test may keep tensors alive."""
    outcome = yield
    if call.when == "call":
        item.stash[BODY_FAILED] = outcome.get_result().outcome != "passed"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """On a GPU, ends a process whose device a test has broken: every later test would fail of the same error.

    pytest-xdist starts another worker and goes on. Without it the run ends here.
    """
    yield
    vesta = sys.modules.get("vesta")
    if not HAS_GPU or not item.stash.get(BODY_FAILED, False) or not vesta or not vesta.cuda.is_initialized():
        return
    try:
        vesta.cuda.synchronize()
    except RuntimeError as error:
        if "PYTEST_XDIST_WORKER" in os.environ:
            os._exit(1)
        pytest.exit(f"{item.nodeid} left the device unusable: {error}", returncode=1)


BODY_FAILED = pytest.StashKey[bool]()


def live_tensors() -> int:
    """Counts the library's live TensorImpl objects; 0 if no test has imported the library."""
    vesta = sys.modules.get("vesta")
    return vesta._C._live_tensors() if vesta else 0


def open_descriptors() -> set[int]:
    """Lists the numbers of this process's open descriptors."""
    found = set()
    for number in map(int, os.listdir("/proc/self/fd")):
        with contextlib.suppress(OSError):  # the descriptor of this listing is closed by now
            os.get_inheritable(number)
            found.add(number)
    return found


def targets(descriptors: set[int]) -> dict[int, str]:
    """Returns what each of the descriptors points to, without those that are not a test's."""
    found = {}
    for number in descriptors:
        with contextlib.suppress(OSError):
            found[number] = os.readlink(f"/proc/self/fd/{number}")
    return {number: target for number, target in found.items() if not target.endswith("/fd") and not is_kept(target)}


def is_kept(target: str) -> bool:
    """Returns whether another library keeps a descriptor: NVIDIA's driver its own, matplotlib those of its fonts."""
    driver = HAS_GPU and target.startswith(("/dev/nvidia", "anon_inode:[event"))
    return driver or "/matplotlib/mpl-data/fonts/" in target


def child_processes() -> set[str]:
    """Lists the process ids of this process's children, zombies included."""
    children: set[str] = set()
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/children") as file:
                children.update(file.read().split())
        except OSError:  # the thread has ended since it was listed
            continue
    return children


@pytest.fixture(autouse=True)
def nothing_left_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails a test that passed but left a live TensorImpl, an open descriptor or a child process."""
    if request.node.get_closest_marker("no_leak_check"):
        yield
        return
    tensors, descriptors, children = live_tensors(), open_descriptors(), child_processes()
    yield
    if request.node.stash.get(BODY_FAILED, True):
        return
    if live_tensors() != tensors:
        collect_garbage()
    left = live_tensors() - tensors
    if left > 0:  # perhaps held by what has become garbage since it was frozen
        gc.unfreeze()
        collect_garbage()
        left = live_tensors() - tensors
    assert left <= 0, f"{left} tensors are still alive after the test"
    new = targets(open_descriptors() - descriptors)
    assert not new, f"descriptors left open: {new}"
    assert not child_processes() - children, f"child processes left: {child_processes() - children}"
