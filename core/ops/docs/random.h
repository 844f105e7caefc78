// Docs of the topic random: what help() and the reference show, but for pointwise ops, whose structs have theirs.
#pragma once

namespace vesta::doc {

inline constexpr char uniform_[] = "uniform_(from=0, to=1, generator=None): fills with uniform numbers in [from, to).";
inline constexpr char normal_[] =
    "normal_(mean=0, std=1, generator=None): fills with normal numbers; complex ones have variance std**2 in total.";
inline constexpr char _random_[] = "_random_(from, to, generator): what random_ is made of.";
inline constexpr char random_[] =
    "random_(from=0, to=None, generator=None): fills with integers in [from, to), random_(to) in [0, to); without "
    "bounds all non-negative ones of the dtype, or up to 2**digits for a floating type.";
inline constexpr char bernoulli_[] = "bernoulli_(p=0.5, generator=None): fills with 1 with probability p, else 0.";
inline constexpr char bernoulli[] = "bernoulli(generator=None): 1 with the probability that each element says, else 0.";
inline constexpr char native_dropout[] =
    "native_dropout(input, p, train): (input / (1 - p) where kept, else 0; the bool mask of the kept). Each element "
    "is kept with probability 1 - p; all are where train is False.";
inline constexpr char randperm[] =
    "randperm(n, generator=None, dtype=int64, device=None): a random order of 0 to n - 1.";
inline constexpr char rand[] = "rand(*size, generator=None, dtype=None, device=None): uniform numbers in [0, 1).";
inline constexpr char randn[] =
    "randn(*size, generator=None, dtype=None, device=None): numbers of the normal distribution.";
inline constexpr char randint[] =
    "randint(low=0, high, size, generator=None, dtype=int64, device=None): integers in [low, high).";
inline constexpr char rand_like[] = "rand_like(input, dtype=None, device=None): rand of input's shape.";
inline constexpr char randn_like[] = "randn_like(input, dtype=None, device=None): randn of input's shape.";
inline constexpr char native_dropout_backward[] =
    "native_dropout_backward(grad_output, mask, scale): the gradient of native_dropout, scale * grad_output where the "
    "mask is True, else 0.";
inline constexpr char _dropout[] =
    "dropout(input, p=0.5, training=True): zeroes each element with probability p and scales the rest by 1 / (1 - p) "
    "(Srivastava et al. 2014); the input itself when not training.";
inline constexpr char dropout[] =
    "dropout(input, p=0.5, training=True): zeroes each element with probability p and scales the rest by 1 / (1 - p) "
    "(Srivastava et al. 2014); the input itself when not training.";
inline constexpr char exponential_[] =
    "exponential_(lambd=1, *, generator=None): fills with numbers of the density lambd * e ** (-lambd * x). Error: "
    "lambd <= 0, an integer tensor.";
inline constexpr char geometric_[] =
    "geometric_(p, *, generator=None): fills with numbers of trials up to the first success, each of probability "
    "p. Error: p not in (0, 1).";
inline constexpr char cauchy_[] =
    "cauchy_(median=0, sigma=1, *, generator=None): fills with numbers of a Cauchy distribution. Error: sigma <= "
    "0, an integer tensor.";
inline constexpr char log_normal_[] =
    "log_normal_(mean=1, std=2, *, generator=None): fills with e ** x for normal x of that mean and standard "
    "deviation. Error: std <= 0, an integer tensor.";
inline constexpr char _checked_probabilities[] =
    "_checked_probabilities(input): input in float64. Error: a number that is negative or not finite, a row without a "
    "positive one; on a device, when the host next waits for it.";
inline constexpr char multinomial[] =
    "multinomial(input, num_samples, replacement=False, *, generator=None): indices [num_samples], or [m, "
    "num_samples], drawn with the probabilities that the rows of input [n] or [m, n] are proportional to. Error: a "
    "negative weight, more samples than weights without replacement.";
inline constexpr char normal[] =
    "normal(mean, std, *, generator=None): normal numbers, each with its mean and standard deviation; either may "
    "be a number, or both with a size. Error: a negative std.";
inline constexpr char _truncated_normal_[] =
    "_truncated_normal_(mean, std, a, b, generator): fills from the normal distribution cut off outside of [a, b].";
inline constexpr char _poisson[] = "_poisson(input, generator): what poisson is made of.";
inline constexpr char poisson[] =
    "poisson(input, generator=None): numbers of Poisson distributions with these rates; of input's shape and "
    "dtype. Error: a negative rate, an integer input.";
inline constexpr char randint_like[] =
    "randint_like(input, low=0, high, *, dtype=None): integers of [low, high) in input's shape and dtype.";

}  // namespace vesta::doc
