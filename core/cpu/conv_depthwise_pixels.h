// Depthwise convolutions of images whose channels lie side by side. Internal to conv_depthwise.cpp.
#pragma once

#include <vesta/core/cpu/conv_depthwise.h>

namespace vesta::cpu {

/// Note [Depthwise pixels]
/// With channels last, vectors run along the channels, and a pixel of the result is the sum of a few pixels of the
/// input times the weights of each tap, tap by tap in the order of the taps: the sums of Note [Depthwise convolution].
/// A tap that lies outside the image reads a line of zeros, as it does on a canvas, so that weights which are not
/// finite show in the same elements.

/// Computes a depthwise convolution with the weights w, [channels, kernel...]; both images have channels last.
template <class T>
void depthwise_channels_last(const Correlated<Plain<T>>& c, const T* w);

}  // namespace vesta::cpu
