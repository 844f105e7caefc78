"""What optimizers that are written like PyTorch's import from inside of it: decorators of steps, choices, groups.

``torch.optim.optimizer`` has them, and ``torch.optim.adam`` and its like; lists: ``torch.utils._foreach_utils``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import vesta
from vesta import Tensor

__all__ = ["PARTS", "extend"]

_DEVICES = ["cuda", "xpu", "hpu", "privateuseone", "xla"]


def _use_grad_for_differentiable(func: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a step that records what it does if the optimizer's ``differentiable`` says so, and not otherwise."""

    @functools.wraps(func)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        with vesta.set_grad_enabled(self.defaults["differentiable"]):
            return func(self, *args, **kwargs)

    return step


def _get_value(x: Any) -> Any:
    """Returns a number, of a tensor its only one."""
    return x.item() if isinstance(x, Tensor) else x


def _stack_if_compiling(x: Any) -> Any:
    """Returns its argument: nothing is compiled."""
    return x


def _to_scalar(x: Any) -> Any:
    """Returns a tensor of one element without dimensions, and a number as it is."""
    return x.squeeze() if isinstance(x, Tensor) and x.dim() != 0 else x


def _disable_dynamo_if_unsupported(single_tensor_fn: Any = None) -> Callable[[Any], Any]:
    """Returns a decorator that returns what it decorates."""
    return lambda func: func


def _default_to_fused_or_foreach(
    params: list[Tensor], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Returns whether a step is fused, and whether it works on lists, unless the program says."""
    if differentiable:
        return False, False
    plain = [p for p in params if p is not None]
    fused = use_fused and all(
        p.device.type in _get_fused_kernels_supported_devices() and p.is_floating_point() for p in plain
    )
    lists = not fused and all(p.device.type in _get_foreach_kernels_supported_devices() for p in plain)
    return fused, lists


def _device_dtype_check_for_fused(p: Tensor, cuda_unsupported: bool = False) -> None:
    """Raises RuntimeError unless a fused step takes the parameter."""
    devices = [name for name in _get_fused_kernels_supported_devices() if not (cuda_unsupported and name == "cuda")]
    if p.device.type not in devices or not p.is_floating_point():
        raise RuntimeError(
            f"`fused=True` requires all the params to be floating point Tensors of supported devices: {devices} "
            f"but {p.dtype} and {p.device.type}"
        )


def _view_as_real(params: list[Tensor], *state_and_grads: list[Tensor]) -> None:
    """Replaces complex parameters, and what belongs to them, by their views as real numbers."""
    for i, p in enumerate(params):
        if p.is_complex():
            for tensors in (params, *state_and_grads):
                tensors[i] = vesta.view_as_real(tensors[i])


def _get_scalar_dtype(is_fused: bool | None = None) -> Any:
    """Returns the dtype in which steps are counted."""
    return vesta.float64 if not is_fused and vesta.get_default_dtype() == vesta.float64 else vesta.float32


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """Returns the types of devices on which a step could be captured."""
    return _DEVICES if supports_xla else _DEVICES[:-1]


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Returns the types of devices on which steps work on lists of tensors by default."""
    return ["cuda", "xpu", "mtia", "privateuseone"]


def _get_fused_kernels_supported_devices() -> list[str]:
    """Returns the types of devices that have fused steps."""
    return ["mps", "cuda", "xpu", "hpu", "cpu", "mtia", "privateuseone"]


def _device_has_foreach_support(device: Any) -> bool:
    """Returns whether operations over lists of tensors run on a device."""
    return device.type in [*_get_foreach_kernels_supported_devices(), "cpu"]


def _has_foreach_support(tensors: list[Any], device: Any) -> bool:
    """Returns whether operations over lists run on these tensors."""
    return _device_has_foreach_support(device) and all(t is None or type(t) is Tensor for t in tensors)


def _group_tensors_by_device_and_dtype(tensorlistlist: list[list[Any]], with_indices: bool = False) -> dict[Any, Any]:
    """Divides lists that belong together by device and dtype of the first one's tensors.

    Returns for each (device, dtype) the parts of all lists, and the places that they had if ``with_indices``.
    """
    groups: dict[Any, tuple[list[list[Any]], list[int]]] = {}
    for place, first in enumerate(tensorlistlist[0]):
        lists, places = groups.setdefault((first.device, first.dtype), ([[] for _ in tensorlistlist], []))
        for part, whole in zip(lists, tensorlistlist):
            if whole:
                part.append(whole[place])
        if with_indices:
            places.append(place)
    return groups


def _process_value_according_to_param_policy(
    param: Any, value: Any, param_id: int, param_groups: list[dict[str, Any]], key: str | None = None
) -> Any:
    """Returns an entry of a state as it is loaded for a parameter: in its dtype and on its device, except ``step``."""
    if key == "step":
        own: dict[str, Any] = next((group for group in param_groups if param_id in group["params"]), {})
        on_device = own.get("fused") or own.get("capturable")
        return value.to(dtype=vesta.float32, device=param.device) if on_device else value
    return value.to(dtype=param.dtype if param.is_floating_point() else value.dtype, device=param.device)


def extend(optimizer: type) -> None:
    """Gives the class ``Optimizer`` the static methods that subclasses call."""
    for function in (_group_tensors_by_device_and_dtype, _process_value_according_to_param_policy):
        setattr(optimizer, function.__name__, staticmethod(function))


_LISTS = (
    _get_foreach_kernels_supported_devices,
    _get_fused_kernels_supported_devices,
    _device_has_foreach_support,
    _has_foreach_support,
    _group_tensors_by_device_and_dtype,
)
_STEPS = (
    _use_grad_for_differentiable,
    _get_value,
    _stack_if_compiling,
    _to_scalar,
    _disable_dynamo_if_unsupported,
    _default_to_fused_or_foreach,
    _device_dtype_check_for_fused,
    _view_as_real,
    _get_scalar_dtype,
    _get_capturable_supported_devices,
)
_MODULES = ("adadelta", "adagrad", "adam", "adamax", "adamw", "asgd", "nadam", "radam", "rmsprop", "rprop", "sgd")

#: The functions by their names ``torch...``.
PARTS: dict[str, Any] = {
    **{f"torch.optim.{home}.{f.__name__}": f for home in ("optimizer", *_MODULES) for f in _STEPS},
    **{f"torch.{home}.{f.__name__}": f for home in ("utils._foreach_utils", "optim.optimizer") for f in _LISTS},
    **{
        f"torch.optim.{home}.{name}": text
        for home in ("optimizer", *_MODULES)
        for name, text in (
            ("_capturable_doc", "capturable (bool, optional): whether a step can be captured by a CUDA graph"),
            ("_differentiable_doc", "differentiable (bool, optional): whether steps are recorded"),
            ("_foreach_doc", "foreach (bool, optional): whether a step works on lists of tensors"),
            ("_fused_doc", "fused (bool, optional): whether a step is one fused operation"),
            ("_maximize_doc", "maximize (bool, optional): whether the objective is made larger"),
            ("_params_doc", "params (iterable): parameters, or groups of them"),
        )
    },
    "torch.optim.optimizer._foreach_supported_types": [vesta.Tensor, vesta.nn.Parameter],
}
