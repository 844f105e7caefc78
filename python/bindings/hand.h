// Functions and methods written by hand, with the argument parsing and error handling of stamped ones. Each is a
// struct:
//
//   struct Item {
//     static constexpr char name[] = "item", params[] = "()", doc[] = "The only element as a Python number.";
//     static PyObject* run(const Table& t, Bound& b) { ... }
//   };
//
// `params` is written as in the roll call; a method's b.slot[0] is self. A parameter of type `object` is not converted.
#pragma once
#include "stamp.h"

namespace vesta::python {

template <class M>
struct Hand {
  static inline Table table;
  static inline PyObject* object = nullptr;
  static PyObject* thin(const Table& t, Bound& b, Out) { return M::run(t, b); }
  static PyObject* function(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    return call_stamped(table, thin, Entry::function, object, nullptr, args, n, names);
  }
  static PyObject* method(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    return call_stamped(table, thin, Entry::method, object, self, args, n, names);
  }
};

/// Adds a function to the module, or a method to the Tensor type.
bool add_hand_function(PyObject* module, Table& t, PyCFunction f, PyObject** object);
bool add_hand_method(Table& t, PyCFunction f);

template <class... M>
bool add_functions(PyObject* module) {
  auto one = [&]<class F>() {
    Hand<F>::table.read(F::name, {}, F::params, false);
    Hand<F>::table.extras = 0;
    Hand<F>::table.doc = F::doc;
    return add_hand_function(module, Hand<F>::table,
                             reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(Hand<F>::function)),
                             &Hand<F>::object);
  };
  return (one.template operator()<M>() && ...);
}
template <class... M>
bool add_methods() {
  auto one = [&]<class F>() {
    Hand<F>::table.read(F::name, {"input"}, F::params, false);
    Hand<F>::table.extras = 0;
    Hand<F>::table.doc = F::doc;
    return add_hand_method(Hand<F>::table,
                           reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(Hand<F>::method)));
  };
  return (one.template operator()<M>() && ...);
}

}  // namespace vesta::python
