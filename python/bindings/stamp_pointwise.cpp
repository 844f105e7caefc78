// The pointwise ops in Python.
#include <vesta/core/ops/pointwise/activation.h>
#include <vesta/core/ops/pointwise/arithmetic.h>
#include <vesta/core/ops/pointwise/compare.h>
#include <vesta/core/ops/pointwise/explog.h>
#include <vesta/core/ops/pointwise/select.h>
#include <vesta/core/ops/pointwise/trigonometric.h>

#include "stamp.h"

namespace vesta::python {
namespace {

template <auto& op>
struct Call {
  static auto run(const auto&... a) { return op(a...); }
};

template <auto& op, class S>
void add(std::vector<Stamped>& to, const char* name, std::initializer_list<const char*> operands, const char* params,
         const char* doc, bool method) {
  using T = Stamp<S, Call<op>>;
  T::table.read(name, operands, params, true);
  T::table.doc = doc;
  T::table.result = python_type<typename T::Result>();
  T::table.differentiable = op.info.differentiable;
  T::table.extras |= 1 << kOut;
  T::table.method = method;
  T::table.inplace = method;
  auto cast = [](auto f) { return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f)); };
  to.push_back({&T::table, &T::function_object, cast(T::function), method ? cast(T::method) : nullptr,
                method ? cast(T::inplace) : nullptr});
}

}  // namespace

void stamp_pointwise(std::vector<Stamped>& to) {
#define VESTA_X_UNARY(name, Struct, params, args) \
  add<ops::name, ops::sig::name>(to, #name, {"input"}, #params, def::Struct::doc, true);
#define VESTA_X_BINARY(name, Struct, params, args) \
  add<ops::name, ops::sig::name>(to, #name, {"input", "other"}, #params, def::Struct::doc, true);
#define VESTA_X_TERNARY(name, Struct, first, second, third) \
  add<ops::name, ops::sig::name>(to, #name, {#first, #second, #third}, "()", def::Struct::doc, false);
  VESTA_POINTWISE(VESTA_X_UNARY, VESTA_X_BINARY, VESTA_X_TERNARY)
#undef VESTA_X_UNARY
#undef VESTA_X_BINARY
#undef VESTA_X_TERNARY
}

}  // namespace vesta::python
