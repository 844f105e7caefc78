// Reads one form of a function: the parameters of its schema, which stand there as C++ declares them.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include <vesta/core/dispatch/known_name.h>

#include "arguments.h"

namespace vesta::python {
namespace {

// What Python users call a parameter besides its name, for every op: NumPy's words.
constexpr const char* kAliases[][2] = {{"dim", "axis"}, {"keepdim", "keepdims"}, {"input", "x"},
                                       {"input", "x1"}, {"input", "a"},          {"other", "x2"}};

struct Named {
  std::string_view type;
  Kind kind;
  bool none_allowed;
  bool lone_int = false, spreads = false;  // of lists: Param
};
// The types of parameters: X(as C++ spells it, kind, whether None is a value).
constexpr Named kTypes[] = {{"Tensor", Kind::tensor, false},
                            {"Operand", Kind::operand, false},
                            {"MaybeTensor", Kind::tensor, true},
                            {"MaybeOperand", Kind::operand, true},
                            {"TensorList", Kind::tensors, false},
                            {"MaybeTensorList", Kind::maybe_tensors, false},
                            {"IntList", Kind::integers, false, true, true},
                            {"IntTuple", Kind::integers, false, false, true},
                            {"MaybeDims", Kind::integers, true, true},
                            {"int64_t", Kind::integer, false},
                            {"MaybeInt", Kind::integer, true},
                            {"double", Kind::real, false},
                            {"RealScalar", Kind::number_as_real, false},
                            {"MaybeDouble", Kind::real, true},
                            {"bool", Kind::boolean, false},
                            {"Flag", Kind::boolean, false},
                            {"MaybeBool", Kind::boolean, true},
                            {"Scalar", Kind::number, false},
                            {"MaybeScalar", Kind::number, true},
                            {"DType", Kind::dtype, false},
                            {"MaybeDType", Kind::dtype, true},
                            {"MaybeDevice", Kind::device, true},
                            {"Text", Kind::text, false},
                            {"TextOnly", Kind::text, false},
                            {"MaybeText", Kind::text, true},
                            {"Generator", Kind::generator, true},
                            {"object", Kind::object, true}};

void set_keys(Param& p) {
  static const auto aliases = [] {
    std::array<PyObject*, std::size(kAliases)> interned;
    for (size_t i = 0; i < interned.size(); ++i) interned[i] = PyUnicode_InternFromString(kAliases[i][1]);
    return interned;
  }();
  int n = 0;
  p.keys[n++] = PyUnicode_InternFromString(p.name.c_str());
  for (size_t i = 0; i < aliases.size(); ++i) {
    if (p.name == kAliases[i][0]) p.keys[n++] = new_ref(aliases[i]);
  }
}

/// Reads "1", "{}" or "{-2, -1}" as a list of integers.
void read_list(Param& p) {
  const char* at = p.default_text.c_str();
  at += *at == '{';
  char* end;
  for (long long v = std::strtoll(at, &end, 10); end != at; v = std::strtoll(at, &end, 10)) {
    p.list.push_back(v);
    at = end + (*end == ',');
  }
  p.has_list = p.none_allowed ? !p.list.empty() : true;
}

void set_default(Param& p, std::string_view text) {
  p.required = false;
  if (text.size() > 1 && text.front() == '"') text = text.substr(1, text.size() - 2);
  p.default_text = std::string(text);
  if (text == "true") p.integer = 1;
  if (text == "{}" || text == "nullptr" || text == "true" || text == "false" || p.kind == Kind::text ||
      p.kind == Kind::object) {
    return;
  }
  if (p.kind == Kind::integers) return read_list(p);
  char* end;
  p.real = std::strtod(p.default_text.c_str(), &end), p.integer = int64_t(p.real);
  // What Arg<T> could not express would be another default in Python than in C++, without a word.
  const bool whole = p.kind == Kind::number && p.real == double(p.integer);
  const bool real = p.kind == Kind::real || p.kind == Kind::number_as_real;
  VESTA_CHECK(*end == 0 && (whole || real || p.kind == Kind::integer), not_implemented,
              "op list: expected no default for a parameter of type ", p.type, ", got ", p.default_text, " (", p.name,
              ").");
}

Param read_param(const Parameter& from, const char* op) {
  Param p;
  p.name = std::string(from.name), p.type = std::string(from.type), p.keyword_only = from.keyword_only;
  const auto* type = std::ranges::find(kTypes, from.type, &Named::type);
  VESTA_CHECK(type != std::end(kTypes), not_implemented, op, ": expected a parameter type that Python knows, got ",
              from.type, " (", from.name, ").");
  p.kind = type->kind, p.none_allowed = type->none_allowed, p.lone_int = type->lone_int, p.spreads = type->spreads;
  if (from.has_default) set_default(p, from.default_text);
  set_keys(p);
  return p;
}

bool is_option(const Param& p) { return p.keyword_only; }

}  // namespace

std::string shown_default(const Param& p) {
  const std::string& value = p.default_text;
  if (value == "true" || value == "false") return p.integer ? "True" : "False";
  if (p.name == "memory_format") return value == "preserve_format" || value == "{}" ? "None" : "vesta." + value;
  if (p.kind == Kind::text && value != "{}") return "'" + value + "'";
  if (p.kind == Kind::integers && !p.none_allowed && value == "{}") return "()";
  if (value == "{}" || value == "nullptr") return "None";
  if (p.kind == Kind::integers && value.front() == '{') return "(" + value.substr(1, value.size() - 2) + ")";
  return value;
}

void Table::read(const Schema& s) {
  schema = &s;
  read(s.name, s.parameters);
  if (s.number_first) params[0].number_too = true;
  for (Param& p : params) p.typed_alpha = s.typed_alpha && (p.name == "alpha" || p.name == "value");
  takes_out = s.takes_out || (s.pointwise && std::string_view(s.result) == "Tensor");
  if (s.out) extras |= 1 << kOut;
  if (s.factory) extras |= 1 << kRequiresGrad | 1 << kPinMemory | 1 << kLayout;
  if (s.memory_format) extras |= 1 << kMemoryFormat;
}

void Table::read(const char* name, const char* text) {
  op = known_name(name).data();  // the end of the name, which is a literal
  const std::vector<Parameter> declared = parameters_of(text);
  params.reserve(declared.size());
  for (const Parameter& p : declared) params.push_back(read_param(p, name));
  VESTA_CHECK(slots() + kExtras <= kMaxSlots, not_implemented, op, ": expected at most ", kMaxSlots - kExtras,
              " parameters, got ", slots(), ". Raise kMaxSlots.");
  bool starred = false;
  for (int i = 0; i < slots(); ++i) {
    const Param& p = params[size_t(i)];
    if (p.required) required = i + 1;
    if (!p.keyword_only) positional = i + 1;
    const bool last = std::all_of(params.begin() + i + 1, params.end(), is_option);
    const bool only = last && (i == 0 || (i == 1 && params[0].kind == Kind::tensor));  // besides self, as in PyTorch
    if (p.spreads && only) varargs = i;
    if (p.keyword_only && !starred) signature += i ? ", *" : "*", starred = true;
    signature += (signature.empty() ? "" : ", ") + p.name + (p.required ? "" : "=" + shown_default(p));
  }
  takes_star = starred;
}

}  // namespace vesta::python
