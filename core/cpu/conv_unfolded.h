// Convolutions of bfloat16 as products of unfolded images. Internal to convolution.cpp.
#pragma once

#include <vesta/core/cpu/convolution.h>

#include <cstdint>

namespace vesta::cpu {

/// Note [Unfolded images]
/// Where products of bfloat16 go by tiles (Note [Tiles of pairs] in gemm_kernel.h), a convolution is the product of a
/// matrix of pixels and one of weights: a row holds all that an output reads, tap by tap, the channels of a tap side by
/// side, zeros where a tap lies outside of the image; the weights lie likewise. A task copies the rows of some outputs
/// into L2, where tiles read them as they lie; the weights are packed once. Images with channels first are laid out
/// with channels last before. Sums run over (tap, channel) in blocks of kBlockK pairs, as those of a product do, so the
/// bits are the same whatever the batch, the threads and the layouts; the sums are rounded once. A tap outside of the
/// image takes part as zeros: it turns a weight that is not finite into NaN.
/// The gradient of an input that was read with a stride is one such convolution for each residue of its positions.
/// Twice as fast as Winograd's convolution of the images widened to float (compare_torch.py --family bfloat16).

/// Returns whether correlate_unfolded computes the convolution, or the gradient of its input if `backward`.
bool goes_unfolded(const ConvShape& shape, bool backward);

/// Does what conv_forward or conv_backward_data does. `weight` is the identity of w, if its panels may be kept.
void correlate_unfolded(const ConvShape& shape, bool backward, const std::uint16_t* from,
                        const ImageStrides& from_strides, const std::uint16_t* w, const std::uint16_t* bias,
                        std::uint16_t* to, const ImageStrides& to_strides, const Weight& weight);

/// Returns whether unfolded_weight_gradient computes the gradient of weights.
bool weight_gradient_goes_unfolded(const ConvShape& shape);

/// Does what conv_backward_weights does: for each tap, the product of the gradient of the outputs, one row per channel,
/// and of what they read, taken in pairs of outputs; the sums run over all outputs of the batch.
void unfolded_weight_gradient(const ConvShape& shape, const std::uint16_t* x, const ImageStrides& x_strides,
                              const std::uint16_t* gy, const ImageStrides& gy_strides, std::uint16_t* gw,
                              std::uint16_t* gbias);

}  // namespace vesta::cpu
