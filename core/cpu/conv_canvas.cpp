#include <vesta/core/cpu/conv_canvas.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <stdexcept>

namespace vesta::cpu {
namespace {

using std::int64_t;

std::int32_t offset32(int64_t offset) {
  if (offset > std::numeric_limits<std::int32_t>::max()) {
    throw std::length_error(
        "convolution: expected at most 2^31 elements in one sample's group of channels, got more. "
        "Cut the image or use more groups.");
  }
  return static_cast<std::int32_t>(offset);
}

// Calls f(k0, k1, k2, flat index) for every tap of the kernel.
template <class F>
void each_tap(const Spatial& kernel, F&& f) {
  int64_t flat = 0;
  for (int64_t k0 = 0; k0 < kernel[0]; ++k0) {
    for (int64_t k1 = 0; k1 < kernel[1]; ++k1) {
      for (int64_t k2 = 0; k2 < kernel[2]; ++k2) f(Spatial{k0, k1, k2}, flat++);
    }
  }
}

// Repeats the first channel's offsets for the others.
void repeat_channels(Taps& taps, int64_t channels, int64_t channel) {
  if (channels == 0) taps.table.clear();
  const std::size_t count = taps.table.size();
  if (count == 0) return;
  offset32(channels * channel);
  taps.table.reserve(count * static_cast<std::size_t>(channels));
  for (int64_t c = 1; c < channels; ++c) {
    for (std::size_t t = 0; t < count; ++t) taps.table.push_back(taps.table[t] + offset32(c * channel));
  }
}

}  // namespace

int64_t Taps::block() const {
  const std::uint64_t count = std::max<std::uint64_t>(1, tap.size());
  return static_cast<int64_t>(count * std::max<std::uint64_t>(1, std::bit_floor(320 / count)));
}

int64_t Taps::span(const Canvas& canvas) const {
  if (count[0] <= 0 || count[1] <= 0 || count[2] <= 0) return 0;
  return ((count[0] - 1) * canvas.size[1] + count[1] - 1) * canvas.size[2] + count[2];
}

Canvas input_canvas(const ConvShape& shape) {
  Canvas canvas;
  for (int d = 0; d < 3; ++d) {
    const int64_t s = shape.stride[d];
    for (int64_t k = 0; k < shape.kernel[d]; ++k) {
      const int64_t r = k * shape.dilation[d] % s;
      auto& residues = canvas.residues[d];
      if (std::find(residues.begin(), residues.end(), r) == residues.end()) residues.push_back(r);
    }
    canvas.phases[d] = static_cast<int64_t>(canvas.residues[d].size());
    canvas.size[d] = shape.out[d] + std::max<int64_t>(shape.kernel[d] - 1, 0) * shape.dilation[d] / s;
    canvas.step[d] = s;
    canvas.before[d] = shape.pad[d];
  }
  return canvas;
}

Taps forward_taps(const ConvShape& shape, const Canvas& canvas, int64_t channels) {
  Taps taps{{}, {}, shape.out, {0, 0, 0}, {1, 1, 1}};
  each_tap(shape.kernel, [&](const Spatial& k, int64_t flat) {
    int64_t phase = 0, offset = 0;
    for (int d = 0; d < 3; ++d) {
      const int64_t position = k[d] * shape.dilation[d];
      const auto& residues = canvas.residues[d];
      const auto found = std::find(residues.begin(), residues.end(), position % shape.stride[d]);
      phase = phase * canvas.phases[d] + (found - residues.begin());
      offset = offset * canvas.size[d] + position / shape.stride[d];
    }
    taps.table.push_back(offset32(phase * canvas.plane() + offset));
    taps.tap.push_back(flat);
  });
  repeat_channels(taps, channels, canvas.channel());
  return taps;
}

namespace {

// Along one dimension, position i of x is padded position i + pad = index * stride + residue. The indices that lie in
// the image run from low() to high() for a residue, and a tap reaches back from them by k * dilation / stride.
struct Reach {
  int64_t low, high, back;
};

Reach reach_of(const ConvShape& shape, int d) {
  return {shape.pad[d] / shape.stride[d], (shape.in[d] - 1 + shape.pad[d]) / shape.stride[d],
          std::max<int64_t>(shape.kernel[d] - 1, 0) * shape.dilation[d] / shape.stride[d]};
}

}  // namespace

Canvas gradient_canvas(const ConvShape& shape) {
  Canvas canvas;
  for (int d = 0; d < 3; ++d) {
    const Reach reach = reach_of(shape, d);
    canvas.residues[d] = {0};
    canvas.phases[d] = 1;
    canvas.size[d] = std::max<int64_t>(reach.high - reach.low + 1, 0) + reach.back;
    canvas.step[d] = 1;
    canvas.before[d] = reach.back - reach.low;
  }
  return canvas;
}

std::vector<Taps> backward_taps(const ConvShape& shape, const Canvas& canvas, int64_t channels) {
  std::vector<Taps> products;
  each_tap(shape.stride, [&](const Spatial& residue, int64_t) {
    Taps taps;
    for (int d = 0; d < 3; ++d) {
      const Reach reach = reach_of(shape, d);
      taps.count[d] = reach.high - reach.low + 1;
      taps.first[d] = reach.low * shape.stride[d] + residue[d] - shape.pad[d];
      taps.step[d] = shape.stride[d];
    }
    each_tap(shape.kernel, [&](const Spatial& k, int64_t flat) {
      int64_t offset = 0;
      for (int d = 0; d < 3; ++d) {
        const int64_t position = k[d] * shape.dilation[d];
        if (position % shape.stride[d] != residue[d]) return;
        offset = offset * canvas.size[d] + reach_of(shape, d).back - position / shape.stride[d];
      }
      taps.table.push_back(offset32(offset));
      taps.tap.push_back(flat);
    });
    // Offsets ascend, as in the forward product.
    std::reverse(taps.table.begin(), taps.table.end());
    std::reverse(taps.tap.begin(), taps.tap.end());
    repeat_channels(taps, channels, canvas.channel());
    products.push_back(std::move(taps));
  });
  return products;
}

bool is_image(const Canvas& canvas, const Spatial& in) {
  for (int d = 0; d < 3; ++d) {
    if (canvas.phases[d] != 1 || canvas.step[d] != 1 || canvas.before[d] != 0 || canvas.residues[d][0] != 0)
      return false;
    if (canvas.size[d] != in[d]) return false;
  }
  return true;
}

}  // namespace vesta::cpu
