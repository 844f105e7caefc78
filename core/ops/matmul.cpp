#include <vesta/core/ops/matmul.h>

#include <vesta/core/dtype_set.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/define.h>
#include <vesta/core/ops/docs/matmul.h>

namespace vesta {

VESTA_DEFINE_OPS(VESTA_OPS_MATMUL)

namespace {

void check_pair(const Tensor& a, const Tensor& b, const char* op) {
  VESTA_CHECK(a.dtype() == b.dtype(), type, op, ": expected operands of the same dtype, got ", a.dtype(), " and ",
              b.dtype(), ". Convert one with .to().");
}

void check_number(DType d, const char* op) {
  VESTA_CHECK(d != DType::bool_, not_implemented, op, ": expected a number dtype, got ", d, ".");
}

/// Fills in the broadcast batch dimensions of `p` and their sizes.
void add_batch(Product& p, const Tensor& a, const Tensor& b, const char* op) {
  IntSpan lead_a = a.sizes().first(size_t(std::max<int64_t>(a.dim() - 2, 0))),
          lead_b = b.sizes().first(size_t(std::max<int64_t>(b.dim() - 2, 0)));
  p.sizes = broadcast_shapes(lead_a, lead_b, op);
  int64_t step = p.m * p.n;
  for (size_t i = p.sizes.size(); i-- > 0;) {
    auto stride = [&](const Tensor& t, IntSpan lead) -> int64_t {
      size_t skip = p.sizes.size() - lead.size();
      return i < skip || lead[i - skip] == 1 ? 0 : t.strides()[i - skip];
    };
    p.batch.insert(0, ProductBatch{p.sizes[i], stride(a, lead_a), stride(b, lead_b), step});
    step *= p.sizes[i];
  }
}

}  // namespace

Product matmul_product(const Tensor& a, const Tensor& b) {
  constexpr const char* op = "matmul";
  VESTA_CHECK(a.dim() > 0 && b.dim() > 0, value, op, ": both arguments need to be at least 1D, but they are ", a.dim(),
              "D and ", b.dim(), "D.");
  check_pair(a, b, op);
  const bool row = a.dim() == 1, column = b.dim() == 1;
  const int64_t k = a.sizes().back(), k2 = b.sizes()[column ? 0 : size_t(b.dim() - 2)];
  VESTA_CHECK(k == k2, value, op, ": inner sizes must agree, got a ", a.sizes(), " and b ", b.sizes(), " (", k, " vs ",
              k2, ").");
  check_number(a.dtype(), op);
  Product p;
  p.k = k;
  p.m = row ? 1 : a.sizes()[size_t(a.dim() - 2)], p.n = column ? 1 : b.sizes().back();
  p.a_col = a.strides().back(), p.a_row = row ? 0 : a.strides()[size_t(a.dim() - 2)];
  p.b_row = b.strides()[column ? 0 : size_t(b.dim() - 2)], p.b_col = column ? 0 : b.strides().back();
  if (a.dim() > 2 || b.dim() > 2) add_batch(p, a, b, op);
  // Rows of one product after the other over the same right-hand side are one tall product (a linear layer over a
  // batch of sequences). Values do not change: a row's result does not depend on the rows around it.
  while (!p.batch.empty() && p.batch.back().b == 0 && !row &&
         (p.batch.back().a == p.a_row * p.m || p.batch.back().size == 1) && p.batch.back().c == p.n * p.m) {
    p.m *= p.batch.back().size;
    p.batch.pop_back();
  }
  if (!row) p.sizes.push_back(a.sizes()[size_t(a.dim() - 2)]);
  if (!column) p.sizes.push_back(p.n);
  return p;
}

void check_linear(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  constexpr const char* op = "linear";
  VESTA_CHECK(weight.dim() == 2 || weight.dim() == 1, value, op, ": expected a weight [out, in], got ", weight.sizes(),
              ".");
  VESTA_CHECK(input.dim() >= 1, value, op, ": expected an input [*, in], got a 0-d tensor.");
  check_pair(input, weight, op);
  VESTA_CHECK(weight.sizes().back() == input.sizes().back(), value, op, ": expected an input of ",
              weight.sizes().back(), " features (weight is ", weight.sizes(), "), got ", input.sizes(), ".");
  if (bias.defined()) {
    const int64_t n = weight.dim() == 2 ? weight.sizes()[0] : 1;
    check_pair(input, bias, op);
    VESTA_CHECK(bias.dim() <= 1 && bias.numel() == n, value, op, ": expected a bias [", n, "], got ", bias.sizes(),
                ".");
  }
  check_number(input.dtype(), op);
}

Product linear_product(Tensor& input, const Tensor& weight) {
  Product p;
  p.k = input.sizes().back();
  p.n = weight.dim() == 2 ? weight.sizes()[0] : 1;
  int64_t row = input.dim() >= 2 ? input.strides()[size_t(input.dim() - 2)] : 0;
  bool regular = true;
  for (int64_t d = input.dim() - 2; d >= 0; --d) {
    const int64_t size = input.sizes()[size_t(d)], stride = input.strides()[size_t(d)];
    if (size != 1 && p.m != 1 && stride != row * p.m) regular = false;
    if (p.m == 1 && size != 1) row = stride;
    p.m *= size;
  }
  if (!regular) input = contiguous(input), row = p.k;
  p.sizes = Dims(input.sizes());
  p.sizes.pop_back();
  if (weight.dim() == 2) p.sizes.push_back(p.n);
  p.a_row = row, p.a_col = input.strides().back();
  p.b_row = weight.strides().back(), p.b_col = weight.dim() == 2 ? weight.strides()[0] : 0;
  return p;
}

}  // namespace vesta
