// Matrix products of tensors: computes the products of core/ops/matmul.h with gemm.h.
#include <vesta/core/cpu/gemm.h>
#include <vesta/core/cpu/kept_weights.h>
#include <vesta/core/cpu/register.h>
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/destination.h>
#include <vesta/core/ops/matmul.h>

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

Gemm gemm_of(const Product& p, const Tensor& a, const Tensor& b, const Tensor& c, const Weight& weight) {
  Gemm g{};
  g.m = p.m, g.n = p.n, g.k = p.k;
  g.a = a.impl()->data(), g.a_row = p.a_row, g.a_col = p.a_col;
  g.b = b.impl()->data(), g.b_row = p.b_row, g.b_col = p.b_col;
  g.c = c.impl()->data(), g.c_row = p.n;
  g.weight = weight;
  return g;
}

Tensor matmul_kernel(const Tensor& a, const Tensor& b) {
  const Product p = matmul_product(a, b);
  Tensor c = result_tensor(p.sizes, a.dtype(), a.device());
  if (!c.numel()) return c;
  const bool alone = std::ranges::all_of(p.batch, [](const ProductBatch& d) { return d.b == 0; });
  Gemm g = gemm_of(p, a, b, c, alone ? keepable(b) : Weight{});
  SmallVector<BatchDim, 4> batch;
  for (const ProductBatch& d : p.batch) batch.push_back({d.size, d.a, d.b, d.c});
  g.batch = {batch.data(), batch.size()};
  gemm(elem_of(a.dtype(), "matmul"), g);
  return c;
}

Tensor linear_kernel(const Tensor& input, const Tensor& weight, MaybeTensor bias) {
  check_linear(input, weight, bias);
  Tensor x = input;
  const Product p = linear_product(x, weight);
  Tensor y = empty_tensor(p.sizes, input.dtype(), input.device());
  if (!y.numel()) return y;
  Tensor b = bias.defined() ? contiguous_values(bias) : Tensor();
  Gemm g = gemm_of(p, x, weight, y, keepable(weight));
  g.bias = b.defined() ? b.impl()->data() : nullptr;
  gemm(elem_of(input.dtype(), "linear"), g);
  return y;
}

}  // namespace

void register_matmul() {
  packed_port.drop = [](const Storage* storage) noexcept { drop_packed_weights_of(storage); };
  ops::matmul.set_kernel(DeviceType::cpu, matmul_kernel);
  ops::linear.set_kernel(DeviceType::cpu, linear_kernel);
}

}  // namespace vesta::cpu
