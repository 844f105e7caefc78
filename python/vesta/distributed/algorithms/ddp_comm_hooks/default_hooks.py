"""Hooks that average gradients: in their own dtype, or in 16 bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import vesta
from vesta import Tensor
from vesta._C import _ddp

__all__ = [
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
]

Hook = Callable[[Any, _ddp.GradBucket], Any]


def _averaged(process_group: Any, tensor: Tensor) -> Any:
    """Starts averaging ``tensor`` in place; returns a future of it."""
    group = process_group if process_group is not None else vesta.distributed.group.WORLD
    tensor.div_(group.size())  # first, because the sum of many float16 may not fit
    work = vesta.distributed.all_reduce(tensor, group=group, async_op=True)
    return work.get_future().then(lambda future: future.value()[0])


def allreduce_hook(process_group: Any, bucket: _ddp.GradBucket) -> Any:
    """Averages the bucket, as without a hook."""
    return _averaged(process_group, bucket.buffer())


def _in_16_bits(dtype: Any, process_group: Any, bucket: _ddp.GradBucket) -> Any:
    buffer = bucket.buffer()
    return _averaged(process_group, buffer.to(dtype)).then(lambda future: buffer.copy_(future.value()))


def fp16_compress_hook(process_group: Any, bucket: _ddp.GradBucket) -> Any:
    """Averages the bucket in float16: half the bytes, 11 bits of each gradient."""
    return _in_16_bits(vesta.float16, process_group, bucket)


def bf16_compress_hook(process_group: Any, bucket: _ddp.GradBucket) -> Any:
    """Averages the bucket in bfloat16: half the bytes, 8 bits of each gradient, float32's range."""
    return _in_16_bits(vesta.bfloat16, process_group, bucket)


def _wrapper(hook: Hook, dtype: Any) -> Hook:
    def wrapped(hook_state: Any, bucket: _ddp.GradBucket) -> Any:
        buffer = bucket.buffer()
        bucket.set_buffer(buffer.to(dtype))
        return hook(hook_state, bucket).then(lambda future: buffer.copy_(future.value()))

    return wrapped


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """Returns a hook that calls ``hook`` with the bucket in float16 and converts its result back."""
    return _wrapper(hook, vesta.float16)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """Returns a hook that calls ``hook`` with the bucket in bfloat16 and converts its result back."""
    return _wrapper(hook, vesta.bfloat16)
