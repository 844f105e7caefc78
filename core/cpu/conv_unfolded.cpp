// Convolutions of bfloat16 as products: Note [Unfolded images] in conv_unfolded.h.
#include <vesta/core/cpu/allocator.h>
#include <vesta/core/cpu/conv_half.h>
#include <vesta/core/cpu/conv_images.h>
#include <vesta/core/cpu/conv_unfolded.h>
#include <vesta/core/cpu/copy.h>
#include <vesta/core/cpu/gemm_kernel.h>
#include <vesta/core/cpu/kept_weights.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/rounding.h>
#include <vesta/core/cpu/scratch.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

namespace vesta::cpu {
namespace {

using std::int64_t;
using Bits = std::uint16_t;

// Tuned with compare_torch.py --family bfloat16.
constexpr int64_t kUnfolded = 256 * 1024;  // numbers of a task's rows, which stay in L2 beside the sums
constexpr int64_t kMostOutputs = 128;
constexpr int64_t kFewestResults = 16;  // channels of the result below which most of a tile is empty
constexpr int64_t kFewestTerms = 32;  // terms of a sum, likewise
constexpr int64_t kMovedPixels = 256;  // transposed by a task
constexpr int64_t kStripChannels = 128;  // of the input, whose gradients of weights a task sums
constexpr int64_t kStripResults = 256;  // channels of the result, likewise, at most

// An output of a sample.
struct Place {
  int64_t sample, position[3];

  static Place at(int64_t number, const Spatial& size) {
    const int64_t plane = plane_of(size), in_plane = number % plane, line = in_plane / size[2];
    return {number / plane, {line / size[1], line % size[1], in_plane % size[2]}};
  }
  void advance(const Spatial& size) {
    for (int d = 2; d >= 0; --d) {
      if (++position[d] < size[d]) return;
      position[d] = 0;
    }
    ++sample;
  }
};

// One direction of a convolution: output p reads positions p * stride - pad + tap * dilation. Tap t is number first_tap
// + t * tap_step of the kernel.
struct Direction {
  int64_t batch, groups, from_channels, to_channels;  // channels per group
  Spatial from_size, to_size, kernel, stride, dilation, pad;
  Spatial whole_kernel, first_tap{0, 0, 0}, tap_step{1, 1, 1};
  bool transposed = false;  // whether the weights' second dimension is that of the result

  int64_t taps() const { return plane_of(kernel); }
  int64_t terms() const { return taps() * from_channels; }
};

Direction forward_direction(const ConvShape& s) {
  return {s.batch,
          s.groups,
          s.in_channels / s.groups,
          s.out_channels / s.groups,
          s.in,
          s.out,
          s.kernel,
          s.stride,
          s.dilation,
          s.pad,
          s.kernel};
}

// Returns the gradient for the positions residue + j * stride of the input: of the kernel, the taps by which outputs
// read these, the last one first. All taps do where the stride is 1.
Direction backward_direction(const ConvShape& s, const Spatial& residue) {
  Direction d = forward_direction(s);
  std::swap(d.from_channels, d.to_channels);
  std::swap(d.from_size, d.to_size);
  d.stride = {1, 1, 1};
  d.transposed = true;
  for (int i = 0; i < 3; ++i) {
    const int64_t apart = std::gcd(s.stride[i], s.dilation[i]);
    d.to_size[i] = std::max<int64_t>(0, ceil_div(s.in[i] - residue[i], s.stride[i]));
    d.kernel[i] = 0;
    // Position residue + j * stride is read by output j + (residue + pad - tap * dilation) / stride.
    for (int64_t tap = 0; tap < s.kernel[i]; ++tap) {
      const int64_t reach = residue[i] + s.pad[i] - tap * s.dilation[i];
      if (reach % s.stride[i] != 0) continue;
      ++d.kernel[i];
      d.first_tap[i] = tap, d.pad[i] = -(reach / s.stride[i]);
    }
    d.tap_step[i] = -(s.stride[i] / apart);
    d.dilation[i] = s.dilation[i] / apart;
  }
  return d;
}

// Images whose channels lie side by side: in place, or in memory of their own.
struct PixelRows {
  const Bits* data;
  ImageStrides strides;
  HostArray<Bits> room;
};

PixelRows pixel_rows(const Direction& d, const Bits* in, const ImageStrides& s) {
  if (s.channel == 1) return {in, s, {}};
  const int64_t channels = d.groups * d.from_channels, plane = plane_of(d.from_size);
  PixelRows out{nullptr, channels_last_strides(channels, d.from_size),
                HostArray<Bits>(static_cast<std::size_t>(d.batch * plane * channels))};
  out.data = out.room.data();
  const int64_t pieces = ceil_div(plane, kMovedPixels);
  parallel_for(d.batch * pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t n = t / pieces, low = t % pieces * kMovedPixels, high = std::min(plane, low + kMovedPixels);
      for_each_row(d.from_size, s, [&](int64_t first, int64_t pixels, int64_t at, int64_t step) {
        const int64_t b = std::max(first, low), e = std::min(first + pixels, high);
        if (b >= e) return;
        const Bits* const from = in + n * s.batch + at + (b - first) * step;
        Bits* const to = out.room.data() + (n * plane + b) * channels;
        if (step == 1) {
          return transpose_matrix({reinterpret_cast<const char*>(from), reinterpret_cast<char*>(to),
                                   s.channel * int64_t{sizeof(Bits)}, channels * int64_t{sizeof(Bits)}, channels, e - b,
                                   int64_t{sizeof(Bits)}});
        }
        for (int64_t c = 0; c < channels; ++c) {
          for (int64_t i = 0; i < e - b; ++i) to[i * channels + c] = from[c * s.channel + i * step];
        }
      });
    }
  });
  return out;
}

// The weights of all groups in panels: for each block of k, the panels of all channels of a group's result.
class Panels {
 public:
  Panels(const Direction& d, const GemmKernels<float>& kernels, const Bits* w)
      : columns_(kernels.tile_cols),
        pairs_(round_up(d.terms(), 2 * kTileSteps) / 2),
        padded_(round_up(d.to_channels, columns_)),
        data_(static_cast<std::size_t>(d.groups * pairs_ * padded_)) {
    const int64_t panels = padded_ / columns_, tasks = d.groups * panels;
    parallel_for(tasks, std::max<int64_t>(1, kElementGrain / (2 * pairs_ * columns_ + 1)),
                 [&](int64_t begin, int64_t end) {
                   const HostArray<Bits> room(static_cast<std::size_t>(2 * pairs_ * columns_));
                   const HostArray<Bits> taps(static_cast<std::size_t>(plane_of(d.whole_kernel) * d.from_channels));
                   for (int64_t t = begin; t < end; ++t) {
                     const int64_t group = t / panels, first = t % panels * columns_;
                     const int64_t count = std::min(columns_, d.to_channels - first);
                     for (int64_t i = 0; i < count; ++i)
                       unfold(d, w, group, first + i, taps.data(), room.data() + 2 * pairs_ * i);
                     const float* const rows = reinterpret_cast<const float*>(room.data());
                     for (int64_t k0 = 0; k0 < pairs_; k0 += kBlockK) {
                       const int64_t length = std::min(kBlockK, pairs_ - k0);
                       float* const to = data_.data() + group * pairs_ * padded_ + k0 * padded_ + first * length;
                       kernels.pack_b(count, length, rows + k0, 1, pairs_, to);
                     }
                   }
                 });
  }

  // Returns the panels of a weight that may be kept, or new ones.
  static std::shared_ptr<const Panels> of(const Direction& d, const GemmKernels<float>& kernels, const Bits* w,
                                          const Weight& weight) {
    if (!weight) return std::make_shared<const Panels>(d, kernels, w);
    PackedKey key{weight, PackedAs::unfolded, &kernels, {d.groups, d.to_channels, d.from_channels}};
    std::ranges::copy(d.kernel, key.geometry.begin() + 3);
    const int64_t bytes = d.groups * round_up(d.terms(), 2 * kTileSteps) / 2 *
                          round_up(d.to_channels, int64_t{kernels.tile_cols}) * int64_t{sizeof(float)};
    return kept_or_made<Panels>(key, bytes, [&] { return std::make_shared<const Panels>(d, kernels, w); });
  }

  // Pairs of a row, those that fill it up with zeros to whole steps included.
  int64_t pairs() const { return pairs_; }
  // Points a block from pair k0 on at the channels of a group from `first` on, a multiple of a panel.
  void use(int64_t group, int64_t k0, int64_t first, Block<float>& block) const {
    block.b = data_.data() + group * pairs_ * padded_ + k0 * padded_ + first * block.k;
    block.b_row = columns_;
    block.b_tile = columns_ * block.k;
  }

 private:
  // Writes the weights of one channel of a group's result, (tap, channel), filled up with zeros. `room` holds all taps.
  void unfold(const Direction& d, const Bits* w, int64_t group, int64_t channel, Bits* room, Bits* out) const {
    const int64_t all = plane_of(d.whole_kernel), item = sizeof(Bits), step = d.from_channels;
    // w is [outputs, inputs of a group, taps]; the data gradient reads it the other way round.
    const Bits* const from =
        w + (d.transposed ? (group * step * d.to_channels + channel) : (group * d.to_channels + channel) * step) * all;
    const int64_t from_row = d.transposed ? d.to_channels * all : all;
    transpose_matrix({reinterpret_cast<const char*>(from), reinterpret_cast<char*>(room), from_row * item, step * item,
                      step, all, item});
    Spatial t{};
    for (t[0] = 0; t[0] < d.kernel[0]; ++t[0]) {
      for (t[1] = 0; t[1] < d.kernel[1]; ++t[1]) {
        for (t[2] = 0; t[2] < d.kernel[2]; ++t[2], out += step) {
          int64_t tap = 0;
          for (int i = 0; i < 3; ++i) tap = tap * d.whole_kernel[i] + d.first_tap[i] + t[i] * d.tap_step[i];
          std::copy_n(room + tap * step, step, out);
        }
      }
    }
    std::fill_n(out, 2 * pairs_ - d.terms(), Bits{0});
  }

  int64_t columns_, pairs_, padded_;
  HostArray<float> data_;
};

// Copies what outputs read to rows of `row` numbers.
class Unfolding {
 public:
  Unfolding(const Direction& d, const PixelRows& images, int64_t row)
      : d_(d), images_(images), row_(row), line_(d.kernel[2] * d.from_channels) {
    dense_ = d.dilation[2] == 1 && images.strides.spatial[2] == d.from_channels;
  }

  // Outputs are numbered through all samples.
  void run(int64_t group, int64_t first, int64_t last, Bits* out) const {
    Place place = Place::at(first, d_.to_size);
    for (int64_t p = first; p < last; ++p, out += row_, place.advance(d_.to_size)) {
      const Bits* const image = images_.data + place.sample * images_.strides.batch + group * d_.from_channels;
      const int64_t y0 = place.position[0] * d_.stride[0] - d_.pad[0];
      const int64_t y1 = place.position[1] * d_.stride[1] - d_.pad[1];
      const int64_t x = place.position[2] * d_.stride[2] - d_.pad[2];
      Bits* to = out;
      for (int64_t k0 = 0; k0 < d_.kernel[0]; ++k0) {
        for (int64_t k1 = 0; k1 < d_.kernel[1]; ++k1, to += line_) {
          const int64_t p0 = y0 + k0 * d_.dilation[0], p1 = y1 + k1 * d_.dilation[1];
          const bool inside = p0 >= 0 && p0 < d_.from_size[0] && p1 >= 0 && p1 < d_.from_size[1];
          if (inside) copy_line(image + p0 * images_.strides.spatial[0] + p1 * images_.strides.spatial[1], x, to);
          else std::fill_n(to, line_, Bits{0});
        }
      }
      std::fill(to, out + row_, Bits{0});
    }
  }

 private:
  // Copies the taps along the last dimension, the first of which lies at position x of a line of the image.
  void copy_line(const Bits* line, int64_t x, Bits* to) const {
    const int64_t channels = d_.from_channels, step = d_.dilation[2], pixel = images_.strides.spatial[2];
    const Inside taps(d_.kernel[2], x, step, d_.from_size[2]);
    std::fill_n(to, taps.low * channels, Bits{0});
    const Bits* from = line + (x + taps.low * step) * pixel;
    if (dense_) {
      Plain<Bits>::copy((taps.high - taps.low) * channels, from, to + taps.low * channels);
    } else {
      for (int64_t k = taps.low; k < taps.high; ++k, from += step * pixel) {
        Plain<Bits>::copy(channels, from, to + k * channels);
      }
    }
    std::fill(to + taps.high * channels, to + line_, Bits{0});
  }

  const Direction& d_;
  const PixelRows& images_;
  int64_t row_, line_;
  bool dense_;  // whether the taps of a line lie side by side
};

// Rounds sums of outputs [first, last), `width` apart, to channels of the result from `to` on. `turned` has room for
// their transpose.
void write_results(const Direction& d, const GemmKernels<float>& kernels, const HalfFormat& format, int64_t first,
                   int64_t last, int64_t channels, const float* sums, int64_t width, float* turned, Bits* to,
                   const ImageStrides& s) {
  const int64_t plane = plane_of(d.to_size), columns = kernels.tile_cols;
  const bool dense = is_dense(s, d.to_size);
  if (s.channel != 1) kernels.pack_b(last - first, channels, sums, 1, width, turned);
  Bits rounded[64];
  for (int64_t p = first; p < last;) {
    const int64_t at = p % plane, line = at / d.to_size[2], x = at % d.to_size[2];
    Bits* const image = to + p / plane * s.batch;
    Bits* const out =
        dense ? image + at
              : image + line / d.to_size[1] * s.spatial[0] + line % d.to_size[1] * s.spatial[1] + x * s.spatial[2];
    if (s.channel == 1) {
      format.narrow(channels, sums + (p - first) * width, out);
      ++p;
      continue;
    }
    // Outputs of one panel that lie in one run.
    const int64_t in_panel = columns - (p - first) % columns, in_run = dense ? plane - at : d.to_size[2] - x;
    const int64_t count = std::min({in_panel, in_run, last - p});
    const float* const panel = turned + (p - first) / columns * columns * channels + (p - first) % columns;
    for (int64_t c = 0; c < channels; ++c) {
      if (dense || s.spatial[2] == 1) {
        format.narrow(count, panel + c * columns, out + c * s.channel);
      } else {
        format.narrow(count, panel + c * columns, rounded);
        write_row<Plain<Bits>>(count, rounded, out + c * s.channel, s.spatial[2]);
      }
    }
    p += count;
  }
}

// The gradient of the result as rows of outputs, one per channel, filled up with zeros to whole steps of pairs.
class OutputRows {
 public:
  OutputRows(const Direction& d, const Bits* in, const ImageStrides& s)
      : outputs_(d.batch * plane_of(d.to_size)),
        row_(round_up(outputs_, 2 * kTileSteps)),
        data_(static_cast<std::size_t>(d.groups * d.to_channels * row_)) {
    const int64_t channels = d.groups * d.to_channels, plane = plane_of(d.to_size), item = sizeof(Bits);
    const int64_t strip = std::min<int64_t>(channels, s.channel == 1 ? 64 : 1), strips = ceil_div(channels, strip);
    parallel_for(strips, std::max<int64_t>(1, kElementGrain / (outputs_ * strip)), [&](int64_t begin, int64_t end) {
      for (int64_t c = begin * strip; c < std::min(channels, end * strip); c += strip) {
        const int64_t count = std::min(strip, channels - c);
        for (int64_t n = 0; n < d.batch; ++n) {
          for_each_row(d.to_size, s, [&](int64_t first, int64_t pixels, int64_t at, int64_t step) {
            const Bits* const from = in + n * s.batch + c * s.channel + at;
            Bits* const to = data_.data() + c * row_ + n * plane + first;
            if (s.channel != 1) return read_row<Plain<Bits>>(pixels, from, step, to);
            transpose_matrix({reinterpret_cast<const char*>(from), reinterpret_cast<char*>(to), step * item,
                              row_ * item, pixels, count, item});
          });
        }
        for (int64_t i = c; i < c + count; ++i) std::fill(row(i) + outputs_, row(i) + row_, Bits{0});
      }
    });
  }

  int64_t outputs() const { return outputs_; }
  int64_t pairs() const { return row_ / 2; }
  Bits* row(int64_t channel) const { return data_.data() + channel * row_; }

 private:
  int64_t outputs_, row_;
  HostArray<Bits> data_;
};

// Writes what `pairs` pairs of outputs, from number `first` on, read with one tap: `channels` channels of each, from
// `from` on, pair by pair.
void read_pairs(const Direction& d, const Bits* from, const ImageStrides& s, const Spatial& tap, int64_t first,
                int64_t pairs, int64_t channels, float* out) {
  const auto interleave = pair_kernels()->interleave;
  static constexpr Bits kZeros[kStripChannels] = {};
  const int64_t end = d.batch * plane_of(d.to_size);
  Place place = Place::at(first, d.to_size);
  const auto next = [&]() -> const Bits* {
    if (first++ >= end) return kZeros;
    int64_t at = place.sample * s.batch;
    bool inside = true;
    for (int i = 0; i < 3; ++i) {
      const int64_t p = place.position[i] * d.stride[i] - d.pad[i] + tap[i] * d.dilation[i];
      inside = inside && p >= 0 && p < d.from_size[i];
      at += p * s.spatial[i];
    }
    place.advance(d.to_size);
    return inside ? from + at : kZeros;
  };
  for (int64_t k = 0; k < pairs; ++k, out += channels) {
    const Bits *const low = next(), *const high = next();
    interleave(channels, low, high, out);
  }
}

// Computes one direction from images with channels last; `offsets` are null or the bias.
void correlate_rows(const Direction& d, const PixelRows& images, const Bits* w, const Weight& weight,
                    const float* offsets, Bits* to, const ImageStrides& to_strides) {
  const GemmKernels<float>& kernels = pair_kernels()->products;
  const HalfFormat format = half_format(Elem::bf16);
  const int64_t outputs = d.batch * plane_of(d.to_size), nc = kernels.tile_cols, tile = kernels.tile_rows;
  if (outputs <= 0) return;
  const std::shared_ptr<const Panels> shared = Panels::of(d, kernels, w, weight);
  const Panels& panels = *shared;
  const int64_t row = 2 * panels.pairs();
  const Unfolding unfolding(d, images, row);
  const int64_t rows =
      std::clamp(kUnfolded / std::max<int64_t>(row, 1) / tile * tile, tile, std::max(kMostOutputs, tile));
  const int64_t blocks = ceil_div(outputs, rows), most = ceil_div(d.to_channels, 2 * nc);
  // Few blocks: the channels of the result are cut as well.
  const int64_t across = std::min(most, ceil_div(kTasks, blocks * d.groups));
  const int64_t width = round_up(ceil_div(d.to_channels, across), nc), cuts = ceil_div(d.to_channels, width);
  parallel_for(d.groups * blocks * cuts, 1, [&](int64_t begin, int64_t end) {
    const HostArray<Bits> unfolded(static_cast<std::size_t>(rows * row));
    const HostArray<float> sums(static_cast<std::size_t>(2 * rows * width));
    int64_t ready = -1;
    for (int64_t t = begin; t < end; ++t) {
      const int64_t group = t / (blocks * cuts), first = t / cuts % blocks * rows;
      const int64_t last = std::min(outputs, first + rows);
      const int64_t channel = t % cuts * width, channels = std::min(width, d.to_channels - channel);
      if (t / cuts != ready) unfolding.run(group, first, last, unfolded.data());
      ready = t / cuts;
      const int64_t result = group * d.to_channels + channel;
      const float* const bias = offsets != nullptr ? offsets + result : nullptr;
      for (int64_t k0 = 0; k0 < panels.pairs(); k0 += kBlockK) {
        Block<float> block{};
        block.m = last - first, block.n = channels, block.k = std::min(kBlockK, panels.pairs() - k0);
        block.a = reinterpret_cast<const float*>(unfolded.data()) + k0;
        block.a_row = panels.pairs(), block.a_col = 1, block.a_tile = tile * block.a_row;
        panels.use(group, k0, channel, block);
        block.c = sums.data(), block.c_row = width;
        block.accumulate = k0 > 0;
        block.bias = k0 + block.k == panels.pairs() ? bias : nullptr;
        kernels.block(block);
      }
      for (int64_t i = 0; i < last - first && row == 0; ++i) {  // no tap reaches these outputs
        for (int64_t c = 0; c < channels; ++c) sums.data()[i * width + c] = bias != nullptr ? bias[c] : 0;
      }
      write_results(d, kernels, format, first, last, channels, sums.data(), width, sums.data() + rows * width,
                    to + result * to_strides.channel, to_strides);
    }
  });
}

}  // namespace

bool goes_unfolded(const ConvShape& shape, bool backward) {
  const PairKernels* const pairs = pair_kernels();
  if (pairs == nullptr || !pairs->products.packs_rows) return false;
  const int64_t inputs = shape.in_channels / shape.groups, outputs = shape.out_channels / shape.groups;
  const int64_t from = backward ? outputs : inputs, to = backward ? inputs : outputs;
  return to >= kFewestResults && from * plane_of(shape.kernel) >= kFewestTerms && from > 1;
}

void correlate_unfolded(const ConvShape& shape, bool backward, const Bits* from, const ImageStrides& from_strides,
                        const Bits* w, const Bits* bias, Bits* to, const ImageStrides& to_strides,
                        const Weight& weight) {
  const HostArray<float> offsets =
      widened(half_format(Elem::bf16), bias, backward ? shape.in_channels : shape.out_channels);
  if (!backward) {
    const Direction d = forward_direction(shape);
    return correlate_rows(d, pixel_rows(d, from, from_strides), w, weight, offsets.data(), to, to_strides);
  }
  const PixelRows images = pixel_rows(backward_direction(shape, {0, 0, 0}), from, from_strides);
  ImageStrides apart = to_strides;
  for (int i = 0; i < 3; ++i) apart.spatial[i] *= shape.stride[i];
  Spatial r{}, residues{};  // that have an element of the image
  for (int i = 0; i < 3; ++i) residues[i] = std::min(shape.stride[i], shape.in[i]);
  for (r[0] = 0; r[0] < residues[0]; ++r[0]) {
    for (r[1] = 0; r[1] < residues[1]; ++r[1]) {
      for (r[2] = 0; r[2] < residues[2]; ++r[2]) {
        int64_t at = 0;
        for (int i = 0; i < 3; ++i) at += r[i] * to_strides.spatial[i];
        correlate_rows(backward_direction(shape, r), images, w, {}, offsets.data(), to + at, apart);
      }
    }
  }
}

bool weight_gradient_goes_unfolded(const ConvShape& shape) {
  return goes_unfolded(shape, false) && shape.in_channels / shape.groups >= kFewestResults && shape.batch > 0 &&
         plane_of(shape.out) > 0;
}

void unfolded_weight_gradient(const ConvShape& shape, const Bits* x, const ImageStrides& x_strides, const Bits* gy,
                              const ImageStrides& gy_strides, Bits* gw, Bits* gbias) {
  const Direction d = forward_direction(shape);
  const GemmKernels<float>& kernels = pair_kernels()->products;
  const HalfFormat format = half_format(Elem::bf16);
  const PixelRows images = pixel_rows(d, x, x_strides);
  const OutputRows rows(d, gy, gy_strides);
  const int64_t taps = d.taps(), inputs = d.from_channels, results = d.to_channels;
  const int64_t across = ceil_div(inputs, kStripChannels), width = ceil_div(inputs, across);
  const int64_t wanted = std::max(ceil_div(kTasks, taps * across * d.groups), ceil_div(results, kStripResults));
  const int64_t height = round_up(ceil_div(results, wanted), int64_t{kernels.tile_rows}),
                down = ceil_div(results, height);
  const HostArray<float> sums(static_cast<std::size_t>(d.groups * taps * results * inputs));  // [group, tap, o, c]
  parallel_for(d.groups * taps * across * down, 1, [&](int64_t begin, int64_t end) {
    const HostArray<float> pairs(static_cast<std::size_t>(kBlockK * width));
    for (int64_t t = begin; t < end; ++t) {
      const int64_t group = t / (taps * across * down), tap = t / (across * down) % taps;
      const int64_t channel = t / down % across * width, channels = std::min(width, inputs - channel);
      const int64_t result = t % down * height, count = std::min(height, results - result);
      const Spatial at{tap / (d.kernel[1] * d.kernel[2]), tap / d.kernel[2] % d.kernel[1], tap % d.kernel[2]};
      for (int64_t k0 = 0; k0 < rows.pairs(); k0 += kBlockK) {
        Block<float> block{};
        block.m = count, block.n = channels, block.k = std::min(kBlockK, rows.pairs() - k0);
        read_pairs(d, images.data + group * inputs + channel, images.strides, at, 2 * k0, block.k, channels,
                   pairs.data());
        block.a = reinterpret_cast<const float*>(rows.row(group * results + result)) + k0;
        block.a_row = rows.pairs(), block.a_col = 1, block.a_tile = kernels.tile_rows * block.a_row;
        block.b = pairs.data(), block.b_row = channels, block.b_tile = kernels.tile_cols;
        block.c = sums.data() + ((group * taps + tap) * results + result) * inputs + channel, block.c_row = inputs;
        block.accumulate = k0 > 0;
        kernels.block(block);
      }
    }
  });
  const int64_t item = sizeof(Bits), all = d.groups * results;
  parallel_for(all, std::max<int64_t>(1, kElementGrain / d.terms()), [&](int64_t begin, int64_t end) {
    const HostArray<Bits> rounded(static_cast<std::size_t>(d.terms()));
    for (int64_t o = begin; o < end; ++o) {
      for (int64_t tap = 0; tap < taps; ++tap) {
        const float* const from = sums.data() + ((o / results * taps + tap) * results + o % results) * inputs;
        format.narrow(inputs, from, rounded.data() + tap * inputs);
      }
      transpose_matrix({reinterpret_cast<const char*>(rounded.data()), reinterpret_cast<char*>(gw + o * d.terms()),
                        inputs * item, taps * item, taps, inputs, item});
      if (gbias == nullptr) continue;
      float sum = 0, value = 0;
      for (int64_t p = 0; p < rows.outputs(); ++p) {
        bf16_to_f32(1, rows.row(o) + p, &value);
        sum += value;
      }
      f32_to_bf16(1, &sum, gbias + o);
    }
  });
}

}  // namespace vesta::cpu
