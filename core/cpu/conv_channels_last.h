// Moving pixels, whose channels lie side by side, to and from lines of one channel each. Internal to convolution.cpp.
#pragma once

#include <vesta/core/cpu/conv_canvas.h>
#include <vesta/core/cpu/copy.h>
#include <vesta/core/cpu/scratch.h>

#include <cstdint>
#include <type_traits>

namespace vesta::cpu {

/// The number of channels from which pixels are transposed in tiles.
inline constexpr std::int64_t kTransposedChannels = 4;

/// Writes the transpose of in[rows, columns]; `in_row` and `out_row` are the row strides, in elements.
template <class T>
void transpose_elements(std::int64_t rows, std::int64_t columns, const T* in, std::int64_t in_row, T* out,
                        std::int64_t out_row) {
  constexpr std::int64_t kSize = sizeof(T);
  transpose_matrix({.from = reinterpret_cast<const char*>(in),
                    .to = reinterpret_cast<char*>(out),
                    .from_row = in_row * kSize,
                    .to_row = out_row * kSize,
                    .rows = rows,
                    .columns = columns,
                    .item = kSize});
}

/// Reads `channels` channels of n pixels, which are `step` elements apart; those of one channel become a line.
template <class E>
void read_pixels(std::int64_t n, std::int64_t channels, const typename E::T* in, std::int64_t step, typename E::T* out,
                 std::int64_t line) {
  transpose_elements(n, channels, in, step, out, line);
}

/// Writes lines of one channel each as n pixels, which are `step` elements apart.
template <class E>
void write_pixels(std::int64_t n, std::int64_t channels, const typename E::T* in, std::int64_t line, typename E::T* out,
                  std::int64_t step) {
  transpose_elements(channels, n, in, line, out, step);
}

}  // namespace vesta::cpu
