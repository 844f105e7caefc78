#include "examples.h"

#include <algorithm>
#include <iterator>

namespace vesta::python {
namespace {

struct Example {
  std::string_view name, text;
};
constexpr Example kExamples[] = {
#define EXAMPLE(name, text) {name, text},
#include "elementwise.inc"
#include "functions_a_to_l.inc"
#include "functions_m_to_z.inc"
#include "in_place_a_to_f.inc"
#include "in_place_g_to_z.inc"
#include "methods.inc"
#include "namespaces.inc"
#undef EXAMPLE
};
constexpr size_t kCount = std::size(kExamples);

struct Sorted {
  Example at[kCount];
};
/// The examples by name, sorted by the compiler.
constexpr Sorted kSorted = [] {
  Sorted s{};
  std::copy(std::begin(kExamples), std::end(kExamples), s.at);
  std::sort(std::begin(s.at), std::end(s.at), [](const Example& a, const Example& b) { return a.name < b.name; });
  return s;
}();

/// Finds the example of `home` and `name` written one after the other.
std::string_view find(std::string_view home, std::string_view name) {
  const auto order = [&](std::string_view other) {
    const std::string_view start = other.substr(0, home.size());
    return start == home ? other.substr(start.size()).compare(name) : start.compare(home);
  };
  const auto* const end = std::end(kSorted.at);
  const auto* const found =
      std::partition_point(std::begin(kSorted.at), end, [&](const Example& e) { return order(e.name) < 0; });
  return found != end && order(found->name) == 0 ? found->text : std::string_view();
}

}  // namespace

std::string example_of(std::string_view home, std::string_view name) {
  std::string_view text = home.empty() ? std::string_view() : find(home, name);
  if (text.empty()) text = find({}, name);
  if (text.empty()) return {};
  std::string section = "\n\nExample::\n\n    >>> import vesta\n";
  section.reserve(2 * text.size() + section.size());
  for (size_t at = 1; at < text.size();) {  // behind the first line's end
    const size_t end = text.find('\n', at);
    section.append("    ").append(text.substr(at, end - at + 1));
    at = end + 1;
  }
  return section;
}

}  // namespace vesta::python
