// Matrix products of tensors: shapes and strides for the products of gemm.h.
#include <vesta/core/cpu/gemm.h>
#include <vesta/core/cpu/register.h>
#include <vesta/core/ops/nn.h>
#include <vesta/core/ops/ops.h>

namespace vesta::cpu {
namespace {

Elem elem_of(DType d, const char* op) {
  switch (d) {
    case DType::float32: return Elem::f32;
    case DType::float64: return Elem::f64;
    case DType::bfloat16: return Elem::bf16;
    case DType::float16: return Elem::f16;
    case DType::complex64: return Elem::c64;
    case DType::complex128: return Elem::c128;
    case DType::uint8: return Elem::u8;
    case DType::int8: return Elem::i8;
    case DType::int16: return Elem::i16;
    case DType::int32: return Elem::i32;
    case DType::int64: return Elem::i64;
    default: fail(Cause::not_implemented, op, ": expected a number dtype, got ", d, ".");
  }
}

void check_pair(const Tensor& a, const Tensor& b, const char* op) {
  VESTA_CHECK(a.dtype() == b.dtype(), type, op, ": expected operands of the same dtype, got ", a.dtype(), " and ",
              b.dtype(), ". Convert one with .to().");
}

Tensor matmul_kernel(const Tensor& a, const Tensor& b) {
  constexpr const char* op = "matmul";
  VESTA_CHECK(a.dim() > 0 && b.dim() > 0, value, op, ": both arguments need to be at least 1D, but they are ", a.dim(),
              "D and ", b.dim(), "D.");
  check_pair(a, b, op);
  const bool row = a.dim() == 1, column = b.dim() == 1;
  const int64_t k = a.sizes().back(), k2 = b.sizes()[column ? 0 : size_t(b.dim() - 2)];
  VESTA_CHECK(k == k2, value, op, ": inner sizes must agree, got a ", a.sizes(), " and b ", b.sizes(), " (", k, " vs ",
              k2, ").");
  Gemm g{};
  g.k = k;
  g.m = row ? 1 : a.sizes()[size_t(a.dim() - 2)], g.n = column ? 1 : b.sizes().back();
  g.a = a.impl()->data(), g.b = b.impl()->data();
  g.a_col = a.strides().back(), g.a_row = row ? 0 : a.strides()[size_t(a.dim() - 2)];
  g.b_row = b.strides()[column ? 0 : size_t(b.dim() - 2)], g.b_col = column ? 0 : b.strides().back();
  g.c_row = g.n;
  Dims sizes;
  SmallVector<BatchDim, 4> batch;
  if (a.dim() > 2 || b.dim() > 2) {
    IntSpan lead_a = a.sizes().first(size_t(std::max<int64_t>(a.dim() - 2, 0))),
            lead_b = b.sizes().first(size_t(std::max<int64_t>(b.dim() - 2, 0)));
    sizes = broadcast_shapes(lead_a, lead_b, op);
    int64_t step = g.m * g.n;
    for (size_t i = sizes.size(); i-- > 0;) {
      auto stride = [&](const Tensor& t, IntSpan lead) -> int64_t {
        size_t skip = sizes.size() - lead.size();
        return i < skip || lead[i - skip] == 1 ? 0 : t.strides()[i - skip];
      };
      batch.insert(0, BatchDim{sizes[i], stride(a, lead_a), stride(b, lead_b), step});
      step *= sizes[i];
    }
    // Rows of one product after the other over the same right-hand side are one tall product (a linear layer over a
    // batch of sequences). Values do not change: a row's result does not depend on the rows around it.
    while (!batch.empty() && batch.back().b == 0 && !row &&
           (batch.back().a == g.a_row * g.m || batch.back().size == 1) && batch.back().c == g.c_row * g.m) {
      g.m *= batch.back().size;
      batch.pop_back();
    }
  }
  if (!row) sizes.push_back(a.sizes()[size_t(a.dim() - 2)]);
  if (!column) sizes.push_back(g.n);
  Tensor c = empty_tensor(sizes, a.dtype(), a.device());
  g.c = c.impl()->data();
  g.batch = {batch.data(), batch.size()};
  if (c.numel()) gemm(elem_of(a.dtype(), op), g);
  return c;
}

Tensor linear_kernel(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  constexpr const char* op = "linear";
  VESTA_CHECK(weight.dim() == 2 || weight.dim() == 1, value, op, ": expected a weight [out, in], got ", weight.sizes(),
              ".");
  VESTA_CHECK(input.dim() >= 1, value, op, ": expected an input [*, in], got a 0-d tensor.");
  check_pair(input, weight, op);
  const int64_t k = input.sizes().back();
  VESTA_CHECK(weight.sizes().back() == k, value, op, ": expected an input of ", weight.sizes().back(),
              " features (weight is ", weight.sizes(), "), got ", input.sizes(), ".");
  const int64_t n = weight.dim() == 2 ? weight.sizes()[0] : 1;
  if (bias.defined()) {
    check_pair(input, bias, op);
    VESTA_CHECK(bias.dim() <= 1 && bias.numel() == (weight.dim() == 2 ? n : 1), value, op, ": expected a bias [", n,
                "], got ", bias.sizes(), ".");
  }
  // Leading dimensions that lie one after the other are rows; otherwise the input is copied once.
  Tensor x = input;
  int64_t row = input.dim() >= 2 ? input.strides()[size_t(input.dim() - 2)] : 0, m = 1;
  for (int64_t d = input.dim() - 2; d >= 0; --d) {
    if (input.sizes()[size_t(d)] != 1 && m != 1 && input.strides()[size_t(d)] != row * m) x = contiguous(input);
    if (m == 1 && input.sizes()[size_t(d)] != 1) row = input.strides()[size_t(d)];
    m *= input.sizes()[size_t(d)];
  }
  if (!x.is_same(input)) row = k;
  Dims sizes(input.sizes());
  sizes.pop_back();
  if (weight.dim() == 2) sizes.push_back(n);
  Tensor y = empty_tensor(sizes, input.dtype(), input.device());
  Tensor b = bias.defined() ? contiguous(bias) : bias;
  Gemm g{};
  g.m = m, g.n = n, g.k = k;
  g.a = x.impl()->data(), g.a_row = row, g.a_col = x.strides().back();
  g.b = weight.impl()->data(), g.b_row = weight.strides().back(), g.b_col = weight.dim() == 2 ? weight.strides()[0] : 0;
  g.c = y.impl()->data(), g.c_row = n;
  g.bias = b.defined() ? b.impl()->data() : nullptr;
  if (y.numel()) gemm(elem_of(input.dtype(), op), g);
  return y;
}

}  // namespace

void register_matmul() {
  ops::matmul.set_kernel(DeviceType::cpu, matmul_kernel);
  ops::linear.set_kernel(DeviceType::cpu, linear_kernel);
}

}  // namespace vesta::cpu
