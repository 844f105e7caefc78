"""Every public name shows its use in help(), and the use is true."""

from __future__ import annotations

import doctest
import importlib
import inspect
import types
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import vesta

MODULES = (
    "vesta",
    "vesta.Tensor",
    "vesta.autograd",
    "vesta.autograd.forward_ad",
    "vesta.autograd.functional",
    "vesta.distributions",
    "vesta.fft",
    "vesta.func",
    "vesta.linalg",
    "vesta.masked",
    "vesta.nn",
    "vesta.nn.functional",
    "vesta.nn.init",
    "vesta.nn.utils",
    "vesta.optim",
    "vesta.optim.lr_scheduler",
    "vesta.random",
    "vesta.signal.windows",
    "vesta.sparse",
    "vesta.special",
    "vesta.utils.data",
)

#: Names without an example, and why they need none.
EXCEPTED = {
    "classes of errors, which are raised and not made": (
        "ArgumentError DTypeError DeviceError Error OutOfMemoryError LinAlgError NumberError WorkerError"
    ),
    "classes of objects that functions return": "Generator Node Size Tensor device dtype layout memory_format",
    "older names of nn.init's functions": (
        "constant dirac eye kaiming_normal kaiming_uniform normal orthogonal sparse uniform "
        "xavier_normal xavier_uniform"
    ),
    "what data pipes are made of": "DataChunk MapDataPipe functional_datapipe",
    "names of masked tensors, which refuse": "MaskedTensor as_masked_tensor masked_tensor",
    "methods that PyTorch has dropped": "cholesky eig lstsq lu matrix_rank qr solve symeig",
    "classes that others derive from": (
        "ChainDataset LRScheduler NLLLoss2d Optimizer RNNBase RNNCellBase Sampler SequentialSampler TypedStorage"
    ),
    "what the tape, autocast and processes are made of": (
        "is_distributed is_shared record_stream rename share_memory_ spmm storage typed_storage untyped_storage"
    ),
}


@cache
def excepted() -> dict[str, Any]:
    """Returns the names with the object in vesta.nn.init of the older ones: those names are functions elsewhere too."""
    older = EXCEPTED["older names of nn.init's functions"].split()
    others = [name for names in EXCEPTED.values() for name in names.split() if name not in older]
    return {**dict.fromkeys(others), **{name: getattr(vesta.nn.init, name) for name in older}}


def public(name: str) -> Iterator[tuple[str, Any]]:
    """Yields the names of a module, or of Tensor, that are its own and can be called."""
    home = vesta.Tensor if name == "vesta.Tensor" else importlib.import_module(name)
    for key in getattr(home, "__all__", None) or dir(home):
        found = None if key.startswith("_") else getattr(home, key)
        if not callable(found) or isinstance(found, types.ModuleType):
            continue
        if not str(getattr(found, "__module__", None) or "vesta").startswith("vesta"):
            continue  # imported from elsewhere
        yield key, found


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_has_an_example(module: str) -> None:
    without = [
        name
        for name, found in public(module)
        if excepted().get(name, 0) not in (None, found)
        and not name.endswith("Tensor")
        and ">>> " not in (inspect.getdoc(found) or "")
    ]
    assert not without


def test_the_examples_of_operations_are_true() -> None:
    """Those of classes and functions written in Python are run beside their other tests."""
    seen: set[str] = set()
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for module in MODULES:
        for name, found in public(module):
            text = inspect.getdoc(found) or ""
            if inspect.isclass(found) or ">>> " not in text or text in seen:
                continue
            seen.add(text)
            runner.run(parser.get_doctest(text, {}, f"{module}.{name}", None, 0))
    failed, tried = runner.summarize(verbose=False)
    assert failed == 0 and tried > 2000
