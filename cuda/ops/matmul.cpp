// Matrix products and linear layers: the products of core/ops/matmul.h, by cuBLASLt if it is available and takes them,
// else by the plain kernels.
#include <vesta/core/ops/matmul.h>

#include <algorithm>

#include <vesta/core/ops/activation.h>
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/destination.h>
#include <vesta/core/ops/view.h>
#include <vesta/core/precision.h>
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

using Batch = SmallVector<ProductBatch, 4>;

/// Merges batch dimensions that have a common distance, and puts the largest last, which one call computes: few calls
/// are left.
Batch merged(const Batch& batch) {
  Batch to;
  for (const ProductBatch& b : batch) {
    if (b.size == 1) continue;
    if (!to.empty() && to.back().a == b.a * b.size && to.back().b == b.b * b.size) {
      to.back() = {to.back().size * b.size, b.a, b.b, b.c};
    } else {
      to.push_back(b);
    }
  }
  if (!to.empty()) {
    const auto largest = std::max_element(to.begin(), to.end(), [](auto& x, auto& y) { return x.size < y.size; });
    std::swap(*largest, to.back());
  }
  return to;
}

/// Returns how many calls a merged batch takes.
int64_t calls_of(const Batch& batch) {
  int64_t calls = 1;
  for (size_t d = 0; d + 1 < batch.size(); ++d) calls *= batch[d].size;
  return calls;
}

/// Queues dimensions [at, ...) of the batch, the innermost as one call. Returns false if refused.
bool gemm_batch(GemmDesc g, const Batch& batch, size_t at, const OperandDevice& device) {
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

/// Describes the first of a product's matrices. The sides must be such that cuBLASLt can read them.
GemmDesc describe(const Product& p, const Tensor& a, const Tensor& b, const Tensor& c) {
  const Side left = left_of(p), right = right_of(p);
  GemmDesc g;
  g.dtype = c.dtype();
  g.m = p.m, g.n = p.n, g.k = p.k;
  g.a_transposed = left.transposed, g.lda = left.ld;
  g.b_transposed = right.transposed, g.ldb = right.ld, g.ldc = p.n;
  g.a = a.impl()->data(), g.b = b.impl()->data(), g.c = c.impl()->data();
  return g;
}

/// Queues a product whose sides cuBLASLt can read. Returns false if refused.
bool by_library(const Product& p, const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& bias,
                const OperandDevice& device) {
  if (!left_of(p).ld || !right_of(p).ld) return false;
  GemmDesc g = describe(p, a, b, c);
  if (bias.defined()) g.epilogue = Epilogue::bias, g.bias = bias.impl()->data();
  return gemm_batch(g, merged(p.batch), 0, device);
}

// Note [Batches of two distances]
// cuBLASLt takes matrices at one distance. Heads of [batch, length, heads, size] lie at two: one for the batch, one for
// the heads, and merging them would take a copy. New versions take an array of pointers, which a small kernel writes:
// two launches for any batch. Else the operands are copied to one distance where that moves fewer bytes than the device
// could in the time of the launches that it saves; else there is a call for each index of the smaller dimensions.
constexpr int64_t kFewCalls = 2;
constexpr int64_t kBytesPerLaunch = int64_t(10) << 20;  // some 2.5 us of an H200's memory

/// Queues the products of a merged batch as one call. Returns false if cuBLASLt does not take it.
bool by_pointers(const Product& p, const Batch& batch, const Tensor& a, const Tensor& b, const Tensor& c,
                 const OperandDevice& device) {
  if (!left_of(p).ld || !right_of(p).ld || batch.size() > size_t(kProductDims)) return false;
  GemmDesc g = describe(p, a, b, c);
  g.by_pointers = true;
  const int64_t item = itemsize(g.dtype);
  ProductPointers l;
  l.stream = device.stream(), l.ndim = int(batch.size());
  l.a = static_cast<const char*>(g.a), l.b = static_cast<const char*>(g.b), l.c = static_cast<const char*>(g.c);
  for (size_t d = 0; d < batch.size(); ++d) {
    const ProductBatch& step = batch[d];
    l.sizes[d] = step.size, l.count *= step.size;
    l.a_step[d] = step.a * item, l.b_step[d] = step.b * item, l.c_step[d] = step.c * item;
    g.a_step |= step.a, g.b_step |= step.b, g.c_step |= step.c;
  }
  g.count = l.count;
  if (!gemm_takes_pointers(g, device.index())) return false;
  const Tensor table = empty_tensor({{3 * l.count}}, DType::int64, c.device());
  l.to = reinterpret_cast<const void**>(table.impl()->data());
  run_product_pointers(l);
  g.pointers = l.to;
  return gemm(g, device.index(), device.stream());
}

/// Returns whether an operand's matrices lie at one distance along the batch.
bool at_one_distance(const Product& p, int64_t ProductBatch::* step) {
  const ProductBatch* inner = nullptr;
  for (size_t d = p.batch.size(); d-- > 0;) {
    const ProductBatch& b = p.batch[d];
    if (b.size == 1) continue;
    if (inner && b.*step != inner->*step * inner->size) return false;
    inner = &b;
  }
  return true;
}

/// Copies operands to one distance if that is cheaper than `calls` calls; the matrices stay by rows or by columns.
void gather_batch(Tensor& a, Tensor& b, const Product& p, int64_t calls) {
  if (a.dim() != b.dim() || !std::equal(a.sizes().begin(), a.sizes().end() - 2, b.sizes().begin())) return;
  const bool move_a = !at_one_distance(p, &ProductBatch::a), move_b = !at_one_distance(p, &ProductBatch::b);
  const int64_t bytes = 2 * ((move_a ? a.numel() : 0) + (move_b ? b.numel() : 0)) * a.element_size();
  if (bytes > (calls - 1 - int(move_a) - int(move_b)) * kBytesPerLaunch) return;
  const auto gathered = [](const Tensor& t, bool by_columns) {
    return by_columns ? transpose(contiguous_values(transpose(t, -2, -1)), -2, -1) : contiguous_values(t);
  };
  if (move_a) a = gathered(a, left_of(p).transposed);
  if (move_b) b = gathered(b, right_of(p).transposed);
}

/// Returns whether a product goes to cuBLASLt.
bool wants_library(const Product& p, const Tensor& c) { return p.k > 0 && c.numel() > 0 && gemm_available(c.dtype()); }

Tensor matmul_kernel(const Tensor& a, const Tensor& b) {
  const Product p = matmul_product(a, b);
  const OperandDevice device(a);
  Tensor c = result_tensor(p.sizes, a.dtype(), a.device());
  if (wants_library(p, c)) {
    Tensor x = left_of(p).ld ? a : contiguous_values(a), y = right_of(p).ld ? b : contiguous_values(b);
    Product q = matmul_product(x, y);
    if (const Batch batch = merged(q.batch); calls_of(batch) > kFewCalls) {
      if (by_pointers(q, batch, x, y, c, device)) return c;
      gather_batch(x, y, q, calls_of(batch));
      q = matmul_product(x, y);
    }
    if (by_library(q, x, y, c, {}, device)) return c;
  }
  if (c.numel()) run_batch(launch_of("matmul", p, a, b, c, device.stream()), p.batch, 0);
  return c;
}

Tensor wide_matmul_kernel(const Tensor& a, const Tensor& b) {
  const Product p = matmul_product(a, b);
  if (p.k > 0 && std::ranges::count(p.sizes, 0) == 0 && gemm_available(a.dtype())) {
    const OperandDevice device(a);
    const Tensor x = left_of(p).ld ? a : contiguous_values(a), y = right_of(p).ld ? b : contiguous_values(b);
    const Product q = matmul_product(x, y);
    Tensor c = empty_tensor(q.sizes, DType::float32, a.device());
    if (const Batch batch = merged(q.batch); batch.size() <= 1 && left_of(q).ld && right_of(q).ld) {
      GemmDesc g = describe(q, x, y, c);
      g.dtype = a.dtype(), g.wide_result = true;
      if (gemm_batch(g, batch, 0, device)) return c;
    }
  }
  return ops::_wide_matmul.body()(a, b);
}

Tensor linear_kernel(const Tensor& input, const Tensor& weight, MaybeTensor bias) {
  check_one_device("linear", {&input, &weight, &*bias});
  check_linear(input, weight, bias);
  const OperandDevice device(input);
  Tensor x = input;
  const Product p = linear_product(x, weight);
  Tensor y = empty_tensor(p.sizes, input.dtype(), input.device());
  if (!y.numel()) return y;
  Tensor b = bias.defined() ? contiguous_values(bias) : Tensor();
  if (wants_library(p, y)) {
    Tensor rows = left_of(p).ld ? x : contiguous_values(x),
           columns = right_of(p).ld ? weight : contiguous_values(weight);
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

/// Queues the weight's gradient as one product that sums the bias's gradient beside it. Returns false if refused.
bool weight_gradient_by_library(const Tensor& grad, const Tensor& input, const Tensor& of_weight, const Tensor& of_bias,
                                const OperandDevice& device) {
  if (!gemm_takes_bias(grad.dtype())) return false;
  Tensor g = transpose(grad, 0, 1), x = input;
  if (const Product p = matmul_product(g, x); !left_of(p).ld || !right_of(p).ld) {
    if (!left_of(p).ld) g = transpose(contiguous_values(grad), 0, 1);
    if (!right_of(p).ld) x = contiguous_values(input);
  }
  const Product p = matmul_product(g, x);
  if (!wants_library(p, of_weight)) return false;
  GemmDesc d = describe(p, g, x, of_weight);
  d.epilogue = Epilogue::row_sums, d.bias = of_bias.impl()->data();
  return gemm(d, device.index(), device.stream());
}

// Note [Activations by the product]
// cuBLASLt can compute the activation of a linear layer as it writes the product: a pass over the result less. Its relu
// makes zeros of NaN, which would hide a training that has diverged: it runs only where the switch allows it. How exact
// its tanh is NVIDIA does not say; within 16 bits it does not show, so that float32 has a pass of its own. Its gelu is
// of the sum before it is rounded: the more exact, but not the bits of two ops.
//
// The same holds for their gradients, which the product of the layer behind takes along (Note [Neighbours as one] in
// autograd/engine.cpp): a pass that reads and writes an element less. Relu's needs the bits that its own product has
// kept, so it follows the switch, and has the bits of two ops. Gelu's needs what gelu was computed from, which any op
// may have written. From compute capability 9.0 on only: cuBLASLt for older GPUs writes the product first where
// elements are bfloat16, and was slower than two kernels (karpathy/llm.c, pull request 338).
constexpr int kGeluGradientCapability = 9;

/// Queues a linear layer with its activation as one product. Returns false if refused.
bool activation_by_library(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& result,
                           Epilogue epilogue, const Tensor& kept, const OperandDevice& device) {
  Tensor x = input;
  Product p = linear_product(x, weight);
  if (!wants_library(p, result)) return false;
  const Tensor rows = left_of(p).ld ? x : contiguous_values(x),
               columns = right_of(p).ld ? weight : contiguous_values(weight);
  x = rows, p = linear_product(x, columns);
  if (!left_of(p).ld || !right_of(p).ld) return false;
  GemmDesc g = describe(p, x, columns, result);
  g.epilogue = epilogue;
  if (bias.defined()) g.bias = bias.impl()->data();
  if (kept.defined()) g.kept = kept.impl()->data();
  return gemm(g, device.index(), device.stream());
}

TensorPair fused_linear_kernel(const Tensor& input, const Tensor& weight, MaybeTensor bias, bool use_gelu, bool keep) {
  check_one_device("linear", {&input, &weight, &*bias});
  check_linear(input, weight, bias);
  const DType dtype = input.dtype();
  const bool half = dtype == DType::float16 || dtype == DType::bfloat16;
  const bool may = use_gelu ? half : gemm_takes_bias(dtype) && product_settings().matmul_allow_relu_epilogue;
  const Epilogue keeps = use_gelu ? Epilogue::gelu_kept : Epilogue::relu_kept;
  const int64_t outputs = weight.size(0), rows = input.numel() / std::max<int64_t>(input.size(-1), 1);
  const int64_t bytes = keep && may && weight.dim() == 2 ? bytes_kept(keeps, dtype, rows, outputs) : 0;
  if (may && weight.dim() == 2 && input.numel() && weight.numel() && (!keep || !use_gelu || bytes)) {
    const OperandDevice device(input);
    Tensor x = input;
    const Product p = linear_product(x, weight);
    const Tensor y = empty_tensor(p.sizes, dtype, input.device());
    const Tensor b = bias.defined() ? contiguous_values(bias) : Tensor();
    if (bytes) {
      const Tensor kept = use_gelu ? empty_tensor(p.sizes, dtype, input.device())
                                   : empty_tensor({{bytes}}, DType::uint8, input.device());
      if (activation_by_library(x, weight, b, y, keeps, kept, device)) return {y, kept};
    }
    const bool without = !keep || !use_gelu;
    if (without && activation_by_library(x, weight, b, y, use_gelu ? Epilogue::gelu : Epilogue::relu, {}, device))
      return {y, Tensor()};
  }
  if (use_gelu) return _fused_linear_composite(input, weight, bias, use_gelu, keep);
  const Tensor y = linear(input, weight, bias);
  ops::relu(y, Out{&y, Out::inplace});
  return {y, Tensor()};
}

/// Queues the gradient of a linear layer's input as one product with that of the activation before. Returns false if
/// refused.
bool activation_gradient_by_library(const Tensor& grad, const Tensor& weight, Epilogue epilogue, const Tensor& kept,
                                    const Tensor& result, const OperandDevice& device) {
  Tensor g = grad, w = weight;
  if (const Product p = matmul_product(g, w); !left_of(p).ld || !right_of(p).ld) {
    if (!left_of(p).ld) g = contiguous_values(grad);
    if (!right_of(p).ld) w = contiguous_values(weight);
  }
  const Product p = matmul_product(g, w);
  if (!wants_library(p, result) || bytes_kept(epilogue, result.dtype(), p.m, p.n) != kept.numel() * kept.element_size())
    return false;
  GemmDesc d = describe(p, g, w, result);
  d.epilogue = epilogue, d.kept = kept.impl()->data();
  return gemm(d, device.index(), device.stream());
}

Tensor linear_activation_backward_kernel(const Tensor& grad, const Tensor& weight, const Tensor& used, bool use_gelu,
                                         MaybeTensor kept) {
  check_one_device("_linear_backward_activation", {&grad, &weight, &used, &*kept});
  const DType dtype = grad.dtype();
  const bool half = dtype == DType::float16 || dtype == DType::bfloat16;
  const OperandDevice device(grad);
  const bool by_gelu = half && properties(device.index()).major >= kGeluGradientCapability;
  const bool may = use_gelu ? by_gelu : kept.defined() && gemm_takes_bias(dtype);
  const bool fits = weight.dim() == 2 && weight.dtype() == dtype && used.dtype() == dtype && grad.numel() > 0;
  if (const Tensor& read = use_gelu ? used : *kept; may && fits && read.is_contiguous()) {
    Dims sizes(grad.sizes());
    sizes.back() = weight.size(1);
    Tensor result = empty_tensor(sizes, dtype, grad.device());
    const Epilogue epilogue = use_gelu ? Epilogue::gelu_backward : Epilogue::relu_backward;
    const bool alike = std::ranges::equal(used.sizes(), result.sizes());
    if (alike &&
        activation_gradient_by_library(reshape(grad, {-1, grad.size(-1)}), weight, epilogue, read, result, device))
      return result;
  }
  return _linear_backward_activation_composite(grad, weight, used, use_gelu, kept);
}

TensorPair linear_weight_gradient_kernel(const Tensor& grad, const Tensor& input) {
  const OperandDevice device(grad);
  const int64_t outputs = grad.size(-1), inputs = input.size(-1);
  if (grad.numel() && input.numel() && grad.dtype() == input.dtype()) {
    Tensor of_weight = empty_tensor({{outputs, inputs}}, grad.dtype(), grad.device());
    Tensor of_bias = empty_tensor({{outputs}}, grad.dtype(), grad.device());
    const Tensor g = reshape(grad, {-1, outputs}), x = reshape(input, {-1, inputs});
    if (weight_gradient_by_library(g, x, of_weight, of_bias, device)) return {of_weight, of_bias};
  }
  return _linear_backward_weight_composite(grad, input);
}

}  // namespace

void register_matmul() {
  ops::matmul.set_kernel(DeviceType::cuda, matmul_kernel);
  ops::_wide_matmul.set_kernel(DeviceType::cuda, wide_matmul_kernel);
  ops::linear.set_kernel(DeviceType::cuda, linear_kernel);
  ops::_fused_linear.set_kernel(DeviceType::cuda, fused_linear_kernel);
  ops::_linear_backward_activation.set_kernel(DeviceType::cuda, linear_activation_backward_kernel);
  ops::_linear_backward_weight.set_kernel(DeviceType::cuda, linear_weight_gradient_kernel);
}

}  // namespace vesta::cuda
