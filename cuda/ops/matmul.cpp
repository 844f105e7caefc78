// Matrix products and linear layers: the products of core/ops/matmul.h, by cuBLASLt if it is available and takes them,
// else by the plain kernels.
#include <vesta/core/ops/matmul.h>

#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/destination.h>
#include <vesta/core/ops/view.h>
#include <vesta/cuda/kernels/matmul.h>
#include <vesta/cuda/lib/cublas_lt.h>
#include <vesta/cuda/ops/operands.h>
#include <vesta/cuda/register.h>

namespace vesta::cuda {
namespace {

ProductLaunch launch_of(const char* op, const Product& p, const Tensor& a, const Tensor& b, const Tensor& c,
                        StreamHandle stream) {
  ProductLaunch l;
  l.name = op, l.stream = stream, l.dtype = c.dtype();
  l.m = p.m, l.n = p.n, l.k = p.k;
  l.a = a.impl()->data(), l.b = b.impl()->data(), l.c = c.impl()->data();
  l.a_row = p.a_row, l.a_col = p.a_col, l.b_row = p.b_row, l.b_col = p.b_col;
  return l;
}

/// Queues dimensions [at, ...) of the batch; the pointers of `l` account for the outer ones.
void run_batch(ProductLaunch l, const SmallVector<ProductBatch, 4>& batch, size_t at) {
  if (batch.size() - at <= size_t(kProductDims)) {
    l.ndim = int(batch.size() - at), l.count = 1;
    for (int d = 0; d < l.ndim; ++d) {
      const ProductBatch& b = batch[at + size_t(d)];
      l.sizes[d] = b.size, l.a_step[d] = b.a, l.b_step[d] = b.b;
      l.count *= b.size;
    }
    return run_products(l);
  }
  const ProductBatch& b = batch[at];
  const int64_t item = itemsize(l.dtype);
  for (int64_t i = 0; i < b.size; ++i) {
    ProductLaunch part = l;
    part.a = static_cast<const char*>(l.a) + i * b.a * item;
    part.b = static_cast<const char*>(l.b) + i * b.b * item;
    part.c = static_cast<char*>(l.c) + i * b.c * item;
    run_batch(part, batch, at + 1);
  }
}

/// A strided matrix in the form of cuBLASLt: by rows, or by columns. ld 0: neither.
struct Side {
  bool transposed = false;
  int64_t ld = 0;
  Side(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride) {
    if (columns == 1) column_stride = 1;
    if (rows == 1) row_stride = column_stride == 1 ? columns : 1;
    if (column_stride == 1 && row_stride >= columns) ld = row_stride;
    else if (row_stride == 1 && column_stride >= rows) transposed = true, ld = column_stride;
  }
};
Side left_of(const Product& p) { return {p.m, p.k, p.a_row, p.a_col}; }
Side right_of(const Product& p) { return {p.k, p.n, p.b_row, p.b_col}; }

/// Merges batch dimensions that have a common distance, so that few calls are left; innermost last.
SmallVector<ProductBatch, 4> merged(const SmallVector<ProductBatch, 4>& batch) {
  SmallVector<ProductBatch, 4> to;
  for (const ProductBatch& b : batch) {
    if (b.size == 1) continue;
    if (!to.empty() && to.back().a == b.a * b.size && to.back().b == b.b * b.size) {
      to.back() = {to.back().size * b.size, b.a, b.b, b.c};
    } else {
      to.push_back(b);
    }
  }
  return to;
}

/// Queues dimensions [at, ...) of the batch, the innermost as one call. Returns false if refused.
bool gemm_batch(GemmDesc g, const SmallVector<ProductBatch, 4>& batch, size_t at, const OperandDevice& device) {
  if (at == batch.size()) return gemm(g, device.index(), device.stream());
  const ProductBatch& b = batch[at];
  if (at + 1 == batch.size()) {
    g.count = b.size, g.a_step = b.a, g.b_step = b.b, g.c_step = b.c;
    return gemm(g, device.index(), device.stream());
  }
  const int64_t item = itemsize(g.dtype);
  for (int64_t i = 0; i < b.size; ++i) {
    GemmDesc part = g;
    part.a = static_cast<const char*>(g.a) + i * b.a * item;
    part.b = static_cast<const char*>(g.b) + i * b.b * item;
    part.c = static_cast<char*>(g.c) + i * b.c * item;
    if (!gemm_batch(part, batch, at + 1, device)) return false;
  }
  return true;
}

/// Queues a product whose sides cuBLASLt can read. Returns false if refused.
bool by_library(const Product& p, const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& bias,
                const OperandDevice& device) {
  const Side left = left_of(p), right = right_of(p);
  if (!left.ld || !right.ld) return false;
  GemmDesc g;
  g.dtype = c.dtype();
  g.m = p.m, g.n = p.n, g.k = p.k;
  g.a_transposed = left.transposed, g.lda = left.ld;
  g.b_transposed = right.transposed, g.ldb = right.ld, g.ldc = p.n;
  g.a = a.impl()->data(), g.b = b.impl()->data(), g.c = c.impl()->data();
  if (bias.defined()) g.epilogue = Epilogue::bias, g.bias = bias.impl()->data();
  return gemm_batch(g, merged(p.batch), 0, device);
}

/// Returns whether a product goes to cuBLASLt.
bool wants_library(const Product& p, const Tensor& c) { return p.k > 0 && c.numel() > 0 && gemm_available(c.dtype()); }

Tensor matmul_kernel(const Tensor& a, const Tensor& b) {
  check_one_device("matmul", {&a, &b});
  const Product p = matmul_product(a, b);
  const OperandDevice device(a);
  Tensor c = result_tensor(p.sizes, a.dtype(), a.device());
  if (wants_library(p, c)) {
    Tensor x = left_of(p).ld ? a : contiguous(a), y = right_of(p).ld ? b : contiguous(b);
    const bool moved = !x.is_same(a) || !y.is_same(b);
    if (by_library(moved ? matmul_product(x, y) : p, x, y, c, {}, device)) return c;
  }
  if (c.numel()) run_batch(launch_of("matmul", p, a, b, c, device.stream()), p.batch, 0);
  return c;
}

Tensor linear_kernel(const Tensor& input, const Tensor& weight, MaybeTensor bias) {
  check_one_device("linear", {&input, &weight, &*bias});
  check_linear(input, weight, bias);
  const OperandDevice device(input);
  Tensor x = input;
  const Product p = linear_product(x, weight);
  Tensor y = empty_tensor(p.sizes, input.dtype(), input.device());
  if (!y.numel()) return y;
  Tensor b = bias.defined() ? contiguous(bias) : Tensor();
  if (wants_library(p, y)) {
    Tensor rows = left_of(p).ld ? x : contiguous(x), columns = right_of(p).ld ? weight : contiguous(weight);
    const bool fused = b.defined() && gemm_takes_bias(y.dtype());
    if (by_library(linear_product(rows, columns), rows, columns, y, fused ? b : Tensor{}, device)) {
      return b.defined() && !fused ? add_to(y, b.dim() == 1 && weight.dim() == 1 ? squeeze(b, 0) : b) : y;
    }
  }
  ProductLaunch l = launch_of("linear", p, x, weight, y, device.stream());
  l.bias = b.defined() ? b.impl()->data() : nullptr;
  run_products(l);
  return y;
}

}  // namespace

void register_matmul() {
  ops::matmul.set_kernel(DeviceType::cuda, matmul_kernel);
  ops::linear.set_kernel(DeviceType::cuda, linear_kernel);
}

}  // namespace vesta::cuda
