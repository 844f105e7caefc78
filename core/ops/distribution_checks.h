// The checks of fills with numbers of a distribution, which all devices make.
#pragma once
#include <vesta/core/tensor.h>

namespace vesta {

/// Check the tensor and the parameters of the op of the same name.
VESTA_API void check_exponential_(const Tensor& t, double lambd);
VESTA_API void check_geometric_(const Tensor& t, double p);
VESTA_API void check_cauchy_(const Tensor& t, double sigma);
VESTA_API void check_log_normal_(const Tensor& t, double std);

}  // namespace vesta
