"""What `import vesta` offers. Written by python/make_stubs.py from the roll call; do not edit."""

from collections.abc import Sequence
from typing import Any

from . import autograd as autograd, cuda as cuda, nn as nn, optim as optim, utils as utils
from .autograd import enable_grad as enable_grad, inference_mode as inference_mode, no_grad as no_grad
from .autograd import set_grad_enabled as set_grad_enabled
from ._limits import finfo as finfo, iinfo as iinfo
from ._C import Number as Number
from ._C import ArgumentError as ArgumentError
from ._C import DTypeError as DTypeError
from ._C import DeviceError as DeviceError
from ._C import Error as Error
from ._C import Generator as Generator
from ._C import Node as Node
from ._C import OutOfMemoryError as OutOfMemoryError
from ._C import Size as Size
from ._C import Tensor as Tensor
def abs(input: Tensor, *, out: Any = None) -> Tensor: ...
absolute = abs
def add(input: Tensor | Number, other: Tensor | Number, alpha: float = 1, *, out: Any = None) -> Tensor: ...
def addmm(
    input: Tensor,
    mat1: Tensor,
    mat2: Tensor,
    beta: float = 1,
    alpha: float = 1,
    *,
    out: Any = None,
) -> Tensor: ...
def all(input: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, out: Any = None) -> Tensor: ...
from ._functions import allclose as allclose
def amax(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    out: Any = None,
) -> Tensor: ...
def amin(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    out: Any = None,
) -> Tensor: ...
def any(input: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, out: Any = None) -> Tensor: ...
from ._C import arange as arange
def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Any = None) -> Tensor: ...
def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Any = None) -> Tensor: ...
def as_strided(
    input: Tensor,
    size: int | Sequence[int],
    stride: int | Sequence[int],
    storage_offset: int | None = None,
    *,
    out: Any = None,
) -> Tensor: ...
from ._C import as_tensor as as_tensor
from ._functions import asarray as asarray
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
    *,
    out: Any = None,
) -> Tensor: ...
def batch_norm_gradient(
    grad: Tensor,
    input: Tensor,
    weight: Tensor | None,
    mean: Tensor,
    invstd: Tensor,
    training: bool,
    *,
    out: Any = None,
) -> tuple[Tensor, Tensor, Tensor]: ...
def bernoulli(input: Tensor, generator: Generator | None = None, *, out: Any = None) -> Tensor: ...
from ._C import bfloat16 as bfloat16
def bitwise_and(input: Tensor | Number, other: Tensor | Number, *, out: Any = None) -> Tensor: ...
def bitwise_not(input: Tensor, *, out: Any = None) -> Tensor: ...
def bitwise_or(input: Tensor | Number, other: Tensor | Number, *, out: Any = None) -> Tensor: ...
def bitwise_xor(input: Tensor | Number, other: Tensor | Number, *, out: Any = None) -> Tensor: ...
def bmm(input: Tensor, mat2: Tensor, *, out: Any = None) -> Tensor: ...
from ._C import bool as bool
from ._C import can_cast as can_cast
def cat(tensors: Sequence[Tensor], dim: int = 0, *, out: Any = None) -> Tensor: ...
from ._C import cdouble as cdouble
from ._C import cfloat as cfloat
from ._C import channels_last as channels_last
from ._C import channels_last_3d as channels_last_3d
def chunk(input: Tensor, chunks: int, dim: int = 0, *, out: Any = None) -> tuple[Tensor, ...]: ...
def clamp(
    input: Tensor,
    min: Tensor | None | Number = None,
    max: Tensor | None | Number = None,
    *,
    out: Any = None,
) -> Tensor: ...
from ._functions import clamp_ as clamp_
def clamp_between(input: Tensor | Number, min: Tensor | Number, max: Tensor | Number, *, out: Any = None) -> Tensor: ...
def clamp_max(input: Tensor | Number, other: Tensor | Number, *, out: Any = None) -> Tensor: ...
def clamp_min(input: Tensor | Number, other: Tensor | Number, *, out: Any = None) -> Tensor: ...
clip = clamp
def clone(input: Tensor, memory_format: str = 'preserve_format', *, out: Any = None) -> Tensor: ...
from ._C import complex128 as complex128
from ._C import complex64 as complex64
concat = cat
concatenate = cat
def conj(input: Tensor, *, out: Any = None) -> Tensor: ...
def conj_physical(input: Tensor, *, out: Any = None) -> Tensor: ...
def contiguous(input: Tensor, *, out: Any = None) -> Tensor: ...
from ._C import contiguous_format as contiguous_format
def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    *,
    out: Any = None,
) -> Tensor: ...
def conv2d_input_gradient(
    grad: Tensor,
    weight: Tensor,
    input_size: int | Sequence[int],
    stride: int | Sequence[int],
    padding: int | Sequence[int],
    dilation: int | Sequence[int],
    groups: int,
    *,
    out: Any = None,
) -> Tensor: ...
def conv2d_weight_gradient(
    grad: Tensor,
    input: Tensor,
    weight_size: int | Sequence[int],
    stride: int | Sequence[int],
    padding: int | Sequence[int],
    dilation: int | Sequence[int],
    groups: int,
    *,
    out: Any = None,
) -> Tensor: ...
def cos(input: Tensor, *, out: Any = None) -> Tensor: ...
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = 'mean',
    label_smoothing: float = 0,
    *,
    out: Any = None,
) -> Tensor: ...
def cross_entropy_gradient(
    grad: Tensor,
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    logsumexp: Tensor,
    ignore_index: int,
    label_smoothing: float,
    *,
    out: Any = None,
) -> Tensor: ...
from ._C import default_generator as default_generator
from ._C import device as device
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1, *, out: Any = None) -> Tensor: ...
def div(input: Tensor, other: Tensor | Number, rounding_mode: str | None = None, *, out: Any = None) -> Tensor: ...
divide = div
from ._C import double as double
def dropout(input: Tensor, p: float = 0.5, training: bool = True, *, out: Any = None) -> Tensor: ...
from ._C import dtype as dtype
def embedding(weight: Tensor, indices: Tensor, padding_idx: int = -1, *, out: Any = None) -> Tensor: ...
def empty(
    *size: Any,
    dtype: dtype | None = None,
    device: device | str | int | None = None,
    out: Any = None,
    requires_grad: bool = False,
) -> Tensor: ...
def empty_like(
    input: Tensor,
    dtype: dtype | None = None,
    device: device | str | int | None = None,
    *,
    out: Any = None,
    requires_grad: bool = False,
) -> Tensor: ...
def eq(input: Tensor | Number, other: Tensor | Number, *, out: Any = None) -> Tensor: ...
from ._functions import equal as equal
def erf(input: Tensor, *, out: Any = None) -> Tensor: ...
def erfc(input: Tensor, *, out: Any = None) -> Tensor: ...
def exp(input: Tensor, *, out: Any = None) -> Tensor: ...
def expand(input: Tensor, *size: Any, out: Any = None) -> Tensor: ...
def eye(
    n: int,
    m: int | None = None,
    dtype: dtype | None = None,
    device: device | str | int | None = None,
    *,
    out: Any = None,
    requires_grad: bool = False,
) -> Tensor: ...
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1, *, out: Any = None) -> Tensor: ...
from ._C import float as float
from ._C import float16 as float16
from ._C import float32 as float32
from ._C import float64 as float64
def floor(input: Tensor, *, out: Any = None) -> Tensor: ...
def floor_divide(input: Tensor | Number, other: Tensor | Number, *, out: Any = None) -> Tensor: ...
from ._C import from_dlpack as from_dlpack
from ._C import from_numpy as from_numpy
from ._C import frombuffer as frombuffer
def full(
    size: int | Sequence[int],
    fill_value: Number,
    dtype: dtype | None = None,
    device: device | str | int | None = None,
    *,
    out: Any = None,
    requires_grad: bool = False,
) -> Tensor: ...
def full_like(
    input: Tensor,
    fill_value: Number,
    dtype: dtype | None = None,
    device: device | str | int | None = None,
    *,
    out: Any = None,
    requires_grad: bool = False,
) -> Tensor: ...
def gather(input: Tensor, dim: int, index: Tensor, *, out: Any = None) -> Tensor: ...
def ge(input: Tensor | Number, other: Tensor | Number, *, out: Any = None) -> Tensor: ...
def gelu(input: Tensor, approximate: str = 'none', *, out: Any = None) -> Tensor: ...
def gelu_erf(input: Tensor, *, out: Any = None) -> Tensor: ...
def gelu_tanh(input: Tensor, *, out: Any = None) -> Tensor: ...
from ._C import get_default_dtype as get_default_dtype
from ._C import get_num_threads as get_num_threads
from ._C import get_rng_state as get_rng_state
greater = gt
greater_equal = ge
def gt(input: Tensor | Number, other: Tensor | Number, *, out: Any = None) -> Tensor: ...
from ._C import half as half
def index_add(
    input: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    alpha: float = 1,
    *,
    out: Any = None,
) -> Tensor: ...
def index_put(
    input: Tensor,
    indices: Sequence[Tensor],
    values: Tensor | Number,
    accumulate: bool = False,
    *,
    out: Any = None,
) -> Tensor: ...
def index_select(input: Tensor, dim: int, index: Tensor, *, out: Any = None) -> Tensor: ...
from ._C import initial_seed as initial_seed
from ._C import int as int
from ._C import int16 as int16
from ._C import int32 as int32
from ._C import int64 as int64
from ._C import int8 as int8
from ._C import is_anomaly_enabled as is_anomaly_enabled
from ._functions import is_complex as is_complex
from ._functions import is_floating_point as is_floating_point
from ._C import is_grad_enabled as is_grad_enabled
from ._C import is_inference_mode_enabled as is_inference_mode_enabled
from ._functions import is_tensor as is_tensor
from ._functions import isclose as isclose
def isnan(input: Tensor, *, out: Any = None) -> Tensor: ...
from ._C import layout as layout
def le(input: Tensor | Number, other: Tensor | Number, *, out: Any = None) -> Tensor: ...
def leaky_relu(input: Tensor, negative_slope: float = 0.01, *, out: Any = None) -> Tensor: ...
less = lt
less_equal = le
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Any = None) -> Tensor: ...
def linspace(
    start: Number,
    end: Number,
    steps: int,
    dtype: dtype | None = None,
    device: device | str | int | None = None,
    *,
    out: Any = None,
    requires_grad: bool = False,
) -> Tensor: ...
def log(input: Tensor, *, out: Any = None) -> Tensor: ...
def log_softmax(input: Tensor, dim: int, dtype: dtype | None = None, *, out: Any = None) -> Tensor: ...
def logical_and(input: Tensor | Number, other: Tensor | Number, *, out: Any = None) -> Tensor: ...
def logical_not(input: Tensor, *, out: Any = None) -> Tensor: ...
def logical_or(input: Tensor | Number, other: Tensor | Number, *, out: Any = None) -> Tensor: ...
def logical_xor(input: Tensor | Number, other: Tensor | Number, *, out: Any = None) -> Tensor: ...
from ._C import long as long
def lt(input: Tensor | Number, other: Tensor | Number, *, out: Any = None) -> Tensor: ...
from ._C import manual_seed as manual_seed
def masked_fill(input: Tensor, mask: Tensor, value: Tensor | Number, *, out: Any = None) -> Tensor: ...
def masked_select(input: Tensor, mask: Tensor, *, out: Any = None) -> Tensor: ...
def matmul(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: ...
from ._functions import max as max
def max_pool2d(
    input: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] = (),
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    *,
    out: Any = None,
) -> Tensor: ...
def max_pool2d_gradient(
    grad: Tensor,
    indices: Tensor,
    input_size: int | Sequence[int],
    *,
    out: Any = None,
) -> Tensor: ...
def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] = (),
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    *,
    out: Any = None,
) -> tuple[Tensor, Tensor]: ...
def maximum(input: Tensor | Number, other: Tensor | Number, *, out: Any = None) -> Tensor: ...
def mean(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    dtype: dtype | None = None,
    *,
    out: Any = None,
) -> Tensor: ...
from ._C import memory_format as memory_format
from ._functions import min as min
def minimum(input: Tensor | Number, other: Tensor | Number, *, out: Any = None) -> Tensor: ...
def mm(input: Tensor, mat2: Tensor, *, out: Any = None) -> Tensor: ...
def mse_loss(input: Tensor, target: Tensor, reduction: str = 'mean', *, out: Any = None) -> Tensor: ...
def mul(input: Tensor | Number, other: Tensor | Number, *, out: Any = None) -> Tensor: ...
multiply = mul
def narrow(input: Tensor, dim: int, start: int, length: int, *, out: Any = None) -> Tensor: ...
def native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    *,
    out: Any = None,
) -> tuple[Tensor, Tensor, Tensor]: ...
def native_dropout(input: Tensor, p: float, train: bool, *, out: Any = None) -> tuple[Tensor, Tensor]: ...
def ne(input: Tensor | Number, other: Tensor | Number, *, out: Any = None) -> Tensor: ...
def neg(input: Tensor, *, out: Any = None) -> Tensor: ...
negative = neg
def new_empty(
    input: Tensor,
    *size: Any,
    dtype: dtype | None = None,
    device: device | str | int | None = None,
    out: Any = None,
    requires_grad: bool = False,
) -> Tensor: ...
def new_full(
    input: Tensor,
    size: int | Sequence[int],
    fill_value: Number,
    dtype: dtype | None = None,
    device: device | str | int | None = None,
    *,
    out: Any = None,
    requires_grad: bool = False,
) -> Tensor: ...
def new_ones(
    input: Tensor,
    *size: Any,
    dtype: dtype | None = None,
    device: device | str | int | None = None,
    out: Any = None,
    requires_grad: bool = False,
) -> Tensor: ...
def new_zeros(
    input: Tensor,
    *size: Any,
    dtype: dtype | None = None,
    device: device | str | int | None = None,
    out: Any = None,
    requires_grad: bool = False,
) -> Tensor: ...
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = 'mean',
    *,
    out: Any = None,
) -> Tensor: ...
from ._functions import nonzero as nonzero
not_equal = ne
from ._functions import numel as numel
def ones(
    *size: Any,
    dtype: dtype | None = None,
    device: device | str | int | None = None,
    out: Any = None,
    requires_grad: bool = False,
) -> Tensor: ...
def ones_like(
    input: Tensor,
    dtype: dtype | None = None,
    device: device | str | int | None = None,
    *,
    out: Any = None,
    requires_grad: bool = False,
) -> Tensor: ...
def permute(input: Tensor, *dims: Any, out: Any = None) -> Tensor: ...
def pow(input: Tensor | Number, other: Tensor | Number, *, out: Any = None) -> Tensor: ...
from ._C import preserve_format as preserve_format
from ._C import promote_types as promote_types
def rand(
    *size: Any,
    generator: Generator | None = None,
    dtype: dtype | None = None,
    device: device | str | int | None = None,
    out: Any = None,
    requires_grad: bool = False,
) -> Tensor: ...
def rand_like(
    input: Tensor,
    dtype: dtype | None = None,
    device: device | str | int | None = None,
    *,
    out: Any = None,
    requires_grad: bool = False,
) -> Tensor: ...
from ._functions import randint as randint
def randn(
    *size: Any,
    generator: Generator | None = None,
    dtype: dtype | None = None,
    device: device | str | int | None = None,
    out: Any = None,
    requires_grad: bool = False,
) -> Tensor: ...
def randn_like(
    input: Tensor,
    dtype: dtype | None = None,
    device: device | str | int | None = None,
    *,
    out: Any = None,
    requires_grad: bool = False,
) -> Tensor: ...
def randperm(
    n: int,
    generator: Generator | None = None,
    dtype: dtype | None = None,
    device: device | str | int | None = None,
    *,
    out: Any = None,
    requires_grad: bool = False,
) -> Tensor: ...
def reciprocal(input: Tensor, *, out: Any = None) -> Tensor: ...
def relu(input: Tensor, *, out: Any = None) -> Tensor: ...
def remainder(input: Tensor | Number, other: Tensor | Number, *, out: Any = None) -> Tensor: ...
def reshape(input: Tensor, *shape: Any, out: Any = None) -> Tensor: ...
from ._C import result_type as result_type
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor, *, out: Any = None) -> Tensor: ...
from ._C import seed as seed
def select(input: Tensor, dim: int, index: int, *, out: Any = None) -> Tensor: ...
from ._C import set_anomaly_enabled as set_anomaly_enabled
from ._C import set_default_dtype as set_default_dtype
from ._C import set_num_threads as set_num_threads
from ._C import set_rng_state as set_rng_state
def sgn(input: Tensor, *, out: Any = None) -> Tensor: ...
from ._C import short as short
def sigmoid(input: Tensor, *, out: Any = None) -> Tensor: ...
def sign(input: Tensor, *, out: Any = None) -> Tensor: ...
def sin(input: Tensor, *, out: Any = None) -> Tensor: ...
def softmax(input: Tensor, dim: int, dtype: dtype | None = None, *, out: Any = None) -> Tensor: ...
def softmax_gradient(grad: Tensor, output: Tensor, dim: int, log: bool, *, out: Any = None) -> Tensor: ...
def split(input: Tensor, split_size: int | Sequence[int], dim: int = 0, *, out: Any = None) -> tuple[Tensor, ...]: ...
def sqrt(input: Tensor, *, out: Any = None) -> Tensor: ...
def square(input: Tensor, *, out: Any = None) -> Tensor: ...
def squeeze(input: Tensor, dim: int | Sequence[int] | None = None, *, out: Any = None) -> Tensor: ...
def stack(tensors: Sequence[Tensor], dim: int = 0, *, out: Any = None) -> Tensor: ...
from ._C import strided as strided
def sub(input: Tensor | Number, other: Tensor | Number, alpha: float = 1, *, out: Any = None) -> Tensor: ...
subtract = sub
def sum(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    dtype: dtype | None = None,
    *,
    out: Any = None,
) -> Tensor: ...
def sum_to_size(input: Tensor, *size: Any, out: Any = None) -> Tensor: ...
swapaxes = transpose
swapdims = transpose
def t(input: Tensor, *, out: Any = None) -> Tensor: ...
def tanh(input: Tensor, *, out: Any = None) -> Tensor: ...
from ._C import tensor as tensor
def transpose(input: Tensor, dim0: int, dim1: int, *, out: Any = None) -> Tensor: ...
def true_divide(input: Tensor | Number, other: Tensor | Number, *, out: Any = None) -> Tensor: ...
def trunc_divide(input: Tensor | Number, other: Tensor | Number, *, out: Any = None) -> Tensor: ...
from ._functions import typename as typename
from ._C import uint8 as uint8
def unbind(input: Tensor, dim: int = 0, *, out: Any = None) -> tuple[Tensor, ...]: ...
def unsqueeze(input: Tensor, dim: int, *, out: Any = None) -> Tensor: ...
def view(input: Tensor, *size: Any, out: Any = None) -> Tensor: ...
from ._functions import where as where
def zeros(
    *size: Any,
    dtype: dtype | None = None,
    device: device | str | int | None = None,
    out: Any = None,
    requires_grad: bool = False,
) -> Tensor: ...
def zeros_like(
    input: Tensor,
    dtype: dtype | None = None,
    device: device | str | int | None = None,
    *,
    out: Any = None,
    requires_grad: bool = False,
) -> Tensor: ...
__version__: str
