// The structured ops in Python.
#include <string_view>

#include "op_docs.h"
#include "stamp.h"

namespace vesta::python {
namespace {

template <auto& op>
struct Call {
  static auto run(const auto&... a) { return op(a...); }
};

template <auto& op, class S>
void add(std::vector<Stamped>& to, const char* name, const char* params, const char* doc, bool method) {
  using T = Stamp<S, Call<op>>;
  if (method) T::table.read(name, {"input"}, params, false);
  else T::table.read(name, {}, params, false);
  T::table.doc = doc;
  T::table.result = python_type<typename T::Result>();
  T::table.differentiable = T::table.differentiable && op.differentiable;
  T::table.method = method;
  if (!std::string_view(name).ends_with('_')) T::table.extras |= 1 << kOut;
  auto cast = [](auto f) { return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f)); };
  to.push_back({&T::table, &T::function_object, cast(T::function), method ? cast(T::method) : nullptr, nullptr});
}

}  // namespace

void stamp_structured(std::vector<Stamped>& to) {
#define VESTA_X_METHOD(R, name, params, args) add<ops::name, ops::sig::name>(to, #name, #params, doc::name, true);
#define VESTA_X_FUNCTION(R, name, params, args) add<ops::name, ops::sig::name>(to, #name, #params, doc::name, false);
  VESTA_STRUCTURED(VESTA_X_METHOD, VESTA_X_FUNCTION)
#undef VESTA_X_METHOD
#undef VESTA_X_FUNCTION
}

}  // namespace vesta::python
