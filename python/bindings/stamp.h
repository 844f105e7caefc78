// Stamps an op of the roll call into Python: a function, a method and an in-place method, all vectorcall.
//
// Per op the compiler makes one thin call (convert each argument, call the Op, wrap the result) and three entry points
// of a few instructions; everything else is ordinary code in stamp.cpp.
#pragma once
#include <vesta/core/ops/ops.h>

#include "arguments.h"

// GCC sees ghosts where an empty optional is copied into a call.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

namespace vesta::python {

/// Runs an op on bound arguments; `out` goes to pointwise ops only. A new reference; C++ exceptions pass.
using Thin = PyObject* (*)(const Table& t, Bound& b, Out out);

/// How an entry point was called.
enum class Entry : uint8_t { function, method, inplace };

/// Is the body of every entry point.
PyObject* call_stamped(const Table& t, Thin thin, Entry entry, PyObject* callee, PyObject* self, PyObject* const* args,
                       Py_ssize_t count, PyObject* names) noexcept;

// Results to Python.
inline PyObject* to_python(Tensor t) { return wrap(std::move(t)); }
PyObject* to_python(TensorPair t);
PyObject* to_python(TensorTriple t);
PyObject* to_python(TensorVector t);

/// Names a result type for stubs.
template <class R>
constexpr const char* python_type() {
  if constexpr (std::is_void_v<R>) return "None";
  else if constexpr (std::is_same_v<R, TensorPair>) return "tuple[Tensor, Tensor]";
  else if constexpr (std::is_same_v<R, TensorTriple>) return "tuple[Tensor, Tensor, Tensor]";
  else if constexpr (std::is_same_v<R, TensorVector>) return "tuple[Tensor, ...]";
  else return "Tensor";
}

/// Is one op in Python. S is ops::sig::NAME, F a function object with its call.
template <class S, class F, class Signature = decltype(S::call)>
struct Stamp;

template <class S, class F, class R, class... A>
struct Stamp<S, F, R(A...)> {
  using Result = R;
  static inline Table table;
  static inline PyObject* function_object = nullptr;

  static PyObject* thin(const Table& t, Bound& b, [[maybe_unused]] Out out) {
    return expand(t, b, out, std::make_index_sequence<sizeof...(A) - (std::is_same_v<A, Out> + ... + 0)>{});
  }
  static PyObject* function(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    return call_stamped(table, thin, Entry::function, function_object, nullptr, args, n, names);
  }
  static PyObject* method(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    return call_stamped(table, thin, Entry::method, function_object, self, args, n, names);
  }
  static PyObject* inplace(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    return call_stamped(table, thin, Entry::inplace, function_object, self, args, n, names);
  }

 private:
  template <size_t... I>
  static PyObject* expand(const Table& t, Bound& b, [[maybe_unused]] Out out, std::index_sequence<I...>) {
    using All = std::tuple<std::remove_cvref_t<A>...>;
    std::tuple<Box<std::tuple_element_t<I, All>>...> a{Place{t, int(I), b}...};
    auto run = [&]() -> R {
      WithoutGil open(b.big);
      if constexpr ((std::is_same_v<A, Out> || ...)) return F::run(std::get<I>(a).arg.get()..., out);
      else return F::run(std::get<I>(a).arg.get()...);
    };
    if constexpr (std::is_void_v<R>) {
      run();
      Py_RETURN_NONE;
    } else {
      return to_python(run());
    }
  }
  // Lets a tuple build its elements in place, in order.
  struct Place {
    const Table& t;
    int i;
    Bound& b;
  };
  template <class T>
  struct Box {
    Arg<T> arg;
    Box(Place p) : arg(p.t, p.i, p.b) {}
  };
};

/// Is an op in the registry.
struct Stamped {
  Table* table;
  PyObject** function_object;
  PyCFunction function, method, inplace;  // vectorcall functions behind a cast; null where there is none
};

// The topics: each stands in a file of its own, to compile in parallel and to rebuild alone.
void stamp_pointwise(std::vector<Stamped>& to);
void stamp_structured(std::vector<Stamped>& to);
void stamp_composite(std::vector<Stamped>& to);

/// Creates all functions and methods: functions in module `_ops`, methods in the Tensor type.
bool add_stamped(PyObject* module);

}  // namespace vesta::python
