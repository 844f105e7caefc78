// Docs of the topic optim: what help() and the reference show, but for pointwise ops, whose structs have theirs.
#pragma once

namespace vesta::doc {

inline constexpr char _fused_sgd_[] =
    "_fused_sgd_(params, grads, momentum_buffer_list, ...): one SGD step over lists of tensors, in place.";
inline constexpr char _fused_adam_[] =
    "_fused_adam_(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, ...): one Adam step over lists "
    "of tensors, in place; decoupled=True is AdamW. state_steps are one-element float tensors, counted up here.";
inline constexpr char _fused_rmsprop_[] =
    "_fused_rmsprop_(params, grads, square_avgs, grad_avgs, momentum_buffer_list, state_steps, ...): one RMSprop "
    "step over lists of tensors, in place. state_steps are one-element float tensors, counted up here.";
inline constexpr char _amp_unscale_[] =
    "_amp_unscale_(grads, found_inf, inv_scale): multiplies each tensor of a list by inv_scale, in place, and sets "
    "found_inf to 1 where any element was infinite or NaN before. found_inf and inv_scale are float32, one element.";
inline constexpr char _amp_update_scale_[] =
    "_amp_update_scale_(scale, growth_tracker, found_inf, growth_factor, backoff_factor, growth_interval): "
    "multiplies scale (float32) by backoff_factor if found_inf is not 0, else by growth_factor every growth_interval "
    "calls, which growth_tracker (int32) counts; in place. A scale that would become infinite stays.";

}  // namespace vesta::doc
