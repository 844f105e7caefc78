// Batch normalisation of images whose channels lie side by side: sums per channel, and maps of pixels.
#pragma once
#include <cstdint>
#include <vector>

#include <vesta/core/cpu/row_kernels.h>
#include <vesta/core/tensor.h>

namespace vesta::cpu {

/// Note [Sums over pixels]
/// A row's sum has a number of slots, to which its elements are added in turn, and which are added at the end of each
/// piece (RowKernels::chain). With channels last, every channel has these slots side by side with those of the others,
/// and vectors run along the channels: memory is read in its order, and the bits are those of every other layout. A
/// task is a piece of one sample; pieces and samples are added in order.

/// A dense [batch, inner pixels, channels].
struct Pixels {
  int64_t batch, inner, channels;
  DType dtype;
};

/// Numbers of channels.
using OfChannels = std::vector<double>;

/// Adds, channel by channel, the statistics of `more` elements to those of `count`, as Statistics::add does.
void add_statistics(double count, double* mean, double* squares, double more, const double* more_mean,
                    const double* more_squares, int64_t channels);

/// Writes the mean and the sum of squared deviations of every channel; each has an element at least.
void pixel_statistics(const Pixels& p, const char* x, OfChannels& mean, OfChannels& squares);
/// Writes sum(g) and sum(g * (x - mean)) of every channel.
void pixel_gradient_sums(const Pixels& p, const char* g, const char* x, const OfChannels& mean, OfChannels& sum,
                         OfChannels& dot);
/// Computes y = (x - center) * scale + shift, per channel.
void affine_pixels(const Pixels& p, const char* x, const OfChannels& center, const OfChannels& scale,
                   const OfChannels& shift, char* y);
/// Computes gx = g * a + (x - center) * b + c, per channel.
void combine_pixels(const Pixels& p, const char* g, const char* x, const OfChannels& center, const OfChannels& a,
                    const OfChannels& b, const OfChannels& c, char* gx);

}  // namespace vesta::cpu
