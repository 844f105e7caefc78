// Moving images between their own layout and a canvas, one element type at a time. Internal to convolution.cpp.
#pragma once

#include <vesta/core/cpu/conv_canvas.h>

#include <algorithm>
#include <cstring>

namespace vesta::cpu {

/// Stored and computed type of an element, and how rows of one become rows of the other.
template <class Value>
struct Plain {
  using Stored = Value;
  using T = Value;
  static void widen(std::int64_t n, const Stored* in, T* out) { std::memcpy(out, in, sizeof(T) * n); }
  static void narrow(std::int64_t n, const T* in, Stored* out) { std::memcpy(out, in, sizeof(T) * n); }
};

struct Bf16 {
  using Stored = std::uint16_t;
  using T = float;
  static void widen(std::int64_t n, const Stored* in, T* out) { bf16_to_f32(n, in, out); }
  static void narrow(std::int64_t n, const T* in, Stored* out) { f32_to_bf16(n, in, out); }
};

struct F16 {
  using Stored = std::uint16_t;
  using T = float;
  static void widen(std::int64_t n, const Stored* in, T* out) { f16_to_f32(n, in, out); }
  static void narrow(std::int64_t n, const T* in, Stored* out) { f32_to_f16(n, in, out); }
};

/// Reads n elements `stride` apart.
template <class E>
void read_row(std::int64_t n, const typename E::Stored* in, std::int64_t stride, typename E::T* out) {
  if (stride == 1) return E::widen(n, in, out);
  for (std::int64_t i = 0; i < n; ++i) E::widen(1, in + i * stride, out + i);
}

/// Writes n elements `stride` apart.
template <class E>
void write_row(std::int64_t n, const typename E::T* in, typename E::Stored* out, std::int64_t stride) {
  if (stride == 1) return E::narrow(n, in, out);
  for (std::int64_t i = 0; i < n; ++i) E::narrow(1, in + i, out + i * stride);
}

/// Gives the part [low, high) of j in [0, count) for which first + j * step lies in [0, size).
struct Inside {
  std::int64_t low, high;
  Inside(std::int64_t count, std::int64_t first, std::int64_t step, std::int64_t size) {
    low = std::clamp<std::int64_t>(first >= 0 ? 0 : (-first + step - 1) / step, 0, count);
    high = std::clamp<std::int64_t>(first >= size ? 0 : (size - first + step - 1) / step, low, count);
  }
};

/// Lays `channels` channels of the image at `in` out on a canvas; positions outside the image are zero.
template <class E>
void fill_canvas(const Canvas& canvas, const Spatial& size, std::int64_t channels, const typename E::Stored* in,
                 const ImageStrides& strides, typename E::T* out) {
  const std::int64_t width = canvas.size[2];
  for (std::int64_t c = 0; c < channels; ++c, in += strides.channel) {
    for (const std::int64_t r0 : canvas.residues[0]) {
      for (const std::int64_t r1 : canvas.residues[1]) {
        for (const std::int64_t r2 : canvas.residues[2]) {
          const std::int64_t first = r2 - canvas.before[2];
          const Inside row(width, first, canvas.step[2], size[2]);
          for (std::int64_t i0 = 0; i0 < canvas.size[0]; ++i0) {
            const std::int64_t p0 = i0 * canvas.step[0] + r0 - canvas.before[0];
            for (std::int64_t i1 = 0; i1 < canvas.size[1]; ++i1, out += width) {
              const std::int64_t p1 = i1 * canvas.step[1] + r1 - canvas.before[1];
              if (p0 < 0 || p0 >= size[0] || p1 < 0 || p1 >= size[1]) {
                std::fill(out, out + width, 0);
                continue;
              }
              std::fill(out, out + row.low, 0);
              read_row<E>(row.high - row.low,
                          in + p0 * strides.spatial[0] + p1 * strides.spatial[1] +
                              (first + row.low * canvas.step[2]) * strides.spatial[2],
                          canvas.step[2] * strides.spatial[2], out + row.low);
              std::fill(out + row.high, out + width, 0);
            }
          }
        }
      }
    }
  }
}

/// Writes rows [begin, end) of a product (counted over the canvas' first two dimensions) from `in`, whose lines of
/// `pitch` elements hold one channel each, to an image of `size`; what lies outside the image or between rows is
/// dropped.
template <class E>
void write_rows(const Canvas& canvas, const Taps& taps, std::int64_t begin, std::int64_t end, std::int64_t channels,
                const typename E::T* in, std::int64_t pitch, const Spatial& size, typename E::Stored* out,
                const ImageStrides& strides) {
  const Inside row(taps.count[2], taps.first[2], taps.step[2], size[2]);
  if (row.low == row.high) return;
  for (std::int64_t r = begin; r < end; ++r) {
    const std::int64_t q0 = r / canvas.size[1], q1 = r % canvas.size[1];
    const std::int64_t p0 = taps.first[0] + q0 * taps.step[0], p1 = taps.first[1] + q1 * taps.step[1];
    if (q1 >= taps.count[1] || p0 < 0 || p0 >= size[0] || p1 < 0 || p1 >= size[1]) continue;
    const typename E::T* line = in + (r - begin) * canvas.size[2] + row.low;
    typename E::Stored* to = out + p0 * strides.spatial[0] + p1 * strides.spatial[1] +
                             (taps.first[2] + row.low * taps.step[2]) * strides.spatial[2];
    for (std::int64_t c = 0; c < channels; ++c, line += pitch, to += strides.channel) {
      write_row<E>(row.high - row.low, line, to, taps.step[2] * strides.spatial[2]);
    }
  }
}

}  // namespace vesta::cpu
