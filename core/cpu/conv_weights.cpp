#include <vesta/core/cpu/conv_kernel.h>
#include <vesta/core/cpu/conv_weights.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/rounding.h>

#include <pthread.h>

#include <algorithm>
#include <list>
#include <mutex>
#include <typeinfo>

namespace vesta::cpu {
namespace {

using std::int64_t;

// What one entry was packed from; the shape's batch and image sizes matter only through the products' taps.
struct Identity {
  WeightKey key;
  WeightUse use;
  const std::type_info* type;
  Isa isa;
  int64_t out_channels, in_channels, groups;
  Spatial kernel, stride, dilation;

  bool same_place(const Identity& o) const { return key.id == o.key.id && use == o.use && *type == *o.type; }
  bool operator==(const Identity& o) const {
    return same_place(o) && key.version == o.key.version && isa == o.isa && out_channels == o.out_channels &&
           in_channels == o.in_channels && groups == o.groups && kernel == o.kernel && stride == o.stride &&
           dilation == o.dilation;
  }
};

// A cache with the least recently used entry last. There is at most one entry per weight, use and type: a new version
// replaces the old one.
class WeightCache {
 public:
  static WeightCache& instance() {
    static WeightCache* cache = [] {
      // Another thread may hold the lock while this one forks; the child must find it free.
      pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                     [] { instance().mutex_.unlock(); });
      return new WeightCache;  // never destroyed: convolutions may run while the process ends
    }();
    return *cache;
  }

  std::shared_ptr<const void> find(const Identity& wanted) {
    const std::lock_guard lock(mutex_);
    for (auto it = entries_.begin(); it != entries_.end(); ++it) {
      if (!(it->identity == wanted)) continue;
      entries_.splice(entries_.begin(), entries_, it);
      return it->packed;
    }
    return nullptr;
  }

  void keep(const Identity& identity, std::shared_ptr<const void> packed, int64_t bytes) {
    const std::lock_guard lock(mutex_);
    for (auto it = entries_.begin(); it != entries_.end();) {
      if (it->identity.same_place(identity)) {
        bytes_ -= it->bytes;
        it = entries_.erase(it);
      } else {
        ++it;
      }
    }
    entries_.push_front({identity, std::move(packed), bytes});
    bytes_ += bytes;
    while (entries_.size() > 1 && (bytes_ > kMostBytes || entries_.size() > kMostEntries)) {
      bytes_ -= entries_.back().bytes;
      entries_.pop_back();
    }
  }

  void clear() {
    const std::lock_guard lock(mutex_);
    entries_.clear();
    bytes_ = 0;
  }

 private:
  static constexpr int64_t kMostBytes = int64_t{256} << 20;
  static constexpr std::size_t kMostEntries = 512;
  struct Entry {
    Identity identity;
    std::shared_ptr<const void> packed;
    int64_t bytes;
  };
  std::mutex mutex_;
  std::list<Entry> entries_;
  int64_t bytes_ = 0;
};

}  // namespace

namespace {

bool is_forward(WeightUse use) { return use == WeightUse::forward || use == WeightUse::direct_forward; }
bool is_direct(WeightUse use) { return use == WeightUse::direct_forward || use == WeightUse::direct_backward_data; }

}  // namespace

template <class T>
PackedWeights<T>::PackedWeights(WeightUse use, int64_t groups, int64_t rows, const std::vector<Taps>& products)
    : use_(use),
      tile_(is_direct(use) ? direct_kernels<T>().panel : gemm_kernels<T>().tile_rows),
      groups_(groups),
      rows_(rows),
      padded_rows_(round_up(rows, tile_)) {
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

template <class T>
std::shared_ptr<const PackedWeights<T>> packed_weights(const ConvShape& shape, WeightUse use,
                                                       const std::vector<Taps>& products, const T* values,
                                                       WeightKey key) {
  const Identity identity{
      key,          use,          &typeid(T),   gemm_isa(),    shape.out_channels, shape.in_channels,
      shape.groups, shape.kernel, shape.stride, shape.dilation};
  if (key.id != 0) {
    if (auto found = WeightCache::instance().find(identity)) {
      return std::static_pointer_cast<const PackedWeights<T>>(found);
    }
  }
  const int64_t rows = (is_forward(use) ? shape.out_channels : shape.in_channels) / shape.groups;
  auto packed = std::make_shared<PackedWeights<T>>(use, shape.groups, rows, products);
  packed->pack(shape, products, values);
  if (key.id != 0) WeightCache::instance().keep(identity, packed, packed->bytes());
  return packed;
}

void clear_weight_cache() { WeightCache::instance().clear(); }

template class PackedWeights<float>;
template class PackedWeights<double>;
template std::shared_ptr<const PackedWeights<float>> packed_weights(const ConvShape&, WeightUse,
                                                                    const std::vector<Taps>&, const float*, WeightKey);
template std::shared_ptr<const PackedWeights<double>> packed_weights(const ConvShape&, WeightUse,
                                                                     const std::vector<Taps>&, const double*,
                                                                     WeightKey);

}  // namespace vesta::cpu
