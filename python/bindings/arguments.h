// Python arguments to C++ ones. Four steps, so that what is instantiated per op stays small:
//
//   Table     what one form of a function takes, read once from its schema (names, kinds, defaults)
//   Bound     one call: which object stands for which parameter; no conversion yet, no allocation
//   accepts   whether the objects are of the kinds that the form takes: how the form of a call is found
//   Arg<T>    converts one object to one C++ parameter type and keeps what the parameter points at
#pragma once
#include <string>
#include <vector>

#include <vesta/core/dispatch/schema.h>

#include "errors.h"
#include "python_tensor.h"

namespace vesta::python {

/// Arguments accepted in addition to an op's parameters.
enum Extra : uint8_t { kOut, kRequiresGrad, kPinMemory, kLayout, kMemoryFormat, kExtras };

inline constexpr int kMaxSlots = 28;

/// The kind of value a parameter takes, besides None.
enum class Kind : uint8_t {
  tensor,
  operand,  // a tensor or a number
  tensors,
  maybe_tensors,  // with None among them
  integer,
  integers,
  real,
  number,
  number_as_real,  // any real number, which C++ takes as a double
  boolean,
  dtype,
  device,
  text,
  generator,
  object,
};

/// One parameter of a form.
struct Param {
  std::string name;
  std::string type;                 // as C++ spells it
  std::string default_text;         // as C++ spells it
  PyObject* keys[4] = {};           // interned: the name, and what NumPy calls it too
  Kind kind = Kind::tensor;
  bool required = true;
  bool keyword_only = false;
  bool none_allowed = false;        // None is a value of its own
  bool lone_int = true;             // a list of one int may be given as that int
  bool spreads = false;             // a list of ints that may be spread over positions, where it is the only one
  bool typed_alpha = false;         // a factor of the kind of the operands: no float for integers
  bool number_too = false;          // a number stands for a tensor, as PyTorch's parser has it for this function
  int64_t integer = 0;              // the default, by kind
  double real = 0;
  bool has_list = false;
  Dims list;
};

/// The parameters of one form of a function.
struct Table {
  const char* op = "";              // as errors name it
  const Schema* schema = nullptr;   // null for a function written by hand
  std::string signature;            // for help(): "input, dim=None, *, keepdim=False"
  std::string doc;
  const char* result = "Any";       // for stubs: the result's type in Python
  PyTypeObject* named = nullptr;    // of a result whose parts have names
  std::vector<Param> params;
  uint8_t extras = 0;               // bit per Extra
  int required = 0;
  int positional = 0;               // parameters that may be given by position
  int varargs = -1;                 // the parameter that also takes its list spread over the positions, or -1
  bool takes_out = false;           // the op does itself: one result
  bool takes_star = false;          // the signature holds a *

  void read(const Schema& schema);
  /// Reads parameters as an op list declares them, for a function written by hand.
  void read(const char* name, const char* params);
  int slots() const { return int(params.size()); }
  bool has(Extra e) const { return extras >> e & 1; }
};

/// Returns a parameter's default as Python writes it.
std::string shown_default(const Param& p);

/// One call's arguments by parameter: borrowed objects, null where the default holds.
struct Bound {
  PyObject* slot[kMaxSlots];        // the parameters, then the extras
  PyObject* const* rest = nullptr;  // the list that was spread over positions
  Py_ssize_t rest_count = 0;
  bool big = false;                 // enough work to release the GIL
  PyObject* extra(const Table& t, Extra e) const { return slot[t.slots() + e]; }

  /// Binds the arguments; raises the usual TypeError. `self` is null for a function.
  void bind(const Table& t, PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
    bind_or(t, self, args, count, names, true);
  }
  /// Binds the arguments; returns false if their number or a name does not fit.
  bool matches(const Table& t, PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
    return bind_or(t, self, args, count, names, false);
  }
  /// Binds and checks the kinds of all arguments; false where they are not those of the form.
  bool fits(const Table& t, PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names);

 private:
  bool bind_or(const Table& t, PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names, bool raise);
  bool bind_names(const Table& t, PyObject* const* values, PyObject* names, bool raise);
};

/// Returns the description of what a parameter takes, for error messages.
const char* expected_of(const Param& p);

/// Raises "op(): argument 'name' (position i) must be X, not Y".
[[noreturn]] void wrong_type(const Table& t, int i, const char* expected, PyObject* given);

// Conversions of single values; each raises through wrong_type.
int64_t to_int(const Table& t, int i, PyObject* o);
double to_double(const Table& t, int i, PyObject* o);
bool to_bool(const Table& t, int i, PyObject* o);
Scalar to_scalar(const Table& t, int i, PyObject* o);
Dims to_dims(const Table& t, int i, const Bound& b);
Tensor to_tensor(const Table& t, int i, const Bound& b);  // the slow part: None and numbers
void to_tensors(const Table& t, int i, PyObject* o, std::vector<Tensor>& list, bool& big);
DType to_dtype(const Table& t, int i, PyObject* o);
Device to_device(const Table& t, int i, PyObject* o);
std::string_view to_text(const Table& t, int i, PyObject* o);
Generator* to_generator(const Table& t, int i, PyObject* o);

/// Raises for a factor (alpha) of a kind that the operands exclude: a float where they are integers, a bool where they
/// are no bools.
void check_typed_alpha(const Table& t, int i, const Bound& b);

/// Reads a Python number (or a NumPy scalar); returns false for anything else, without an exception.
bool number_of(PyObject* o, Scalar& number);

/// The converter of parameter `i` to T; `get()` returns what the C++ function takes.
template <class T>
struct Arg;

template <>
struct Arg<Tensor> {
  Tensor own;
  const Tensor* p = &own;
  Arg(const Table& t, int i, Bound& b) {
    PyObject* o = b.slot[i];
    if (!o) return;
    if (is_tensor(o)) [[likely]] {
      p = &unwrap(o);
      b.big = b.big || p->impl()->numel() >= kReleaseGil;
    } else {
      own = to_tensor(t, i, b);
    }
  }
  Arg(const Arg&) = delete;
  const Tensor& get() const { return *p; }
};

/// An optional tensor: None is an undefined one.
template <>
struct Arg<MaybeTensor> : Arg<Tensor> {
  using Arg<Tensor>::Arg;
  MaybeTensor get() const { return *p; }
};

#define VESTA_ARG(T, member, convert, fallback)                        \
  template <>                                                          \
  struct Arg<T> {                                                      \
    member value;                                                      \
    Arg(const Table& t, int i, Bound& b) : value(make(t, i, b)) {}     \
    static member make(const Table& t, int i, [[maybe_unused]] Bound& b) { \
      PyObject* o = b.slot[i];                                         \
      if (!o) return fallback;                                         \
      return convert(t, i, o);                                         \
    }                                                                  \
    T get() const { return value; }                                    \
  };
VESTA_ARG(int64_t, int64_t, to_int, t.params[size_t(i)].integer)
VESTA_ARG(bool, bool, to_bool, t.params[size_t(i)].integer != 0)
VESTA_ARG(Flag, bool, to_bool, false)
VESTA_ARG(DType, DType, to_dtype, DType::float32)
VESTA_ARG(Generator*, Generator*, to_generator, nullptr)
#undef VESTA_ARG

// Numbers, which may be factors of the operands' kind.
#define VESTA_NUMBER_ARG(T, convert, fallback)                             \
  template <>                                                              \
  struct Arg<T> {                                                          \
    T value;                                                               \
    Arg(const Table& t, int i, Bound& b) : value(make(t, i, b)) {}         \
    static T make(const Table& t, int i, Bound& b) {                       \
      PyObject* o = b.slot[i];                                             \
      if (!o) return fallback;                                             \
      if (t.params[size_t(i)].typed_alpha) check_typed_alpha(t, i, b);     \
      return convert(t, i, o);                                             \
    }                                                                      \
    T get() const { return value; }                                        \
  };
VESTA_NUMBER_ARG(double, to_double, t.params[size_t(i)].real)
VESTA_NUMBER_ARG(Scalar, to_scalar, Scalar(t.params[size_t(i)].integer))
#undef VESTA_NUMBER_ARG

#define VESTA_MAYBE_ARG(T, convert)                                     \
  template <>                                                           \
  struct Arg<T> {                                                       \
    T value;                                                            \
    Arg(const Table& t, int i, Bound& b) {                              \
      PyObject* o = b.slot[i];                                          \
      if (o && o != Py_None) value = convert(t, i, o);                  \
    }                                                                   \
    const T& get() const { return value; }                              \
  };
VESTA_MAYBE_ARG(MaybeInt, to_int)
VESTA_MAYBE_ARG(MaybeScalar, to_scalar)
VESTA_MAYBE_ARG(MaybeDType, to_dtype)
VESTA_MAYBE_ARG(MaybeDevice, to_device)
VESTA_MAYBE_ARG(MaybeText, to_text)
VESTA_MAYBE_ARG(MaybeDouble, to_double)
VESTA_MAYBE_ARG(MaybeBool, to_bool)
#undef VESTA_MAYBE_ARG

template <>
struct Arg<Text> {
  Text value;
  Arg(const Table& t, int i, Bound& b)
      : value(b.slot[i] ? to_text(t, i, b.slot[i]) : t.params[size_t(i)].default_text) {}
  Text get() const { return value; }
};
template <>
struct Arg<TextOnly> : Arg<Text> {
  using Arg<Text>::Arg;
  TextOnly get() const { return TextOnly(value); }
};
template <>
struct Arg<IntList> {
  Dims value;
  Arg(const Table& t, int i, Bound& b) : value(to_dims(t, i, b)) {}
  IntList get() const { return IntList(value); }
};
template <>
struct Arg<MaybeDims> {
  MaybeDims value;
  Arg(const Table& t, int i, Bound& b) {
    if (b.slot[i] ? b.slot[i] != Py_None : t.params[size_t(i)].has_list) value = MaybeDims(to_dims(t, i, b));
  }
  const MaybeDims& get() const { return value; }
};
template <>
struct Arg<TensorList> {
  std::vector<Tensor> value;
  Arg(const Table& t, int i, Bound& b) {
    if (b.slot[i]) to_tensors(t, i, b.slot[i], value, b.big);
  }
  TensorList get() const { return TensorList(value); }
};

}  // namespace vesta::python
