// Discrete Fourier transforms: three ops do the work, all others are made of them.
#pragma once
#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/fft.h>

namespace vesta {

VESTA_DECLARE_TOPIC(VESTA_OPS_FFT)

/// The normalization of a transform of n points, its divisor; PyTorch's numbers.
enum class FftNorm : int64_t { none, by_root_n, by_n };
/// Reads the norm of a forward or backward transform. Error(value) for any other string.
VESTA_API FftNorm fft_norm(MaybeText norm, bool forward, const char* op);
/// Returns the factor that `norm` stands for, over dimensions `dims` of `sizes`. Error(value) for any other number.
VESTA_API double fft_scale(int64_t norm, IntSpan sizes, IntSpan dims);

/// The dimensions that a transform goes over, and the sizes that it pads or trims them to.
struct FftShape {
  Dims dims, sizes;
};
/// Works out the shape of a transform over `dim` (at least one, each once) with sizes `s`. Error(index): no such
/// dimension. Error(runtime): dimensions named twice, another number of sizes, a size below 1.
VESTA_API FftShape fft_shape(const Tensor& input, const MaybeDims& s, IntList dim, const char* op);
/// Returns `input` with the dimensions of `shape` padded with zeros at their ends or trimmed.
VESTA_API Tensor fft_resized(const Tensor& input, const FftShape& shape);

/// Checks an operand of the private ops; `complex`: what it has to be. Returns the dimensions, wrapped.
VESTA_API Dims fft_dims(const Tensor& input, IntList dim, bool complex, const char* op);

}  // namespace vesta
