// The arguments of batch normalisation: a contiguous input [batch, channels, inner], vectors of the channels of any
// floating dtype and stride, and scratch memory. Its last step is group normalisation's too.
#pragma once
#include <vesta/core/dtype_set.h>
#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

/// A vector over the channels; null data if there is none.
struct ChannelVector {
  char* data = nullptr;
  DType dtype = DType::float32;
  int64_t stride = 1;  // elements
};

/// One batch normalisation, or with `weight_gradient` its gradient. The kernels take three steps: sums over pieces of
/// each channel, the channel's numbers from these sums, and one map over all elements.
struct BatchNormLaunch {
  StreamHandle stream = nullptr;
  DType dtype = DType::float32;
  const char* x = nullptr;
  const char* grad = nullptr;
  char* y = nullptr;  // the result, or the gradient of x
  int64_t batch = 0, channels = 0, inner = 0;
  bool training = false, update = false;
  double momentum = 0, eps = 0;
  ChannelVector weight, bias, running_mean, running_var;
  ChannelVector mean, invstd;                      // written, or read for the gradient
  ChannelVector weight_gradient, bias_gradient;    // written
  double* sums = nullptr;                          // [channels, pieces, 3]
  char* map = nullptr;  // [4, images, channels] of the type of the computation, d = x - map[0]:
                        // y = d map[1] + map[2], or gx = g map[1] + d map[2] + map[3]
  int64_t images = 1;   // equal parts of the batch that have numbers of their own
  int64_t piece = 0, pieces = 0;  // elements of a channel that one block sums
  bool packed = false;  // all pointers are aligned for 16 bytes
};

/// Queues the launch.
void batch_norm(const BatchNormLaunch& l);
/// Queues the map alone; with `grad`, the gradient's.
void map_normalized(const char* name, const BatchNormLaunch& l);

}  // namespace vesta::cuda
