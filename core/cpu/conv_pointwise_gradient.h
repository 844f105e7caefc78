// The gradient of the weights of a 1 x 1 convolution over small images. Internal to conv_weight_gradient.cpp.
#pragma once

#include <vesta/core/cpu/conv_images.h>

namespace vesta::cpu {

/// Note [Small images together]
/// The gradient of 1 x 1 weights is one product, gw = gy @ x^T, whose sums run over the positions of all samples. Where
/// an image has fewer positions than a chain of sums (kBlockK), a product for each sample would write and read the
/// weights' sums, which may be megabytes, for a few positions; so the positions of all samples are numbered one after
/// the other and the chains cross from sample to sample. The sums lie where the result does: nothing is transposed.

/// Returns whether pointwise_weight_gradient is faster, from the shape alone.
bool weight_gradient_goes_pointwise(const ConvShape& shape);

/// Computes the same as conv_backward_weights.
template <class E>
void pointwise_weight_gradient(const ConvShape& shape, const typename E::T* x, const ImageStrides& x_strides,
                               const typename E::T* gy, const ImageStrides& gy_strides, typename E::T* gw,
                               typename E::T* gbias);

}  // namespace vesta::cpu
