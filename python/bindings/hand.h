// Functions and methods written by hand, with the argument parsing and error handling of ops. Each is a struct:
//
//   struct Item {
//     static constexpr char name[] = "item", params[] = "()", doc[] = "The only element as a Python number.";
//     static PyObject* run(const Table& t, Bound& b) { ... }
//   };
//
// Several forms stand in `static constexpr const char* forms[]` instead of `params`; the first that fits is taken.
// `params` is written as in an op list; a method's b.slot[0] is self. A parameter of type `object` is not converted.
#pragma once
#include <algorithm>

#include "callable.h"

namespace vesta::python {

/// Returns all callables written by hand, and whether they are methods; for the registry.
std::vector<std::pair<const Callable*, bool>>& written_by_hand();

template <class M>
struct Hand {
  static PyObject* thin(const Table& t, Bound& b, Out) { return M::run(t, b); }
  /// Reads a table per form and adds them as the forms of M's callable.
  static Callable& callable(bool method) {
    Callable& made = Entry<M>::callable;
    made.name = M::name;
    if constexpr (requires { M::forms; }) {
      for (const char* form : M::forms) add(made, form, method);
    } else {
      add(made, M::params, method);
    }
    const auto has_tensor = [](const Form& form) {
      return std::ranges::any_of(form.table->params, [](const Param& p) { return p.kind == Kind::tensor; });
    };
    made.inner = made.name.starts_with('_') && std::ranges::none_of(made.forms, has_tensor);
    written_by_hand().push_back({&made, method});
    return made;
  }

 private:
  static void add(Callable& to, const std::string& params, bool method) {
    auto* table = new Table;  // lives as long as the interpreter
    table->read(
        M::name,
        (method ? params == "()" ? "(const Tensor& input)" : "(const Tensor& input, " + params.substr(1) : params)
            .c_str());
    table->doc = M::doc;
    to.forms.push_back({table, thin, false});
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
