#include <vesta/core/dispatch/schema.h>
#include <vesta/core/dtype.h>

#include <utility>

namespace vesta {
namespace {

std::string_view trim(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\n')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\n')) s.remove_suffix(1);
  return s;
}

/// Splits at the commas that stand outside of brackets.
std::vector<std::string_view> split(std::string_view s) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= s.size(); ++i) {
    const char c = i < s.size() ? s[i] : ',';
    depth += (c == '{' || c == '(' || c == '<') - (c == '}' || c == ')' || c == '>');
    if (c == ',' && depth == 0) {
      if (auto part = trim(s.substr(begin, i - begin)); !part.empty()) parts.push_back(part);
      begin = i + 1;
    }
  }
  return parts;
}

Parameter read(std::string_view text) {
  Parameter p;
  if (const size_t equals = text.find('='); equals != text.npos) {
    p.has_default = true;
    p.default_text = trim(text.substr(equals + 1));
    text = trim(text.substr(0, equals));
  }
  const size_t name = text.find_last_of(" &*>") + 1;
  p.name = text.substr(name);
  std::string_view type = trim(text.substr(0, name));
  if (type.starts_with("const ")) type.remove_prefix(6);
  if (type.starts_with("Kw<")) {
    type = type.substr(3, type.rfind('>') - 3);
    p.keyword_only = true;
  }
  while (type.ends_with('&') || type.ends_with('*')) type = trim(type.substr(0, type.size() - 1));
  p.type = type;
  return p;
}

}  // namespace

std::string Schema::full_name() const { return *overload ? std::string(name) + "." + overload : std::string(name); }

std::string described(DTypeSet dtypes) {
  if (dtypes.bits == kAllTypes.bits) return "any dtype";
  std::vector<std::string> parts;
  const std::pair<DTypeSet, const char*> kinds[] = {
      {kBool, "bool"}, {kIntegers, "integer"}, {kFloats, "floating-point"}, {kComplexes, "complex"}};
  for (const auto& [kind, text] : kinds) {
    if ((dtypes.bits & kind.bits) == kind.bits) {
      parts.emplace_back(text);
      continue;
    }
    for (int i = 0; i < kNumDTypes; ++i) {
      if (kind.has(DType(i)) && dtypes.has(DType(i))) parts.emplace_back(name(DType(i)));
    }
  }
  std::string text = parts.empty() || parts[0][0] != 'i' ? "a " : "an ";
  for (size_t i = 0; i < parts.size(); ++i) text += (i == 0 ? "" : i + 1 < parts.size() ? ", " : " or ") + parts[i];
  return text + " dtype";
}

std::vector<Parameter> parameters_of(std::string_view text) {
  std::vector<Parameter> all;
  bool keyword_only = false;
  for (std::string_view part : split(text.substr(1, text.size() - 2))) {
    all.push_back(read(part));
    keyword_only = all.back().keyword_only = keyword_only || all.back().keyword_only;
  }
  return all;
}

}  // namespace vesta
