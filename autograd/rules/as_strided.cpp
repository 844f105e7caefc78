#include <vesta/autograd/rules/as_strided.h>

#include <algorithm>

#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/strided_iter.h>
#include <vesta/core/ops/view.h>

namespace vesta::autograd::rules {

namespace {
int64_t last_of(const Geometry& g) {
  int64_t last = g.offset;
  for (size_t d = 0; d < g.sizes.size(); ++d) {
    if (g.sizes[d] == 0) return g.offset - 1;
    last += (g.sizes[d] - 1) * g.strides[d];
  }
  return last;
}
}  // namespace

Geometry in_reals(Geometry g) {
  for (int64_t& stride : g.strides) stride *= 2;
  g.sizes.push_back(2);
  g.strides.push_back(1);
  g.offset *= 2;
  return g;
}

Tensor as_complex(const Tensor& parts) {
  const bool packed = parts.is_contiguous() && parts.storage_offset() % 2 == 0 &&
                      std::ranges::equal(parts.strides(), contiguous_strides(parts.sizes()));
  return view_as_complex(packed ? parts : clone(parts, "contiguous_format"));
}

int64_t extent(const Geometry& a, const Geometry& b) {
  return std::max<int64_t>(std::max(last_of(a), last_of(b)) - first(a, b) + 1, 0);
}

Tensor geometry_of(const Tensor& buffer, const Geometry& g, int64_t origin) {
  return as_strided(buffer, g.sizes, g.strides, g.offset - origin);
}

Tensor as_strided_backward(const Tensor& grad, const Geometry& from, const Geometry& to) {
  int64_t n = extent(from, to), origin = first(from, to);
  Tensor buffer = zeros(n, grad.dtype(), grad.device());
  Tensor place = arange(0, n, 1, DType::int64, grad.device());
  Tensor target = geometry_of(buffer, to, origin);
  if (self_overlaps(target)) index_add_(buffer, 0, reshape(geometry_of(place, to, origin), -1), reshape(grad, -1));
  else copy_(target, grad);
  Tensor result = geometry_of(buffer, from, origin);
  if (!self_overlaps(result)) return result;
  Tensor uses = zeros(n, grad.dtype(), grad.device());
  Tensor at = reshape(geometry_of(place, from, origin), -1);
  index_add_(uses, 0, at, ones(at.sizes(), grad.dtype(), grad.device()));
  return result / geometry_of(uses, from, origin);
}

}  // namespace vesta::autograd::rules
