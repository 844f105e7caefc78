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

std::string_view find(std::string_view name) {
  const auto* const end = std::end(kSorted.at);
  const auto* const found = std::lower_bound(std::begin(kSorted.at), end, name,
                                             [](const Example& e, std::string_view n) { return e.name < n; });
  return found != end && found->name == name ? found->text : std::string_view();
}

}  // namespace

std::string example_of(std::string_view home, std::string_view name) {
  std::string_view text = home.empty() ? std::string_view() : find(std::string(home).append(name));
  if (text.empty()) text = find(name);
  if (text.empty()) return {};
  std::string section = "\n\nExample::\n\n    >>> import vesta\n";
  for (size_t at = 1; at < text.size();) {  // behind the first line's end
    const size_t end = text.find('\n', at);
    section.append("    ").append(text.substr(at, end - at + 1));
    at = end + 1;
  }
  return section;
}

}  // namespace vesta::python
