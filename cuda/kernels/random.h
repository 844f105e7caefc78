// Random numbers on the device. The number of an element follows from seed, offset and its number alone
// (core/base/philox.h), so that a tensor is the same on every device and for every grid.
#pragma once
#include <vesta/core/dtype_set.h>
#include <vesta/core/ops/rejection.h>
#include <vesta/cuda/kernels/fault_record.h>

#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

/// A run over n contiguous elements.
struct RandomLaunch {
  const char* name = "";
  DType dtype = DType::float32;  // a complex number is two real ones here
  StreamHandle stream = nullptr;
  uint64_t seed = 0, offset = 0;
  int64_t n = 0;
  void* out = nullptr;
  const void* in = nullptr;  // operand, if there is one
  bool* mask = nullptr;      // dropout's second result
  double a = 0, b = 0;  // uniform: from, to; normal: mean, std; bernoulli: probability; dropout: to keep, scale;
                        // exponential: rate; geometric: log(1 - p); cauchy: median, sigma
  double below = 0;  // uniform: the largest value under `to`
  bool pairs = false;  // normal: the mean belongs to even elements only (real parts)
  int64_t from = 0;  // integers
  uint64_t range = 0;  // 0 stands for 2^64
  Fault* fault = nullptr;
};

void run_uniform(const RandomLaunch& l);
void run_normal(const RandomLaunch& l);
void run_log_normal(const RandomLaunch& l);
void run_exponential(const RandomLaunch& l);
void run_geometric(const RandomLaunch& l);
void run_cauchy(const RandomLaunch& l);
/// Queues numbers of a normal distribution that is cut off.
void run_truncated_normal(const RandomLaunch& l, const TruncatedNormal& law);
/// Queues numbers of Poisson distributions with rates `in`; reports `not_rates` for numbers that are none.
void run_poisson(const RandomLaunch& l, const char* not_rates);
void run_integers(const RandomLaunch& l);
void run_bernoulli(const RandomLaunch& l);  // probability `a` > 0
void run_bernoulli_of(const RandomLaunch& l);  // probabilities `in`
void run_dropout(const RandomLaunch& l);
/// Queues out[i] = scale `b` times in[i] where mask[i], else 0.
void run_dropout_gradient(const RandomLaunch& l);
/// Queues out[i] = the 64 random bits of element i.
void run_random_bits(const RandomLaunch& l);
/// Queues out[i] = the highest `bits` of these, at most 32, as a 32-bit number.
void run_random_keys(const RandomLaunch& l, int bits);
/// Weights of draws: rows [rows, n] that become float64.
struct WeightsLaunch {
  DType dtype = DType::float32;
  StreamHandle stream = nullptr;
  int64_t rows = 0, n = 0;
  const void* in = nullptr;
  double* out = nullptr;
  const char *not_weights = nullptr, *none = nullptr;  // literals to report
  Fault* fault = nullptr;
};
/// Queues out = in, and reports rows with a number that is negative or not finite, or without a positive one.
void run_checked_weights(const WeightsLaunch& l);
/// Queues out = order, the elements' numbers by such keys, in the order of all 64 bits: equal keys are few.
void run_permutation(const RandomLaunch& l, const uint32_t* keys, const uint32_t* order);

}  // namespace vesta::cuda
