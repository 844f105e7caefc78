"""Names that single modules of ``torch`` have under ``vesta.as_torch`` only, beside the modules in ``only/``."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

__all__ = ["find", "no"]

#: Beginnings of names inside of PyTorch's library that are settings of what Vesta has not: calls of them do nothing.
_SETTINGS = (
    "torch._C._jit_set_",
    "torch._C._jit_override_",
    "torch._C._jit_pass_",
    "torch._C._jit_clear_",
    "torch._C._log_api_usage",
    "torch._C._set_",
    "torch._C._debug_set_",
    "torch._C._cuda_clear",
    "torch._C._set_worker_",
)


def _do_nothing(*args: Any, **kwargs: Any) -> None:
    """Accepts a setting of something that Vesta has not."""


class DisableTorchFunctionSubclass:
    """A block in which no class takes calls over: operations see tensors of any class as plain ones."""

    def __enter__(self) -> None:
        """Enters the block."""
        from vesta import _C

        self._before = _C._set_torch_function_enabled(False)

    def __exit__(self, *exception: Any) -> None:
        """Leaves the block."""
        from vesta import _C

        _C._set_torch_function_enabled(self._before)


def _standard_gamma(self: Any, generator: Any = None) -> Any:
    """Draws from Gamma(self, 1), differentiably."""
    from vesta.distributions.gamma import standard_gamma

    return standard_gamma(self, generator)


def _cast(dtype: str) -> Callable[..., Any]:
    """Returns the function that casts to a dtype, of old programs."""

    def cast(input: Any, non_blocking: bool = False) -> Any:
        import vesta

        return input.to(getattr(vesta, dtype), non_blocking=non_blocking)

    return cast


def dsmm(input: Any, mat2: Any) -> Any:
    """Returns the product of a sparse and a dense matrix."""
    from vesta import mm

    return mm(input, mat2)


def _get_accelerator(check: bool | None = None) -> Any:
    """Returns the device type that is used beside the CPU; the CPU without one."""
    from vesta import accelerator, device

    return (accelerator.current_accelerator() if accelerator.is_available() else None) or device("cpu")


def _get_default_device() -> str:
    """Returns the device of new tensors, as a text."""
    from vesta import get_default_device

    return str(get_default_device())


def _is_alias_of(a: Any, b: Any) -> bool:
    """Returns whether two tensors share their storage."""
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def _in_torch_function_mode() -> bool:
    """Returns whether a TorchFunctionMode takes calls over."""
    from vesta import _C

    return bool(_C._torch_function_modes())


def _default_schedule_fn(_: int) -> Any:
    """Returns the action of a profiler without a schedule: it records each step."""
    from vesta.profiler import ProfilerAction

    return ProfilerAction.RECORD


def _hook_table(name: str) -> Callable[[], Any]:
    """Returns what finds a table of hooks that hold for all modules."""

    def find() -> Any:
        from vesta.nn.modules import module

        return getattr(module, name)

    return find


def _is_macos_or_newer(major: int, minor: int) -> bool:
    """Returns False: this is Linux."""
    return False


class set_multithreading_enabled:
    """A context, or a function, that sets whether backward may use more threads: here it uses the caller's, always."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode

    def __enter__(self) -> None:
        """Does nothing."""

    def __exit__(self, *exception: Any) -> None:
        """Does nothing."""


def _assert(condition: Any, message: str) -> None:
    """Raises AssertionError with the message unless the condition holds."""
    assert condition, message


def _assert_async(input: Any, assert_msg: str = "Expected Tensor with single nonzero value, but got zero") -> None:
    """Raises RuntimeError with the message unless the tensor's only value is true."""
    if input.numel() != 1:
        what = "no values" if input.numel() == 0 else "more than one value"
        raise RuntimeError(f"Boolean value of Tensor with {what} is ambiguous")
    if not input:
        raise RuntimeError(assert_msg)


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """Returns four words that seed NumPy in a worker of a loader."""
    import numpy

    words = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return [int(word) for word in numpy.random.SeedSequence(words).generate_state(4)]


def _tracing_state() -> None:
    """Returns None: nothing is traced."""
    return None


def no(*args: Any, **kwargs: Any) -> bool:
    """Returns False."""
    return False


def _true() -> bool:
    """Returns True."""
    return True


def get_num_interop_threads() -> int:
    """Returns 1: operations run one after another, each by ``get_num_threads()`` threads."""
    return 1


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """Returns the device, dtype, ``non_blocking`` and memory format of arguments of ``Module.to``."""
    from vesta.nn.modules.module import _parse_to as parse

    memory_format = kwargs.pop("memory_format", None)
    return (*parse(*args, **kwargs), memory_format)


def _tensor_type() -> Any:
    from vesta import Tensor

    return Tensor


def _package() -> Any:
    import vesta

    return vesta


def _generator_type() -> Any:
    from vesta import Generator

    return Generator


def _load_from_bytes(data: bytes) -> Any:
    """Returns the storage in a pickle that PyTorch has written: it holds a file of ``torch.save`` in the old format."""
    import io

    from vesta import load

    return load(io.BytesIO(data), weights_only=False)


def _rebuilding(name: str) -> Callable[[], Any]:
    """Returns what finds a function of ``vesta.serialization.rebuilding``."""

    def find() -> Any:
        from vesta.serialization import rebuilding

        return getattr(rebuilding, name)

    return find


def _overrides(name: str) -> Callable[[], Any]:
    """Returns what finds a function of ``vesta.overrides``."""

    def find() -> Any:
        from vesta import overrides

        return getattr(overrides, name)

    return find


def _sparse(name: str) -> Callable[[], Any]:
    """Returns what finds a function of ``vesta.sparse``."""

    def find() -> Any:
        from vesta import sparse

        return getattr(sparse, name)

    return find


def _softmax_backward_data(grad_output: Any, output: Any, dim: int, input_dtype: Any = None) -> Any:
    """Returns the gradient of softmax in its input, from its output."""
    product = grad_output * output
    result = product - output * product.sum(dim, keepdim=True)
    return result if input_dtype is None else result.to(input_dtype)


def _log_softmax_backward_data(grad_output: Any, output: Any, dim: int, input_dtype: Any = None) -> Any:
    """Returns the gradient of log_softmax in its input, from its output."""
    result = grad_output - output.exp() * grad_output.sum(dim, keepdim=True)
    return result if input_dtype is None else result.to(input_dtype)


def _get_softmax_dim(name: str, ndim: int, stacklevel: int) -> int:
    """Returns the dimension that softmax takes if none is given, with PyTorch's warning."""
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


def _addindent(s_: str, numSpaces: int) -> str:
    """Indents all lines of a text but the first."""
    first, *rest = s_.split("\n")
    return "\n".join([first, *(" " * numSpaces + line for line in rest)])


def _future_type() -> Any:
    from vesta.futures import Future

    return Future


def _reductions() -> Any:
    from .only import nn___reduction

    return nn___reduction


def _row_format() -> Any:
    from vesta import contiguous_format

    return contiguous_format


def _dispatch(name: str) -> Callable[[], Any]:
    """Returns what finds a class of ``dispatch_keys``."""

    def find() -> Any:
        from . import dispatch_keys

        return getattr(dispatch_keys, name)

    return find


def _check_with(error_type: type[Exception], cond: Any, message: Any = None) -> None:
    """Raises an error of a type unless the condition holds; ``message``: the text, or a function that returns it."""
    from vesta._process_settings import _check_with as check

    check(error_type, cond, message)


def _check_tensor_all_with(error_type: type[Exception], cond: Any, message: Any = None) -> None:
    """Raises an error of a type unless all elements of a tensor of bools are True."""
    from vesta import Tensor
    from vesta import bool as bool_type

    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype != bool_type:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all()), message)


def _check_tensor_all(cond: Any, message: Any = None) -> None:
    """Raises RuntimeError unless all elements of a tensor of bools are True."""
    _check_tensor_all_with(RuntimeError, cond, message)


def _shape_as_tensor(input: Any) -> Any:
    """Returns the sizes of a tensor as one."""
    from vesta import tensor

    return tensor(list(input.shape))


def sym_not(a: Any) -> bool:
    """Returns ``not a``."""
    return not a


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """Returns one of two values."""
    return t if b else f


def sym_sum(*args: Any) -> Any:
    """Returns the sum of numbers, given one by one or as a list."""
    return sum(args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args)


def _compile() -> Any:
    from .compiled import compile

    return compile


def _grouped_mm() -> Any:
    from vesta.nn.functional import grouped_mm

    return grouped_mm


def _without_gradient(name: str) -> Callable[[], Any]:
    """Returns what finds a method of tensors that fills one in place, as a function that is not recorded."""

    def find() -> Any:
        from vesta import no_grad

        def fill(tensor: Any, *args: Any, generator: Any = None) -> Any:
            with no_grad():
                return getattr(tensor, name)(*args, **({} if generator is None else {"generator": generator}))

        return fill

    return find


def _segment_reduce() -> Any:
    from vesta import segment_reduce

    return segment_reduce


def _trunc_normal() -> Any:
    from vesta.nn.init import trunc_normal_

    return trunc_normal_


def _optimizer_part(name: str) -> Any:
    from .optimizer_parts import PARTS

    return PARTS.get(name)


_NAMES: dict[str, Any] = {
    "torch._assert": _assert,
    "torch._assert_async": _assert_async,
    "torch._disable_dynamo": lambda fn=None, recursive=True: (lambda f: f) if fn is None else fn,
    "torch.distributed.rpc.api._require_initialized": lambda fn: fn,
    "torch.utils.data.information._generate_state": _generate_state,
    "torch._C._get_tracing_state": _tracing_state,
    "torch._C._is_tracing": no,
    "torch._C._nn._parse_to": _parse_to,
    "torch._C._is_torch_function_enabled": _true,
    "torch._C._GLIBCXX_USE_CXX11_ABI": True,
    "torch._C.has_lapack": True,
    "torch._C.has_cuda": False,
    "torch._C.has_mkldnn": False,
    "torch._C._has_mkldnn": False,
    "torch._C.has_openmp": True,
    "torch._C._has_mps": False,
    "torch._C._has_cuda": False,
    "torch.has_mps": False,
    "torch.get_num_interop_threads": get_num_interop_threads,
    "torch.set_num_interop_threads": _do_nothing,
    "torch.has_cuda": False,
    "torch._softmax_backward_data": _softmax_backward_data,
    "torch._log_softmax_backward_data": _log_softmax_backward_data,
    "torch.nn.modules.module._addindent": _addindent,
    "torch.nn.modules.module._EXTRA_STATE_KEY_SUFFIX": "_extra_state",
    "torch.nn.functional._get_softmax_dim": _get_softmax_dim,
    "torch.autograd._is_checkpoint_valid": _true,
    "torch.autograd.set_multithreading_enabled": set_multithreading_enabled,
    "torch.autograd.grad_mode.set_multithreading_enabled": set_multithreading_enabled,
    "torch.storage._load_from_bytes": _load_from_bytes,
    "torch._check_with": _check_with,
    "torch._check_tensor_all": _check_tensor_all,
    "torch._check_tensor_all_with": _check_tensor_all_with,
    "torch._guards.active_fake_mode": _tracing_state,
    "torch._guards.detect_fake_mode": lambda inputs=None: None,
    "torch._shape_as_tensor": _shape_as_tensor,
    "torch.sym_int": int,
    "torch.sym_float": float,
    "torch.sym_max": max,
    "torch.sym_min": min,
    "torch.sym_not": sym_not,
    "torch.sym_ite": sym_ite,
    "torch.sym_sum": sym_sum,
    "torch._C._get_privateuse1_backend_name": lambda: "privateuseone",
    "torch._C._cuda_isInBadFork": no,
    "torch._C._are_functorch_transforms_active": no,
    "torch._C._jit_can_fuse_on_cpu": no,
    "torch._C._jit_can_fuse_on_gpu": no,
    "torch.utils._python_dispatch.is_traceable_wrapper_subclass": lambda t: False,
    "torch.utils._python_dispatch._get_current_dispatch_mode": _tracing_state,
    "torch._subclasses.fake_tensor.is_fake": lambda t: False,
    "torch._C.DisableTorchFunction": DisableTorchFunctionSubclass,
    "torch._C.DisableTorchFunctionSubclass": DisableTorchFunctionSubclass,
    "torch._standard_gamma": _standard_gamma,
    **{f"torch._cast_{dtype.capitalize()}": _cast(dtype) for dtype in "double float half short int long".split()},
    "torch._cast_Byte": _cast("uint8"),
    "torch._cast_Char": _cast("int8"),
    "torch.dsmm": dsmm,
    "torch._C._get_accelerator": _get_accelerator,
    "torch._C._get_default_device": _get_default_device,
    "torch._C._is_alias_of": _is_alias_of,
    "torch._C._is_torch_function_mode_enabled": _in_torch_function_mode,
    "torch.serialization.MAP_LOCATION": Any,
    "torch.utils.data.dataloader._collate_fn_t": Callable[[list[Any]], Any],
    "torch.profiler.profiler._default_schedule_fn": _default_schedule_fn,
    "torch.backends.mps.is_macos_or_newer": _is_macos_or_newer,
    "torch.backends.mps.is_macos13_or_newer": no,
    "torch._inductor.cudagraph_mark_step_begin": _do_nothing,
    "torch.compiler.cudagraph_mark_step_begin": _do_nothing,
    "torch.autograd._profiler_enabled": no,
    "torch.autograd._disable_profiler": _do_nothing,
}
#: Names that are found when they are asked for.
_LATE: dict[str, Callable[[], Any]] = {
    "torch.compile": _compile,
    "torch._C._TensorBase": _tensor_type,
    "torch._C.TensorBase": _tensor_type,
    "torch._TensorBase": _tensor_type,
    "torch._C.Generator": _generator_type,
    **{
        f"torch.{home}{name}": _dispatch(name)
        for home in ("", "_C.", "_ops.", "types.")
        for name in ("DispatchKey", "DispatchKeySet")
    },
    "torch._C._ExcludeDispatchKeyGuard": _dispatch("ExcludeDispatchKeyGuard"),
    "torch.torch": _package,
    "torch.Future": _future_type,
    "torch._C.Future": _future_type,
    "torch.legacy_contiguous_format": _row_format,
    "torch._grouped_mm": _grouped_mm,
    "torch._segment_reduce": _segment_reduce,
    "torch._convert_indices_from_coo_to_csr": _sparse("_convert_indices_from_coo_to_csr"),
    "torch._convert_indices_from_csr_to_coo": _sparse("_convert_indices_from_csr_to_coo"),
    "torch.nn.functional._Reduction": _reductions,
    "torch.nn.modules.loss._Reduction": _reductions,
    **{
        f"torch.{home}.{name}": _overrides(name)
        for home in ("nn.functional", "functional", "_C")
        for name in ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")
    },
    "torch.nn.functional.handle_torch_function": _overrides("handle_torch_function"),
    "torch.functional.handle_torch_function": _overrides("handle_torch_function"),
    "torch._tensor._rebuild_from_type_v2": _rebuilding("_rebuild_from_type_v2"),
    "torch.serialization._get_layout": _rebuilding("_get_layout"),
    **{
        f"torch.nn.modules.module._global_{kind}_registration_hooks": _hook_table(f"_{kind}_registration_hooks")
        for kind in ("parameter", "buffer", "module")
    },
    "torch.nn.init._no_grad_uniform_": _without_gradient("uniform_"),
    "torch.nn.init._no_grad_normal_": _without_gradient("normal_"),
    "torch.nn.init._no_grad_fill_": _without_gradient("fill_"),
    "torch.nn.init._no_grad_zero_": _without_gradient("zero_"),
    "torch.nn.init._no_grad_trunc_normal_": _trunc_normal,
}

#: The last parts of the names in ``built_from_others``, which is not loaded for others.
_BUILT = frozenset(
    """
    CheckpointPolicy DebugLevel _reorder_tensors_as arg_tree_leaves can_use_cudnn_attention can_use_efficient_attention
    can_use_flash_attention classproperty create_selective_checkpoint_contexts get_debug_level is_ck_sdpa_available
    is_compiling is_flash_attention_available is_multithreading_enabled is_tensor_like key_get map_only
    register_constant register_dataclass replace_all_batch_norm_modules_ set_debug_level set_debug_level_from_env
    swap_tensors tree_all_only tree_any_only tree_leaves_with_path
    """.split()
)


def find(name: str) -> Any:
    """Returns the object of a name ``torch...``; None if it is not one of these."""
    if name in _NAMES:
        return _NAMES[name]
    if name in _LATE:
        return _LATE[name]()
    if name.startswith(("torch.optim.", "torch.utils._foreach_utils.")):
        return _optimizer_part(name)
    if name.startswith(_SETTINGS):
        return _do_nothing
    if name.rpartition(".")[2] not in _BUILT:
        return None
    from . import built_from_others

    return getattr(built_from_others, "NAMES", {}).get(name)  # it may be at its own imports
