"""PyTorch's behaviour where Vesta refuses on purpose (``docs/differences.md``), put in place when a module is loaded.

Nothing here wraps an operation of C++, so that none costs more than without ``as_torch``. Operations ask
``follows_torch()`` where they would raise (``core/torch_rules.h``). What is not restored is listed in
``docs/as_torch.md`` with its reason.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

__all__ = ["apply", "install"]


def _package(module: ModuleType) -> None:
    """The package says that it is PyTorch."""
    from vesta.as_torch import TORCH_VERSION
    from vesta.torch_version import TorchVersion

    module.__version__ = TorchVersion(TORCH_VERSION)  # type: ignore[attr-defined]


def _version(module: ModuleType) -> None:
    from vesta.as_torch import TORCH_VERSION

    module.__version__ = TORCH_VERSION  # type: ignore[attr-defined]


def _tensor_types(module: ModuleType) -> None:
    """Types of tensors are called ``torch.FloatTensor``."""
    module.PACKAGE = "torch"  # type: ignore[attr-defined]
    for kinds in (module.CPU, module.CUDA):  # type: ignore[attr-defined]
        for kind in kinds.values():
            kind.__module__ = kind.__module__.replace("vesta", "torch")


def _losses(module: ModuleType) -> None:
    """``mse_loss`` broadcasts, with the warning that it has anyway, and promotes dtypes."""
    module.MSE_BROADCASTS = True  # type: ignore[attr-defined]


def _optimizers(module: ModuleType) -> None:
    """A parameter that comes twice in a group is warned about; subclasses find PyTorch's static methods."""
    from .optimizer_parts import extend

    extend(module.Optimizer)

    def warn(message: str) -> None:
        warnings.warn(
            "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; "
            "see github.com/pytorch/pytorch/issues/40967 for more information",
            stacklevel=4,
        )

    module._refuse_duplicates = warn  # type: ignore[attr-defined]


def _autocast(module: ModuleType) -> None:
    """A dtype that is not floating-point switches autocast off, with a warning."""
    module._expect_floating = lambda dtype: None  # type: ignore[attr-defined]


def _fetching(module: ModuleType) -> None:
    """``StopIteration`` of a dataset ends the pass."""
    module.STOP_ENDS_THE_PASS = True  # type: ignore[attr-defined]


def _loading(module: ModuleType) -> None:
    """A loader without workers draws from the program's generators, so that a seed gives PyTorch's order of draws."""
    from vesta.utils.data.seeding import CallersStates

    module.Seeds = CallersStates  # type: ignore[attr-defined]


def _continuous_bernoulli(module: ModuleType) -> None:
    """Probabilities outside [0, 1] are clamped, unless ``validate_args`` is given."""
    module.CLAMPS_PROBABILITIES = True  # type: ignore[attr-defined]


def _definitions(module: ModuleType) -> None:
    """A fake function of an operator that is not there is accepted.

    Packages such as torchvision declare those of their extension when they are imported. Without PyTorch there is no
    such extension, and their Python half has to work alone.
    """
    from vesta.library.operators import defined, operator_of

    def declared(op: Any) -> Any:
        absent = isinstance(op, str) and "::" in op and op.removesuffix(".default") not in defined
        return None if absent else operator_of(op, "register_fake")

    module._declared = declared  # type: ignore[attr-defined]


def _modules(module: ModuleType) -> None:
    """``Module.compile`` does nothing."""

    def compile(self: Any, *args: Any, **kwargs: Any) -> None:
        """Does nothing: the module runs as it is written."""

    module.Module.compile = compile  # type: ignore[attr-defined]


def _state_dicts(module: ModuleType) -> None:
    """What ``load_state_dict`` returns prints without the nearest names."""
    module.IncompatibleKeys.__str__ = module.IncompatibleKeys.__repr__  # type: ignore[attr-defined]


#: Limits of dtypes that Vesta has not, which libraries ask for when they are imported: bits, eps, max, tiny.
_FLOATS = {
    "torch.float8_e4m3fn": (8, 0.125, 448.0, 0.015625),
    "torch.float8_e4m3fnuz": (8, 0.125, 240.0, 0.0078125),
    "torch.float8_e5m2": (8, 0.25, 57344.0, 6.103515625e-05),
    "torch.float8_e5m2fnuz": (8, 0.25, 57344.0, 3.0517578125e-05),
}
_INTEGERS = {"torch.uint16": 16, "torch.uint32": 32, "torch.uint64": 64}


def _limits(module: ModuleType) -> None:
    """``finfo`` and ``iinfo`` know dtypes that Vesta has not."""
    for kind, facts in ((module.finfo, _float_limits), (module.iinfo, _integer_limits)):  # type: ignore[attr-defined]
        _know_more(kind, facts)


def _know_more(kind: type, facts: Callable[[str], dict[str, Any] | None]) -> None:
    """Lets a class of limits take the refused names of dtypes that ``facts`` knows."""
    ours = kind.__init__  # type: ignore[misc]

    def __init__(self: Any, type: Any = None) -> None:
        known = facts(type._name) if getattr(type, "__refuses__", False) else None
        if known is not None:
            vars(self).update(known, dtype=type._name[len("torch.") :])
        elif type is None:
            ours(self)
        else:
            ours(self, type)

    kind.__init__ = __init__  # type: ignore[misc]


def _float_limits(name: str) -> dict[str, Any] | None:
    if name not in _FLOATS:
        return None
    bits, eps, largest, tiny = _FLOATS[name]
    same = {"tiny": tiny, "smallest_normal": tiny, "resolution": 1.0}
    return {"bits": bits, "eps": eps, "max": largest, "min": -largest, **same}


def _integer_limits(name: str) -> dict[str, Any] | None:
    bits = _INTEGERS.get(name)
    return None if bits is None else {"bits": bits, "min": 0, "max": 2**bits - 1}


#: What is done with a module of Vesta once it is loaded.
_CHANGES: dict[str, Callable[[ModuleType], None]] = {
    "vesta": _package,
    "vesta.version": _version,
    "vesta.tensor_types": _tensor_types,
    "vesta._limits": _limits,
    "vesta.nn.functional.loss": _losses,
    "vesta.nn.modules.module": _modules,
    "vesta.nn.modules.state_dict": _state_dicts,
    "vesta.distributions.continuous_bernoulli": _continuous_bernoulli,
    "vesta.library.definitions": _definitions,
    "vesta.optim.optimizer": _optimizers,
    "vesta.amp.autocast_mode": _autocast,
    "vesta.utils.data.fetch": _fetching,
    "vesta.utils.data.iterator": _loading,
}


def apply(name: str, module: ModuleType) -> None:
    """Changes what a module of Vesta does to what PyTorch's does."""
    change = _CHANGES.get(name)
    if change is not None:
        change(module)


def install() -> None:
    """Lets operations follow PyTorch where they would raise; modules are changed by ``apply``."""
    from vesta import _C

    _C._follow_torch(True)
