// What a unary op costs: a struct and one line. The op of this file goes through the macros and templates that the
// library's own ops go through (core/ops/README.md), and everything that is derived from the two is checked.
#include <vesta/autograd/rules/tensor_math.h>

#include <vesta/autograd/engine.h>
#include <vesta/autograd/record.h>
#include <vesta/core/cpu/loops.h>
#include <vesta/core/ops/define.h>
#include <vesta/core/ops/ops.h>

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

}  // namespace VESTA_ISA_NS
}  // namespace vesta::def

// ---- ... and its line in core/ops/lists/TOPIC.h
#define SCRATCH_OPS(OP) OP(POINTWISE, scratch_sign, ScratchSign, (), (), inplace, out)

// ---- what the library does with every list
namespace vesta {
VESTA_DECLARE_OPS(SCRATCH_OPS)
VESTA_DEFINE_OPS(SCRATCH_OPS)
}  // namespace vesta
namespace vesta::cpu::VESTA_ISA_NS {
VESTA_CPU_TOPIC(scratch, SCRATCH_OPS)
}

namespace {

using namespace vesta;
using Catch::Matchers::Contains;

/// Registers the scratch op, once.
void plug_in() {
  static const bool done = [] {
    PointwiseLoops loops[1];
    cpu::VESTA_ISA_NS::loops_of_scratch(loops);
    for (int variant = 0; variant < 4; ++variant) {
      for (int d = 0; d < kNumDTypes; ++d) {
        ops::scratch_sign.info.kernels[int(DeviceType::cpu)][variant][d] =
            reinterpret_cast<AnyKernel>(loops[0].at[variant][d]);
      }
    }
    autograd::record_pointwise<ops::scratch_sign, def::ScratchSign>();
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
