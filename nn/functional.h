// vesta::nn::functional: the mathematics of layers under the names that PyTorch's torch.nn.functional has.
#pragma once
#include <vesta/core/ops/ops.h>

namespace vesta::nn {
struct UpsampleOptions;  // layers/vision.h
}

namespace vesta::nn::functional {

using vesta::adaptive_avg_pool1d;
using vesta::adaptive_avg_pool2d;
using vesta::adaptive_avg_pool3d;
using vesta::adaptive_max_pool1d;
using vesta::adaptive_max_pool2d;
using vesta::adaptive_max_pool3d;
using vesta::avg_pool1d;
using vesta::avg_pool2d;
using vesta::avg_pool3d;
using vesta::batch_norm;
using vesta::bilinear;
using vesta::binary_cross_entropy;
using vesta::binary_cross_entropy_with_logits;
using vesta::celu;
using vesta::channel_shuffle;
using vesta::conv1d;
using vesta::conv2d;
using vesta::conv3d;
using vesta::conv_transpose1d;
using vesta::conv_transpose2d;
using vesta::conv_transpose3d;
using vesta::cosine_embedding_loss;
using vesta::cosine_similarity;
using vesta::cross_entropy;
using vesta::ctc_loss;
using vesta::dropout;
using vesta::elu;
using vesta::gelu;
using vesta::glu;
using vesta::group_norm;
using vesta::hardshrink;
using vesta::hardsigmoid;
using vesta::hardswish;
using vesta::hardtanh;
using vesta::hinge_embedding_loss;
using vesta::huber_loss;
using vesta::instance_norm;
using vesta::kl_div;
using vesta::l1_loss;
using vesta::layer_norm;
using vesta::leaky_relu;
using vesta::linear;
using vesta::log_softmax;
using vesta::logsigmoid;
using vesta::margin_ranking_loss;
using vesta::max_pool1d;
using vesta::max_pool2d;
using vesta::max_pool3d;
using vesta::mish;
using vesta::mse_loss;
using vesta::multi_margin_loss;
using vesta::multilabel_margin_loss;
using vesta::nll_loss;
using vesta::normalize;
using vesta::one_hot;
using vesta::pad;
using vesta::pairwise_distance;
using vesta::pixel_shuffle;
using vesta::pixel_unshuffle;
using vesta::poisson_nll_loss;
using vesta::prelu;
using vesta::relu;
using vesta::rms_norm;
using vesta::rrelu;
using vesta::scaled_dot_product_attention;
using vesta::selu;
using vesta::sigmoid;
using vesta::silu;
using vesta::smooth_l1_loss;
using vesta::soft_margin_loss;
using vesta::softmax;
using vesta::softplus;
using vesta::softshrink;
using vesta::softsign;
using vesta::tanh;
using vesta::tanhshrink;
using vesta::threshold;
using vesta::triplet_margin_loss;

/// Looks up rows of `weight` [num, dim] by `input` (integers of any shape *); gives [*, dim]. The row `padding_idx`, if
/// given, gets no gradient; with `sparse` the weight's gradient is a sparse tensor.
VESTA_API Tensor embedding(const Tensor& input, const Tensor& weight, MaybeInt padding_idx = {}, bool sparse = false);
/// Resizes a grid [N, C, L], [N, C, H, W] or [N, C, D, H, W]; `antialias` averages over what a pixel of a smaller image
/// covers ("bilinear" and "bicubic").
VESTA_API Tensor interpolate(const Tensor& input, const UpsampleOptions& options, bool antialias = false);

}  // namespace vesta::nn::functional
