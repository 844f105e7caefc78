// Functions and methods written by hand, with the argument parsing and error handling of ops. Each is a struct:
//
//   struct Item {
//     static constexpr char name[] = "item", params[] = "()", doc[] = "The only element as a Python number.";
//     static PyObject* run(const Table& t, Bound& b) { ... }
//   };
//
// `params` is written as in an op list; a method's b.slot[0] is self. A parameter of type `object` is not converted.
#pragma once
#include "callable.h"

namespace vesta::python {

template <class M>
struct Hand {
  static inline Table table;
  static PyObject* thin(const Table& t, Bound& b, Out) { return M::run(t, b); }
  /// Reads the table and makes it the only form of M's callable.
  static Callable& callable(bool method) {
    const std::string params = M::params;
    table.read(M::name, (method ? params == "()" ? "(const Tensor& input)" : "(const Tensor& input, " + params.substr(1)
                                : params)
                            .c_str());
    table.doc = M::doc;
    Entry<M>::callable = Callable{M::name, nullptr, {Form{&table, thin, false}}};
    return Entry<M>::callable;
  }
};

template <class... M>
bool add_functions(PyObject* module) {
  return (add_function(module, Hand<M>::callable(false), entry_of(Entry<M>::function)) && ...);
}
template <class... M>
bool add_methods() {
  return (add_method(Hand<M>::callable(true), entry_of(Entry<M>::method)) && ...);
}

}  // namespace vesta::python
