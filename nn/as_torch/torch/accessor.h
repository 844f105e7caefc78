// Accessors: elements of a tensor of N dimensions as a[i][j], for loops over single values.
#pragma once
#include <torch/exceptions.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace torch {

template <class T>
struct DefaultPtrTraits {
  using PtrType = T*;
};
template <class T>
struct RestrictPtrTraits {
  using PtrType = T* __restrict__;
};

/// Reads and writes elements of a CPU tensor. Valid while the tensor lives.
template <class T, size_t N, template <class> class PtrTraits, class index_t>
class TensorAccessor {
 public:
  using PtrType = typename PtrTraits<T>::PtrType;
  TensorAccessor(PtrType data, const index_t* sizes, const index_t* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  decltype(auto) operator[](index_t i) const {
    if constexpr (N == 1) return static_cast<T&>(data_[i * strides_[0]]);
    else return TensorAccessor<T, N - 1, PtrTraits, index_t>(data_ + i * strides_[0], sizes_ + 1, strides_ + 1);
  }
  index_t size(index_t dim) const { return sizes_[dim]; }
  index_t stride(index_t dim) const { return strides_[dim]; }
  IntArrayRef sizes() const { return vesta::IntSpan(sizes_, N); }
  IntArrayRef strides() const { return vesta::IntSpan(strides_, N); }
  PtrType data() const { return data_; }

 private:
  PtrType data_;
  const index_t *sizes_, *strides_;
};

/// An accessor that holds its own copy of sizes and strides, so that it can be passed on by value.
template <class T, size_t N, template <class> class PtrTraits, class index_t>
class GenericPackedTensorAccessor {
 public:
  using PtrType = typename PtrTraits<T>::PtrType;
  template <class Number>
  GenericPackedTensorAccessor(PtrType data, const Number* sizes, const Number* strides) : data_(data) {
    for (size_t d = 0; d < N; ++d) sizes_[d] = index_t(sizes[d]), strides_[d] = index_t(strides[d]);
  }
  decltype(auto) operator[](index_t i) const {
    return TensorAccessor<T, N, PtrTraits, index_t>(data_, sizes_.data(), strides_.data())[i];
  }
  index_t size(index_t dim) const { return sizes_[checked(dim)]; }
  index_t stride(index_t dim) const { return strides_[checked(dim)]; }
  PtrType data() const { return data_; }
  /// Returns the accessor whose dimensions `a` and `b` have changed places.
  GenericPackedTensorAccessor transpose(index_t a, index_t b) const {
    GenericPackedTensorAccessor r = *this;
    std::swap(r.sizes_[checked(a)], r.sizes_[checked(b)]);
    std::swap(r.strides_[checked(a)], r.strides_[checked(b)]);
    return r;
  }

 private:
  static size_t checked(index_t dim) {
    TORCH_CHECK_INDEX(dim >= 0 && size_t(dim) < N, "Index ", dim, " is not within bounds of a tensor of dimension ",
                      int64_t(N));
    return size_t(dim);
  }
  PtrType data_;
  std::array<index_t, N> sizes_, strides_;
};
template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits, class index_t = int64_t>
using PackedTensorAccessor = GenericPackedTensorAccessor<T, N, PtrTraits, index_t>;
template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits>
using PackedTensorAccessor32 = GenericPackedTensorAccessor<T, N, PtrTraits, int32_t>;
template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits>
using PackedTensorAccessor64 = GenericPackedTensorAccessor<T, N, PtrTraits, int64_t>;

}  // namespace torch

namespace vesta {

template <class T, size_t N>
torch::TensorAccessor<T, N> Tensor::accessor() const {
  VESTA_CHECK(defined(), runtime, "accessor: expected a defined tensor.");
  VESTA_CHECK(dim() == int64_t(N), runtime, "accessor: expected ", int64_t(N), " dims, got ", dim(), ".");
  VESTA_CHECK(is_cpu(), device, "accessor: expected a tensor on the CPU, got one on ", device(), ".");
  return {const_cast<T*>(const_data_ptr<T>()), sizes().data(), strides().data()};
}
template <class T, size_t N, template <class> class PtrTraits, class index_t>
torch::GenericPackedTensorAccessor<T, N, PtrTraits, index_t> Tensor::generic_packed_accessor() const {
  VESTA_CHECK(defined(), runtime, "packed_accessor: expected a defined tensor.");
  VESTA_CHECK(dim() == int64_t(N), runtime, "packed_accessor: expected ", int64_t(N), " dims, got ", dim(), ".");
  VESTA_CHECK(numel() <= int64_t(std::numeric_limits<index_t>::max()), runtime,
              "packed_accessor32: expected at most 2^31 - 1 elements, got ", numel(), ". Use packed_accessor64.");
  return {const_cast<T*>(const_data_ptr<T>()), sizes().data(), strides().data()};
}

}  // namespace vesta
