#include <vesta/core/base/error.h>

#include <charconv>
#include <cmath>

namespace vesta::detail {

void append(std::string& to, std::string_view s) { to.append(s); }

void append(std::string& to, double v) {
  char buffer[40];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, v).ptr;
  std::string_view digits(buffer, size_t(end - buffer));
  to.append(digits);
  if (std::isfinite(v) && digits.find_first_of(".e") == std::string_view::npos) to.append(".0");
}

void append(std::string& to, int64_t v) { to.append(std::to_string(v)); }
void append(std::string& to, uint64_t v) { to.append(std::to_string(v)); }

void append(std::string& to, std::span<const int64_t> dims) {
  to.push_back('[');
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i) to.append(", ");
    append(to, dims[i]);
  }
  to.push_back(']');
}

}  // namespace vesta::detail
