// Convolutions with one tap over few outputs as plain products. Internal to convolution.cpp.
#pragma once

#include <vesta/core/cpu/conv_direct.h>

namespace vesta::cpu {

/// Note [Few columns]
/// A kernel of one tap (1 x 1) makes the convolution a product: the weights, which lie there as a matrix, times a
/// matrix with a column per output of every image. The data gradient of a convolution whose kernel is as large as its
/// stride is one such product for each tap, whose weights lie the kernel's size apart. Where the columns are few,
/// packing the weights costs as much as the product itself, once per image. Instead the columns of all images are
/// gathered, which is little, and gemm reads the weights where they lie, once. Its sums have the same blocks, kBlockK
/// taps, so both ways give the same bits and the number of images may decide.

/// Returns whether correlate_few_columns is faster.
template <class E>
bool has_few_columns(const Correlated<E>& c);

/// Computes the convolution from w, [outputs, inputs, kernel] of the forward convolution; `backward` says that c is its
/// data gradient.
template <class E>
void correlate_few_columns(const Correlated<E>& c, std::int64_t kernel, const typename E::T* w, bool backward);

}  // namespace vesta::cpu
