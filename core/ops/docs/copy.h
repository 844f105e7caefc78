// Docs of the topic copy: what help() and the reference show, but for pointwise ops, whose structs have theirs.
#pragma once

namespace vesta::doc {

inline constexpr char resolve_conj[] = "resolve_conj(input): the tensor itself: conjugates are computed at once.";
inline constexpr char resolve_neg[] = "resolve_neg(input): the tensor itself: negatives are computed at once.";
inline constexpr char clone[] =
    "clone(memory_format='preserve_format'): a copy in memory of its own. preserve_format keeps the strides of a "
    "dense tensor, contiguous_format makes them row-major; channels_last lays [N, C, H, W] out as [N, H, W, C], "
    "channels_last_3d [N, C, D, H, W] as [N, D, H, W, C].";
inline constexpr char _to_copy[] =
    "_to_copy(dtype=None, device=None, non_blocking=False): a copy in another dtype or on another device. "
    "non_blocking returns before a copy from or to page-locked memory is done.";
inline constexpr char copy_[] =
    "copy_(other, non_blocking=False): overwrites the tensor with other, which is converted and must broadcast to "
    "shape; both may share memory.";
inline constexpr char fill[] =
    "fill(input, value): a tensor of input's shape and dtype with every element equal to value, a number or a 0-d "
    "tensor.";
inline constexpr char fill_[] =
    "fill_(value): sets every element; a value outside the range of an integer type raises.";
inline constexpr char contiguous[] =
    "contiguous(*, memory_format=contiguous_format): the tensor itself where its elements lie in that order, else such "
    "a copy.";
inline constexpr char zero_[] = "zero_(): sets every element to 0.";

}  // namespace vesta::doc
