// Sorted keys, for ops that bring equal or ordered things together.
#pragma once
#include <vesta/core/tensor.h>
#include <vesta/cuda/kernels/radix_sort.h>
#include <vesta/cuda/stream.h>

namespace vesta::cuda {

/// Keys of so many bits, sorted together with the numbers they had; when this dies, the stream owns the memory.
class Keys {
 public:
  Keys(int64_t n, int bits, bool wide, Device device) : n_(n), bits_(bits), wide_(wide), device_(device) {
    keys_[0] = buffer(n);
  }
  void* input() const { return keys_[0].data_ptr(); }
  void sort() {
    at_ = run_sort(launch());
    order_ = values_[at_].data_ptr();
  }
  /// Returns a sort's arguments, with all the memory that it needs.
  SortLaunch launch() {
    keys_[1] = buffer(n_), values_[0] = buffer(n_), values_[1] = buffer(n_);
    const int64_t counts = sort_counts(n_, wide_);
    counts_ = empty_tensor({{counts + kSortPasses / 2}}, DType::int64, device_);
    SortLaunch l;
    for (int k = 0; k < 2; ++k) l.keys[k] = keys_[k].data_ptr(), l.values[k] = values_[k].data_ptr();
    l.counts = static_cast<uint64_t*>(counts_.data_ptr());
    l.skipped = reinterpret_cast<unsigned*>(l.counts + counts);
    l.n = n_, l.bits = bits_, l.wide = wide_, l.stream = current_stream(device_.index()).handle();
    return l;
  }
  const void* keys() const { return keys_[at_].data_ptr(); }
  /// Returns the places' numbers in the order of the keys; null before sort(): key j is of place j.
  const void* order() const { return order_; }
  const Tensor& order_tensor() const { return values_[at_]; }
  int bits() const { return bits_; }

 private:
  Tensor buffer(int64_t n) const { return empty_tensor({{n}}, wide_ ? DType::int64 : DType::int32, device_); }
  int64_t n_;
  int bits_;
  bool wide_;
  Device device_;
  Tensor keys_[2], values_[2], counts_;
  int at_ = 0;
  const void* order_ = nullptr;
};

}  // namespace vesta::cuda
