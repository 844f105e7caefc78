// tril and triu: rows of which a first or a last part is copied, and zeros beside it.
#include <algorithm>
#include <cstring>

#include <vesta/core/cpu/convert.h>
#include <vesta/core/cpu/non_temporal.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/register.h>
#include <vesta/core/ops/destination.h>
#include <vesta/core/ops/shape.h>

namespace vesta::cpu {
namespace {

/// Keeps what lies at or below a diagonal, or at or above it, of matrices whose rows are dense; others are masked, as
/// the op's own body does it.
template <bool lower>
Tensor triangle(const Tensor& input, int64_t diagonal) {
  if (input.dim() < 2 || input.numel() == 0 || !input.is_contiguous()) {
    return (lower ? ops::tril : ops::triu).body()(input, diagonal);
  }
  Tensor r = result_tensor(input.sizes(), input.dtype(), input.device());
  const int64_t rows = input.size(-2), columns = input.size(-1), item = input.element_size();
  const int64_t d = std::clamp(diagonal, -rows, columns);  // a sum with it does not overflow
  const char* const from = input.impl()->data();
  char* const to = r.impl()->data();
  const Convert copy = convert(input.dtype(), input.dtype());
  const bool non_temporal = bypasses_caches(r.numel() * item);
  parallel_for(r.numel() / columns, std::max<int64_t>(1, kElementGrain / columns), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      // [first, last) is kept
      const int64_t cut = std::clamp<int64_t>(i % rows + d + (lower ? 1 : 0), 0, columns);
      const int64_t first = lower ? 0 : cut, last = lower ? cut : columns, at = i * columns * item;
      char* const row = to + at;
      std::memset(row, 0, size_t(first * item));
      if (from != to) {  // tril_ and triu_ write zeros only
        if (non_temporal) write_non_temporal(row + first * item, from + at + first * item, (last - first) * item);
        else copy(from + at + first * item, item, row + first * item, item, last - first);
      }
      std::memset(row + last * item, 0, size_t((columns - last) * item));
    }
    if (non_temporal) finish_non_temporal();
  });
  return r;
}

}  // namespace

void register_triangle() {
  ops::tril.set_kernel(DeviceType::cpu, &triangle<true>);
  ops::triu.set_kernel(DeviceType::cpu, &triangle<false>);
}

}  // namespace vesta::cpu
