// Reads an op's parameters as the roll call writes them in C++: "(const MaybeDims& dim = {}, bool keepdim = false)".
#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "arguments.h"

namespace vesta::python {
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
    char c = i < s.size() ? s[i] : ',';
    depth += (c == '{' || c == '(' || c == '<') - (c == '}' || c == ')' || c == '>');
    if (c == ',' && depth == 0) {
      if (auto part = trim(s.substr(begin, i - begin)); !part.empty()) parts.push_back(part);
      begin = i + 1;
    }
  }
  return parts;
}

// What Python users call a parameter besides its name, for every op: NumPy's words.
constexpr const char* kAliases[][2] = {{"dim", "axis"}, {"keepdim", "keepdims"}, {"input", "x"},
                                       {"other", "x2"}, {"dim0", "axis0"},       {"dim1", "axis1"}};
// PyTorch's own word for the second operand, where it is not `other`.
constexpr const char* kOtherNames[][2] = {{"pow", "exponent"}, {"clamp_min", "min"}, {"clamp_max", "max"}};
// Ops with tensor parameters that take a Python number, besides the operands of pointwise ops.
constexpr const char* kTakesNumbers[][2] = {{"div", "other"},         {"clamp", "min"},          {"clamp", "max"},
                                            {"masked_fill", "value"}, {"masked_fill_", "value"}, {"copy_", "src"},
                                            {"index_put", "values"},  {"index_put_", "values"}};

bool listed(const auto& table, std::string_view a, std::string_view b) {
  return std::ranges::any_of(table, [&](const auto& row) { return row[0] == a && row[1] == b; });
}

void set_keys(Param& p, std::string_view op) {
  int n = 0;
  auto add = [&](const char* s) { p.keys[n++] = PyUnicode_InternFromString(s); };
  add(p.name.c_str());
  for (auto& [name, alias] : kAliases) {
    if (p.name == name) add(alias);
  }
  for (auto& [of, alias] : kOtherNames) {
    if (op == of && p.name == "other") add(alias);
  }
}

void set_default(Param& p, std::string_view text) {
  p.required = false;
  if (text.size() > 1 && text.front() == '"') text = text.substr(1, text.size() - 2);
  p.default_text = std::string(text);
  if (text == "true") p.integer = 1;
  char* end;
  double number = std::strtod(p.default_text.c_str(), &end);
  if (end == p.default_text.c_str()) return;
  p.real = number, p.integer = int64_t(number);
  p.has_list = p.type == "IntList" || p.type == "MaybeDims";
  // What Arg<T> could not express would be another default in Python than in C++, without a word.
  const bool whole = p.type == "Scalar" && number == double(p.integer);
  VESTA_CHECK(p.has_list || whole || p.type == "double" || p.type == "int64_t", not_implemented,
              "core/ops/list.h: expected no default for a parameter of type ", p.type, ", got ", p.default_text, " (",
              p.name, ").");
}

Param read_param(std::string_view op, std::string_view text) {
  Param p;
  std::string_view given;
  if (size_t equals = text.find('='); equals != text.npos)
    given = trim(text.substr(equals + 1)), text = trim(text.substr(0, equals));
  size_t name = text.find_last_of(" &*") + 1;
  p.name = std::string(text.substr(name));
  std::string_view type = trim(text.substr(0, name));
  if (type.starts_with("const ")) type.remove_prefix(6);
  while (type.ends_with('&') || type.ends_with('*')) type = trim(type.substr(0, type.size() - 1));
  p.type = std::string(type);
  p.none_allowed = p.type.starts_with("Maybe") || p.type == "Generator";
  p.number_allowed = listed(kTakesNumbers, op, p.name);
  if (!given.empty()) set_default(p, given);
  set_keys(p, op);
  return p;
}

bool is_option(const Param& p) { return p.type == "MaybeDType" || p.type == "MaybeDevice" || p.type == "Generator"; }

}  // namespace

std::string shown_default(const Param& p) {
  std::string value = p.default_text;
  if (value == "true" || value == "false") value = p.integer ? "True" : "False";
  else if (p.type == "Text") value = "'" + value + "'";
  else if (p.type == "IntList" && value == "{}") value = "()";
  else if (value == "{}" || value == "nullptr") value = "None";
  return value;
}

void Table::read(const char* name, std::initializer_list<const char*> first, const char* text, bool is_pointwise) {
  op = name;
  pointwise = is_pointwise;
  for (const char* operand : first) {
    params.push_back(read_param(op, "const Tensor& " + std::string(operand)));
    if (is_pointwise && first.size() > 1) params.back().number_allowed = true;
  }
  std::string_view inside(text);
  for (auto part : split(inside.substr(1, inside.size() - 2))) params.push_back(read_param(op, part));
  bool dtype = false, device = false;
  for (int i = 0; i < slots(); ++i) {
    const Param& p = params[size_t(i)];
    if (p.required) required = i + 1;
    dtype = dtype || p.name == "dtype", device = device || p.name == "device";
    bool last = std::all_of(params.begin() + i + 1, params.end(), is_option);
    if (p.type == "IntList" && last && (p.name == "size" || p.name == "dims" || p.name == "shape")) varargs = i;
    signature += (i ? ", " : "") + p.name + (p.required ? "" : "=" + shown_default(p));
  }
  std::string_view n(name);
  auto is = [&](const char* type) {
    return std::ranges::any_of(params, [&](const Param& p) { return p.type == type; });
  };
  // A factory's values, and random ones, do not depend on a tensor's.
  differentiable = (is("Tensor") || is("TensorList")) && !is("Generator") && !(dtype && device && n != "to_copy");
  if (dtype && device) extras |= 1 << kRequiresGrad | 1 << kPinMemory | 1 << kLayout;
  if (n.ends_with("_like") || n == "empty" || n == "clone" || n == "contiguous" || n == "to_copy")
    extras |= 1 << kMemoryFormat;
}

}  // namespace vesta::python
