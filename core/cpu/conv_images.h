// Moving images between their own layout and a canvas, one element type at a time. Internal to convolution.cpp.
#pragma once

#include <vesta/core/cpu/conv_canvas.h>
#include <vesta/core/cpu/conv_channels_last.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <type_traits>

namespace vesta::cpu {

/// Returns how far apart neighbouring positions of an image are, if they all are equally far; the stride of a dimension
/// of size 1 says nothing. A single position gets the step between samples.
inline std::optional<std::int64_t> position_step(const Spatial& size, const ImageStrides& s) {
  std::optional<std::int64_t> step;
  std::int64_t inner = 1;  // positions that lie within one index of the dimension
  for (std::size_t d = size.size(); d-- > 0;) {
    if (size[d] == 1) continue;
    if (!step) step = s.spatial[d];
    else if (s.spatial[d] != *step * inner) return {};
    inner *= size[d];
  }
  return step ? step : s.batch;
}

/// An element of convolutions, and how rows of them are copied.
template <class Value>
struct Plain {
  using T = Value;
  // Rows of small images are a few vectors long: a call of memcpy costs more than the copy. Pieces overlap at the end.
  static void copy(std::int64_t n, const Value* in, Value* out) {
    constexpr std::int64_t kPiece = 16 / sizeof(Value);
    if (n < kPiece || n > 16 * kPiece) {
      std::memcpy(out, in, sizeof(Value) * static_cast<std::size_t>(n));
      return;
    }
    for (std::int64_t i = 0; i + kPiece < n; i += kPiece) __builtin_memcpy(out + i, in + i, 16);
    __builtin_memcpy(out + n - kPiece, in + n - kPiece, 16);
  }
};

/// bfloat16 as gemm takes it: moved, not widened.
struct Bf16Bits : Plain<std::uint16_t> {};

/// Pairs of channels of bfloat16 that travel as floats, and floats, their sums (Note [Pairs of channels] in
/// conv_half.h).
struct Paired : Plain<float> {};

/// Reads n elements `stride` apart.
template <class E>
void read_row(std::int64_t n, const typename E::T* in, std::int64_t stride, typename E::T* out) {
  if (stride == 1) return E::copy(n, in, out);
  if (stride == 2) {  // which the compiler makes vectors of
    for (std::int64_t i = 0; i < n; ++i) out[i] = in[2 * i];
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) out[i] = in[i * stride];
}

/// Writes n elements `stride` apart.
template <class E>
void write_row(std::int64_t n, const typename E::T* in, typename E::T* out, std::int64_t stride) {
  if (stride == 1) return E::copy(n, in, out);
  for (std::int64_t i = 0; i < n; ++i) out[i * stride] = in[i];
}

/// The range [low, high) of j in [0, count) for which first + j * step lies in [0, size).
struct Inside {
  std::int64_t low, high;
  Inside(std::int64_t count, std::int64_t first, std::int64_t step, std::int64_t size) {
    low = std::clamp<std::int64_t>(first >= 0 ? 0 : (-first + step - 1) / step, 0, count);
    high = std::clamp<std::int64_t>(first >= size ? 0 : (size - first + step - 1) / step, low, count);
  }
};

/// Does what fill_canvas does for channels that lie side by side: rows of the image are transposed.
template <class E>
void fill_canvas_transposed(const Canvas& canvas, const Spatial& size, std::int64_t channels, const typename E::T* in,
                            const ImageStrides& strides, typename E::T* out) {
  using T = typename E::T;
  std::int64_t phase = 0;
  for (const std::int64_t r0 : canvas.residues[0]) {
    for (const std::int64_t r1 : canvas.residues[1]) {
      for (const std::int64_t r2 : canvas.residues[2]) {
        const std::int64_t first = r2 - canvas.before[2];
        const Inside row(canvas.size[2], first, canvas.step[2], size[2]);
        T* to = out + phase++ * canvas.plane() + row.low;
        for (std::int64_t i0 = 0; i0 < canvas.size[0]; ++i0) {
          const std::int64_t p0 = i0 * canvas.step[0] + r0 - canvas.before[0];
          for (std::int64_t i1 = 0; i1 < canvas.size[1]; ++i1, to += canvas.size[2]) {
            const std::int64_t p1 = i1 * canvas.step[1] + r1 - canvas.before[1];
            if (p0 < 0 || p0 >= size[0] || p1 < 0 || p1 >= size[1] || row.low == row.high) continue;
            read_pixels<E>(row.high - row.low, channels,
                           in + p0 * strides.spatial[0] + p1 * strides.spatial[1] +
                               (first + row.low * canvas.step[2]) * strides.spatial[2],
                           canvas.step[2] * strides.spatial[2], to, canvas.channel());
          }
        }
      }
    }
  }
}

/// Lays out `channels` channels of the image at `in` on a canvas. What lies outside the image is not written: clear
/// the canvas once, then lay out any number of images.
template <class E>
void fill_canvas(const Canvas& canvas, const Spatial& size, std::int64_t channels, const typename E::T* in,
                 const ImageStrides& strides, typename E::T* out) {
  const std::int64_t width = canvas.size[2];
  if (strides.channel == 1 && channels >= kTransposedChannels) {
    return fill_canvas_transposed<E>(canvas, size, channels, in, strides, out);
  }
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
              if (p0 < 0 || p0 >= size[0] || p1 < 0 || p1 >= size[1]) continue;
              read_row<E>(row.high - row.low,
                          in + p0 * strides.spatial[0] + p1 * strides.spatial[1] +
                              (first + row.low * canvas.step[2]) * strides.spatial[2],
                          canvas.step[2] * strides.spatial[2], out + row.low);
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
                const typename E::T* in, std::int64_t pitch, const Spatial& size, typename E::T* out,
                const ImageStrides& strides) {
  const Inside row(taps.count[2], taps.first[2], taps.step[2], size[2]);
  if (row.low == row.high) return;
  for (std::int64_t r = begin; r < end; ++r) {
    const std::int64_t q0 = r / canvas.size[1], q1 = r % canvas.size[1];
    const std::int64_t p0 = taps.first[0] + q0 * taps.step[0], p1 = taps.first[1] + q1 * taps.step[1];
    if (q1 >= taps.count[1] || p0 < 0 || p0 >= size[0] || p1 < 0 || p1 >= size[1]) continue;
    const typename E::T* line = in + (r - begin) * canvas.size[2] + row.low;
    typename E::T* to = out + p0 * strides.spatial[0] + p1 * strides.spatial[1] +
                        (taps.first[2] + row.low * taps.step[2]) * strides.spatial[2];
    if (strides.channel == 1 && channels >= kTransposedChannels) {
      write_pixels<E>(row.high - row.low, channels, line, pitch, to, taps.step[2] * strides.spatial[2]);
      continue;
    }
    for (std::int64_t c = 0; c < channels; ++c, line += pitch, to += strides.channel) {
      write_row<E>(row.high - row.low, line, to, taps.step[2] * strides.spatial[2]);
    }
  }
}

/// Writes the canvas offsets of columns [begin, end), counted over the outputs of images `image_stride` apart.
inline void column_offsets(const Canvas& canvas, const Taps& taps, std::int64_t begin, std::int64_t end,
                           std::int64_t image_stride, std::int32_t* out) {
  const std::int64_t outputs = taps.count[0] * taps.count[1] * taps.count[2];
  for (std::int64_t c = begin; c < end;) {
    const std::int64_t image = c / outputs, p = c % outputs, q2 = p % taps.count[2], row = p / taps.count[2];
    const std::int64_t q1 = row % taps.count[1], q0 = row / taps.count[1];
    const std::int64_t at = image * image_stride + (q0 * canvas.size[1] + q1) * canvas.size[2] + q2;
    const std::int64_t length = std::min(taps.count[2] - q2, end - c);
    for (std::int64_t i = 0; i < length; ++i) *out++ = static_cast<std::int32_t>(at + i);
    c += length;
  }
}

/// Writes columns [begin, end), counted like column_offsets, from `in`, whose lines of `pitch` elements hold one
/// channel each, to images of `size`; what lies outside is dropped. `covers` says that outputs are the image in its
/// order.
template <class E>
void write_columns(const Taps& taps, bool covers, std::int64_t begin, std::int64_t end, std::int64_t channels,
                   const typename E::T* in, std::int64_t pitch, const Spatial& size, typename E::T* out,
                   const ImageStrides& strides) {
  const std::int64_t outputs = taps.count[0] * taps.count[1] * taps.count[2];
  for (std::int64_t c = begin; c < end;) {
    const std::int64_t p = c % outputs, q2 = p % taps.count[2], row = p / taps.count[2];
    const std::int64_t length = std::min(covers ? outputs - p : taps.count[2] - q2, end - c);
    typename E::T* to = out + c / outputs * strides.batch;
    const typename E::T* line = in + (c - begin);
    c += length;
    std::int64_t stored = length, step = 1;
    if (covers) {
      to += p;
    } else {
      const std::int64_t p0 = taps.first[0] + row / taps.count[1] * taps.step[0];
      const std::int64_t p1 = taps.first[1] + row % taps.count[1] * taps.step[1];
      const Inside part(length, taps.first[2] + q2 * taps.step[2], taps.step[2], size[2]);
      if (p0 < 0 || p0 >= size[0] || p1 < 0 || p1 >= size[1] || part.low == part.high) continue;
      step = taps.step[2] * strides.spatial[2];
      to += p0 * strides.spatial[0] + p1 * strides.spatial[1] +
            (taps.first[2] + (q2 + part.low) * taps.step[2]) * strides.spatial[2];
      line += part.low;
      stored = part.high - part.low;
    }
    if (strides.channel == 1 && step != 1 && channels >= kTransposedChannels) {
      write_pixels<E>(stored, channels, line, pitch, to, step);
      continue;
    }
    for (std::int64_t i = 0; i < channels; ++i) write_row<E>(stored, line + i * pitch, to + i * strides.channel, step);
  }
}

/// Writes outputs [begin, end) of a product to an image of `size` whose channels lie side by side: those of output p
/// are the first `channels` numbers at in + (p - begin) * pitch. What lies outside is dropped.
template <class E>
void write_sums(const Taps& taps, std::int64_t begin, std::int64_t end, std::int64_t channels, const typename E::T* in,
                std::int64_t pitch, const Spatial& size, typename E::T* out, const ImageStrides& strides) {
  for (std::int64_t p = begin; p < end;) {
    const std::int64_t q2 = p % taps.count[2], row = p / taps.count[2], length = std::min(taps.count[2] - q2, end - p);
    const std::int64_t p0 = taps.first[0] + row / taps.count[1] * taps.step[0];
    const std::int64_t p1 = taps.first[1] + row % taps.count[1] * taps.step[1];
    const std::int64_t p2 = taps.first[2] + q2 * taps.step[2];
    const Inside part(length, p2, taps.step[2], size[2]);
    const typename E::T* from = in + (p - begin + part.low) * pitch;
    p += length;
    if (p0 < 0 || p0 >= size[0] || p1 < 0 || p1 >= size[1]) continue;
    typename E::T* to =
        out + p0 * strides.spatial[0] + p1 * strides.spatial[1] + (p2 + part.low * taps.step[2]) * strides.spatial[2];
    for (std::int64_t i = part.low; i < part.high; ++i, from += pitch, to += taps.step[2] * strides.spatial[2]) {
      E::copy(channels, from, to);
    }
  }
}

/// Returns whether the spatial dimensions of an image of `size` are dense and in order.
inline bool is_dense(const ImageStrides& strides, const Spatial& size) {
  const ImageStrides dense = dense_strides(1, size);
  for (int d = 0; d < 3; ++d) {
    if (size[d] != 1 && strides.spatial[d] != dense.spatial[d]) return false;
  }
  return true;
}

/// Calls f(first pixel, pixels, at, step) for every row of an image, whose pixels are `step` elements apart.
template <class F>
void for_each_row(const Spatial& size, const ImageStrides& s, const F& f) {
  if (is_dense(s, size)) return f(0, plane_of(size), 0, 1);
  for (std::int64_t r = 0; r < size[0] * size[1]; ++r) {
    f(r * size[2], size[2], r / size[1] * s.spatial[0] + r % size[1] * s.spatial[1], s.spatial[2]);
  }
}

/// Returns whether `channels` channels of the image can be used as the canvas where they lie.
inline bool lies_ready(const Canvas& canvas, const Spatial& size, std::int64_t channels, const ImageStrides& strides) {
  return is_image(canvas, size) && is_dense(strides, size) && (channels == 1 || strides.channel == canvas.channel());
}

/// Returns whether 16-bit floats are stored.
constexpr bool is_half(Elem elem) { return elem == Elem::bf16 || elem == Elem::f16; }

/// Calls f with the element type, f32 or f64, as a template argument. Throws std::invalid_argument for types without a
/// convolution.
template <class F>
void with_element(Elem elem, F&& f) {
  switch (elem) {
    case Elem::f32: return f.template operator()<Plain<float>>();
    case Elem::f64: return f.template operator()<Plain<double>>();
    default:
      throw std::invalid_argument(
          "convolution: expected a floating element type (f32, f64, bf16, f16), got another. "
          "Cast the operands first.");
  }
}

}  // namespace vesta::cpu
