// Checks that the kernels of every device make. They are not in the topics' headers, which nearly everything includes.
#pragma once
#include <vesta/core/tensor.h>

namespace vesta {

/// Returns whether a tensor has values: false on the meta device, where checks of values are skipped.
inline bool has_values(const Tensor& t) { return t.device().type() != DeviceType::meta; }

/// Checks bernoulli_: a probability, a real dtype.
VESTA_API void check_bernoulli_(const Tensor& t, double p);
/// Checks the dtype of bernoulli's probabilities.
VESTA_API void check_bernoulli(const Tensor& p);
/// Checks native_dropout: a probability, a floating-point dtype.
VESTA_API void check_native_dropout(const Tensor& input, double p);
/// Checks an embedding: a matrix, integer indices, which are returned as contiguous int64.
VESTA_API Tensor check_embedding(const Tensor& weight, const Tensor& indices);
/// Checks one_hot, and on the CPU that all classes lie in [0, num_classes); returns num_classes, computed from the
/// values if it is -1.
VESTA_API int64_t check_one_hot(const Tensor& input, int64_t num_classes);
/// Checks the size of the result's last dimension of _fft_c2r against the input's dimension `dim`.
VESTA_API void check_fft_c2r(const Tensor& input, int64_t dim, int64_t last_dim_size);
/// Checks the input of argmax or argmin: no bools and, over all dimensions, an element.
VESTA_API void check_place_input(const Tensor& input, MaybeInt dim, const char* op);
/// Checks linalg.eigh's triangle: 'L' or 'U', in either case.
VESTA_API void check_uplo(Text uplo, const char* op);
/// Raises unless linalg.svd is left to choose its algorithm.
VESTA_API void check_no_driver(MaybeText driver);

}  // namespace vesta
