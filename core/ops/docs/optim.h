// Docs of the topic optim: what help() and the reference show, but for pointwise ops, whose structs have theirs.
#pragma once

namespace vesta::doc {

// state_steps are one-element float tensors, which the op counts up.
inline constexpr char _fused_sgd_[] =
    "_fused_sgd_(params, grads, momentum_buffer_list, ...): one SGD step over lists of tensors, in place.";
inline constexpr char _fused_adam_[] =
    "_fused_adam_(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, ...): one Adam step over "
    "lists of tensors, in place. decoupled=True is AdamW.";
inline constexpr char _fused_rmsprop_[] =
    "_fused_rmsprop_(params, grads, square_avgs, grad_avgs, momentum_buffer_list, state_steps, ...): one RMSprop "
    "step over lists of tensors, in place.";
inline constexpr char _fused_adagrad_[] =
    "_fused_adagrad_(params, grads, state_sums, state_steps, ...): one Adagrad step over lists of tensors, in "
    "place.";
inline constexpr char _fused_adadelta_[] =
    "_fused_adadelta_(params, grads, square_avgs, acc_deltas, state_steps, ...): one Adadelta step over lists of "
    "tensors, in place.";
inline constexpr char _fused_adamax_[] =
    "_fused_adamax_(params, grads, exp_avgs, exp_infs, state_steps, ...): one Adamax step over lists of tensors, "
    "in place.";
inline constexpr char _fused_nadam_[] =
    "_fused_nadam_(params, grads, exp_avgs, exp_avg_sqs, mu_products, state_steps, ...): one NAdam step over "
    "lists of tensors, in place.";
inline constexpr char _fused_radam_[] =
    "_fused_radam_(params, grads, exp_avgs, exp_avg_sqs, state_steps, ...): one RAdam step over lists of tensors,"
    " in place.";
inline constexpr char _fused_asgd_[] =
    "_fused_asgd_(params, grads, axs, etas, mus, state_steps, ...): one ASGD step over lists of tensors, in "
    "place.";
inline constexpr char _fused_rprop_[] =
    "_fused_rprop_(params, grads, prevs, step_sizes, state_steps, ...): one Rprop step over lists of tensors, in "
    "place.";
inline constexpr char _amp_unscale_[] =
    "_amp_unscale_(grads, found_inf, inv_scale): multiplies each tensor of a list by inv_scale, in place, and sets "
    "found_inf to 1 where any element was infinite or NaN before. found_inf and inv_scale are float32, one element.";
inline constexpr char _amp_update_scale_[] =
    "_amp_update_scale_(scale, growth_tracker, found_inf, growth_factor, backoff_factor, growth_interval): "
    "multiplies scale (float32) by backoff_factor if found_inf is not 0, else by growth_factor every growth_interval "
    "calls, which growth_tracker (int32) counts; in place. A scale that would become infinite stays.";
inline constexpr char _list_norms[] =
    "_list_norms(tensors, ord, total): the ord-norm (1, 2 or inf) of each floating tensor of a list on one device, one "
    "row; if total, the norm of all their elements instead, 0-d. float64 if any tensor is, else float32, in which "
    "16-bit floats are summed. The order of the sums depends on each tensor's shape and strides alone.";
inline constexpr char _list_mul_[] =
    "_list_mul_(tensors, by, factor, clip): multiplies each floating tensor of a list by `factor`, in place, or by "
    "`by * factor`, where `by` is one float32 or float64 element on their device; if clip, by "
    "min(factor / (by + 1e-6), 1), as gradients of the norm `by` are clipped. The host does not wait for `by`.";
inline constexpr char _list_zero_[] =
    "_list_zero_(tensors): fills each tensor of a list, all on one device, with zeros, in place.";

}  // namespace vesta::doc
