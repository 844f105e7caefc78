#include <vesta/core/base/warning.h>

#include <atomic>

namespace vesta {
namespace { std::atomic<WarningHandler> current{nullptr}; }

WarningHandler set_warning_handler(WarningHandler handler) { return current.exchange(handler); }

void warn(const std::string& text) {
  if (WarningHandler handler = current.load()) handler(text);
}

}  // namespace vesta
