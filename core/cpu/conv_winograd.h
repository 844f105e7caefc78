// Convolutions of 3 x 3 kernels with a quarter of the multiplications. Internal to convolution.cpp and
// conv_weight_gradient.cpp.
#pragma once

#include <vesta/core/cpu/conv_direct.h>
#include <vesta/core/cpu/conv_kernel.h>
#include <vesta/core/cpu/rounding.h>

#include <cstdint>
#include <vector>

namespace vesta::cpu {

/// Note [Winograd's convolution]
/// Four outputs in a row of a kernel of three are six products, not twelve: both polynomials, of the pixels and of the
/// weights, are evaluated at six points, the values are multiplied, and the outputs are interpolated (Winograd 1980;
/// for convolutional networks Lavin and Gray 2016). In two dimensions a tile of 4 x 4 outputs takes 36 products
/// instead of 144. So for each of the 36 points there is one matrix product, tiles times input channels times output
/// channels, whose sums over channels are chains as everywhere (gemm_kernel.h); before and after it tiles are
/// transformed with channels side by side, so both layouts of images have the same bits. The points 0, 3/4, -3/4, 3/2,
/// -3/2 and infinity were chosen for their error: against float64 it is 3 to 4 times that of sums of products, about
/// 1e-6 of the results' root mean square (tests/python/test_winograd.py). 0, 1, -1, 2, -2 have 2 to 4 times more.
///
/// A pixel that is not finite would spread over its tile, and sums may overflow in between. An image with such a
/// result is computed again directly. float64 is never computed this way: the error would defeat its purpose.

/// The gradient of the weights is the transpose of it: the sums over tiles of the products of transformed pixels and
/// transformed gradients, transformed back once.

namespace winograd {

constexpr std::int64_t kTile = 4, kSpan = 6, kPoints = kSpan * kSpan, kKernel = 9;
constexpr std::int64_t kGap = 16;  // elements between lines that would otherwise compete for the same lines of L1

/// Returns the distance of the matrices of two points that have `elements` elements.
inline std::int64_t apart(std::int64_t elements) { return round_up(elements, std::int64_t{1024}) + kGap; }

/// Copies `rows` rows and `columns` columns of pixels, from (row, column) of an image on, for `channels` channels to
/// [rows, columns, panel]; zeros lie around the image of `size`. Channels past the last stay undefined.
template <class E>
void gather(const typename E::T* image, const ImageStrides& strides, const Spatial& size, std::int64_t row,
            std::int64_t rows, std::int64_t column, std::int64_t columns, std::int64_t channels, float* out);

/// Sets the columns of [lines, panel] from `count` on to zero.
void clear_columns(std::int64_t count, std::int64_t lines, float* out);

}  // namespace winograd

/// Returns whether Winograd's algorithm is faster, from the shape of one image alone.
VESTA_API bool goes_winograd(const ConvShape& shape);

/// Computes the convolution, or its gradient of the data if `backward`, with dense weights w. Returns the images that
/// must be computed again in another way.
template <class E>
std::vector<std::int64_t> correlate_winograd(const Correlated<E>& c, const ConvShape& shape, bool backward,
                                             const float* w);

/// Computes the same as conv_backward_weights. Returns false where it cannot, with gw undefined: a result is not
/// finite.
template <class E>
bool winograd_weight_gradient(const ConvShape& shape, const typename E::T* x, const ImageStrides& x_strides,
                              const typename E::T* gy, const ImageStrides& gy_strides, typename E::T* gw,
                              typename E::T* gbias);

}  // namespace vesta::cpu
