// Elements that a mask chooses: their indices, and the elements side by side. A tour: the true elements of each piece
// of the mask are counted, so that every piece knows where its own go, and threads write them.
#include <vesta/core/cpu/mask.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include <vesta/core/cpu/isa.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/register.h>
#include <vesta/core/cpu/rounding.h>
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/destination.h>
#include <vesta/core/ops/index.h>

VESTA_DECLARE_ON_ISA(void register_mask_kernels(vesta::cpu::MaskKernels& kernels))

namespace vesta::cpu {
namespace {

MaskKernels mask_kernels;

/// Returns how many of n bytes are not zero. Eight bytes are eight counters: the oldest machines that this file is
/// compiled for have no instruction that counts bits.
int64_t count_true(const uint8_t* p, int64_t n) {
  constexpr uint64_t kHigh = 0x8080808080808080, kRest = ~kHigh, kEven = 0x00ff00ff00ff00ff, kOnes = 0x0001000100010001;
  constexpr int64_t kMost = 255 * 8;  // bytes until a counter is full
  int64_t count = 0, i = 0;
  while (i + 8 <= n) {
    const int64_t end = std::min(n, i + kMost);
    uint64_t counters = 0;
    for (; i + 8 <= end; i += 8) {
      uint64_t w;
      std::memcpy(&w, p + i, 8);
      counters += ((((w & kRest) + kRest) | w) & kHigh) >> 7;
    }
    const uint64_t sums = (counters & kEven) + (counters >> 8 & kEven);
    count += int64_t(sums * kOnes >> 48);
  }
  for (; i < n; ++i) count += p[i] != 0;
  return count;
}

/// Returns how many elements are true before each piece of parallel_for(n, kElementGrain, ...), and the number of all.
std::vector<int64_t> places_of_pieces(const uint8_t* p, int64_t n) {
  const int64_t chunk = chunk_size(n, kElementGrain);
  std::vector<int64_t> first(size_t(ceil_div(n, chunk) + 1));
  parallel_for(n, kElementGrain, [&](int64_t begin, int64_t end) {
    first[size_t(begin / chunk + 1)] = count_true(p + begin, end - begin);
  });
  for (size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
  return first;
}

Tensor nonzero(const Tensor& input) {
  Tensor mask = input;
  if (input.dtype() != DType::bool_ || !input.is_contiguous()) {
    mask = empty_tensor(input.sizes(), DType::bool_);
    copy_values(mask, input);
  }
  const auto* p = reinterpret_cast<const uint8_t*>(mask.impl()->data());
  const int64_t n = mask.numel(), chunk = chunk_size(n, kElementGrain), ndim = mask.dim();
  const std::vector<int64_t> first = places_of_pieces(p, n);
  const int64_t total = first.back();
  Tensor columns =
      empty_tensor({{ndim, total}}, DType::int64);  // the indices of one dimension lie together, as x[mask] needs them
  auto* out = reinterpret_cast<int64_t*>(columns.impl()->data());
  int64_t row = ndim ? mask.sizes()[size_t(ndim - 1)] : 1;
  parallel_for(n, kElementGrain, [&](int64_t begin, int64_t end) {
    int64_t at = first[size_t(begin / chunk)];
    const int64_t last_at = first[size_t(begin / chunk + 1)];  // where the next piece begins
    for (int64_t i = begin; i < end;) {  // one row, or the part of it that lies in this piece
      int64_t stop = std::min(end, (i / row + 1) * row), start = at, column = i % row;
      if (ndim == 0) return;
      int64_t* last = out + (ndim - 1) * total;
      for (int64_t k = i; k < stop && at < last_at; ++k, ++column) {  // without a branch on a mask without order
        last[at] = column;
        at += p[k] != 0;
      }
      int64_t rest = i / row;
      for (int64_t d = ndim - 2; d >= 0; --d) {
        std::fill(out + d * total + start, out + d * total + at, rest % mask.sizes()[size_t(d)]);
        rest /= mask.sizes()[size_t(d)];
      }
      i = stop;
    }
  });
  return Tensor(TensorImpl::make(columns.impl()->storage(), {{total, ndim}}, {{1, std::max<int64_t>(total, 1)}}, 0,
                                 DType::int64, "nonzero"));
}

}  // namespace

bool is_mask_of(const Tensor& mask, const Tensor& input) {
  return mask.dtype() == DType::bool_ && mask.device() == input.device() && input.dim() > 0 &&
         std::ranges::equal(mask.sizes(), input.sizes()) && mask.is_contiguous() && input.is_contiguous();
}

Tensor elements_of_mask(const Tensor& input, const Tensor& mask) {
  const auto* const p = reinterpret_cast<const uint8_t*>(mask.impl()->data());
  const int64_t n = mask.numel(), chunk = chunk_size(n, kElementGrain), item = itemsize(input.dtype());
  const std::vector<int64_t> first = places_of_pieces(p, n);
  Tensor r = result_tensor({{first.back()}}, input.dtype());
  const auto compress = mask_kernels.compress[std::countr_zero(uint64_t(item))];
  const char* const x = input.impl()->data();
  char* const out = r.impl()->data();
  parallel_for(n, kElementGrain, [&](int64_t begin, int64_t end) {
    const int64_t at = first[size_t(begin / chunk)], count = first[size_t(begin / chunk + 1)] - at;
    compress(x + begin * item, p + begin, end - begin, out + at * item, count);
  });
  return r;
}

void register_mask() {
  VESTA_ON_AVX2_AT_MOST(register_mask_kernels, mask_kernels);
  ops::nonzero.set_kernel(DeviceType::cpu, &nonzero);
}

}  // namespace vesta::cpu
