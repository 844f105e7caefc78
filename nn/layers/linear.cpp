#include <vesta/nn/layers/linear.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <typeinfo>

#include <vesta/autograd/engine.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/compare.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/from_data.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/kernel_checks.h>
#include <vesta/core/ops/matmul.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/select.h>
#include <vesta/core/ops/shape.h>
#include <vesta/core/ops/view.h>
#include <vesta/nn/functional.h>
#include <vesta/nn/init.h>
#include <vesta/nn/layers/activation.h>

namespace vesta::nn {

Linear::Linear(Options o) : LayerOf(o) {
  VESTA_CHECK(o.in_features >= 0 && o.out_features >= 0, value, "Linear: expected sizes >= 0, got in_features ",
              o.in_features, " and out_features ", o.out_features, ".");
  weight = register_parameter("weight", empty({o.out_features, o.in_features}, o.dtype));
  bias = register_parameter("bias", o.bias ? empty({o.out_features}, o.dtype) : Tensor());
  reset_parameters();
}

std::optional<Tensor> Linear::forward_with(const Module& activation, const Tensor& input) {
  if (!input.defined() || input.device().type() != DeviceType::cuda || autograd::detect_anomaly()) return {};
  const auto* gelu = typeid(activation) == typeid(GELU) ? static_cast<const GELU*>(&activation) : nullptr;
  if (typeid(*this) != typeid(Linear) || (typeid(activation) != typeid(ReLU) && !gelu)) return {};
  if (has_hooks() || activation.has_hooks() || (gelu && gelu->options.approximate != "tanh")) return {};
  return in_context([&] { return _linear_activation(input, weight, bias, gelu != nullptr); });
}

void Linear::reset_parameters() {
  init::kaiming_uniform_(weight, std::sqrt(5.0));
  if (!bias.defined()) return;
  double bound = options.in_features > 0 ? 1 / std::sqrt(double(options.in_features)) : 0;
  init::uniform_(bias, 0 - bound, bound);  // -bound would be -0.0 for no features; Python has 0
}

Bilinear::Bilinear(Options o) : LayerOf(o) {
  VESTA_CHECK(o.in1_features > 0, value, "Bilinear: in1_features must be > 0, but got ", o.in1_features, ".");
  VESTA_CHECK(o.in2_features >= 0 && o.out_features >= 0, value, "Bilinear: expected sizes >= 0, got in2_features ",
              o.in2_features, " and out_features ", o.out_features, ".");
  weight = register_parameter("weight", empty({o.out_features, o.in1_features, o.in2_features}, o.dtype));
  bias = register_parameter("bias", o.bias ? empty({o.out_features}, o.dtype) : Tensor());
  reset_parameters();
}

void Bilinear::reset_parameters() {
  const double bound = 1 / std::sqrt(double(options.in1_features));
  init::uniform_(weight, -bound, bound);
  if (bias.defined()) init::uniform_(bias, -bound, bound);
}

namespace {
/// Counts padding_idx from the start.
EmbeddingOptions normalized(EmbeddingOptions o) {
  VESTA_CHECK(o.num_embeddings >= 0 && o.embedding_dim >= 0, value, "Embedding: expected sizes >= 0, got ",
              o.num_embeddings, " and ", o.embedding_dim, " (num_embeddings, embedding_dim).");
  if (!o.padding_idx) return o;
  VESTA_CHECK(*o.padding_idx >= -o.num_embeddings && *o.padding_idx < o.num_embeddings, value,
              "Embedding: Padding_idx must be within num_embeddings, got ", *o.padding_idx, ".");
  if (*o.padding_idx < 0) *o.padding_idx += o.num_embeddings;
  return o;
}
}  // namespace

Embedding::Embedding(Options o) : LayerOf(normalized(o)) {
  weight = register_parameter("weight", empty({o.num_embeddings, o.embedding_dim}, o.dtype));
  reset_parameters();
}

void Embedding::reset_parameters() {
  init::normal_(weight);
  if (!options.padding_idx) return;
  NoGrad off;
  fill_(select(weight, 0, *options.padding_idx), 0);
}

Tensor Embedding::forward(const Tensor& input) {
  return functional::embedding(input, weight, options.padding_idx, options.sparse);
}

Tensor functional::embedding(const Tensor& input, const Tensor& weight, MaybeInt padding_idx, bool sparse) {
  if (padding_idx) {
    int64_t rows = weight.size(0);
    VESTA_CHECK(*padding_idx >= -rows && *padding_idx < rows, value,
                "embedding: Padding_idx must be within num_embeddings, got ", *padding_idx, ".");
    if (*padding_idx < 0) padding_idx = *padding_idx + rows;
  }
  return vesta::embedding(weight, input, padding_idx.value_or(-1), false, sparse);
}

namespace {
/// Counts padding_idx from the start, and checks the mode.
EmbeddingBagOptions normalized(EmbeddingBagOptions o) {
  VESTA_CHECK(o.mode == "sum" || o.mode == "mean" || o.mode == "max", value,
              "EmbeddingBag: mode has to be one of sum, mean or max, got '", o.mode, "'.");
  VESTA_CHECK(o.mode != "max" || !o.scale_grad_by_freq, value,
              "EmbeddingBag: max mode does not support scaling the gradient by the frequency");
  o.padding_idx = normalized(EmbeddingOptions{o.num_embeddings, o.embedding_dim, o.padding_idx}).padding_idx;
  return o;
}

/// Returns the maxima of bags of rows: each is padded with minus infinities to the longest one's size. An empty one
/// gives zeros.
Tensor largest(const Tensor& rows, const Tensor& counted, const std::vector<int64_t>& sizes) {
  int64_t width = 1, start = 0;
  for (int64_t size : sizes) width = std::max(width, size);
  std::vector<int64_t> places;
  for (int64_t size : sizes) {
    for (int64_t i = 0; i < width; ++i) places.push_back(i < size ? start + i : -1);
    start += size;
  }
  const int64_t bags = int64_t(sizes.size());
  const Tensor index = view(tensor(places).to(rows.device()), {bags, width});
  const Tensor low = full(IntList(), -std::numeric_limits<double>::infinity(), rows.dtype(), rows.device());
  Tensor valid = unsqueeze(ge(index, 0), -1), padded = expand(low, {bags, width, rows.size(1)});
  if (rows.size(0)) {
    const Tensor at = flatten(clamp_min(index, 0));
    valid = logical_and(valid, unsqueeze(gt(view(index_select(counted, 0, at), {bags, width}), 0), -1));
    padded = where(valid, view(index_select(rows, 0, at), {bags, width, rows.size(1)}), low);
  }
  const Tensor best = std::get<0>(max(padded, 1));
  return where(any(valid, 1), best, zeros_like(best));
}
}  // namespace

EmbeddingBag::EmbeddingBag(Options o) : LayerOf(normalized(std::move(o))) {
  weight = register_parameter("weight", empty({options.num_embeddings, options.embedding_dim}, options.dtype));
  reset_parameters();
}

void EmbeddingBag::reset_parameters() {
  init::normal_(weight);
  if (!options.padding_idx) return;
  NoGrad off;
  fill_(select(weight, 0, *options.padding_idx), 0);
}

Tensor EmbeddingBag::forward(const Tensor& input, MaybeTensor offsets, MaybeTensor per_sample_weights) {
  VESTA_CHECK(input.dim() == 1 || input.dim() == 2, value, "EmbeddingBag: input has to be 1D or 2D Tensor, but got ",
              "Tensor of dimension ", input.dim());
  VESTA_CHECK((input.dim() == 1) == offsets.defined(), value, "EmbeddingBag: expected offsets for an input of one ",
              "dimension and none for one of two, got an input of ", input.dim(), "D and ",
              offsets.defined() ? "offsets." : "no offsets.");
  VESTA_CHECK(!per_sample_weights.defined() || options.mode == "sum", not_implemented,
              "EmbeddingBag: per_sample_weights is only supported for mode='sum' (got mode='", options.mode, "').");
  VESTA_CHECK(!per_sample_weights.defined() || std::ranges::equal(per_sample_weights->sizes(), input.sizes()), value,
              "EmbeddingBag: expected per_sample_weights of the input's shape ", input.sizes(), ".");
  std::vector<int64_t> bounds;
  if (offsets.defined()) {
    VESTA_CHECK(offsets->dim() == 1, value, "EmbeddingBag: offsets has to be a 1D Tensor");
    if (has_values(*offsets)) {
      const Tensor begins = contiguous(offsets->to(DType::int64).to(Device()));
      bounds.assign(begins.data_ptr<int64_t>(), begins.data_ptr<int64_t>() + begins.numel());
    } else {  // bags of any sizes
      VESTA_CHECK(!has_values(input), device,
                  "EmbeddingBag: expected all tensors on one device, got offsets on meta and ", "input on ",
                  input.device(), ".");
      for (int64_t i = 0, n = offsets->numel(); i < n; ++i) bounds.push_back(input.numel() * i / n);
    }
    if (!options.include_last_offset) bounds.push_back(input.numel());
    VESTA_CHECK(!bounds.empty(), value, "EmbeddingBag: number of offset should be at least 1");
  } else {
    for (int64_t i = 0; i <= input.size(0); ++i) bounds.push_back(i * input.size(1));
  }
  VESTA_CHECK(bounds.size() < 2 || bounds[0] == 0, value,
              "EmbeddingBag: offsets[0] has to be 0, i.e., the first sequence starts from 0. But got ", bounds[0]);
  VESTA_CHECK(std::ranges::is_sorted(bounds) && bounds.back() <= input.numel(), value,
              "EmbeddingBag: expected increasing offsets of at most ", input.numel(), " (offsets).");
  std::vector<int64_t> sizes, bag;
  for (size_t i = 0; i + 1 < bounds.size(); ++i) {
    sizes.push_back(bounds[i + 1] - bounds[i]);
    bag.insert(bag.end(), size_t(sizes.back()), int64_t(i));
  }
  const Tensor numbers = narrow(flatten(input), 0, 0, bounds.back());
  const Tensor rows =
      vesta::embedding(weight, numbers, options.padding_idx.value_or(-1), options.scale_grad_by_freq, options.sparse);
  const Tensor counted =
      options.padding_idx ? ne(numbers, *options.padding_idx).to(weight.dtype()) : ones_like(numbers, weight.dtype());
  if (options.mode == "max") return largest(rows, counted, sizes);
  const Tensor of = tensor(bag).to(input.device());
  Tensor shares = counted;
  if (per_sample_weights.defined()) shares = mul(counted, narrow(flatten(*per_sample_weights), 0, 0, bounds.back()));
  const int64_t bags = int64_t(sizes.size());
  const Tensor none = zeros({bags, weight.size(1)}, weight.dtype(), weight.device());
  Tensor sums = index_add(none, 0, of, mul(rows, unsqueeze(shares, 1)));
  if (options.mode == "sum") return sums;
  const Tensor counts = index_add(zeros({bags}, weight.dtype(), weight.device()), 0, of, counted);
  return div(sums, unsqueeze(clamp_min(counts, 1), 1));
}

Tensor Flatten::forward(const Tensor& input) { return flatten(input, options.start_dim, options.end_dim); }

Tensor Unflatten::forward(const Tensor& input) { return unflatten(input, options.dim, options.unflattened_size); }

}  // namespace vesta::nn
