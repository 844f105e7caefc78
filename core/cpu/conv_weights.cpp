#include <vesta/core/cpu/conv_kernel.h>
#include <vesta/core/cpu/conv_weights.h>
#include <vesta/core/cpu/kept_weights.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/rounding.h>

#include <algorithm>
#include <utility>

namespace vesta::cpu {
namespace {

using std::int64_t;

bool is_forward(WeightUse use) { return use == WeightUse::forward || use == WeightUse::direct_forward; }
bool is_direct(WeightUse use) { return use == WeightUse::direct_forward || use == WeightUse::direct_backward_data; }
template <class T>
int64_t tile_rows(WeightUse use) {
  return is_direct(use) ? direct_kernels<T>().panel : gemm_kernels<T>().tile_rows;
}

}  // namespace

template <class T>
PackedWeights<T>::PackedWeights(WeightUse use, int64_t groups, int64_t rows, const std::vector<Taps>& products)
    : use_(use), tile_(tile_rows<T>(use)), groups_(groups), rows_(rows), padded_rows_(round_up(rows, tile_)) {
  for (const Taps& taps : products) {
    product_at_.push_back(group_size_);
    group_size_ += padded_rows_ * static_cast<int64_t>(taps.table.size());
  }
  const std::size_t count = static_cast<std::size_t>(std::max<int64_t>(groups_ * group_size_, 1));
  data_ = HostArray<T>(count);
}

// One tile of rows, for all blocks of taps. Forward rows are output channels and are dense in w.
template <class T>
void PackedWeights<T>::pack_forward(const ConvShape& shape, const Taps& taps, int64_t group, int64_t first_row,
                                    const T* w, T* out) const {
  const int64_t outputs = shape.out_channels / shape.groups, block = taps.block();
  const int64_t k_end = static_cast<int64_t>(taps.table.size()), count = std::min(tile_, rows_ - first_row);
  const auto pack = is_direct(use_) ? direct_kernels<T>().pack : gemm_kernels<T>().pack_a;
  const T* const from = w + (group * outputs + first_row) * k_end;
  for (int64_t k0 = 0; k0 < k_end; k0 += block) {
    const int64_t length = std::min(block, k_end - k0);
    T* const to = out + k0 * padded_rows_ + first_row * length;
    if (count < tile_) std::fill_n(to, tile_ * length, T(0));
    pack(count, length, from + k0, k_end, 1, to);
  }
}

// A row of the data gradient is an input channel, whose taps lie apart.
template <class T>
void PackedWeights<T>::pack_backward(const ConvShape& shape, const Taps& taps, int64_t group, int64_t first_row,
                                     const T* w, T* out) const {
  const int64_t kernel = shape.kernel[0] * shape.kernel[1] * shape.kernel[2], block = taps.block();
  const int64_t inputs = shape.in_channels / shape.groups, outputs = shape.out_channels / shape.groups;
  const int64_t k_end = static_cast<int64_t>(taps.table.size()), tap_count = static_cast<int64_t>(taps.tap.size());
  const int64_t count = std::min(tile_, rows_ - first_row);
  for (int64_t k0 = 0; k0 < k_end; k0 += block) {
    const int64_t length = std::min(block, k_end - k0);
    T* to = out + k0 * padded_rows_ + first_row * length;
    if (kernel == 1 && count == tile_) {  // w is a matrix: its transpose is packed
      const auto pack = is_direct(use_) ? direct_kernels<T>().pack : gemm_kernels<T>().pack_a;
      pack(count, length, w + (group * outputs + k0) * inputs + first_row, 1, inputs, to);
      continue;
    }
    for (int64_t o = k0 / tap_count; o < (k0 + length) / tap_count; ++o) {
      const T* const from = w + ((group * outputs + o) * inputs + first_row) * kernel;
      for (int64_t t = 0; t < tap_count; ++t, to += tile_) {
        for (int64_t r = 0; r < count; ++r) to[r] = from[r * kernel + taps.tap[t]];
        for (int64_t r = count; r < tile_; ++r) to[r] = T(0);
      }
    }
  }
}

template <class T>
void PackedWeights<T>::pack(const ConvShape& shape, const std::vector<Taps>& products, const T* w) {
  const int64_t tiles = padded_rows_ / tile_;
  const int64_t per_tile = std::max<int64_t>(1, group_size_ / std::max<int64_t>(tiles, 1));
  parallel_for(groups_ * tiles, std::max<int64_t>(1, 65536 / per_tile), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t group = t / tiles, first_row = t % tiles * tile_;
      for (std::size_t p = 0; p < products.size(); ++p) {
        T* const out = data_.data() + group * group_size_ + product_at_[p];
        if (is_forward(use_)) {
          pack_forward(shape, products[p], group, first_row, w, out);
        } else {
          pack_backward(shape, products[p], group, first_row, w, out);
        }
      }
    }
  });
}

// The images matter to the gradient of the input: which taps a product has follows from where they lie.
template <class T>
PackedKey key_of(const ConvShape& shape, WeightUse use, const Weight& weight) {
  PackedKey key{weight, PackedAs::conv, &gemm_kernels<T>(), {}};
  auto to = key.geometry.begin();
  *to++ = static_cast<int64_t>(use);
  *to++ = shape.out_channels, *to++ = shape.in_channels, *to++ = shape.groups;
  to = std::ranges::copy(shape.kernel, to).out;
  if (is_forward(use)) return key;
  for (const Spatial& s : {shape.stride, shape.dilation, shape.pad, shape.in, shape.out}) {
    to = std::ranges::copy(s, to).out;
  }
  return key;
}

template <class T>
std::shared_ptr<const PackedWeights<T>> packed_weights(const ConvShape& shape, WeightUse use,
                                                       const std::vector<Taps>& products, const T* values,
                                                       const Weight& weight) {
  const int64_t rows = (is_forward(use) ? shape.out_channels : shape.in_channels) / shape.groups;
  const auto make = [&] {
    auto packed = std::make_shared<PackedWeights<T>>(use, shape.groups, rows, products);
    packed->pack(shape, products, values);
    return packed;
  };
  if (!weight) return make();
  const PackedKey key = key_of<T>(shape, use, weight);
  int64_t lines = 0;
  for (const Taps& taps : products) lines += static_cast<int64_t>(taps.table.size());
  const int64_t padded = round_up(rows, tile_rows<T>(use)), bytes = shape.groups * padded * lines * int64_t{sizeof(T)};
  return kept_or_made<PackedWeights<T>>(key, bytes, make);
}

template class PackedWeights<float>;
template class PackedWeights<double>;
template std::shared_ptr<const PackedWeights<float>> packed_weights(const ConvShape&, WeightUse,
                                                                    const std::vector<Taps>&, const float*,
                                                                    const Weight&);
template std::shared_ptr<const PackedWeights<double>> packed_weights(const ConvShape&, WeightUse,
                                                                     const std::vector<Taps>&, const double*,
                                                                     const Weight&);

}  // namespace vesta::cpu
