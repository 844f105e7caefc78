// The composites in Python: plain functions of other ops.
#include <string_view>

#include "op_docs.h"
#include "stamp.h"

namespace vesta::python {
namespace {

// A composite is an overloaded function: a struct with its call, stamped, names the one that is meant.
namespace call {
#define VESTA_X_COMPOSITE(R, name, params, args)                                         \
  struct name {                                                                          \
    static R run(const auto&... a) { return ::vesta::name(a...); }                       \
  };
VESTA_COMPOSITE(VESTA_X_COMPOSITE, VESTA_X_COMPOSITE)
#undef VESTA_X_COMPOSITE
}  // namespace call

template <class F, class S>
void add(std::vector<Stamped>& to, const char* name, const char* params, const char* doc, bool method) {
  using T = Stamp<S, F>;
  if (method) T::table.read(name, {"input"}, params, false);
  else T::table.read(name, {}, params, false);
  T::table.doc = doc;
  T::table.result = python_type<typename T::Result>();
  T::table.method = method;
  if (!std::string_view(name).ends_with('_')) T::table.extras |= 1 << kOut;
  auto cast = [](auto f) { return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f)); };
  to.push_back({&T::table, &T::function_object, cast(T::function), method ? cast(T::method) : nullptr, nullptr});
}

}  // namespace

void stamp_composite(std::vector<Stamped>& to) {
#define VESTA_X_METHOD(R, name, params, args) add<call::name, ops::sig::name>(to, #name, #params, doc::name, true);
#define VESTA_X_FUNCTION(R, name, params, args) add<call::name, ops::sig::name>(to, #name, #params, doc::name, false);
  VESTA_COMPOSITE(VESTA_X_METHOD, VESTA_X_FUNCTION)
#undef VESTA_X_METHOD
#undef VESTA_X_FUNCTION
}

}  // namespace vesta::python
