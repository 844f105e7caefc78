// Initialisation of parameters, in place and without recording; every function returns its tensor.
#pragma once
#include <vesta/core/tensor.h>

namespace vesta::nn::init {

enum class Fan { in, out };

/// A guard: while it lives, the functions below leave tensors of this thread as they are. A copy of a module gets the
/// values of the original, and drawing others first would change the random numbers of the program.
class VESTA_API Skip {
 public:
  Skip();
  ~Skip();
  Skip(const Skip&) = delete;
  Skip& operator=(const Skip&) = delete;
};

/// Returns (fan_in, fan_out) of a weight [out, in, ...]: both are multiplied by the size of a trailing window. Error
/// below 2 dimensions.
VESTA_API std::pair<int64_t, int64_t> fans(const Tensor& weight);
/// Returns the recommended gain: 1 for linear and sigmoid, 5/3 for tanh, sqrt(2) for relu, sqrt(2 / (1 + slope^2)) for
/// leaky_relu. Error for any other name.
VESTA_API double calculate_gain(Text nonlinearity, double slope = 0.01);

VESTA_API Tensor uniform_(const Tensor& t, double low = 0, double high = 1);
VESTA_API Tensor normal_(const Tensor& t, double mean = 0, double std = 1);
VESTA_API Tensor constant_(const Tensor& t, double value);
VESTA_API Tensor zeros_(const Tensor& t);
VESTA_API Tensor ones_(const Tensor& t);
/// Fills with draws from U(-b, b), b = gain * sqrt(3 / fan) (He et al. 2015).
VESTA_API Tensor kaiming_uniform_(const Tensor& t, double a = 0, Fan mode = Fan::in, Text nonlinearity = "leaky_relu");
/// Fills with draws from N(0, s^2), s = gain / sqrt(fan) (He et al. 2015).
VESTA_API Tensor kaiming_normal_(const Tensor& t, double a = 0, Fan mode = Fan::in, Text nonlinearity = "leaky_relu");
/// Fills with draws from U(-b, b), b = gain * sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010).
VESTA_API Tensor xavier_uniform_(const Tensor& t, double gain = 1);
/// Fills with draws from N(0, s^2), s = gain * sqrt(2 / (fan_in + fan_out)) (Glorot and Bengio 2010).
VESTA_API Tensor xavier_normal_(const Tensor& t, double gain = 1);

}  // namespace vesta::nn::init
