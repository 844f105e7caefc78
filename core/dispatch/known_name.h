// Op names as error messages show them.
#pragma once
#include <string_view>

namespace vesta {

/// Returns an op's public name: that of a private op without its underscore.
constexpr std::string_view known_name(std::string_view op) {
  if (op.starts_with('_') && !op.starts_with("__")) op.remove_prefix(1);
  return op;
}

}  // namespace vesta
