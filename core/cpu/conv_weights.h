// Weights packed for the block kernels of convolutions. Internal to convolution.cpp.
#pragma once

#include <vesta/core/cpu/allocator.h>
#include <vesta/core/cpu/conv_canvas.h>
#include <vesta/core/cpu/gemm_kernel.h>

#include <memory>
#include <vector>

namespace vesta::cpu {

/// The product for which weights are packed, and its kernel.
enum class WeightUse : unsigned char { forward, backward_data, direct_forward, direct_backward_data };

/// Packed weights: for every group and product, one row per channel of the result, in tiles; blocks of taps
/// (Taps::block) follow each other.
template <class T>
class PackedWeights {
 public:
  /// Allocates room for the products of `products` in each of `groups` groups, with `rows` rows each.
  PackedWeights(WeightUse use, std::int64_t groups, std::int64_t rows, const std::vector<Taps>& products);

  /// Returns the tiles of the block of taps that begins at k0, of one group's product.
  const T* block(std::int64_t group, std::size_t product, std::int64_t k0) const {
    return data_.data() + group * group_size_ + product_at_[product] + k0 * padded_rows_;
  }
  /// Packs w (dense, [out_channels, in_channels / groups, kernel...]), on several threads.
  void pack(const ConvShape& shape, const std::vector<Taps>& products, const T* w);

 private:
  void pack_forward(const ConvShape& shape, const Taps& taps, std::int64_t group, std::int64_t first_row, const T* w,
                    T* out) const;
  void pack_backward(const ConvShape& shape, const Taps& taps, std::int64_t group, std::int64_t first_row, const T* w,
                     T* out) const;

  WeightUse use_;
  std::int64_t tile_;
  std::int64_t groups_, rows_, padded_rows_, group_size_ = 0;
  std::vector<std::int64_t> product_at_;
  HostArray<T> data_;
};

/// Returns the weights `values`, packed for products of `products`: those that are kept for `weight` (Note [Kept
/// weights] in kept_weights.h), or new ones.
template <class T>
std::shared_ptr<const PackedWeights<T>> packed_weights(const ConvShape& shape, WeightUse use,
                                                       const std::vector<Taps>& products, const T* values,
                                                       const Weight& weight);

}  // namespace vesta::cpu
