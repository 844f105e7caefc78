// Note [Convolutions as products]
// A kernel of one pixel, moved by one, mixes channels and nothing else: y[n] = w[o, c] @ x[n][c, pixels], one strided
// batch of products that reads and writes rows as they lie. cuDNN wants channels last, so that every operand and result
// in rows is converted for it: forward and backward of x and y move 3 (x + y) bytes as products, 7 (x + y) with cuDNN's
// conversions. Not everything goes this way:
//  - Operands with channels last, and planes of one pixel, which lie so anyway, are cuDNN's: it reads them in place.
//  - Each image reads the weight again, and few pixels fill a tile badly: the weight may have no more elements than the
//    conversions would move, 2 (c + o) pixels. One image reads it once in any case.
//  - The weight's gradient is a product g[n] @ x[n]^T for each image and a sum of these parts: no product of cuBLASLt
//    goes on over images in rows. Parts are written and read, in float32 of 16-bit floats, so that the result is
//    rounded once; they may have no more bytes than the operands, whose conversion they save.
//  - 16-bit rows of an odd length do not start at multiples of 4 bytes, the least of the device's asynchronous copies.
// The limits count bytes. On an H200 (1x1 convolutions of ResNet-50, batches of 1, 8 and 64) they lose nothing in
// float32; for bfloat16 planes of 14 x 14 in batches of 64, forward and backward take 145 us where cuDNN with all
// conversions takes 117 and PyTorch 149.
//
// A bias is what the sums start from: a plane of it is written once, and read for each image, from the L2 cache mostly.
// So the result is rounded once. (The epilogue's bias goes along a row's other side; cuBLASLt refuses it for a result
// that is described by rows.) TF32 follows the setting of convolutions, as with cuDNN.
#include <vesta/cuda/ops/conv_products.h>

#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/memory_format.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/view.h>
#include <vesta/cuda/lib/cublas_lt.h>

namespace vesta::cuda {
namespace {

/// Returns the distance of the channels of a batch whose planes are dense, the form that a product reads; else 0.
int64_t channel_distance(const Tensor& t, int64_t pixels) {
  int64_t dense = 1;
  for (size_t d = size_t(t.dim()); d-- > 2;) {
    if (t.sizes()[d] > 1 && t.strides()[d] != dense) return 0;
    dense *= t.sizes()[d];
  }
  if (t.sizes()[1] == 1) return pixels;
  return t.strides()[1] >= pixels ? t.strides()[1] : 0;
}

/// Returns a batch in rows: itself if a product can read it, a copy unless it has channels last, for cuDNN to read in
/// place; then undefined.
Tensor in_rows(const Tensor& t, int64_t pixels) {
  if (channel_distance(t, pixels)) return t;
  return suggests_channels_last(t) ? Tensor() : contiguous_values(t);
}

}  // namespace

bool ConvProducts::are_products() const {
  const Window& v = window;
  const bool one_pixel = plane_of(v.kernel) == 1 && plane_of(v.stride) == 1 && v.padding == Spatial{0, 0, 0};
  return one_pixel && groups == 1 && v.in == v.out && pixels() > 1 && batch && channels && outputs;
}

bool ConvProducts::are_worth_it() const {
  if (!are_products()) return false;
  const bool is_small = weight_elements() > 2 * image_elements();
  const bool is_odd = pixels() * itemsize(dtype) % 4 != 0;
  if (is_odd || (batch > 1 && is_small)) return false;
  return gemm_available(dtype);
}

Tensor ConvProducts::forward(const Tensor& x, const Tensor& w, const Tensor& bias, const OperandDevice& device) const {
  if (!are_worth_it()) return {};
  const Tensor rows = in_rows(x, pixels()), k = contiguous_values(w);
  if (!rows.defined()) return {};
  const Tensor y = empty_tensor(window.result_sizes(batch, outputs), dtype, x.device());
  GemmDesc g;
  g.dtype = dtype, g.of_convolution = true;
  g.m = outputs, g.n = pixels(), g.k = channels, g.count = batch;
  g.lda = channels, g.ldb = channel_distance(rows, g.n), g.ldc = g.n;
  g.b_step = rows.strides()[0], g.c_step = g.m * g.n;
  g.a = k.impl()->data(), g.b = rows.impl()->data(), g.c = y.impl()->data();
  Tensor plane;
  if (bias.defined()) {
    plane = contiguous_values(expand(view(contiguous_values(bias), Dims{g.m, 1}), Dims{g.m, g.n}));
    g.added = plane.impl()->data();
  }
  return gemm(g, device.index(), device.stream()) ? y : Tensor();
}

Tensor ConvProducts::input_gradient(const Tensor& grad, const Tensor& w, const OperandDevice& device) const {
  if (!are_worth_it()) return {};
  const Tensor rows = in_rows(grad, pixels()), k = contiguous_values(w);
  if (!rows.defined()) return {};
  Dims sizes(grad.sizes());
  sizes[1] = channels;
  const Tensor of_x = empty_tensor(sizes, dtype, grad.device());
  GemmDesc g;
  g.dtype = dtype, g.of_convolution = true;
  g.m = channels, g.n = pixels(), g.k = outputs, g.count = batch;
  g.a_transposed = true;
  g.lda = channels, g.ldb = channel_distance(rows, g.n), g.ldc = g.n;
  g.b_step = rows.strides()[0], g.c_step = g.m * g.n;
  g.a = k.impl()->data(), g.b = rows.impl()->data(), g.c = of_x.impl()->data();
  return gemm(g, device.index(), device.stream()) ? of_x : Tensor();
}

Tensor ConvProducts::weight_gradient(const Tensor& grad, const Tensor& x, const OperandDevice& device) const {
  const bool half = dtype == DType::float16 || dtype == DType::bfloat16, in_parts = batch > 1;
  const DType wide = half && in_parts ? DType::float32 : dtype;
  if (!are_worth_it()) return {};
  const double of_parts = weight_elements() * double(itemsize(wide));
  if (in_parts && of_parts > image_elements() * double(itemsize(dtype))) return {};
  const Tensor left = in_rows(grad, pixels()), right = in_rows(x, pixels());
  if (!left.defined() || !right.defined()) return {};
  const Tensor parts = empty_tensor(Dims{batch, outputs, channels}, wide, grad.device());
  GemmDesc g;
  g.dtype = dtype, g.of_convolution = true, g.wide_result = wide != dtype;
  g.m = outputs, g.n = channels, g.k = pixels(), g.count = batch;
  g.b_transposed = true;
  g.lda = channel_distance(left, g.k), g.ldb = channel_distance(right, g.k), g.ldc = g.n;
  g.a_step = left.strides()[0], g.b_step = right.strides()[0], g.c_step = g.m * g.n;
  g.a = left.impl()->data(), g.b = right.impl()->data(), g.c = parts.impl()->data();
  if (!gemm(g, device.index(), device.stream())) return {};
  Dims sizes(size_t(window.dims + 2), 1);
  sizes[0] = outputs, sizes[1] = channels;
  if (!in_parts) return view(parts, sizes);
  const Tensor whole = view(sum(parts, Dims{0}), sizes);
  return half ? _to_copy(whole, dtype) : whole;
}

}  // namespace vesta::cuda
