// A block of the generator is four words, two 64-bit numbers, four floats or two doubles.
#include <vesta/cuda/kernels/random.h>

#include <vesta/cuda/kernels/rounded.cuh>
#include <vesta/cuda/kernels/teams.cuh>

namespace vesta::cuda {
namespace {

constexpr unsigned kThreads = 256;

template <class T, int n>
struct alignas(n * sizeof(T) < 16 ? n * sizeof(T) : 16) Values {
  T v[n];
};

constexpr unsigned kEach = 4;  // blocks of the generator that a thread takes, where a thread block has no end to watch

/// Fills a tensor with F: F::count elements per block, F::T their type, F::make(l, i, n, block) the values of elements
/// i to i + n - 1.
template <class F>
VESTA_KERNEL void random_kernel(RandomLaunch l, bool aligned) {
  using T = typename F::T;
  constexpr int64_t kTile = int64_t(kThreads) * kEach * F::count;
  const uint64_t tile = uint64_t(blockIdx.x) * (kThreads * kEach);
  T* const out = static_cast<T*>(l.out);
  if (aligned && int64_t(tile) * F::count + kTile <= l.n) {
    VESTA_UNROLL
    for (unsigned u = 0; u < kEach; ++u) {
      const uint64_t number = tile + (u * kThreads + threadIdx.x);
      const int64_t first = int64_t(number) * F::count;
      const Philox4 block = philox_block(l.seed, l.offset, number);
      *reinterpret_cast<Values<T, F::count>*>(out + first) = F::make(l, first, F::count, block);
    }
    return;
  }
  VESTA_ROLLED
  for (unsigned u = 0; u < kEach; ++u) {
    const uint64_t number = tile + (u * kThreads + threadIdx.x);
    const int64_t first = int64_t(number) * F::count;
    if (first >= l.n) return;
    const Philox4 block = philox_block(l.seed, l.offset, number);
    const int64_t n = l.n - first < F::count ? l.n - first : F::count;
    const Values<T, F::count> r = F::make(l, first, n, block);
    VESTA_UNROLL
    for (int k = 0; k < F::count; ++k) {
      if (k < n) out[first + k] = r.v[k];
    }
  }
}

template <class F>
void run(const RandomLaunch& l) {
  const bool aligned = reinterpret_cast<uintptr_t>(l.out) % alignof(Values<typename F::T, F::count>) == 0;
  const uint64_t blocks = uint64_t(l.n + F::count - 1) / F::count;
  launch_independent(l.name, random_kernel<F>, linear_shape((blocks + kEach - 1) / kEach, kThreads, l.stream), l,
                     aligned);
}

template <class C>
constexpr int per_block = int(16 / sizeof(C));

template <class T_>
struct Uniform {
  using T = T_;
  using C = compute_of<T>;
  static constexpr int count = per_block<C>;
  VESTA_DEVICE static Values<T, count> make(const RandomLaunch& l, int64_t, int64_t, const Philox4& w) {
    const C from = C(l.a), range = C(l.b - l.a), below = C(l.below);
    // As many random bits as the type has digits, so that rounding does not favour the upper end.
    constexpr int digits = sizeof(T) == 2 ? (std::is_same_v<T, Half> ? 11 : 8) : 0;
    Values<T, count> r;
    for (int k = 0; k < count; ++k) {
      C u;
      if constexpr (count == 2) u = uniform_double(w.word[2 * k], w.word[2 * k + 1]);
      else u = uniform_float(w.word[k]);
      if constexpr (digits > 0) u = C(int32_t(u * C(1 << digits))) * C(1.0 / (1 << digits));
      const C v = rounded::add(from, rounded::mul(u, range));
      r.v[k] = convert<T>(v < below ? v : below);
    }
    return r;
  }
};

template <class T_>
struct Normal {
  using T = T_;
  using C = compute_of<T>;
  static constexpr int count = per_block<C>;
  VESTA_DEVICE static Values<T, count> make(const RandomLaunch& l, int64_t, int64_t, const Philox4& w) {
    C z[count];
    if constexpr (count == 2) {
      const NormalPair<double> p = normal_pair(w);
      z[0] = p.first, z[1] = p.second;
    } else {
      const NormalPair<float> p = normal_pair(w.word[0], w.word[1]), q = normal_pair(w.word[2], w.word[3]);
      z[0] = p.first, z[1] = p.second, z[2] = q.first, z[3] = q.second;
    }
    const C mean = C(l.a), odd_mean = l.pairs ? C(0) : mean, deviation = C(l.b);
    Values<T, count> r;
    for (int k = 0; k < count; ++k) {
      r.v[k] = convert<T>(rounded::add(k % 2 == 1 ? odd_mean : mean, rounded::mul(z[k], deviation)));
    }
    return r;
  }
};

template <class T>
struct LogNormal : Normal<T> {
  VESTA_DEVICE static Values<T, Normal<T>::count> make(const RandomLaunch& l, int64_t i, int64_t n, const Philox4& w) {
    Values<T, Normal<T>::count> r = Normal<T>::make(l, i, n, w);
    for (int k = 0; k < Normal<T>::count; ++k) r.v[k] = convert<T>(math::exp(convert<compute_of<T>>(r.v[k])));
    return r;
  }
};

/// A distribution D whose inverse takes uniform numbers of (0, 1): D::of(u, a, b). Integers are made of doubles.
template <class D, class T_>
struct Inverted {
  using T = T_;
  using C = std::conditional_t<std::is_integral_v<T>, double, compute_of<T>>;
  static constexpr int count = per_block<C>;
  VESTA_DEVICE static Values<T, count> make(const RandomLaunch& l, int64_t, int64_t, const Philox4& w) {
    constexpr C smallest = C(count == 2 ? 0x1p-54 : 0x1p-25);  // half a step of the numbers
    Values<T, count> r;
    for (int k = 0; k < count; ++k) {
      C u;
      if constexpr (count == 2) u = uniform_double(w.word[2 * k], w.word[2 * k + 1]);
      else u = uniform_float(w.word[k]);
      r.v[k] = convert<T>(D::of(u > smallest ? u : smallest, C(l.a), C(l.b)));
    }
    return r;
  }
};
struct Exponential {
  template <class C>
  VESTA_DEVICE static C of(C u, C rate, C) {
    return math::quotient(math::log(u), C(-rate));
  }
};
struct Geometric {
  template <class C>
  VESTA_DEVICE static C of(C u, C log_rest, C) {
    return math::ceil(math::quotient(math::log(u), log_rest));
  }
};
struct Cauchy {
  template <class C>
  VESTA_DEVICE static C of(C u, C median, C sigma) {
    const C angle = rounded::mul(rounded::sub(u, C(0.5)), C(3.141592653589793));
    return rounded::add(rounded::mul(math::tan(angle), sigma), median);
  }
};

/// Returns the high half of a 128-bit product.
VESTA_DEVICE uint64_t high_product(uint64_t a, uint64_t b) {
  if (b <= UINT32_MAX) return ((a >> 32) * b + ((a & UINT32_MAX) * b >> 32)) >> 32;  // half the multiplications
#ifdef __CUDA_ARCH__
  return __umul64hi(a, b);
#else
  return uint64_t(static_cast<unsigned __int128>(a) * b >> 64);
#endif
}

template <class T_>
struct Integers {
  using T = T_;
  static constexpr int count = 2;
  VESTA_DEVICE static Values<T, count> make(const RandomLaunch& l, int64_t, int64_t, const Philox4& w) {
    Values<T, count> r;
    for (int k = 0; k < count; ++k) {
      // The high half of a product: each value has a probability of 1 / range within 2^-64.
      const uint64_t bits = philox_join(w.word[2 * k], w.word[2 * k + 1]);
      const int64_t v = int64_t(uint64_t(l.from) + (l.range ? high_product(bits, l.range) : bits));
      if constexpr (is_half_type<T>) r.v[k] = T(static_cast<float>(v));
      else r.v[k] = static_cast<T>(v);
    }
    return r;
  }
};

template <class T_>
struct Bernoulli {
  using T = T_;
  static constexpr int count = 4;
  VESTA_DEVICE static Values<T, count> make(const RandomLaunch& l, int64_t, int64_t, const Philox4& w) {
    const uint32_t last = last_event(l.a);
    Values<T, count> r;
    for (int k = 0; k < count; ++k) r.v[k] = convert<T>(w.word[k] <= last ? 1.0f : 0.0f);
    return r;
  }
};

template <class T_>
struct BernoulliOf {
  using T = T_;
  static constexpr int count = 4;
  VESTA_DEVICE static Values<T, count> make(const RandomLaunch& l, int64_t i, int64_t n, const Philox4& w) {
    const T* in = static_cast<const T*>(l.in) + i;
    Values<T, count> r;
    for (int k = 0; k < count; ++k) {
      const double p = k < n ? double(convert<compute_of<T>>(in[k])) : 0;
      if (!(p >= 0 && p <= 1)) report(l.fault, FaultKind::probability, l.name, 0, 0);
      r.v[k] = convert<T>(double(w.word[k]) < p * 0x1p32 ? 1.0f : 0.0f);
    }
    return r;
  }
};

template <class T_>
struct Dropout {
  using T = T_;
  using C = compute_of<T>;
  static constexpr int count = 4;
  VESTA_DEVICE static Values<T, count> make(const RandomLaunch& l, int64_t i, int64_t n, const Philox4& w) {
    const T* in = static_cast<const T*>(l.in) + i;
    const uint32_t last = last_event(l.a);
    Values<T, count> r;
    for (int k = 0; k < count; ++k) {
      const bool keep = w.word[k] <= last;
      if (k < n) l.mask[i + k] = keep;
      r.v[k] = keep && k < n ? convert<T>(convert<C>(in[k]) * C(l.b)) : convert<T>(C(0));
    }
    return r;
  }
};

/// A thread takes 16 bytes of gradients, or of the last ones what there is.
template <class T>
VESTA_KERNEL void dropout_gradient_kernel(RandomLaunch l, bool aligned) {
  using C = compute_of<T>;
  constexpr int N = int(16 / sizeof(T));
  const int64_t first = (int64_t(blockIdx.x) * blockDim.x + threadIdx.x) * N;
  if (first >= l.n) return;
  const T* const in = static_cast<const T*>(l.in) + first;
  T* const out = static_cast<T*>(l.out) + first;
  const C scale = C(l.b);
  const auto result = [scale](bool keep, T g) { return keep ? convert<T>(convert<C>(g) * scale) : convert<T>(C(0)); };
  if (aligned && first + N <= l.n) {
    const auto mask = *reinterpret_cast<const Values<bool, N>*>(l.mask + first);
    const auto pack = *reinterpret_cast<const Values<T, N>*>(in);
    Values<T, N> r;
    VESTA_UNROLL
    for (int k = 0; k < N; ++k) r.v[k] = result(mask.v[k], pack.v[k]);
    *reinterpret_cast<Values<T, N>*>(out) = r;
    return;
  }
  VESTA_UNROLL
  for (int k = 0; k < N; ++k) {
    if (first + k < l.n) out[k] = result(l.mask[first + k], in[k]);
  }
}

struct Bits {
  using T = uint64_t;
  static constexpr int count = 2;
  VESTA_DEVICE static Values<T, count> make(const RandomLaunch&, int64_t, int64_t, const Philox4& w) {
    return {{philox_join(w.word[0], w.word[1]), philox_join(w.word[2], w.word[3])}};
  }
};

struct Keys {
  using T = uint32_t;
  static constexpr int count = 2;
  VESTA_DEVICE static Values<T, count> make(const RandomLaunch& l, int64_t, int64_t, const Philox4& w) {
    return {{w.word[0] >> l.from, w.word[2] >> l.from}};
  }
};

template <class T>
VESTA_KERNEL void truncated_normal_kernel(RandomLaunch l, TruncatedNormal law) {
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= l.n) return;
  const auto round = [](double x) { return double(convert<compute_of<T>>(convert<T>(compute_of<T>(x)))); };
  static_cast<T*>(l.out)[i] = convert<T>(compute_of<T>(law(Draws(l.seed, l.offset, uint64_t(i)), round)));
}

template <class T>
VESTA_KERNEL void poisson_kernel(RandomLaunch l, const char* not_rates) {
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= l.n) return;
  const double rate = double(convert<compute_of<T>>(static_cast<const T*>(l.in)[i]));
  const bool valid = rate >= 0 && rate - rate == 0;
  if (!valid) report(l.fault, FaultKind::condition, not_rates, 0, 0);
  const double drawn = valid ? draw_poisson(rate, Draws(l.seed, l.offset, uint64_t(i))) : 0;
  static_cast<T*>(l.out)[i] = convert<T>(compute_of<T>(drawn));
}

/// Elements with equal keys find their places among each other.
VESTA_KERNEL void permutation_kernel(RandomLaunch l, const uint32_t* keys, const uint32_t* order) {
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= l.n) return;
  const uint32_t key = keys[i], own = order[i];
  int64_t begin = i, end = i + 1;
  while (begin > 0 && keys[begin - 1] == key) --begin;
  while (end < l.n && keys[end] == key) ++end;
  int64_t to = begin;
  if (end - begin > 1) {
    const uint64_t mine = random_bits64(l.seed, l.offset, own);
    for (int64_t k = begin; k < end; ++k) {
      const uint64_t other = random_bits64(l.seed, l.offset, order[k]);
      to += other < mine || (other == mine && order[k] < own) ? 1 : 0;
    }
  }
  static_cast<int64_t*>(l.out)[to] = own;
}

template <class T>
VESTA_KERNEL void checked_weights_kernel(WeightsLaunch l, unsigned width) {
  const GroupOrBlock team(width);
  const bool exists = int64_t(team.row) < l.rows;
  const int64_t first = exists ? int64_t(team.row) * l.n : 0, n = exists ? l.n : 0;
  const T* in = static_cast<const T*>(l.in) + first;
  int positive = 0;
  for (int64_t i = team.rank; i < n; i += team.size) {
    const double v = double(convert<compute_of<T>>(in[i]));
    if (!(v >= 0 && v - v == 0)) report(l.fault, FaultKind::condition, l.not_weights, 0, 0);
    positive |= v > 0 ? 1 : 0;
    l.out[first + i] = v;
  }
  positive = team.reduce(positive, [](int a, int b) { return a | b; });
  if (exists && team.rank == 0 && !positive) report(l.fault, FaultKind::condition, l.none, 0, 0);
}

}  // namespace

void run_uniform(const RandomLaunch& l) {
  visit_device<kFloats>(l.dtype, [&]<class T>() { run<Uniform<T>>(l); });
}
void run_normal(const RandomLaunch& l) {
  visit_device<kFloats>(l.dtype, [&]<class T>() { run<Normal<T>>(l); });
}
void run_log_normal(const RandomLaunch& l) {
  visit_device<kFloats>(l.dtype, [&]<class T>() { run<LogNormal<T>>(l); });
}
void run_exponential(const RandomLaunch& l) {
  visit_device<kFloats>(l.dtype, [&]<class T>() { run<Inverted<Exponential, T>>(l); });
}
void run_geometric(const RandomLaunch& l) {
  visit_device<kReals>(l.dtype, [&]<class T>() { run<Inverted<Geometric, T>>(l); });
}
void run_cauchy(const RandomLaunch& l) {
  visit_device<kFloats>(l.dtype, [&]<class T>() { run<Inverted<Cauchy, T>>(l); });
}
void run_truncated_normal(const RandomLaunch& l, const TruncatedNormal& law) {
  visit_device<kFloats>(l.dtype, [&]<class T>() {
    launch_independent(l.name, truncated_normal_kernel<T>, linear_shape(uint64_t(l.n), kThreads, l.stream), l, law);
  });
}
void run_poisson(const RandomLaunch& l, const char* not_rates) {
  visit_device<kFloats>(l.dtype, [&]<class T>() {
    launch_independent(l.name, poisson_kernel<T>, linear_shape(uint64_t(l.n), kThreads, l.stream), l, not_rates);
  });
}
void run_integers(const RandomLaunch& l) {
  visit_device<kReals | kBool>(l.dtype, [&]<class T>() { run<Integers<T>>(l); });
}
void run_bernoulli(const RandomLaunch& l) {
  visit_device<kReals | kBool>(l.dtype, [&]<class T>() { run<Bernoulli<T>>(l); });
}
void run_bernoulli_of(const RandomLaunch& l) {
  visit_device<kFloats>(l.dtype, [&]<class T>() { run<BernoulliOf<T>>(l); });
}
void run_dropout(const RandomLaunch& l) {
  visit_device<kFloats>(l.dtype, [&]<class T>() { run<Dropout<T>>(l); });
}
void run_dropout_gradient(const RandomLaunch& l) {
  visit_device<kFloats>(l.dtype, [&]<class T>() {
    constexpr int N = int(16 / sizeof(T));
    const auto lies = [](const void* p, size_t bytes) { return reinterpret_cast<uintptr_t>(p) % bytes == 0; };
    const bool aligned = lies(l.in, 16) && lies(l.out, 16) && lies(l.mask, N);
    const LaunchShape shape = linear_shape(uint64_t(l.n + N - 1) / N, kThreads, l.stream);
    launch_independent(l.name, dropout_gradient_kernel<T>, shape, l, aligned);
  });
}
void run_checked_weights(const WeightsLaunch& l) {
  const unsigned width = team_width(l.n, 1);
  visit_device<kFloats>(l.dtype, [&]<class T>() {
    launch_block("multinomial", checked_weights_kernel<T>, team_shape(uint64_t(l.rows), width, l.stream), l, width);
  });
}
void run_random_bits(const RandomLaunch& l) { run<Bits>(l); }
void run_random_keys(const RandomLaunch& l, int bits) {
  RandomLaunch keys = l;
  keys.from = 32 - bits;
  run<Keys>(keys);
}
void run_permutation(const RandomLaunch& l, const uint32_t* keys, const uint32_t* order) {
  launch_independent(l.name, permutation_kernel, linear_shape(uint64_t(l.n), kThreads, l.stream), l, keys, order);
}

}  // namespace vesta::cuda
