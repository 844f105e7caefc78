#include <vesta/core/shape.h>

#include <algorithm>
#include <numeric>

namespace vesta {

int64_t numel_of(IntSpan sizes, const char* op) {
  VESTA_CHECK(int64_t(sizes.size()) <= kMaxDims, value, op, ": expected at most ", kMaxDims, " dimensions, got ",
              sizes.size(), ".");
  int64_t n = 1;
  bool empty = false;
  for (int64_t s : sizes) {
    VESTA_CHECK(s >= 0, value, op, ": expected sizes >= 0, got negative dimension ", s, " in ", sizes, ".");
    if (s == 0) empty = true;
    else n = checked_mul(n, s, op);  // also for an empty tensor: its strides must fit
  }
  return empty ? 0 : n;
}

Dims contiguous_strides(IntSpan sizes) {
  Dims strides(sizes.size());
  int64_t step = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = step;
    step *= std::max<int64_t>(sizes[i], 1);
  }
  return strides;
}

bool is_contiguous(IntSpan sizes, IntSpan strides) {
  int64_t step = 1;
  bool ordered = true;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 0) return true;
    if (sizes[i] != 1) {
      ordered = ordered && strides[i] == step;
      step *= sizes[i];
    }
  }
  return ordered;
}

bool is_non_overlapping_and_dense(IntSpan sizes, IntSpan strides) {
  SmallVector<uint8_t, 16> order(sizes.size());
  std::iota(order.begin(), order.end(), uint8_t(0));
  std::sort(order.begin(), order.end(), [&](uint8_t a, uint8_t b) {
    if (sizes[a] == 1 || sizes[b] == 1) return sizes[a] != 1 && sizes[b] == 1;
    return strides[a] < strides[b];
  });
  int64_t step = 1;
  for (uint8_t d : order) {
    if (sizes[d] == 0) return true;
    if (sizes[d] == 1) continue;
    if (strides[d] != step) return false;
    step *= sizes[d];
  }
  return true;
}

Dims broadcast_shapes(IntSpan a, IntSpan b, const char* op) {
  if (a.size() < b.size()) std::swap(a, b);
  Dims r(a);
  size_t lead = a.size() - b.size();
  for (size_t i = 0; i < b.size(); ++i) {
    int64_t x = a[lead + i], y = b[i];
    VESTA_CHECK(x == y || x == 1 || y == 1, value, op, ": shapes ", a, " and ", b, " do not broadcast (", x, " vs ", y,
                " at dimension ", lead + i, "). The size of each must be equal or 1.");
    r[lead + i] = x == 1 ? y : x;
  }
  return r;
}

int64_t wrap_dim(int64_t dim, int64_t ndim, const char* op) {
  int64_t n = std::max<int64_t>(ndim, 1);
  VESTA_CHECK(dim >= -n && dim < n, index, op, ": Dimension out of range (expected to be in range of [", -n, ", ",
              n - 1, "], but got ", dim, ").");
  return dim < 0 ? dim + n : dim;
}

int64_t existing_dim(int64_t dim, int64_t ndim, const char* op) {
  VESTA_CHECK(ndim > 0, index, op, ": Dimension specified as ", dim, " but tensor has no dimensions");
  return wrap_dim(dim, ndim, op);
}

uint64_t dim_mask(IntSpan dims, int64_t ndim, const char* op, bool empty_is_all) {
  if (dims.empty()) return empty_is_all ? ~uint64_t(0) >> (64 - std::max<int64_t>(ndim, 1)) : 0;
  uint64_t mask = 0;
  for (int64_t d : dims) {
    uint64_t bit = uint64_t(1) << wrap_dim(d, ndim, op);
    VESTA_CHECK(!(mask & bit), runtime, op, ": expected different dimensions, dim ", d,
                " appears multiple times in the list of dims.");
    mask |= bit;
  }
  return mask;
}

Dims infer_size(IntSpan sizes, int64_t numel, const char* op) {
  Dims r(sizes);
  int64_t unknown = -1, known = 1;
  for (size_t i = 0; i < r.size(); ++i) {
    if (r[i] == -1) {
      VESTA_CHECK(unknown < 0, value, op, ": only one dimension can be inferred, got ", sizes, ".");
      unknown = int64_t(i);
    } else {
      VESTA_CHECK(r[i] >= 0, value, op, ": invalid shape dimension ", r[i], " in ", sizes, ".");
      known = checked_mul(known, r[i], op);
    }
  }
  if (unknown >= 0) {
    VESTA_CHECK(known != 0, value, op, ": cannot reshape tensor of ", numel, " elements into shape ", sizes,
                " because the unspecified dimension size -1 can be any value and is ambiguous.");
    VESTA_CHECK(numel % known == 0, value, op, ": shape ", sizes, " is invalid for input of size ", numel, ".");
    r[unknown] = numel / known;
  } else {
    VESTA_CHECK(known == numel, value, op, ": shape ", sizes, " is invalid for input of size ", numel, ".");
  }
  if (numel == 0) numel_of(r, op);  // its strides must fit
  return r;
}

std::optional<Dims> view_strides(IntSpan old_sizes, IntSpan old_strides, IntSpan sizes) {
  Dims strides = contiguous_strides(sizes);
  int64_t total = 1;
  for (int64_t s : old_sizes) total *= s;
  if (total == 0 || old_sizes.empty()) return strides;
  // Walk both shapes from the right; each run of old dimensions that is dense in itself is cut into new ones.
  int64_t at = int64_t(sizes.size()) - 1, run = 1, filled = 1, base = 1;
  bool open = false;
  for (int64_t d = int64_t(old_sizes.size()) - 1; d >= 0; --d) {
    if (!open) base = old_strides[d], open = true;
    run *= old_sizes[d];
    bool last = d == 0 || (old_sizes[d - 1] != 1 && old_strides[d - 1] != run * base);
    if (!last) continue;
    while (at >= 0 && (filled < run || sizes[at] == 1)) {
      strides[at] = filled * base;
      filled *= sizes[at--];
    }
    if (filled != run) return std::nullopt;
    run = filled = 1, open = false;
  }
  if (at != -1) return std::nullopt;
  return strides;
}

}  // namespace vesta
