// Matrix products and linear layers: the products of core/ops/matmul.h by the plain kernels.
#include <vesta/core/ops/matmul.h>

#include <vesta/core/ops/ops.h>
#include <vesta/cuda/kernels/matmul.h>
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

/// Queues dimensions [at, ...) of the batch; outer ones are settled in `l`'s pointers.
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

Tensor matmul_kernel(const Tensor& a, const Tensor& b) {
  check_one_device("matmul", a, b);
  const Product p = matmul_product(a, b);
  const OperandDevice device(a);
  Tensor c = empty_tensor(p.sizes, a.dtype(), a.device());
  if (c.numel()) run_batch(launch_of("matmul", p, a, b, c, device.stream()), p.batch, 0);
  return c;
}

Tensor linear_kernel(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  check_one_device("linear", input, weight, bias);
  check_linear(input, weight, bias);
  const OperandDevice device(input);
  Tensor x = input;
  const Product p = linear_product(x, weight);
  Tensor y = empty_tensor(p.sizes, input.dtype(), input.device());
  if (!y.numel()) return y;
  Tensor b = bias.defined() ? contiguous(bias) : bias;
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
