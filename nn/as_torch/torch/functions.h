// Functions whose form in libtorch differs from Vesta's: a reduction is a number (torch::Reduction::Sum), results that
// are written stand first, weights may be undefined.
#pragma once
#include <torch/factories.h>

namespace torch {

namespace detail {
inline std::string_view text_of_reduction(int64_t reduction) {
  VESTA_CHECK(reduction >= 0 && reduction <= 2, value, "loss: expected a torch::Reduction, got ", reduction, ".");
  static constexpr std::string_view kNames[] = {"none", "mean", "sum"};
  return kNames[reduction];
}
}  // namespace detail

inline Tensor mse_loss(const Tensor& input, const Tensor& target, int64_t reduction = Reduction::Mean) {
  return vesta::mse_loss(input, target, detail::text_of_reduction(reduction));
}
inline Tensor l1_loss(const Tensor& input, const Tensor& target, int64_t reduction = Reduction::Mean) {
  return vesta::l1_loss(input, target, detail::text_of_reduction(reduction));
}
inline Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, int64_t reduction = Reduction::Mean,
                             double beta = 1) {
  return vesta::smooth_l1_loss(input, target, detail::text_of_reduction(reduction), beta);
}
inline Tensor huber_loss(const Tensor& input, const Tensor& target, int64_t reduction = Reduction::Mean,
                         double delta = 1) {
  return vesta::huber_loss(input, target, detail::text_of_reduction(reduction), delta);
}
inline Tensor soft_margin_loss(const Tensor& input, const Tensor& target, int64_t reduction = Reduction::Mean) {
  return vesta::soft_margin_loss(input, target, detail::text_of_reduction(reduction));
}
inline Tensor kl_div(const Tensor& input, const Tensor& target, int64_t reduction = Reduction::Mean,
                     bool log_target = false) {
  return vesta::kl_div(input, target, detail::text_of_reduction(reduction), log_target);
}
inline Tensor nll_loss(const Tensor& input, const Tensor& target, vesta::MaybeTensor weight = {},
                       int64_t reduction = Reduction::Mean, int64_t ignore_index = -100) {
  return vesta::nll_loss(input, target, weight, ignore_index, detail::text_of_reduction(reduction));
}
inline Tensor nll_loss2d(const Tensor& input, const Tensor& target, vesta::MaybeTensor weight = {},
                         int64_t reduction = Reduction::Mean, int64_t ignore_index = -100) {
  return nll_loss(input, target, weight, reduction, ignore_index);
}
inline Tensor cross_entropy_loss(const Tensor& input, const Tensor& target, vesta::MaybeTensor weight = {},
                                 int64_t reduction = Reduction::Mean, int64_t ignore_index = -100,
                                 double label_smoothing = 0) {
  return vesta::cross_entropy(input, target, weight, ignore_index, detail::text_of_reduction(reduction),
                              label_smoothing);
}
inline Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, vesta::MaybeTensor weight = {},
                                   int64_t reduction = Reduction::Mean) {
  return vesta::binary_cross_entropy(input, target, weight, detail::text_of_reduction(reduction));
}
inline Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                               vesta::MaybeTensor weight = {}, vesta::MaybeTensor pos_weight = {},
                                               int64_t reduction = Reduction::Mean) {
  return vesta::binary_cross_entropy_with_logits(input, target, weight, detail::text_of_reduction(reduction),
                                                 pos_weight);
}
inline Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin = 0,
                                  int64_t reduction = Reduction::Mean) {
  return vesta::margin_ranking_loss(input1, input2, target, margin, detail::text_of_reduction(reduction));
}
inline Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin = 0,
                                    int64_t reduction = Reduction::Mean) {
  return vesta::cosine_embedding_loss(input1, input2, target, margin, detail::text_of_reduction(reduction));
}
inline Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target, double margin = 1,
                                   int64_t reduction = Reduction::Mean) {
  return vesta::hinge_embedding_loss(input, target, margin, detail::text_of_reduction(reduction));
}
inline Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                  double margin = 1, double p = 2, double eps = 1e-6, bool swap = false,
                                  int64_t reduction = Reduction::Mean) {
  return vesta::triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap,
                                    detail::text_of_reduction(reduction));
}

inline Tensor multi_margin_loss(const Tensor& input, const Tensor& target, Scalar p = 1, Scalar margin = 1,
                                vesta::MaybeTensor weight = {}, int64_t reduction = Reduction::Mean) {
  return vesta::multi_margin_loss(input, target, p.real(), margin.real(), weight, detail::text_of_reduction(reduction));
}
inline Tensor multilabel_margin_loss(const Tensor& input, const Tensor& target, int64_t reduction = Reduction::Mean) {
  return vesta::multilabel_margin_loss(input, target, detail::text_of_reduction(reduction));
}
inline Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, bool log_input, bool full, double eps,
                               int64_t reduction) {
  return vesta::poisson_nll_loss(input, target, log_input, full, eps, detail::text_of_reduction(reduction));
}
inline Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, IntArrayRef input_lengths,
                       IntArrayRef target_lengths, int64_t blank = 0, int64_t reduction = Reduction::Mean,
                       bool zero_infinity = false) {
  return vesta::ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, detail::text_of_reduction(reduction),
                         zero_infinity);
}
inline Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                       const Tensor& target_lengths, int64_t blank = 0, int64_t reduction = Reduction::Mean,
                       bool zero_infinity = false) {
  const auto list = [](const Tensor& lengths) {
    const Tensor t = lengths.to(kCPU, kLong).contiguous();
    return std::vector<int64_t>(t.const_data_ptr<int64_t>(), t.const_data_ptr<int64_t>() + t.numel());
  };
  return ctc_loss(log_probs, targets, IntArrayRef(list(input_lengths)), IntArrayRef(list(target_lengths)), blank,
                  reduction, zero_infinity);
}

// The padding is numbers or a text; the form with a text has no defaults before it, so that short calls are clear.
#define VESTA_CONVOLUTION(name)                                                                                       \
  inline Tensor name(const Tensor& input, const Tensor& weight, vesta::MaybeTensor bias = {}, IntArrayRef stride = 1, \
                     IntArrayRef padding = 0, IntArrayRef dilation = 1, int64_t groups = 1) {                         \
    return vesta::name(input, weight, bias, stride, padding, dilation, groups);                                       \
  }                                                                                                                   \
  inline Tensor name(const Tensor& input, const Tensor& weight, vesta::MaybeTensor bias, IntArrayRef stride,          \
                     vesta::TextOnly padding, IntArrayRef dilation = 1, int64_t groups = 1) {                         \
    return vesta::name(input, weight, bias, stride, padding, dilation, groups);                                       \
  }
VESTA_CONVOLUTION(conv1d)
VESTA_CONVOLUTION(conv2d)
VESTA_CONVOLUTION(conv3d)
#undef VESTA_CONVOLUTION

// With the flag by which libtorch's callers allow cuDNN; Vesta chooses itself.
inline Tensor batch_norm(const Tensor& input, vesta::MaybeTensor weight, vesta::MaybeTensor bias,
                         vesta::MaybeTensor running_mean, vesta::MaybeTensor running_var, bool training,
                         double momentum, double eps, bool /*cudnn_enabled*/) {
  return vesta::batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps);
}
inline Tensor layer_norm(const Tensor& input, IntArrayRef normalized_shape, vesta::MaybeTensor weight,
                         vesta::MaybeTensor bias, double eps, bool /*cudnn_enable*/) {
  return vesta::layer_norm(input, normalized_shape, weight, bias, eps);
}

/// With a number as compute mode: 0 or none chooses, 1 multiplies matrices, 2 does not.
inline Tensor cdist(const Tensor& a, const Tensor& b, double p, optional<int64_t> compute_mode) {
  const int64_t mode = compute_mode.value_or(0);
  VESTA_CHECK(mode >= 0 && mode <= 2, value, "cdist: expected the compute_mode 0, 1 or 2, got ", mode, ".");
  return vesta::cdist(a, b, p,
                      mode == 0   ? "use_mm_for_euclid_dist_if_necessary"
                      : mode == 1 ? "use_mm_for_euclid_dist"
                                  : "donot_use_mm_for_euclid_dist");
}
inline Tensor norm(const Tensor& t, const optional<Scalar>& p, Dtype dtype) { return t.norm(p, dtype); }
inline Tensor norm(const Tensor& t, const optional<Scalar>& p, IntArrayRef dim, bool keepdim, Dtype dtype) {
  return t.norm(p, dim, keepdim, dtype);
}
inline Tensor norm(const Tensor& t, const optional<Scalar>& p, IntArrayRef dim, bool keepdim = false) {
  return t.norm(p, dim, keepdim);
}

// A flag says whether a deviation is unbiased; as a number it would be a correction, too.
inline Tensor var(const Tensor& t, const vesta::MaybeDims& dim, bool unbiased, bool keepdim = false) {
  return t.var(dim, unbiased, keepdim);
}
inline Tensor std(const Tensor& t, const vesta::MaybeDims& dim, bool unbiased, bool keepdim = false) {
  return t.std(dim, unbiased, keepdim);
}
inline vesta::TensorPair var_mean(const Tensor& t, const vesta::MaybeDims& dim, bool unbiased, bool keepdim = false) {
  return vesta::var_mean(t, dim, vesta::MaybeScalar(Scalar(int64_t(unbiased))), keepdim);
}
inline vesta::TensorPair std_mean(const Tensor& t, const vesta::MaybeDims& dim, bool unbiased, bool keepdim = false) {
  return vesta::std_mean(t, dim, vesta::MaybeScalar(Scalar(int64_t(unbiased))), keepdim);
}
inline vesta::TensorPair var_mean(const Tensor& t, bool unbiased) { return torch::var_mean(t, {}, unbiased); }
inline vesta::TensorPair std_mean(const Tensor& t, bool unbiased) { return torch::std_mean(t, {}, unbiased); }

/// Drops elements with probability p in training.
inline Tensor dropout(const Tensor& input, double p, bool train) { return vesta::dropout(input, p, train); }

}  // namespace torch
