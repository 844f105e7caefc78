// Defines the objects of an op list and their schemas, in the one source file of a topic:
//
//   namespace vesta {
//   VESTA_DEFINE_OPS(VESTA_OPS_REDUCE)
//   }
//
// The file includes the docs of its ops, `doc::NAME` (docs/TOPIC.h), and the structs of pointwise ones. The body of a
// composite is a function NAME_composite of the op's own signature, in any file. Everything here is constant: nothing
// runs when the library is loaded.
#pragma once
#include <vesta/core/dispatch/autocast.h>
#include <vesta/core/dispatch/profiled_call.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/destination.h>
#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/pointwise_traits.h>

namespace vesta {

namespace traits {
/// Calls `f(first..., parameters...)`.
template <class P, class F, class... First, size_t... I>
auto with_parameters(std::index_sequence<I...>, [[maybe_unused]] const double* p, F f, First... first) {
  return f(first..., P::template read<I>(p)...);
}
template <class D, class P>
void check(const Tensor* const* in, const double* p) {
  with_parameters<P>(typename P::Indices{}, p, D::check, in);
}
template <class D, class P>
bool passes_b(const double* p) {
  return with_parameters<P>(typename P::Indices{}, p, D::passes_b);
}
template <class D, class P>
bool result_stands_in(const double* p) {
  return with_parameters<P>(typename P::Indices{}, p, D::result_stands_in);
}

/// Returns the dtypes that operands of struct D may be promoted to.
template <class D>
constexpr DTypeSet operands_of() {
  if constexpr (requires { D::of_truth; }) return kAllTypes;
  DTypeSet set = D::accepts;
  if (integers_to_float<D>()) set = set | kIntegers | kBool;
  if constexpr (requires { D::bool_to_int64; }) set = set | kBool;
  return set;
}
/// Returns the rule for the dtype of a result, the first or the second, of struct D.
template <class D>
constexpr Gives rule_of(Result result) {
  switch (result) {
    case Result::boolean: return Gives::boolean;
    case Result::int32: return Gives::int32;
    case Result::complex: return Gives::complex;
    case Result::real: return integers_to_float<D>() ? Gives::real_floating : Gives::real;
    case Result::same: break;
  }
  if (integers_to_float<D>()) return Gives::floating;
  if constexpr (requires { D::bool_to_int64; }) return Gives::arithmetic;
  return Gives::same;
}
/// Returns the rules for both.
template <class D>
constexpr std::array<Gives, 3> rules_of() {
  return {rule_of<D>(result_of<D>()), rule_of<D>(second_of<D>())};
}

/// Returns the run-time record of struct D, whose op has the signature of A.
template <class D, class A>
constexpr PointwiseInfo describe(const Schema& schema) {
  using P = typename A::Params;
  constexpr int inputs = A::inputs;
  static_assert(inputs + values_of<D>() <= kMaxInputs, "what a gradient can save");
  if constexpr (requires { D::check; }) {
    static_assert(!std::is_same_v<P, Parameters<bool>>, "pointwise() would take a 1 for an alpha that needs no check");
  }
  PointwiseInfo info;
  info.schema = &schema, info.name = schema.name;
  info.inputs = inputs, info.params = P::size;
  info.accepts = D::accepts;
  info.result = result_of<D>(), info.second = second_of<D>();
  info.two_results = has_two_results<D>(), info.values = values_of<D>(), info.slopes = slopes_of<D>();
  info.integers_to_float = integers_to_float<D>();
  if constexpr (requires { D::bool_to_int64; }) info.bool_to_int64 = D::bool_to_int64;
  if constexpr (requires { D::rounds_numbers; }) info.rounds_numbers = D::rounds_numbers;
  if constexpr (requires { D::bounds_parameters; }) info.bounds_parameters = D::bounds_parameters;
  if constexpr (requires { D::parameters_are_elements; }) {
    info.bounds_parameters = info.parameters_are_elements = D::parameters_are_elements;
  }
  if constexpr (requires { D::of_truth; }) info.of_truth = D::of_truth;
  info.mask_first = mask_first<D>();
  if constexpr (requires { D::check; }) info.check = &check<D, P>;
  auto gradient = [&]<int i>() {
    using G = Gradient<D, inputs, P, i>;
    static_assert(G::operands <= kMaxInputs, "what a kernel can read");
    static_assert(!is_differentiable_op<D>() || G::exists || (mask_first<D>() && i == 0),
                  "a pointwise struct has a gradient for each input, or says differentiable = false");
    info.pass[i] = G::is_pass, info.zero[i] = G::is_zero;
    info.uses[i] = G::mask;
  };
  if constexpr (requires { D::result_stands_in; }) {
    static_assert(inputs == 1, "the result stands in for the one input");
    info.result_stands_in = &result_stands_in<D, P>;
  }
  if constexpr (requires { D::passes_b; }) info.pass_if[1] = &passes_b<D, P>;
  if constexpr (is_differentiable_op<D>()) {
    gradient.template operator()<0>();
    if constexpr (inputs > 1) gradient.template operator()<1>();
    if constexpr (inputs > 2) gradient.template operator()<2>();
  } else if constexpr (overwrites<D>()) {
    for (int i = 0; i < inputs; ++i) info.zero[i] = true;
  }
  return info;
}
}  // namespace traits

namespace ops {

/// Runs any pointwise op on any device, as its kernel: promotion, broadcasting and memory are the same everywhere, and
/// the device only runs the plan.
template <auto& op, class R, class... A>
R run_pointwise(A... a) {
  // Not PointwiseArguments, whose counters would be kept in memory: every small op pays for this function.
  const Tensor* in[3] = {};
  double params[kMaxParams] = {};
  [[maybe_unused]] Out out;
  size_t i = 0, p = 0;
  auto see = [&](auto&& v) {
    using V = std::remove_cvref_t<decltype(v)>;
    if constexpr (std::is_same_v<V, Tensor>) in[i++] = &v;
    else if constexpr (std::is_same_v<V, Out>) out = v;
    else traits::Packed<V>::write(v, params + std::exchange(p, p + traits::Packed<V>::size));
  };
  (see(a), ...);
  if constexpr (std::is_same_v<R, Tensor>) return pointwise(op.info, in, params, out);
  else return pointwise_pair(op.info, in, params);
}

/// Runs the functional twin of an in-place op: the op on a copy of its first operand.
template <auto& inplace, class... A>
Tensor run_on_copy(const Tensor& input, A... a) {
  return inplace(::vesta::clone(input), static_cast<A>(a)...);
}

/// Runs the in-place twin of an op: the op, and a copy of the result onto its first operand.
template <auto& op, auto& inplace, class... A>
Tensor run_and_copy(const Tensor& input, A... a) {
  [[maybe_unused]] const auto check = [&](const auto& argument) {
    if constexpr (std::is_same_v<std::decay_t<decltype(argument)>, MaybeDType>) {
      VESTA_CHECK(!argument || *argument == input.dtype(), type, inplace.name,
                  ": expected the dtype of self, which an in-place op keeps, got ", *argument, " (dtype) and ",
                  input.dtype(), ".");
    }
  };
  (check(a), ...);
  // The gradient may save the operand, so a recorded call works on a copy, as every in-place op does. (Another operand
  // may be the one that is recorded.)
  const bool recorded = layer_state.grad_enabled &&
                        (input.requires_grad() || ((dispatch::bits(a) | ... | uint8_t(0)) & bit(Layer::autograd)) != 0);
  if (op.schema->overwrites && may_overwrite(input, recorded, inplace.name)) {
    const Destination offered({&input, 1});
    const Tensor result = op(input, static_cast<A>(a)...);
    if (!result.is_same(input)) return write_result(input, result, inplace.name);
    input.impl()->bump(inplace.name);
    return input;
  }
  const Tensor before = recorded ? ::vesta::clone(input) : input;
  return write_result(input, op(before, static_cast<A>(a)...), inplace.name);
}

inline bool is_inplace(const Out& out) { return out.kind == Out::inplace; }
constexpr bool is_inplace(const auto&) { return false; }

/// Runs the body of a composite with an Out, whose operands dispatch leaves unchecked.
template <auto& op, auto* body, class R, class... A>
R run_checked(A... a) {
  dispatch::Devices d;
  (d.see(a), ...);
  if (d.irregular) [[unlikely]] {
    auto called = op;  // the method, if it was that
    const std::string name = text(op.name, (is_inplace(a) || ...) ? "_" : "");
    called.name = name.c_str();
    called.check_operands(a...);
  }
  return body(static_cast<A>(a)...);
}

// Functions of an op's type: they deduce R(A...) from the object and return the function above.
template <auto& op, class R, class... A>
constexpr auto pointwise_kernel(const Op<R(A...)>*) {
  return &run_pointwise<op, R, A...>;
}
template <auto& op, auto* body, class R, class... A>
constexpr auto checked_body(const Op<R(A...)>*) {
  return &run_checked<op, body, R, A...>;
}
template <auto& inplace, class... A>
constexpr auto twin(const Op<Tensor(const Tensor&, A...)>*) {
  return &run_on_copy<inplace, A...>;
}
template <auto& op, auto& inplace, class... A>
constexpr auto copied(const Op<Tensor(const Tensor&, A...)>*) {
  return &run_and_copy<op, inplace, A...>;
}
/// Returns the function for the autocast slot of `op`: null if its schema has no rule.
template <auto& op, const Schema& schema, class R, class... A>
constexpr auto casts_of(const Op<R(A...)>*) {
  if constexpr (schema.on_cpu == autocast::Rule::none && schema.on_cuda == autocast::Rule::none) return nullptr;
  else return &autocast::casting::call<op, R, A...>;
}
/// Returns the function for the profiler's slot of `op`.
template <auto& op, class R, class... A>
constexpr auto profiled(const Op<R(A...)>*) {
  return &profiler::call<op, R, A...>;
}
/// Returns the body of a composite; null for an op with kernels. `address` is not instantiated for those.
template <bool composite, class Fn>
constexpr auto body_of(auto address) {
  if constexpr (composite) return Fn(address(std::true_type()));
  else return nullptr;
}

}  // namespace ops
}  // namespace vesta

// ---- ops::schemas::OBJECT ----
#define VESTA_SCHEMA(kind, ...) VESTA_LINE_##kind(VESTA_SCHEMA, __VA_ARGS__)
#define VESTA_SCHEMA_MADE(object, base, ...)                                                                           \
  inline constexpr Schema object = [] {                                                                                \
    using namespace ::vesta::schema;                                                                                   \
    return make(base __VA_OPT__(, ) __VA_ARGS__);                                                                      \
  }();
#define VESTA_SCHEMA_BASE(R, name_, overload_, params)                                                                 \
  (Schema{.name = #name_, .overload = overload_, .parameters = VESTA_STRING(params), .result = #R,                     \
          .doc = ::vesta::doc::name_})
#define VESTA_SCHEMA_STRUCT(name_, Struct, params, result_, any_device_, ...)                                          \
  VESTA_SCHEMA_MADE(name_,                                                                                             \
                    (Schema{.name = #name_, .parameters = VESTA_STRING(params), .result = result_,                     \
                            .doc = ::vesta::def::Struct::doc, .pointwise = true,                                       \
                            .differentiable = traits::is_differentiable_op<def::Struct>(), .any_device = any_device_,  \
                            .accepts = traits::operands_of<def::Struct>(),                                             \
                            .gives = traits::rules_of<def::Struct>()})                                                 \
                        __VA_OPT__(, ) __VA_ARGS__)
#define VESTA_SCHEMA_POINTWISE(name, Struct, params, args, ...)                                                        \
  VESTA_SCHEMA_STRUCT(name, Struct, params, "Tensor", false __VA_OPT__(, ) __VA_ARGS__)
#define VESTA_SCHEMA_POINTWISE_PAIR(name, Struct, params, args, ...)                                                   \
  VESTA_SCHEMA_STRUCT(name, Struct, params, "TensorPair", true __VA_OPT__(, ) __VA_ARGS__)
#define VESTA_SCHEMA_OP(R, object, name, overload, params, args, ...)                                                  \
  VESTA_SCHEMA_MADE(object, VESTA_SCHEMA_BASE(R, name, overload, params) __VA_OPT__(, ) __VA_ARGS__)
#define VESTA_SCHEMA_OUT(...) VESTA_SCHEMA_OP(__VA_ARGS__)
#define VESTA_SCHEMA_TWIN(...) VESTA_SCHEMA_OP(__VA_ARGS__)
#define VESTA_SCHEMA_COPIED(source, ...) VESTA_SCHEMA_OP(__VA_ARGS__, accepts_as(source))
#define VESTA_SCHEMA_IN(space, R, name, params, args, ...)                                                             \
  VESTA_SCHEMA_OP(R, space##_##name, space##_##name, "", params, args __VA_OPT__(, ) __VA_ARGS__)
#define VESTA_SCHEMA_FORM(...)
#define VESTA_SCHEMA_PYTHON_FORM(...)
#define VESTA_SCHEMA_ALIAS(...)

// ---- OBJECT_composite: declared for every line, defined for composites ----
#define VESTA_BODY(kind, ...) VESTA_LINE_##kind(VESTA_BODY, __VA_ARGS__)
#define VESTA_BODY_POINTWISE(...)
#define VESTA_BODY_POINTWISE_PAIR(...)
#define VESTA_BODY_OP(R, object, ...) ops::Signature<decltype(ops::sig::object::call)> object##_composite;
#define VESTA_BODY_OUT(...) VESTA_BODY_OP(__VA_ARGS__)
#define VESTA_BODY_TWIN(...)
#define VESTA_BODY_COPIED(...)
#define VESTA_BODY_IN(space, R, name, ...) VESTA_BODY_OP(R, space##_##name)
#define VESTA_BODY_FORM(...)
#define VESTA_BODY_PYTHON_FORM(...)
#define VESTA_BODY_ALIAS(...)

// ---- the objects ----
#define VESTA_DEFINE(kind, ...) VESTA_LINE_##kind(VESTA_DEFINE, __VA_ARGS__)
#define VESTA_DEFINE_POINTWISE(name, Struct, ...)                                                                      \
  constinit PointwiseOp<Signature<decltype(sig::name::call)>> name(                                                    \
      schemas::name,                                                                                                   \
      traits::describe<def::Struct, traits::Arity<Signature<decltype(sig::name::call)>>>(schemas::name),               \
      pointwise_kernel<name>(&name), casts_of<name, schemas::name>(&name), profiled<name>(&name));
#define VESTA_DEFINE_POINTWISE_PAIR(...) VESTA_DEFINE_POINTWISE(__VA_ARGS__)
#define VESTA_DEFINE_OBJECT(object, body)                                      \
  constinit Op<Signature<decltype(sig::object::call)>> object(                 \
      schemas::object, body, casts_of<object, schemas::object>(&object), profiled<object>(&object));
#define VESTA_DEFINE_OP(R, object, ...)                                                             \
  VESTA_DEFINE_OBJECT(object, (body_of<schemas::object.composite, decltype(object)::Fn>([](auto on) { \
                        if constexpr (on.value) return &object##_composite;                         \
                      })))
#define VESTA_DEFINE_OUT(R, object, ...) \
  VESTA_DEFINE_OBJECT(object, (checked_body<object, &object##_composite>(&object)))
#define VESTA_DEFINE_TWIN(R, object, ...) VESTA_DEFINE_OBJECT(object, twin<object##_>(&object##_))
#define VESTA_DEFINE_COPIED(source, R, object, ...) VESTA_DEFINE_OBJECT(object, (copied<source, object>(&source)))
#define VESTA_DEFINE_IN(space, R, name, ...) VESTA_DEFINE_OP(R, space##_##name)
#define VESTA_DEFINE_FORM(...)
#define VESTA_DEFINE_PYTHON_FORM(...)
#define VESTA_DEFINE_ALIAS(...)

/// Defines the objects of a list and their schemas.
#define VESTA_DEFINE_OPS(LIST)                                                                                         \
  namespace ops::schemas { LIST(VESTA_SCHEMA) }                                                                        \
  LIST(VESTA_BODY)                                                                                                     \
  namespace ops { LIST(VESTA_DEFINE) }
