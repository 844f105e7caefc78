#include <vesta/nn/python_repr.h>

#include <charconv>
#include <cmath>

namespace vesta::nn {

std::string python_repr(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  char buffer[64];
  // Python uses the exponent below 1e-4 and from 1e16 on; to_chars uses the shorter form, so the form is given.
  double size = std::fabs(v);
  auto format = v == 0 || (size >= 1e-4 && size < 1e16) ? std::chars_format::fixed : std::chars_format::scientific;
  std::string s(buffer, std::to_chars(buffer, buffer + sizeof buffer, v, format).ptr);
  bool whole = s.find_first_of(".e") == std::string::npos;
  return whole ? s + ".0" : s;
}

}  // namespace vesta::nn
