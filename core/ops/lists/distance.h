// The op list, distances, products of vectors, covariances. See README.md.
#pragma once

// clang-format off
#define VESTA_OPS_DISTANCE(OP)                                                                                         \
  OP(METHOD, Tensor, dist, (const Tensor& other, RealScalar p = 2), (other, p), composite, casts(none, float32),       \
     accepts(kFloats | kComplexes), gives(Gives::real))                                                                \
  OP(FUNCTION, Tensor, cdist,                                                                                          \
     (const Tensor& x1, const Tensor& x2, double p = 2.0, Text compute_mode = "use_mm_for_euclid_dist_if_necessary"),  \
     (x1, x2, p, compute_mode), composite, casts(float32, float32), accepts(kFloats))                                  \
  OP(FUNCTION, Tensor, pdist, (const Tensor& input, double p = 2), (input, p), composite, casts(none, float32),        \
     accepts(kFloats))                                                                                                 \
  OP(FUNCTION, Tensor, _distances, (const Tensor& x1, MaybeTensor x2, double p), (x1, x2, p), composite, hidden,       \
     accepts(kFloats))                                                                                                 \
  OP(FUNCTION, Tensor, _distances_backward,                                                                            \
     (const Tensor& grad, const Tensor& x1, MaybeTensor x2, double p, const Tensor& distances),                        \
     (grad, x1, x2, p, distances), composite, hidden, accepts(kFloats))                                                \
  OP(FUNCTION, Tensor, pairwise_distance,                                                                              \
     (const Tensor& x1, const Tensor& x2, double p = 2, double eps = 1e-6, bool keepdim = false),                      \
     (x1, x2, p, eps, keepdim), composite, accepts(kNumbers), gives(Gives::real_floating))                             \
  OP(FUNCTION, Tensor, cosine_similarity, (const Tensor& x1, const Tensor& x2, int64_t dim = 1, double eps = 1e-8),    \
     (x1, x2, dim, eps), composite, casts(none, float32), accepts(kFloats))                                            \
  OP(METHOD_INPLACE_OUT, renorm, (RealScalar p, int64_t dim, RealScalar maxnorm), (p, dim, maxnorm), exact_out,        \
     casts(none, float32), accepts(kFloats | kComplexes))                                                   \
  OP(METHOD, Tensor, cross, (const Tensor& other, MaybeInt dim = {}), (other, dim), composite, exact_out,              \
     casts(none, widest), accepts(kNumbers))                                                                           \
  OP(IN, linalg, Tensor, cross, (const Tensor& input, const Tensor& other, Kw<int64_t> dim = -1),                      \
     (input, other, dim), composite, exact_out, accepts(kNumbers))                                                     \
  OP(FUNCTION, Tensor, vander, (const Tensor& x, MaybeInt N = {}, bool increasing = false), (x, N, increasing),        \
     composite, gives(Gives::sum))                                                                                     \
  OP(IN, linalg, Tensor, vander, (const Tensor& x, Kw<MaybeInt> N = {}), (x, N), composite, gives(Gives::sum))         \
  OP(METHOD, Tensor, cov, (Kw<int64_t> correction = 1, MaybeTensor fweights = {}, MaybeTensor aweights = {}),          \
     (correction, fweights, aweights), composite, accepts(kNumbers), gives(Gives::floating))                           \
  OP(METHOD, Tensor, corrcoef, (), (), composite, accepts(kNumbers), gives(Gives::floating))
