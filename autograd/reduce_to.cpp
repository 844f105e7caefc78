#include <vesta/autograd/reduce_to.h>

#include <algorithm>

#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/view.h>

namespace vesta::autograd {

Tensor reduce_to(const Tensor& t, IntSpan sizes, DType dtype) {
  Tensor r = t;
  if (!std::ranges::equal(r.sizes(), sizes)) {
    size_t lead = r.sizes().size() - sizes.size();
    Dims dims;
    for (size_t d = 0; d < r.sizes().size(); ++d) {
      if (d < lead || (sizes[d - lead] == 1 && r.sizes()[d] != 1)) dims.push_back(int64_t(d));
    }
    if (!dims.empty()) r = sum(r, MaybeDims(dims), true);
    if (lead) r = view(r, IntList(sizes));
  }
  return r.dtype() == dtype ? r : _to_copy(r, dtype);  // of a complex number, a real one keeps the real part
}

}  // namespace vesta::autograd
