// 1 x 1 convolutions of images whose channels lie side by side. Internal to convolution.cpp.
#pragma once

#include <vesta/core/cpu/conv_direct.h>

namespace vesta::cpu {

/// Note [Pixels in rows]
/// With channels last, the pixels of a batch are the rows of a matrix, and a 1 x 1 convolution is its product with the
/// weights: gemm reads and writes the images where they lie. Its chains of sums (Note [One chain of sums] in
/// gemm_kernel.h) are those of a product on a canvas with one tap, whose blocks (Taps::block) have kBlockK channels, so
/// the bits are those of every other layout. Images of which a stride leaves pixels out are gathered first.

/// Returns whether correlate_pointwise computes the convolution.
template <class E>
bool goes_pointwise(const Correlated<E>& c);

/// Computes the convolution. w is [to_channels, from_channels] if `forward`, else its transpose; dense. `weight` is its
/// identity, if what is packed of it may be kept.
template <class E>
void correlate_pointwise(const Correlated<E>& c, bool forward, const typename E::T* w, const Weight& weight);

}  // namespace vesta::cpu
