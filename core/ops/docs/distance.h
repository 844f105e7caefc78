// Docs of the topic distance: what help() and the reference show.
#pragma once

namespace vesta::doc {

inline constexpr char dist[] =
    "dist(input, other, p=2): the p-norm of input - other, with broadcasting; a tensor without dimensions.";
inline constexpr char cdist[] =
    "cdist(x1, x2, p=2.0, compute_mode='use_mm_for_euclid_dist_if_necessary'): the p-norm distances between the "
    "rows of x1 [*, P, M] and x2 [*, R, M], as [*, P, R]. For p = 2 and more than 25 rows they come from a matrix "
    "product, less exactly; 'use_mm_for_euclid_dist' and 'donot_use_mm_for_euclid_dist' decide otherwise. Error: a "
    "negative p, shapes that do not fit.";
inline constexpr char pdist[] =
    "pdist(input, p=2): the p-norm distances between every two rows of input [N, M], as [N (N - 1) / 2].";
inline constexpr char _distances[] =
    "_distances(x1, x2, p): the p-norm distances between the rows of x1 [*, P, M] and x2 [*, R, M], as [*, P, R]; "
    "without x2, between every two rows of x1 [N, M], as [N (N - 1) / 2].";
inline constexpr char _distances_backward[] =
    "_distances_backward(grad, x1, x2, p, distances): the gradient of x1; that of x2 is the gradient of x1 with the "
    "operands exchanged and the matrices transposed. It is 0 where the distance is 0.";
inline constexpr char pairwise_distance[] =
    "pairwise_distance(x1, x2, p=2, eps=1e-06, keepdim=False): the p-norm of x1 - x2 + eps over the last "
    "dimension, with broadcasting.";
inline constexpr char cosine_similarity[] =
    "cosine_similarity(x1, x2, dim=1, eps=1e-08): x1 . x2 / (max(|x1|, eps) * max(|x2|, eps)) along dim, with "
    "broadcasting.";
inline constexpr char renorm[] =
    "renorm(input, p, dim, maxnorm): input, with each slice along dim whose p-norm exceeds maxnorm scaled down to "
    "maxnorm. Error: p <= 0, a negative maxnorm, fewer than two dimensions.";
inline constexpr char renorm_[] = "renorm_(p, dim, maxnorm): renorm in place.";
inline constexpr char cross[] =
    "cross(input, other, dim=None): the cross products of vectors along dim, of size 3; without dim the first "
    "dimension of that size. Error: another size, other shapes.";
inline constexpr char linalg_cross[] =
    "linalg.cross(input, other, *, dim=-1): the cross products of vectors along dim, of size 3, with broadcasting.";
inline constexpr char vander[] =
    "vander(x, N=None, increasing=False): the matrix [n, N] of the powers of x [n], N - 1 to 0, or 0 to N - 1 if "
    "increasing; N is n without it.";
inline constexpr char linalg_vander[] =
    "linalg.vander(x, *, N=None): the matrices [*, n, N] of the powers 0 to N - 1 of x [*, n]; N is n without it.";
inline constexpr char cov[] =
    "cov(input, *, correction=1, fweights=None, aweights=None): the covariance matrix [V, V] of V variables (rows) "
    "with observations in columns, [V, O]; fweights are integer counts and aweights weights of the observations, "
    "[O].";
inline constexpr char corrcoef[] =
    "corrcoef(input): the matrix [V, V] of Pearson's correlation coefficients of V variables (rows), [V, O].";

}  // namespace vesta::doc
