// Memory formats of images: which one a tensor has, and results in the same one.
#pragma once
#include <vesta/core/tensor.h>

namespace vesta {

/// Note [Layouts]
/// An op over images follows its input: channels last in, channels last out. A tensor [N, C, H, W] or [N, C, D, H, W]
/// has channels last if its strides ascend from the channels to the batch; it need not be dense. Where dimensions of
/// size 1 leave it open, their strides decide, as in PyTorch (c10/core/MemoryFormat.h): [N, C, 1, 1] with strides
/// [C, 1, C, C] has channels last, with [C, 1, 1, 1] it has not. So a result's strides must be exact for such
/// dimensions too, and results are made by the functions here.

/// Returns whether an op that follows this tensor gives channels last.
VESTA_API bool suggests_channels_last(const Tensor& t);
/// Returns whether a convolution of these gives channels last: one of the two has it. Of float64, as in PyTorch, only
/// images [N, C, H, W] on the CPU do.
VESTA_API bool convolution_is_channels_last(const Tensor& input, const Tensor& weight);

/// Returns the strides of a dense tensor; channels last for 4 and 5 dimensions only.
VESTA_API Dims image_strides(IntSpan sizes, bool channels_last);
/// Makes an uninitialised dense tensor.
VESTA_API Tensor empty_image(IntSpan sizes, bool channels_last, DType dtype, Device device = {});
/// Makes a kernel's result: one of out= that fits, as result_tensor() does, else a new one.
VESTA_API Tensor image_result(IntSpan sizes, bool channels_last, DType dtype, Device device = {});
/// Returns the tensor itself if its elements lie densely in this order, else a copy that does.
VESTA_API Tensor dense_image(const Tensor& t, bool channels_last);

/// Returns a copy of a tensor in the layout that an op over images gives; its gradient passes.
VESTA_API Tensor clone_image(const Tensor& t);
/// Brings the result of other ops to channels last, with exact strides; its gradient passes.
VESTA_API Tensor to_channels_last(const Tensor& t);
/// Does the same for rows.
VESTA_API Tensor to_rows(const Tensor& t);

/// Returns a tensor [N, C, *] as [N, *, C], and back.
VESTA_API Tensor channels_behind(const Tensor& t);
VESTA_API Tensor channels_second(const Tensor& t);

}  // namespace vesta
