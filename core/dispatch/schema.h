// Schema: an op's line in the op list, at run time. Everything that describes an op reads it: the Python parser,
// help(), stubs, error messages, autocast, docs, profiles.
//
// A line ends in properties, the constants of namespace vesta::schema:
//
//   OP(METHOD_AS, TensorPair, max, dim, (int64_t dim, bool keepdim = false), (dim, keepdim), out,
//      fields("values", "indices"))
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <vesta/core/base/macros.h>
#include <vesta/core/dtype_set.h>

namespace vesta {

/// The namespace of a function in Python: `vesta`, `linalg`, `fft`, `special`, `nn.functional`, or `vesta._C` only.
enum class Space : uint8_t { root, linalg, fft, special, functional, hidden };

namespace autocast {
/// The treatment of an op's floating-point operands under autocast (float64 is never touched).
enum class Rule : uint8_t {
  none,            // leaves them alone
  lower,           // casts to the mode's dtype: products and convolutions
  float32,         // casts to float32: where 16 bits overflow or lose too much
  float32_result,  // asks for a float32 result unless the caller gave a dtype
  widest,          // casts to float32 where their dtypes differ
};
}  // namespace autocast

/// The dtype of a result, from the one that the operands are promoted to.
enum class Gives : uint8_t {
  same,           // theirs
  boolean,
  int32,
  int64,
  float64,
  floating,       // theirs; the default dtype for integers and bool
  real,           // theirs; that of their parts for complex numbers
  real_floating,  // real and floating
  complex,        // the complex one of their width
  sum,            // theirs; int64 for integers and bool
  arithmetic,     // theirs; int64 for bool
  truth,          // bool; uint8 for uint8
  widest,         // float64; complex128 for complex numbers
  statistics,     // theirs; float32 for 16-bit floats
};

/// The bytes and arithmetic operations of one call, for profiles.
struct Cost {
  double bytes = 0;
  double operations = 0;
};
class OperandSizes;  // what a cost formula sees of a call

/// The whole interface of one form of an op.
struct Schema {
  const char* name = "";         // the function's: "max"
  const char* overload = "";     // which of its forms: "dim"; "" for the first
  const char* parameters = "()";  // as C++ declares them, the first operand included
  const char* result = "Tensor";  // as C++ declares it
  const char* doc = "";
  Space space = Space::root;
  bool function = true;           // stands in `space`
  bool method = false;            // and in Tensor, where the first parameter is self
  bool pointwise = false;
  bool inplace = false;           // a pointwise op with a method name_() too
  bool out = false;               // takes out= in Python
  bool number_first = false;      // the function takes a number as its first tensor
  bool takes_out = false;         // a composite with an Out, as a pointwise op
  bool exact_out = false;         // out must have the result's dtype, not one that it can be cast to
  bool overwrites = false;        // its kernels read an element before they write there: the result may replace it
  bool composite = false;         // has a default body, made of other ops
  bool differentiable = true;     // false: results carry no gradient
  bool typed_alpha = false;       // alpha is of the operands' kind: no float for integers, a bool for bools only
  bool factory = false;           // takes requires_grad, pin_memory and layout
  bool memory_format = false;     // takes memory_format, besides its parameters
  bool any_device = false;        // operands may lie on several devices, or the kernel checks them itself
  bool deprecated = false;        // warns once
  std::array<const char*, 4> fields{};  // of a named result: "values", "indices"
  DTypeSet accepts = kAllTypes;         // the dtypes that the operands may be promoted to, without dtype=
  std::array<Gives, 3> gives{};   // the dtype of each result, where no dtype= is given
  autocast::Rule on_cpu = autocast::Rule::none, on_cuda = autocast::Rule::none;
  Cost (*cost)(const OperandSizes& sizes) = nullptr;

  /// Returns "max.dim", the name in schemas and profiles.
  VESTA_API std::string full_name() const;
};

/// Returns "a floating-point or complex dtype", as error texts and help() name a set.
VESTA_API std::string described(DTypeSet dtypes);

/// One parameter of a schema, as its line in the op list declares it; its strings belong to the schema.
struct Parameter {
  std::string_view name;
  std::string_view type;          // without const, & and *: "Tensor", "MaybeDims"
  std::string_view default_text;  // as C++ spells it
  bool has_default = false;
  bool keyword_only = false;
};
/// Reads the parameters that a schema's text declares: "(const MaybeDims& dim = {}, bool keepdim = false)".
VESTA_API std::vector<Parameter> parameters_of(std::string_view text);

namespace schema {

/// Makes a schema from the kind of a line and its properties, in order.
template <class... Property>
constexpr Schema make(Schema s, Property... property) {
  (property(s), ...);
  return s;
}

inline constexpr auto method = [](Schema& s) { s.method = true; };
/// Makes the op a method in Python, not a function.
inline constexpr auto tensor_only = [](Schema& s) { s.method = true, s.function = false; };
/// Makes the op a function, too.
inline constexpr auto also_function = [](Schema& s) { s.function = true; };
/// Removes the op's method from Python; C++ may keep it.
inline constexpr auto no_method = [](Schema& s) { s.method = false; };
inline constexpr auto inplace = [](Schema& s) { s.inplace = true; };
inline constexpr auto out = [](Schema& s) { s.out = true; };
inline constexpr auto number_first = [](Schema& s) { s.number_first = true; };
inline constexpr auto takes_out = [](Schema& s) { s.takes_out = true; };
/// Accepts out= of the result's dtype only, as PyTorch does for this op.
inline constexpr auto exact_out = [](Schema& s) { s.out = s.exact_out = true; };
inline constexpr auto overwrites = [](Schema& s) { s.overwrites = true; };
inline constexpr auto composite = [](Schema& s) { s.composite = true; };
inline constexpr auto no_gradient = [](Schema& s) { s.differentiable = false; };
inline constexpr auto typed_alpha = [](Schema& s) { s.typed_alpha = true; };
inline constexpr auto factory = [](Schema& s) { s.factory = true, s.differentiable = false; };
inline constexpr auto memory_format = [](Schema& s) { s.memory_format = true; };
inline constexpr auto any_device = [](Schema& s) { s.any_device = true; };
inline constexpr auto deprecated = [](Schema& s) { s.deprecated = true; };
inline constexpr auto hidden = [](Schema& s) { s.space = Space::hidden, s.method = false; };
inline constexpr auto functional = [](Schema& s) { s.space = Space::functional, s.method = false; };
inline constexpr auto in_linalg = [](Schema& s) { s.space = Space::linalg; };
inline constexpr auto in_fft = [](Schema& s) { s.space = Space::fft; };
inline constexpr auto in_special = [](Schema& s) { s.space = Space::special; };

/// Names the parts of a result: vesta.return_types.NAME.
template <class... Name>
constexpr auto fields(Name... name) {
  return [=](Schema& s) { s.fields = {name...}; };
}

// Dtypes. Those of a pointwise op are read from its struct.
inline constexpr DTypeSet kWideFloats = set_of(DType::float32) | set_of(DType::float64);
constexpr auto accepts(DTypeSet dtypes) {
  return [=](Schema& s) { s.accepts = dtypes; };
}
/// States the dtype of each result.
template <class... Rule>
constexpr auto gives(Rule... rule) {
  return [=](Schema& s) { s.gives = {rule...}; };
}

/// Takes over the dtypes that another form accepts.
constexpr auto accepts_as(const Schema& other) {
  return [set = other.accepts](Schema& s) { s.accepts = set; };
}

// Rules of autocast, on the CPU and on CUDA.
inline constexpr auto none = autocast::Rule::none;
inline constexpr auto lower = autocast::Rule::lower;
inline constexpr auto float32 = autocast::Rule::float32;
inline constexpr auto float32_result = autocast::Rule::float32_result;
inline constexpr auto widest = autocast::Rule::widest;
constexpr auto casts(vesta::autocast::Rule on_cpu, vesta::autocast::Rule on_cuda) {
  return [=](Schema& s) { s.on_cpu = on_cpu, s.on_cuda = on_cuda; };
}

}  // namespace schema
}  // namespace vesta
