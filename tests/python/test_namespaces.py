"""``dir()`` of a module, and so an editor's completion, shows what is documented."""

from __future__ import annotations

import importlib
import types

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
