// The operators: + - * / // % ** @ & | ^ ~ < <= == and so on, conversions to Python numbers. They call the Op directly.
#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/compare.h>
#include <vesta/core/ops/matmul.h>
#include <vesta/core/ops/numbers.h>
#include <vesta/core/torch_rules.h>

#include "arguments.h"
#include "factories.h"
#include "tensor_slots.h"
#include "torch_function.h"

namespace vesta::python {
namespace {

bool big(const Tensor& a) { return a.impl()->numel() >= kReleaseGil; }

/// Returns the method that __torch_function__ gets for an operator. Most of PyTorch's operators are its methods: a
/// handler of Tensor.add takes `a + b` and `1 + a`, too.
std::string_view function_of(std::string_view op) {
  static constexpr std::pair<std::string_view, std::string_view> kMethods[] = {
      {"__add__", "add"},      {"__radd__", "add"},    {"__sub__", "sub"},       {"__mul__", "mul"},
      {"__rmul__", "mul"},     {"__truediv__", "div"}, {"__mod__", "remainder"}, {"__matmul__", "matmul"},
      {"__neg__", "neg"},      {"__abs__", "abs"},     {"__lt__", "lt"},         {"__le__", "le"},
      {"__gt__", "gt"},        {"__ge__", "ge"},       {"__ne__", "ne"},         {"__iadd__", "add_"},
      {"__isub__", "sub_"},    {"__imul__", "mul_"},   {"__itruediv__", "div_"}, {"__imod__", "remainder_"},
      {"__pos__", "positive"},
  };
  for (const auto& [from, method] : kMethods) {
    if (from == op) return method;
  }
  return op;
}

/// Calls the override of an operand, with the operator's method as the function: of `2 - x` it is `__rsub__`. Where
/// none takes the call over, or the method itself knows no answer, Python asks the other operand.
PyObject* overridden(const char* method, PyObject* a, PyObject* b) {
  std::string name = method;
  if (b && !is_tensor(a)) {
    name = std::string("__r") + (method + 2);
    std::swap(a, b);
  }
  const std::string function(function_of(name));
  Ref func(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), function.c_str()));
  Ref args(b ? PyTuple_Pack(2, a, b) : PyTuple_Pack(1, a));
  if (!func || !args) return nullptr;
  Scalar number;
  const bool unknown = b && function != name && !is_tensor(b) && !number_of(b, number);  // a method raises for these
  bool declined = false;
  PyObject* result = call_override(func.get(), args.get(), nullptr, &declined);
  if (result || !b || !(declined || (unknown && PyErr_ExceptionMatches(PyExc_TypeError)))) return result;
  PyErr_Clear();
  Py_RETURN_NOTIMPLEMENTED;
}

bool overridden_by(PyObject* a, PyObject* b) {
  return torch_function_seen && (overrides_in(a) || (b && overrides_in(b)));
}

/// Runs a pointwise op with two operands, the parameters of add and sub (alpha = 1) included.
template <auto& op>
Tensor run(const Tensor& a, const Tensor& b, Out out) {
  WithoutGil open(big(a) || big(b));
  if constexpr (requires { op(a, b, 1.0, out); }) return op(a, b, 1.0, out);
  else return op(a, b, out);
}

template <auto& op>
Tensor run(const Tensor& a) {
  WithoutGil open(big(a));
  return op(a, Out{});
}

/// Turns an operand into a tensor: a tensor, a number, or a NumPy array. False for anything else.
bool operand(PyObject* o, Tensor& t) {
  Scalar number;
  if (is_tensor(o)) t = unwrap(o);
  else if (number_of(o, number)) t = wrapped(number);
  else if (!std::strcmp(Py_TYPE(o)->tp_name, "numpy.ndarray")) t = from_array(o, false, "operator");
  else return false;
  return true;
}

/// Answers for operands of the op `name` that are no tensors or numbers: their class may take the operator over.
PyObject* unknown_operand(const char* method, const char* name, PyObject* a, PyObject* b) {
  if (find_other_classes(a) || (b && find_other_classes(b))) return overridden(method, a, b);
  if (is_pytorchs_tensor(a) || (b && is_pytorchs_tensor(b))) {
    PyErr_Format(PyExc_TypeError, "%s: expected a vesta.Tensor or a number, got a %s", name, kConvertPyTorchs);
    return nullptr;
  }
  Py_RETURN_NOTIMPLEMENTED;
}

/// PyTorch's name of the step that an op is with a number before a tensor, where it is another one; else null.
template <auto& op> constexpr const char* kStepAfterNumber = nullptr;
template <> constexpr const char* kStepAfterNumber<ops::sub> = "RsubBackward1";
template <> constexpr const char* kStepAfterNumber<ops::div> = "MulBackward0";
template <> constexpr const char* kStepAfterNumber<ops::pow> = "PowBackward2";

/// Whether a number before a tensor is the second operand of the op: `2 * x` is `mul(x, 2)`, as in PyTorch.
template <auto& op> constexpr bool kNumberComesSecond = false;
template <> constexpr bool kNumberComesSecond<ops::add> = true;
template <> constexpr bool kNumberComesSecond<ops::mul> = true;

template <auto& op>
[[gnu::noinline]] PyObject* binary_mixed(const char* method, PyObject* a, PyObject* b) {
  Tensor x, y;
  if (!operand(a, x) || !operand(b, y)) return unknown_operand(method, op.name, a, b);
  if constexpr (kNumberComesSecond<op>) {
    if (x.impl()->wrapped_number) std::swap(x, y);
  }
  if constexpr (kStepAfterNumber<op> != nullptr) {
    if (x.impl()->wrapped_number) return wrap(named_step(run<op>(x, y, {}), kStepAfterNumber<op>));
  }
  return wrap(run<op>(x, y, {}));
}

// A string as a template argument: the operator's method.
template <size_t N>
struct Name {
  char text[N];
  constexpr Name(const char (&s)[N]) { std::copy_n(s, N, text); }
};

template <auto& op, Name name>
PyObject* binary(PyObject* a, PyObject* b) {
  try {
    if (is_exact_tensor(a) && is_exact_tensor(b) && !(torch_function_seen && in_mode())) [[likely]]
      return wrap(run<op>(unwrap(a), unwrap(b), {}));
    if (overridden_by(a, b)) return overridden(name.text, a, b);
    return binary_mixed<op>(name.text, a, b);
  } catch (...) {
    translate_exception(op.name);
    return nullptr;
  }
}

template <auto& op, Name name>
PyObject* inplace(PyObject* a, PyObject* b) {
  return guarded(
      [&]() -> PyObject* {
        if (overridden_by(a, b)) return overridden(name.text, a, b);
        const Tensor& self = unwrap(a);
        Tensor other;
        if (!operand(b, other)) {
          return unknown_operand(name.text, (std::string(op.name) + "_").c_str(), a, b);
        }
        run<op>(self, other, Out{&self, Out::inplace});
        return new_ref(a);
      },
      static_cast<PyObject*>(nullptr), op.name);
}

template <auto& op, Name name>
PyObject* unary(PyObject* a) {
  return guarded([&]() -> PyObject* {
    if (overridden_by(a, nullptr)) return overridden(name.text, a, nullptr);
    return wrap(run<op>(unwrap(a)));
  });
}

PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) {
    PyErr_SetString(PyExc_TypeError, "pow(): a third argument is not supported for tensors.");
    return nullptr;
  }
  return binary<ops::pow, "__pow__">(a, b);
}
PyObject* inplace_power(PyObject* a, PyObject* b, PyObject*) { return inplace<ops::pow, "__ipow__">(a, b); }

PyObject* matmul(PyObject* a, PyObject* b) {
  return guarded([&]() -> PyObject* {
    if (overridden_by(a, b)) return overridden("__matmul__", a, b);
    if (!is_tensor(a) || !is_tensor(b)) return unknown_operand("__matmul__", "matmul", a, b);
    auto run = [&] {
      WithoutGil open(big(unwrap(a)) || big(unwrap(b)));
      return ops::matmul(unwrap(a), unwrap(b));
    };
    return wrap(run());
  });
}

PyObject* positive(PyObject* a) {
  return guarded([&]() -> PyObject* {
    if (overridden_by(a, nullptr)) return overridden("__pos__", a, nullptr);
    return wrap(ops::positive(unwrap(a)));
  });
}

/// Implements ~x: not for bool, bitwise for integers.
PyObject* invert(PyObject* a) { return unary<ops::bitwise_not, "__invert__">(a); }

PyObject* compare(PyObject* a, PyObject* b, int op) {
  switch (op) {
    case Py_LT: return binary<ops::lt, "__lt__">(a, b);
    case Py_LE: return binary<ops::le, "__le__">(a, b);
    case Py_EQ: return binary<ops::eq, "__eq__">(a, b);
    case Py_NE: return binary<ops::ne, "__ne__">(a, b);
    case Py_GT: return binary<ops::gt, "__gt__">(a, b);
    default: return binary<ops::ge, "__ge__">(a, b);
  }
}

int truth(PyObject* a) {
  return guarded(
      [&] {
        if (overridden_by(a, nullptr)) {
          Ref r(checked(overridden("__bool__", a, nullptr)));
          if (!PyBool_Check(r.get())) type_error("__bool__ should return bool, returned %s", Py_TYPE(r.get())->tp_name);
          return int(r.get() == Py_True);
        }
        const Tensor& t = unwrap(a);
        VESTA_CHECK(t.numel() != 0, runtime,
                    "bool: Boolean value of Tensor with no values is ambiguous. Use .numel() > 0.");
        VESTA_CHECK(t.numel() == 1, runtime,
                    "bool: Boolean value of Tensor with more than one value is ambiguous. Use .any() or .all().");
        return int(item_of(t).to<bool>("bool"));
      },
      -1);
}

/// Checks that a tensor can become a number. ValueError, as Python's own: matplotlib and others catch it, and go on.
void check_number(const Tensor& t, const char* op) {
  VESTA_CHECK(t.numel() == 1, value, op, ": only one element tensors can be converted to Python scalars, got shape ",
              t.sizes(), ". Use .tolist() for all elements.");
}

PyObject* to_integer(PyObject* a) {
  return guarded([&]() -> PyObject* {
    if (overridden_by(a, nullptr)) return overridden("__int__", a, nullptr);
    check_number(unwrap(a), "int");
    Ref n(number_object(unwrap(a)));
    if (!n) return nullptr;
    VESTA_CHECK(!PyComplex_Check(n.get()), runtime, "int: value cannot be converted from a complex tensor. Use .real.");
    return PyNumber_Long(n.get());
  });
}
PyObject* to_float(PyObject* a) {
  return guarded([&]() -> PyObject* {
    if (overridden_by(a, nullptr)) return overridden("__float__", a, nullptr);
    check_number(unwrap(a), "float");
    return PyFloat_FromDouble(item_of(unwrap(a)).to<double>("float"));
  });
}
PyObject* to_index(PyObject* a) {
  return guarded([&]() -> PyObject* {
    if (overridden_by(a, nullptr)) return overridden("__index__", a, nullptr);
    const Tensor& t = unwrap(a);
    if (t.numel() != 1 || is_differentiable(t.dtype())) {
      type_error("only integer tensors of a single element can be converted to an index");
    }
    Ref n(number_object(t));
    return n ? PyNumber_Long(n.get()) : nullptr;
  });
}

}  // namespace

int add_number_slots(PyType_Slot* slots, int n) {
  auto add = [&](int id, auto f) { slots[n++] = {id, reinterpret_cast<void*>(f)}; };
  add(Py_nb_add, &binary<ops::add, "__add__">);
  add(Py_nb_subtract, &binary<ops::sub, "__sub__">);
  add(Py_nb_multiply, &binary<ops::mul, "__mul__">);
  add(Py_nb_true_divide, &binary<ops::div, "__truediv__">);
  add(Py_nb_floor_divide, &binary<ops::floor_divide, "__floordiv__">);
  add(Py_nb_remainder, &binary<ops::remainder, "__mod__">);
  add(Py_nb_power, &power);
  add(Py_nb_matrix_multiply, &matmul);
  add(Py_nb_and, &binary<ops::bitwise_and, "__and__">);
  add(Py_nb_or, &binary<ops::bitwise_or, "__or__">);
  add(Py_nb_xor, &binary<ops::bitwise_xor, "__xor__">);
  add(Py_nb_lshift, &binary<ops::bitwise_left_shift, "__lshift__">);
  add(Py_nb_rshift, &binary<ops::bitwise_right_shift, "__rshift__">);
  add(Py_nb_inplace_lshift, &inplace<ops::bitwise_left_shift, "__ilshift__">);
  add(Py_nb_inplace_rshift, &inplace<ops::bitwise_right_shift, "__irshift__">);
  add(Py_nb_inplace_add, &inplace<ops::add, "__iadd__">);
  add(Py_nb_inplace_subtract, &inplace<ops::sub, "__isub__">);
  add(Py_nb_inplace_multiply, &inplace<ops::mul, "__imul__">);
  add(Py_nb_inplace_true_divide, &inplace<ops::div, "__itruediv__">);
  add(Py_nb_inplace_floor_divide, &inplace<ops::floor_divide, "__ifloordiv__">);
  add(Py_nb_inplace_remainder, &inplace<ops::remainder, "__imod__">);
  add(Py_nb_inplace_power, &inplace_power);
  add(Py_nb_inplace_and, &inplace<ops::bitwise_and, "__iand__">);
  add(Py_nb_inplace_or, &inplace<ops::bitwise_or, "__ior__">);
  add(Py_nb_inplace_xor, &inplace<ops::bitwise_xor, "__ixor__">);
  add(Py_nb_negative, &unary<ops::neg, "__neg__">);
  add(Py_nb_positive, &positive);
  add(Py_nb_absolute, &unary<ops::abs, "__abs__">);
  add(Py_nb_invert, &invert);
  add(Py_nb_bool, &truth);
  add(Py_nb_int, &to_integer);
  add(Py_nb_float, &to_float);
  add(Py_nb_index, &to_index);
  add(Py_tp_richcompare, &compare);
  return n;
}

}  // namespace vesta::python
