// Convolutions of 16-bit floats: Note [Pairs of channels] in conv_half.h.
#include <vesta/core/cpu/conv_images.h>
#include <vesta/core/cpu/conv_half.h>
#include <vesta/core/cpu/conv_kernel.h>
#include <vesta/core/cpu/gemm_kernel.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/rounding.h>

#include <algorithm>
#include <cstring>

namespace vesta::cpu {
namespace {

using std::int64_t;
using Bits = std::uint16_t;

constexpr int64_t kHalfElements = 16384;  // elements that a task moves, at least

int64_t grain(int64_t elements) { return std::max<int64_t>(1, kHalfElements / std::max<int64_t>(1, elements)); }
bool is_at_pair(const Bits* p) { return reinterpret_cast<std::uintptr_t>(p) % sizeof(float) == 0; }

/// Copies `channels` numbers to pairs, the last one filled up with a zero.
void copy_pairs(int64_t channels, const Bits* in, float* out) {
  char* const to = reinterpret_cast<char*>(out);
  if (channels % 2 != 0) std::memset(to + 2 * (channels - 1), 0, 4);
  std::memcpy(to, in, 2 * static_cast<std::size_t>(channels));
}

}  // namespace

bool goes_in_pairs(int64_t channels) { return pair_direct_kernels() != nullptr && channels > 1; }

Pairs pair_images(int64_t batch, int64_t groups, int64_t channels, const Spatial& size, const Bits* in,
                  const ImageStrides& strides) {
  const auto interleave = pair_kernels()->interleave;
  const int64_t pairs = ceil_div(channels, 2), plane = plane_of(size);
  Pairs out{nullptr, {}, {}};
  if (strides.channel == 1) {
    const auto even = [](int64_t stride) { return stride % 2 == 0; };
    if (channels % 2 == 0 && even(strides.batch) && std::ranges::all_of(strides.spatial, even) && is_at_pair(in)) {
      out.strides = {strides.batch / 2, 1, strides.spatial};
      for (int64_t& stride : out.strides.spatial) stride /= 2;
      out.data = reinterpret_cast<const float*>(in);
      return out;
    }
    out.strides = channels_last_strides(groups * pairs, size);
    out.room = HostArray<float>(static_cast<std::size_t>(batch * plane * groups * pairs));
    parallel_for(batch, grain(plane * channels), [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        float* const image = out.room.data() + n * out.strides.batch;
        for_each_row(size, strides, [&](int64_t first, int64_t pixels, int64_t at, int64_t step) {
          for (int64_t i = 0; i < pixels * groups; ++i) {
            const Bits* const from = in + n * strides.batch + at + i / groups * step + i % groups * channels;
            copy_pairs(channels, from, image + (first * groups + i) * pairs);
          }
        });
      }
    });
  } else {
    out.strides = dense_strides(groups * pairs, size);
    out.room = HostArray<float>(static_cast<std::size_t>(batch * plane * groups * pairs));
    parallel_for(batch * groups * pairs, grain(plane), [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const int64_t n = t / pairs / groups, channel = t % pairs * 2;
        const Bits* const low = in + n * strides.batch + (t / pairs % groups * channels + channel) * strides.channel;
        const Bits* const high = channel + 1 < channels ? low + strides.channel : nullptr;
        for_each_row(size, strides, [&](int64_t first, int64_t pixels, int64_t at, int64_t step) {
          float* const to = out.room.data() + t * plane + first;
          if (step == 1) return interleave(pixels, low + at, high == nullptr ? nullptr : high + at, to);
          for (int64_t i = 0; i < pixels; ++i, at += step) {
            interleave(1, low + at, high == nullptr ? nullptr : high + at, to + i);
          }
        });
      }
    });
  }
  out.data = out.room.data();
  return out;
}

Pairs pair_lines(int64_t rows, int64_t channels, int64_t length, const Bits* in) {
  const int64_t pairs = ceil_div(channels, 2);
  Pairs out{nullptr, {}, {}};
  if (length == 1 && channels % 2 == 0 && is_at_pair(in)) {
    out.data = reinterpret_cast<const float*>(in);
    return out;
  }
  out.room = HostArray<float>(static_cast<std::size_t>(rows * pairs * length));
  out.data = out.room.data();
  const auto interleave = pair_kernels()->interleave;
  parallel_for(rows, grain(channels * length), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      float* to = out.room.data() + r * pairs * length;
      const Bits* const row = in + r * channels * length;
      if (length == 1) {
        copy_pairs(channels, row, to);
        continue;
      }
      for (int64_t c = 0; c < channels; c += 2, to += length) {
        interleave(length, row + c * length, c + 1 < channels ? row + (c + 1) * length : nullptr, to);
      }
    }
  });
  return out;
}

WideImages::WideImages(int64_t batch, int64_t channels, const Spatial& size, const ImageStrides& like)
    : batch_(batch),
      channels_(channels),
      size_(size),
      strides_(like.channel == 1 ? channels_last_strides(channels, size) : dense_strides(channels, size)),
      data_(static_cast<std::size_t>(batch * channels * plane_of(size))) {}

// Calls move(n, ours, theirs, step) for runs of n numbers: ours from an offset on, theirs `step` apart.
template <class Move>
void WideImages::move(const ImageStrides& s, const Move& move) const {
  const int64_t plane = plane_of(size_), image = channels_ * plane;
  const bool last = strides_.channel == 1 && s.channel == 1;
  if (s.batch == image && s.channel == strides_.channel && s.spatial == strides_.spatial) {
    return parallel_for(batch_ * image, kHalfElements,
                        [&](int64_t begin, int64_t end) { move(end - begin, begin, begin, 1); });
  }
  // A line is a row of pixels with all channels side by side, or one channel of an image.
  const int64_t lines = last ? batch_ * size_[0] * size_[1] : batch_ * channels_;
  parallel_for(lines, grain(batch_ * image / std::max<int64_t>(1, lines)), [&](int64_t begin, int64_t end) {
    for (int64_t l = begin; l < end; ++l) {
      if (last) {
        const int64_t row = l % (size_[0] * size_[1]);
        const int64_t at =
            l / (size_[0] * size_[1]) * s.batch + row / size_[1] * s.spatial[0] + row % size_[1] * s.spatial[1];
        for (int64_t i = 0; i < size_[2]; ++i) {
          move(channels_, (l * size_[2] + i) * channels_, at + i * s.spatial[2], 1);
        }
        continue;
      }
      const int64_t ours = l / channels_ * image + l % channels_ * strides_.channel;
      const int64_t theirs = l / channels_ * s.batch + l % channels_ * s.channel;
      for_each_row(size_, s, [&](int64_t first, int64_t pixels, int64_t at, int64_t step) {
        move(pixels, ours + first, theirs + at, step);
      });
    }
  });
}

void WideImages::widen(const HalfFormat& format, const Bits* in, const ImageStrides& strides) const {
  move(strides, [&](int64_t n, int64_t ours, int64_t theirs, int64_t step) {
    if (step == 1) return format.widen(n, in + theirs, data() + ours);
    for (int64_t i = 0; i < n; ++i) format.widen(1, in + theirs + i * step, data() + ours + i);
  });
}

void WideImages::narrow(const HalfFormat& format, Bits* out, const ImageStrides& strides) const {
  move(strides, [&](int64_t n, int64_t ours, int64_t theirs, int64_t step) {
    if (step == 1) return format.narrow(n, data() + ours, out + theirs);
    for (int64_t i = 0; i < n; ++i) format.narrow(1, data() + ours + i, out + theirs + i * step);
  });
}

HostArray<float> widened(const HalfFormat& format, const void* in, int64_t n) {
  if (in == nullptr) return {};
  HostArray<float> out(static_cast<std::size_t>(n));
  parallel_for(n, kHalfElements, [&](int64_t begin, int64_t end) {
    format.widen(end - begin, static_cast<const Bits*>(in) + begin, out.data() + begin);
  });
  return out;
}

namespace {

/// The positions of all samples of an image as a matrix: channel c of position p at data[c * channel + p * position].
struct PositionRows {
  const Bits* data;
  int64_t channel, position;
  HostArray<Bits> room;
};

PositionRows positions_of(int64_t batch, int64_t channels, const Spatial& size, const Bits* in, const ImageStrides& s) {
  const int64_t plane = plane_of(size), all = batch * plane;
  const std::optional<int64_t> step = position_step(size, s);
  if (step && (batch == 1 || s.batch == plane * *step)) return {in, s.channel, *step, {}};
  PositionRows out{nullptr, 0, 0, HostArray<Bits>(static_cast<std::size_t>(all * channels))};
  out.data = out.room.data();
  const bool last = s.channel == 1;
  out.channel = last ? 1 : all, out.position = last ? channels : 1;
  const int64_t lines = last ? batch : batch * channels;
  parallel_for(lines, grain(plane * (last ? channels : 1)), [&](int64_t begin, int64_t end) {
    for (int64_t l = begin; l < end; ++l) {
      const int64_t n = last ? l : l % batch, c = last ? 0 : l / batch;
      const Bits* const from = in + n * s.batch + c * s.channel;
      Bits* const to = out.room.data() + n * plane * out.position + c * out.channel;
      for_each_row(size, s, [&](int64_t first, int64_t pixels, int64_t at, int64_t apart) {
        if (!last) return read_row<Plain<Bits>>(pixels, from + at, apart, to + first);
        for (int64_t i = 0; i < pixels; ++i) std::copy_n(from + at + i * apart, channels, to + (first + i) * channels);
      });
    }
  });
  return out;
}

}  // namespace

bool weight_gradient_goes_in_pairs(const ConvShape& shape) {
  return pair_kernels() != nullptr && shape.groups == 1 && shape.kernel == Spatial{1, 1, 1} &&
         shape.pad == Spatial{0, 0, 0} && shape.batch > 0 && plane_of(shape.out) > 0;
}

void pair_weight_gradient(const ConvShape& shape, const Bits* x, const ImageStrides& x_strides, const Bits* gy,
                          const ImageStrides& gy_strides, Bits* gw, Bits* gbias) {
  ImageStrides read = x_strides;
  for (int d = 0; d < 3; ++d) read.spatial[d] *= shape.stride[d];
  const PositionRows left = positions_of(shape.batch, shape.out_channels, shape.out, gy, gy_strides);
  const PositionRows right = positions_of(shape.batch, shape.in_channels, shape.out, x, read);
  const int64_t positions = shape.batch * plane_of(shape.out);
  gemm(Elem::bf16, {.m = shape.out_channels,
                    .n = shape.in_channels,
                    .k = positions,
                    .a = left.data,
                    .a_row = left.channel,
                    .a_col = left.position,
                    .b = right.data,
                    .b_row = right.position,
                    .b_col = right.channel,
                    .c = gw,
                    .c_row = shape.in_channels});
  if (gbias == nullptr) return;
  for (int64_t o = 0; o < shape.out_channels; ++o) {
    float sum = 0, value = 0;
    for (int64_t p = 0; p < positions; ++p) {
      bf16_to_f32(1, left.data + o * left.channel + p * left.position, &value);
      sum += value;
    }
    f32_to_bf16(1, &sum, gbias + o);
  }
}

}  // namespace vesta::cpu
