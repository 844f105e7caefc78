#include <vesta/core/precision.h>

namespace vesta {

ProductSettings& product_settings() {
  static ProductSettings settings;
  return settings;
}

bool may_be_nondeterministic() {
  const ProductSettings& s = product_settings();
  return s.allow_nondeterministic && !s.deterministic_only;
}

}  // namespace vesta
