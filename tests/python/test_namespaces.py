"""``dir()`` of a module, and so an editor's completion, shows what is documented."""

from __future__ import annotations

import importlib
import subprocess
import sys
import types
import typing
from collections.abc import Iterator
from typing import Any

import pytest
import vesta

#: What programs import, and its parts.
MODULES = """
accelerator adapters adapters.einops adapters.opt_einsum adapters.tensorboardX amp as_torch autograd backends cuda cpu
distributions fft func futures hub library linalg masked multiprocessing nn nn.attention nn.functional nn.init
nn.modules nn.parameter nn.utils nn.utils.parametrizations nn.utils.parametrize nn.utils.prune nn.utils.rnn notebook
optim optim.lr_scheduler optim.swa_utils overrides profiler quasirandom random safetensors serialization signal
signal.windows sparse special storage testing types utils utils.checkpoint utils.data utils.dlpack utils.flop_counter
utils.hooks utils.tensorboard version
""".split()


@pytest.mark.parametrize("name", MODULES)
def test_a_module_shows_what_it_offers(name: str) -> None:
    if name == "adapters.einops":
        pytest.importorskip("einops")
    module = importlib.import_module(f"vesta.{name}")
    shown = [k for k in dir(module) if not k.startswith("__")]
    assert set(module.__all__) <= set(dir(module))
    for k in shown:
        value = getattr(module, k)  # also what is imported on first use
        if isinstance(value, types.ModuleType):
            assert value.__name__.startswith("vesta.") or k in module.__all__, f"{name}.{k} is another package"
        else:
            assert k in module.__all__ or k not in vars(module) or module.__name__ in ("vesta.cuda", "vesta.nn"), k
    assert not {"Any", "annotations", "expect", "checked", "TYPE_CHECKING"} & set(shown)


def test_the_package_itself_has_no_imports_of_its_own() -> None:
    for name in ("Any", "annotations", "importlib", "TYPE_CHECKING"):
        assert not hasattr(vesta, name)
        assert name not in dir(vesta)


def test_classes_have_docstrings() -> None:
    classes = {name: getattr(vesta, name) for name in dir(vesta) if isinstance(getattr(vesta, name), type)}
    assert [name for name, value in classes.items() if not value.__doc__] == []


def fresh(program: str) -> str:
    """Runs a program in an interpreter of its own and returns what it prints."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_takes_no_module_that_costs_more_than_the_package() -> None:
    slow = {"typing", "re", "enum", "dataclasses", "inspect", "datetime", "threading", "contextlib", "numpy", "pickle"}
    program = "import sys; before = set(sys.modules); import vesta; print(*set(sys.modules) - before)"
    assert slow.isdisjoint(fresh(program).split())


def test_a_part_of_the_extension_is_made_once_when_it_is_asked_for() -> None:
    fresh("""if True:
        import sys, threading, vesta
        from vesta import _C
        parts = {"cpp_nn", "_shared", "_distributed", "_ddp"}
        assert parts.isdisjoint(vars(_C)) and not any(f"vesta._C.{part}" in sys.modules for part in parts)
        sys.setswitchinterval(1e-6)
        barrier, found = threading.Barrier(8), []

        def ask():
            barrier.wait()
            found.append((_C._ddp, _C._distributed, _C.cpp_nn))

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert len(found) == 8 and all(one == found[0] for one in found)
        assert sys.modules["vesta._C._ddp"] is _C._ddp
        try:
            _C.nothing
        except AttributeError as error:
            assert str(error) == "module 'vesta._C' has no attribute 'nothing'"
        else:
            raise AssertionError
        assert not hasattr(_C, "\\udc80") and not hasattr(_C, "")
    """)


def test_a_part_is_seen_when_all_of_it_is_there() -> None:
    fresh("""if True:
        import gc, threading, time, vesta
        from vesta import _C

        gc.set_threshold(10)
        gc.callbacks.append(lambda *_: time.sleep(0.001))  # other threads run while the part is made
        seen = []

        def look():
            while "_distributed" not in vars(_C): time.sleep(0)
            seen.append(set(vars(vars(_C)["_distributed"])))

        thread = threading.Thread(target=look)
        thread.start()
        whole = set(vars(_C._distributed))
        thread.join()
        assert seen == [whole], whole - seen[0]
    """)


def test_classes_of_a_part_are_found_by_a_process_that_has_not_asked_for_it() -> None:
    pickled = fresh("import pickle, vesta.distributed as d; print(pickle.dumps(d.ReduceOp.MAX).hex())")
    program = f"import pickle; op = pickle.loads(bytes.fromhex({pickled!r})); import vesta.distributed as d"
    assert fresh(f"{program}; print(op == d.ReduceOp.MAX, type(op) is d.ReduceOp)") == "True True"


def test_threads_that_use_parts_of_the_package_first_at_once() -> None:
    fresh("""if True:
        import random, sys, threading, vesta
        sys.setswitchinterval(1e-6)
        names, barrier, failed = [name for name in dir(vesta) if not name.startswith("_")], threading.Barrier(6), []

        def use(seed):
            shuffled = random.Random(seed).sample(names, len(names))
            barrier.wait()
            for name in shuffled:
                try:
                    getattr(vesta, name)
                except BaseException as error:
                    failed.append((name, error))

        threads = [threading.Thread(target=use, args=(seed,)) for seed in range(6)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert not failed, failed
    """)


@pytest.mark.skipif(sys.version_info < (3, 10), reason="Python 3.9 cannot evaluate X | Y")
def test_annotations_can_be_evaluated() -> None:
    """What reads annotations at run time (validators, command lines, documentation) finds each name in them."""

    def functions(module: types.ModuleType) -> Iterator[Any]:
        for name in dir(module):
            value = getattr(module, name)
            if isinstance(value, types.FunctionType):
                yield value
            elif isinstance(value, type) and value.__module__.startswith("vesta"):
                parts = [value.__dict__.get(part, getattr(value, part)) for part in dir(value)]
                parts = [part.fget if isinstance(part, property) else getattr(part, "__func__", part) for part in parts]
                yield from (part for part in parts if isinstance(part, types.FunctionType))

    failed = {}
    for name in ("", *MODULES):
        for function in functions(importlib.import_module(f"vesta.{name}".rstrip("."))):
            if function.__module__ is not None and function.__module__.startswith("vesta"):
                try:
                    typing.get_type_hints(function)
                except NameError as error:
                    failed[f"{function.__module__}.{function.__qualname__}"] = str(error)
    assert failed == {}
