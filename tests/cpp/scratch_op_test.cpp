// What an op costs: a struct and one line. The ops of this file go through the macros and templates that the
// library's own ops go through (core/ops/README.md), and everything that is derived from the two is checked.
#include <vesta/autograd/rules/tensor_math.h>

#include <vesta/autograd/engine.h>
#include <vesta/autograd/record.h>
#include <vesta/core/cpu/loops.h>
#include <vesta/core/ops/define.h>
#include <vesta/core/ops/from_data.h>
#include <vesta/core/ops/ops.h>
#include <vesta/core/ops/pointwise_table.h>

#include <catch2/catch.hpp>

#include <cmath>

// ---- the op: as it would stand in core/ops/pointwise/TOPIC.h, ...
namespace vesta::def {
inline namespace VESTA_ISA_NS {
using math::lit;

struct ScratchSign {
  static constexpr auto doc = "scratch_sign(input): x / (1 + |x|), elementwise.";
  static constexpr auto accepts = kFloats;
  static constexpr bool integers_to_float = false;
  template <class V> VESTA_HD static V forward(V x) { return x / (lit<V>(1) + math::abs(x)); }
  template <class T> VESTA_HD static T backward(T g, T x, Unused) {
    T d = lit<T>(1) + math::abs(x);
    return g / (d * d);
  }
};

// Parameters of every kind.
struct ScratchScale {
  static constexpr auto doc = "scratch_scale(input, factor=None, times=1, negate=False): x scaled, elementwise.";
  static constexpr auto accepts = kFloats;
  template <class V> VESTA_HD static V forward(V x, Maybe<double> factor, int64_t times, bool negate) {
    const double scale = factor.value_or(3) * double(times);
    return x * lit<V>(negate ? -scale : scale);
  }
  template <class T>
  VESTA_HD static T backward(T g, Unused, Unused, Maybe<double> factor, int64_t times, bool negate) {
    return forward(g, factor, times, negate);
  }
};

// Two results, each with a gradient, of integers too.
struct ScratchSumProduct {
  static constexpr auto doc = "scratch_sum_product(input, other): (x + y, x * y), elementwise.";
  static constexpr auto accepts = kNumbers;
  static constexpr auto second = Result::same;
  template <class V> VESTA_HD static Both<V> forward(V a, V b) { return {V(a + b), math::product(a, b)}; }
  template <class T> VESTA_HD static T backward_a(T g, T h, Unused, T b, Unused, Unused) { return g + h * b; }
  template <class T> VESTA_HD static T backward_b(T g, T h, T a, Unused, Unused, Unused) { return g + h * a; }
};

// A second result of another type.
struct ScratchCap {
  static constexpr auto doc = "scratch_cap(input): (min(x, 1), x > 1), elementwise.";
  static constexpr auto accepts = kFloats;
  static constexpr auto second = Result::boolean;
  template <class V> VESTA_HD static auto forward(V x) {
    const auto above = x > lit<V>(1);
    return Both<V, decltype(above)>{math::select(above, lit<V>(1), x), above};
  }
  template <class T> VESTA_HD static T backward(T g, T x, Unused, Unused) {
    return math::select(x > lit<T>(1), lit<T>(0), g);
  }
};

}  // namespace VESTA_ISA_NS
}  // namespace vesta::def

// ---- ... and its line in core/ops/lists/TOPIC.h
#define SCRATCH_OPS(OP)                                                                         \
  OP(POINTWISE, scratch_sign, ScratchSign, (), (), inplace, out)                                \
  OP(POINTWISE, scratch_scale, ScratchScale,                                                    \
     (MaybeDouble factor = {}, int64_t times = 1, bool negate = false), (factor, times, negate)) \
  OP(POINTWISE_PAIR, scratch_sum_product, ScratchSumProduct, (const Operand& other), (other),   \
     fields("sum", "product"))                                                                  \
  OP(POINTWISE_PAIR, scratch_cap, ScratchCap, (), ())                                           \
  OP(FUNCTION, Tensor, scratch_weighted, (const Tensor& input, TensorList weights, MaybeTensor bias), \
     (input, weights, bias), composite)

// ---- what the library does with every list
namespace vesta {
namespace doc {
inline constexpr char scratch_weighted[] = "scratch_weighted(input, weights, bias): the sum of input * weight + bias.";
}
VESTA_DECLARE_OPS(SCRATCH_OPS)
VESTA_DEFINE_OPS(SCRATCH_OPS)

/// A composite; its kernel, which a test enters, says that it ran by negative values.
Tensor scratch_weighted_composite(const Tensor& input, TensorList weights, MaybeTensor bias) {
  Tensor sum = zeros_like(input);
  for (const Tensor& w : weights) sum = sum + input * w;
  return bias.defined() ? sum + *bias : sum;
}
}  // namespace vesta
namespace vesta::cpu::VESTA_ISA_NS {
VESTA_CPU_TOPIC(scratch, SCRATCH_OPS, blocks, long_ones)
}

namespace {

using namespace vesta;
using Catch::Matchers::Contains;

/// Registers the scratch ops, once.
void plug_in() {
  static const bool done = [] {
    PointwiseInfo* const infos[] = {VESTA_POINTWISE_INFOS(SCRATCH_OPS)};
    PointwiseLoops loops[std::size(infos)];
    cpu::VESTA_ISA_NS::loops_of_scratch(loops);
    for (size_t i = 0; i < std::size(infos); ++i) {
      for (int variant = 0; variant < 4; ++variant) {
        for (int d = 0; d < kNumDTypes; ++d) {
          infos[i]->kernels[int(DeviceType::cpu)][variant][d] = reinterpret_cast<AnyKernel>(loops[i].at[variant][d]);
        }
      }
    }
    autograd::record_pointwise<ops::scratch_sign, def::ScratchSign>();
    autograd::record_pointwise<ops::scratch_scale, def::ScratchScale>();
    autograd::record_pointwise<ops::scratch_sum_product, def::ScratchSumProduct>();
    autograd::record_pointwise<ops::scratch_cap, def::ScratchCap>();
    return true;
  }();
  (void)done;
}

/// Makes n values from -3 up, none of them 0 and (n > 1) the last one 3.
Tensor ramp(int64_t n, DType dtype) {
  Tensor t = empty({n}, DType::float64);
  for (int64_t i = 0; i < n; ++i) t.data_ptr<double>()[i] = -3 + (n > 1 ? 6.0 * double(i) / double(n - 1) : 0) + 1e-3;
  return t.to(dtype);
}

/// Compares every element with f of x's element, to a relative error.
void check(const Tensor& got, const Tensor& x, double (*f)(double), double epsilon) {
  REQUIRE(std::ranges::equal(got.sizes(), x.sizes()));
  Tensor a = got.detach().to(DType::float64).contiguous(), b = x.detach().to(DType::float64).contiguous();
  for (int64_t i = 0; i < a.numel(); ++i) {
    INFO("element " << i << " of " << a.numel());
    CHECK(a.data_ptr<double>()[i] == Approx(f(b.data_ptr<double>()[i])).epsilon(epsilon));
  }
}

double value(double x) { return x / (1 + std::abs(x)); }
double first(double x) { return 1 / ((1 + std::abs(x)) * (1 + std::abs(x))); }
double second(double x) { return (x < 0 ? 2 : -2) / std::pow(1 + std::abs(x), 3); }

}  // namespace

TEST_CASE("A struct and a line make an op: values in every dtype, size and layout", "[scratch]") {
  plug_in();
  for (auto [dtype, epsilon] : {std::pair(DType::float16, 1e-3), std::pair(DType::bfloat16, 8e-3),
                                std::pair(DType::float32, 3e-7), std::pair(DType::float64, 1e-15)}) {
    for (int64_t n : {0, 1, 2, 3, 5, 8, 17, 33, 67}) {
      Tensor x = ramp(n, dtype), y = scratch_sign(x);
      CHECK(y.dtype() == dtype);
      check(y, x, value, epsilon);
    }
  }
  Tensor x = ramp(60, DType::float32).view({5, 12});
  check(scratch_sign(x.t()), x.t(), value, 3e-7);
  check(scratch_sign(x.slice(1, 1, 12, 3)), x.slice(1, 1, 12, 3), value, 3e-7);
  check(scratch_sign(x.select(0, 2).select(0, 3)), x.select(0, 2).select(0, 3), value, 3e-7);
  Tensor large = ramp(100'000, DType::float32);
  CHECK((scratch_sign(large) == scratch_sign(large.view({100, 1000})).view(-1)).all().item<bool>());
}

TEST_CASE("... in place and into a given tensor", "[scratch]") {
  plug_in();
  Tensor x = ramp(33, DType::float32), y = scratch_sign(x), z = x.clone();
  uint32_t version = z.version();
  ops::scratch_sign(z, Out{&z, Out::inplace});
  CHECK((z == y).all().item<bool>());
  CHECK(z.version() > version);
  Tensor out = empty({33}, DType::float32);
  CHECK(scratch_sign_out(out, x).is_same(out));
  CHECK((out == y).all().item<bool>());
  CHECK_THROWS_WITH(scratch_sign_out(zeros({2}), x), Contains("scratch_sign"));
}

TEST_CASE("... with a fused gradient and gradients of any order", "[scratch]") {
  plug_in();
  for (int64_t n : {1, 17, 67}) {
    Tensor x = ramp(n, DType::float64);
    x.set_requires_grad();
    scratch_sign(x).sum().backward();
    check(x.grad(), x, first, 1e-14);

    Tensor g = grad({scratch_sign(x).sum()}, {x}, {}, {}, true)[0];
    check(g, x, first, 1e-14);
    check(grad({g.sum()}, {x})[0], x, second, 1e-14);
  }
  Tensor leaf = ramp(5, DType::float64).set_requires_grad();
  CHECK_THROWS(ops::scratch_sign(leaf, Out{&leaf, Out::inplace}));
  Tensor x = leaf * 1;
  ops::scratch_sign(x, Out{&x, Out::inplace});  // overwrites what its gradient needs: a copy was saved
  x.sum().backward();
  check(leaf.grad(), leaf, first, 1e-14);
}

TEST_CASE("... and it refuses what the struct does not accept", "[scratch]") {
  plug_in();
  CHECK(ops::scratch_sign.schema->differentiable);
  CHECK(ops::scratch_sign.has_rule());
  CHECK_THROWS_WITH(scratch_sign(ones({3}, DType::bool_)),
                    Contains("scratch_sign: expected a dtype of float16") && Contains("bool"));
  CHECK_THROWS_WITH(scratch_sign(ones({3}, DType::int64)), Contains("int64"));
  CHECK_THROWS_WITH(scratch_sign(ones({3}, DType::complex64)), Contains("complex64"));
  CHECK_THROWS_WITH(scratch_sign(Tensor()), Contains("scratch_sign"));
}

TEST_CASE("Parameters of a struct: integers, bools, and numbers that may be missing", "[scratch]") {
  plug_in();
  Tensor x = tensor({1.0f, -2.0f}).set_requires_grad();
  CHECK((scratch_scale(x) == tensor({3.0f, -6.0f})).all().item<bool>());
  CHECK((scratch_scale(x, 0.5, 4) == tensor({2.0f, -4.0f})).all().item<bool>());
  Tensor y = scratch_scale(x, {}, 2, true);
  CHECK((y == tensor({-6.0f, 12.0f})).all().item<bool>());
  y.sum().backward();
  CHECK((x.grad() == -6).all().item<bool>());
  Tensor g = grad({(scratch_scale(x, 2.0, -3) * x).sum()}, {x}, {}, {}, true)[0];
  CHECK((grad({g.sum()}, {x})[0] == -12).all().item<bool>());
}

TEST_CASE("A struct with two results", "[scratch]") {
  plug_in();
  auto same = [](const Tensor& a, const Tensor& b) { return a.dtype() == b.dtype() && a.equal(b); };
  for (DType d : {DType::int8, DType::int64, DType::float16, DType::float32, DType::float64, DType::complex64}) {
    for (int64_t n : {0, 1, 5, 17, 67}) {
      Tensor a = arange(0, n).to(d), b = full({n}, 3).to(d);
      auto [sum, product] = scratch_sum_product(a, b);
      CHECK((same(sum, a + b) && same(product, a * b)));
    }
  }
  Tensor m = ramp(60, DType::float32).view({5, 12});
  for (const Tensor& a : {m.t(), m.slice(1, 1, 12, 3), m.view({5, 3, 4}).permute({2, 0, 1}), m.select(1, 4)}) {
    auto [sum, product] = scratch_sum_product(a, a.select(-1, 0).unsqueeze(-1));
    CHECK((same(sum, a + a.select(-1, 0).unsqueeze(-1)) && same(product, a * a.select(-1, 0).unsqueeze(-1))));
    auto [capped, above] = scratch_cap(a);
    CHECK((same(capped, a.clamp_max(1.0)) && same(above, a > 1.0)));
  }
  Tensor large = ramp(200'000, DType::float32);
  auto [sum, product] = scratch_sum_product(large, 2.0);
  CHECK((same(sum, large + 2.0) && same(product, large * 2.0)));
  CHECK_THROWS_WITH(scratch_sum_product(ones({2}), ones({3})), Contains("scratch_sum_product"));
}

TEST_CASE("... and a gradient of each", "[scratch]") {
  plug_in();
  Tensor a = ramp(5, DType::float64).set_requires_grad(), b = full({5}, 2.0, DType::float64).set_requires_grad();
  auto all_close = [](const Tensor& x, const Tensor& y) { return allclose(x.detach(), y.detach(), 1e-12, 1e-12); };
  auto grads = [&](bool first, bool second, bool record) {
    auto [sum, product] = scratch_sum_product(a, b);
    Tensor y = first && second ? sum.square() + product : first ? sum.square() : product;
    return grad({y.sum()}, {a, b}, {}, {}, record);
  };
  for (bool record : {false, true}) {  // by the fused kernel, and by ops
    std::vector<Tensor> both = grads(true, true, record), one = grads(true, false, record),
                        other = grads(false, true, record);
    CHECK((all_close(both[0], 2 * (a + b) + b) && all_close(both[1], 2 * (a + b) + a)));
    CHECK((all_close(one[0], 2 * (a + b)) && all_close(one[1], 2 * (a + b))));
    CHECK((all_close(other[0], b) && all_close(other[1], a)));
  }
  Tensor slope = grads(true, true, true)[0];
  std::vector<Tensor> curvature = grad({slope.sum()}, {a, b});
  CHECK((all_close(curvature[0], full({5}, 2.0, DType::float64)) &&
         all_close(curvature[1], full({5}, 3.0, DType::float64))));
  auto [capped, above] = scratch_cap(a);
  CHECK((capped.requires_grad() && !above.requires_grad()));
  Tensor slopes = grad({capped.sum()}, {a})[0];
  CHECK((all_close(slopes, (a <= 1.0).to(DType::float64))));
}

TEST_CASE("A composite's kernel runs for views too; the body where an operand requires grad", "[scratch]") {
  const Tensor base = ones({2, 3}), leaf = ones({3}).set_requires_grad();
  const Tensor view = base.select(0, 1);
  const auto ran_kernel = [](const Tensor& x, TensorList weights, MaybeTensor bias) {
    return scratch_weighted(x, weights, bias).detach().select(0, 0).item<float>() < 0;
  };
  CHECK_FALSE(ran_kernel(view, {view}, view));  // there is none yet
  ops::scratch_weighted.set_kernel(DeviceType::cpu, [](const Tensor& x, TensorList, MaybeTensor) { return x * -1.0; });
  CHECK(ran_kernel(ones({3}), {ones({3})}, {}));
  CHECK(ran_kernel(view, {ones({3}), view}, view));
  CHECK(ran_kernel(view.detach(), {view}, {}));
  CHECK_FALSE(ran_kernel(leaf, {view}, view));
  CHECK_FALSE(ran_kernel(view, {view, leaf}, view));
  CHECK_FALSE(ran_kernel(view, {view}, leaf));
  CHECK_FALSE(ran_kernel(leaf.slice(0, 1, 3), {leaf.slice(0, 1, 3)}, {}));
  CHECK_FALSE(scratch_weighted(view, {view}, view).requires_grad());
  CHECK(scratch_weighted(view, {view, leaf}, view).requires_grad());
  {
    NoGrad off;
    CHECK(ran_kernel(leaf, {view, leaf}, leaf));
  }
  // A view whose base comes to require grad by a write through the base.
  const Tensor whole = ones({2, 3}), part = whole.select(0, 0);
  CHECK(ran_kernel(part, {view}, {}));
  whole.mul_(leaf);
  CHECK_FALSE(ran_kernel(part, {view}, {}));
  grad({scratch_weighted(part, {view}, {}).sum()}, {leaf});
}
