"""Vesta: eager tensors with automatic differentiation and PyTorch's names."""

# ruff: noqa: F401  (what is imported here is what the package offers)

from __future__ import annotations

import importlib as _importlib
import math as _math
import os as _os

from . import _C
from ._C import *  # noqa: F403
from ._C import Tensor, _ops

__version__ = "0.1.0"

#: Where a name comes from that is imported when it is first asked for; an empty text: it is a module itself.
_LAZY = {
    **dict.fromkeys(("adapters", "as_torch", "notebook"), ""),
    **dict.fromkeys(("amp", "autograd", "backends", "cpu", "cuda", "fft", "linalg", "nn", "optim", "special"), ""),
    **dict.fromkeys(("safetensors", "utils", "distributed", "futures", "multiprocessing", "return_types"), ""),
    **dict.fromkeys(("distributions", "hub", "serialization", "signal", "sparse", "storage"), ""),
    **dict.fromkeys(("bartlett_window", "blackman_window", "hamming_window", "hann_window"), "._spectral"),
    **dict.fromkeys(("istft", "kaiser_window", "stft"), "._spectral"),
    **dict.fromkeys(
        "sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor spmm".split(), ".sparse"
    ),
    **dict.fromkeys(("enable_grad", "inference_mode", "no_grad", "set_grad_enabled"), ".autograd"),
    **dict.fromkeys(("finfo", "iinfo"), "._limits"),
    **dict.fromkeys(("GradScaler", "autocast"), ".amp"),
    **dict.fromkeys(("get_autocast_cpu_dtype", "get_autocast_gpu_dtype"), ".amp.autocast_mode"),
    **dict.fromkeys(("set_autocast_cpu_dtype", "set_autocast_gpu_dtype"), ".amp.autocast_mode"),
    **dict.fromkeys(("is_autocast_cpu_enabled", "set_autocast_cpu_enabled"), ".amp.autocast_mode"),
    **dict.fromkeys(("load_file", "save_file"), ".safetensors"),
    **dict.fromkeys(("atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_shapes"), "._shape_functions"),
    **dict.fromkeys(("broadcast_tensors", "cartesian_prod", "combinations", "meshgrid"), "._shape_functions"),
    **dict.fromkeys(("tensordot", "unique", "unique_consecutive"), "._shape_functions"),
    **dict.fromkeys(("empty_permuted", "nonzero_static"), "._shape_functions"),
    **dict.fromkeys(("pca_lowrank", "svd_lowrank"), "._lowrank"),
    **dict.fromkeys(("fake_quantize_per_channel_affine", "fake_quantize_per_tensor_affine"), "._fake_quantize"),
    **dict.fromkeys(("gradient", "histogram", "histogramdd", "unravel_index"), "._numeric_functions"),
    **dict.fromkeys(
        "_native_batch_norm_legit _native_batch_norm_legit_no_training alpha_dropout alpha_dropout_ "
        "batch_norm binary_cross_entropy_with_logits binomial chain_matmul conj_physical_ conv_tbc "
        "cosine_embedding_loss ctc_loss detach detach_ dropout_ feature_alpha_dropout feature_alpha_dropout_ "
        "feature_dropout feature_dropout_ frobenius_norm get_device hinge_embedding_loss is_conj "
        "is_distributed is_inference is_neg is_nonzero is_same_size is_signed kl_div layer_norm "
        "margin_ranking_loss norm_except_dim nuclear_norm poisson_nll_loss triplet_margin_loss".split(),
        "._native_functions",
    ),
    **dict.fromkeys(
        "alias_copy as_strided_copy ccol_indices_copy col_indices_copy crow_indices_copy detach_copy diagonal_copy "
        "expand_copy indices_copy narrow_copy permute_copy row_indices_copy select_copy slice_copy split_copy "
        "split_with_sizes_copy squeeze_copy t_copy transpose_copy unbind_copy unfold_copy unsqueeze_copy values_copy "
        "view_as_complex_copy view_as_real_copy view_copy".split(),
        "._view_copies",
    ),
    **dict.fromkeys(("cond", "while_loop"), "._control_flow"),
    "einsum": "._einsum",
    **dict.fromkeys(("load", "save"), ".serialization"),
    **dict.fromkeys(("from_torch", "to_torch"), ".adapters.torch"),
    **dict.fromkeys(("TypedStorage", "UntypedStorage", "from_file"), ".storage"),
    "set_default_tensor_type": ".tensor_types",
    **dict.fromkeys(
        ("__config__", "accelerator", "profiler", "quasirandom", "random", "testing", "torch_version", "types"), ""
    ),
    **dict.fromkeys(("_six", "overrides", "version"), ""),
    **dict.fromkeys(("are_deterministic_algorithms_enabled", "use_deterministic_algorithms"), "._process_settings"),
    **dict.fromkeys(("is_deterministic_algorithms_warn_only_enabled", "set_warn_always"), "._process_settings"),
    **dict.fromkeys(("get_deterministic_debug_mode", "set_deterministic_debug_mode"), "._process_settings"),
    **dict.fromkeys(("get_float32_matmul_precision", "set_float32_matmul_precision"), "._process_settings"),
    **dict.fromkeys(("_assert", "_check", "_check_index", "_check_is_size"), "._process_settings"),
    "_check_not_implemented": "._process_settings",
    **dict.fromkeys(("_check_type", "_check_value", "is_warn_always_enabled"), "._process_settings"),
    **dict.fromkeys(("get_default_device", "set_default_device"), "._default_device"),
    **dict.fromkeys(("func", "library", "masked", "ops"), ""),
    "vmap": ".func",
    "summary": "._summary",
    "set_printoptions": "._printing",
}
#: Where the functions come from that modes and classes take over; others are about settings, files and devices.
_OVERRIDABLE = frozenset(
    "._einsum ._fake_quantize ._lowrank ._native_functions ._numeric_functions ._older_names ._shape_functions "
    "._spectral ._view_copies .sparse".split()
)
#: Names of the extension that the package does not offer, or not here.
_INNER = ("LinAlgError", "cpp_nn")
#: Names that programs still call, of ``_older_names``: ``dir()`` does not show them.
_OLDER = ("cholesky", "eig", "lstsq", "lu", "matrix_rank", "qr", "range", "set_deterministic", "solve", "symeig")
#: Numbers by their names in mathematics, and ``newaxis`` for subscripts.
e, inf, nan, pi, newaxis = _math.e, _math.inf, _math.nan, _math.pi, None
#: Classes of tensors by dtype, from ``tensor_types.CPU``.
_TYPES = ("Float", "Double", "Half", "BFloat16", "Byte", "Char", "Short", "Int", "Long", "Bool")

for _name in (*_LAZY, *_INNER):  # set_grad_enabled of C++ only switches; the lazy one is also a context manager
    globals().pop(_name, None)
#: In-place methods that are functions too.
_IN_PLACE = frozenset(
    (
        "abs acos acosh addmv arccos arccosh arcsin arcsinh arctan arctanh as_strided asin asinh atan atanh ceil clamp "
        "clamp_max clamp_min clip cos cosh deg2rad erf erfc exp exp2 expm1 fill fix floor frac gcd i0 index_put lcm "
        "ldexp log log10 log1p log2 logit nan_to_num neg negative rad2deg reciprocal relu resize_as round rsqrt "
        "sigmoid sin sinc sinh sqrt square tan tanh trunc xlogy zero"
    ).split()
)
for _name, _function in vars(_ops).items():
    _only_method = _name.endswith("_") and hasattr(Tensor, _name) and _name[:-1] not in _IN_PLACE
    if not _name.startswith("_") and not _only_method:
        globals()[_name] = _function
_addmm_activation = _ops._addmm_activation
del _name, _function, _only_method, annotations

from . import _overridable, _tensor, _tensor_kinds  # noqa: E402  (they put the methods written in Python into Tensor)
from ._functions import (  # noqa: E402
    asarray,
    get_device_module,
    is_complex,
    is_floating_point,
    is_storage,
    is_tensor,
    norm,
    numel,
    typename,
)

_overridable.overridable(asarray, is_complex, is_floating_point, norm, numel)
_tensor.install()
_tensor_kinds.install()


def __getattr__(name: str) -> object:
    """Imports a submodule, or a name of one, on first use."""
    home = _LAZY.get(name)
    if name.endswith("Tensor") and name[: -len("Tensor")] in _TYPES:
        from .tensor_types import CPU

        globals()[name] = CPU[name]
        return CPU[name]
    if name.endswith("Storage") and home is None:
        from .storage import CLASSES

        if name in CLASSES:
            return CLASSES[name]
    if name in _OLDER:
        home = "._older_names"
    if name.startswith("_foreach_"):
        home = "._foreach"
    if home is None:
        raise AttributeError(f"module 'vesta' has no attribute {name!r}")
    try:
        path = home or f".{name}"
        if path.count(".") > 1:  # a package before its part, as when the package is imported: threads do both at once
            _importlib.import_module(path[: path.rindex(".")], __name__)
        module = _importlib.import_module(path, __name__)
    except ModuleNotFoundError as error:
        raise AttributeError(f"module 'vesta' has no attribute {name!r}") from error
    value = module if not home else getattr(module, name)
    if home in _OVERRIDABLE:
        _overridable.overridable(value)
    if name not in _OLDER:
        globals()[name] = value
    return value


def __dir__() -> list[str]:
    inner = {name for name, value in globals().items() if isinstance(value, type(_C)) and name not in _LAZY}
    return sorted(({*globals()} - inner) | {*_LAZY, "_C", *(f"{name}Tensor" for name in _TYPES)})


if _os.environ.get("VESTA_SHOW_CONFIG", "0") not in ("", "0"):
    import atexit as _atexit

    from . import __config__

    _atexit.register(__config__._show_at_the_end)
