// Sorting: the gradient goes back to where the elements came from.
#include <vesta/autograd/record.h>
#include <vesta/autograd/rules/places.h>
#include <vesta/autograd/rules/rules.h>
#include <vesta/core/ops/sort.h>

namespace vesta::autograd::rules {
namespace {

struct SortRule : PlacesRule {
  static SortRule save(const TensorPair& r, const Tensor&, MaybeBool, int64_t dim, bool, Needs) {
    return {{dim, Saved(std::get<1>(r))}};
  }
};

}  // namespace

void register_sort() { record<ops::sort_stable, SortRule>(); }

}  // namespace vesta::autograd::rules
