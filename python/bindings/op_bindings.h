// Binds the ops of a topic: what ops/TOPIC.cpp is made of.
//
//   VESTA_BIND_OPS(reduce, VESTA_OPS_REDUCE)    // defines bind_reduce(Binder&)
//
// Per op the compiler makes one thin call (convert each argument, call the op, wrap the result) and an entry per name.
#pragma once
#include <vesta/core/ops/generate.h>

#include "callable.h"

// GCC 12 reports a false -Wmaybe-uninitialized for empty optionals.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

namespace vesta::python {

// Results to Python.
inline PyObject* to_python(const Table&, Tensor t) { return wrap(std::move(t)); }
inline PyObject* to_python(const Table&, bool b) { return PyBool_FromLong(b); }
PyObject* to_python(const Table& t, TensorPair pair);
PyObject* to_python(const Table& t, TensorTriple triple);
PyObject* to_python(const Table& t, TensorVector list);
PyObject* to_python(const Table& t, TensorOrTensors either);

/// The collection of the callables of all topics; it adds each to the module that its schema names.
class Binder {
 public:
  /// Adds a form; Tag tells the names apart whose first form this is.
  template <class Tag>
  void add(const Schema& s, Thin thin) {
    struct Function {};
    struct Method {};
    struct Inplace {};
    const Added entries{{&Entry<Function>::callable, entry_of(Entry<Function>::function)},
                        {&Entry<Method>::callable, entry_of(Entry<Method>::method)},
                        {&Entry<Inplace>::callable, entry_of(Entry<Inplace>::method)},
                        {&Entry<Tag>::callable, entry_of(Entry<Tag>::function)}};
    add(s, thin, entries);
  }
  /// Gives the forms of `name`, functions and methods, another name.
  template <class Tag>
  void alias(const char* alias, const char* name) {
    struct Function {};
    struct Method {};
    struct Inplace {};
    const Added entries{{&Entry<Function>::callable, entry_of(Entry<Function>::function)},
                        {&Entry<Method>::callable, entry_of(Entry<Method>::method)},
                        {&Entry<Inplace>::callable, entry_of(Entry<Inplace>::method)},
                        {&Entry<Tag>::callable, entry_of(Entry<Tag>::function)}};
    add_alias(alias, name, entries);
  }
  /// Creates everything: functions in modules of `module`, methods in the Tensor type.
  bool finish(PyObject* module);

 private:
  struct Slot {
    Callable* callable;
    PyCFunction entry;
  };
  struct Added {
    Slot function, method, inplace, inplace_function;
  };
  void add(const Schema& s, Thin thin, const Added& entries);
  void add_alias(const char* alias, const char* name, const Added& entries);
  void add_form(std::map<std::string, Slot>& to, const std::string& name, const Slot& slot, Form form);

  std::map<std::string, Slot> functions_[6];  // by Space
  std::map<std::string, Slot> methods_;
};

/// The arguments of a call, converted from the first to the last: the first wrong one is named.
template <class... T>
struct Converted {
  Converted(const Table&, int, Bound&) {}
};
template <class T, class... Rest>
struct Converted<T, Rest...> {
  Arg<T> first;
  Converted<Rest...> rest;
  Converted(const Table& t, int i, Bound& b) : first(t, i, b), rest(t, i + 1, b) {}
};
template <size_t i>
auto& at(auto& converted) {
  if constexpr (i == 0) return converted.first;
  else return at<i - 1>(converted.rest);
}

/// The call of F::run, a function of signature R(A...), on bound arguments.
template <class F, class Signature>
struct ThinCall;
template <class F, class R, class... A>
struct ThinCall<F, R(A...)> {
  static PyObject* thin(const Table& t, Bound& b, [[maybe_unused]] Out out) {
    return expand(t, b, out, std::make_index_sequence<sizeof...(A) - (std::is_same_v<A, Out> + ... + 0)>{});
  }

 private:
  template <size_t... I>
  static PyObject* expand(const Table& t, Bound& b, [[maybe_unused]] Out out, std::index_sequence<I...>) {
    using All = std::tuple<std::remove_cvref_t<A>...>;
    Converted<std::tuple_element_t<I, All>...> a(t, 0, b);
    auto run = [&]() -> R {
      WithoutGil open(b.big);
      if constexpr ((std::is_same_v<A, Out> || ...)) return F::run(at<I>(a).get()..., out);
      else return F::run(at<I>(a).get()...);
    };
    if constexpr (std::is_void_v<R>) {
      run();
      Py_RETURN_NONE;
    } else {
      return to_python(t, run());
    }
  }
};

/// The call of an op.
template <auto& op>
struct OpCall {
  static auto run(const auto&... a) { return op(a...); }
};
template <auto& op>
constexpr Thin thin_of() {
  return &ThinCall<OpCall<op>, typename std::remove_cvref_t<decltype(op)>::Signature>::thin;
}

}  // namespace vesta::python

#define VESTA_BIND(kind, ...) VESTA_LINE_##kind(VESTA_BIND, __VA_ARGS__)
#define VESTA_BIND_OBJECT(object)                                \
  {                                                              \
    struct Tag {};                                               \
    binder.add<Tag>(*ops::object.schema, thin_of<ops::object>()); \
  }
#define VESTA_BIND_POINTWISE(name, ...) VESTA_BIND_OBJECT(name)
#define VESTA_BIND_POINTWISE_PAIR(name, ...) VESTA_BIND_OBJECT(name)
#define VESTA_BIND_OP(R, object, ...) VESTA_BIND_OBJECT(object)
#define VESTA_BIND_OUT(R, object, ...) VESTA_BIND_OBJECT(object)
#define VESTA_BIND_TWIN(R, object, ...) VESTA_BIND_OBJECT(object)
#define VESTA_BIND_COPIED(source, R, object, ...) VESTA_BIND_OBJECT(object)
#define VESTA_BIND_IN(space, R, name, ...) VESTA_BIND_OBJECT(space##_##name)
#define VESTA_BIND_FORM(R, object, name_, form, params, args, call, ...)                                          \
  {                                                                                                               \
    struct Tag {};                                                                                                \
    struct Call {                                                                                                 \
      static R run params { return call; }                                                                        \
    };                                                                                                            \
    static constexpr Schema schema = [] {                                                                         \
      using namespace ::vesta::schema;                                                                            \
      return make((Schema{.name = #name_, .overload = form, .parameters = VESTA_STRING(params), .result = #R})    \
                      __VA_OPT__(, ) __VA_ARGS__);                                                                \
    }();                                                                                                          \
    binder.add<Tag>(schema, &ThinCall<Call, ops::Signature<decltype(Call::run)>>::thin);                          \
  }
#define VESTA_BIND_PYTHON_FORM(...) VESTA_BIND_FORM(__VA_ARGS__)
#define VESTA_BIND_ALIAS(alias_, name)             \
  {                                                \
    struct Tag {};                                 \
    binder.alias<Tag>(#alias_, #name);             \
  }

/// Defines bind_TOPIC(binder), which adds the ops of a list.
#define VESTA_BIND_OPS(topic, LIST) \
  void bind_##topic(Binder& binder) { LIST(VESTA_BIND) }
