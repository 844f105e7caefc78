#include <vesta/core/precision.h>

namespace vesta {

ProductSettings& product_settings() {
  static ProductSettings settings;
  return settings;
}

}  // namespace vesta
