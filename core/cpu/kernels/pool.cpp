// The inner loops of max pooling: one tap of many windows, or windows of 2 x 2, which the compiler turns into vectors.
#include <vesta/core/cpu/pool_kernels.h>

#include <vesta/core/cpu/simd.h>

namespace vesta::cpu::VESTA_ISA_NS {
namespace {

template <int known, class T>
void take(const PoolTap<T>& tap) {
  const std::int64_t stride = known ? known : tap.stride, n = tap.count;
  const T* __restrict x = tap.x;
  T* __restrict best = tap.best;
  using Place = typename PoolTap<T>::Place;
  Place* __restrict at = tap.at;
  const Place place = tap.place;
  for (std::int64_t j = 0; j < n; ++j) {
    const T v = x[j * stride], b = best[j];
    const Place p = at[j];
    // whole numbers in place of bools, which GCC 12 does not vectorise
    const Place wins = (p < 0 ? -1 : 0) | (v > b ? -1 : 0) | (v != v ? -1 : 0);
    best[j] = wins ? v : b;
    at[j] = wins ? place + static_cast<Place>(j * stride) : p;
  }
}

template <class T>
void pool_tap(const PoolTap<T>& tap) {
  switch (tap.stride) {
    case 1: return take<1>(tap);
    case 2: return take<2>(tap);
    case 3: return take<3>(tap);
    default: return take<0>(tap);
  }
}

/// Pools up to N windows of rows a and b, at index `first` of their plane. `n` is the number of windows.
template <class T>
VESTA_INLINE void pool_vector(const T* a, const T* b, std::int64_t width, std::int64_t first, T* y,
                              std::int64_t* places, std::int64_t n) {
  using V = Vec<T>;
  constexpr int N = V::N;
  constexpr std::make_integer_sequence<int, N> lanes{};
  const auto every_other =
      [&]<int... I>(V low, V high, std::integer_sequence<int, I...>, auto from)
          __attribute__((always_inline)) { return V(__builtin_shufflevector(low.raw, high.raw, (2 * I + from)...)); };
  const auto load = [&](const T* p, std::int64_t left)
                        __attribute__((always_inline)) { return left >= N ? V::load(p) : V::load_partial(p, left); };
  const bool both = 2 * n > N;
  const V a0 = load(a, 2 * n), a1 = both ? load(a + N, 2 * n - N) : a0;
  const V b0 = load(b, 2 * n), b1 = both ? load(b + N, 2 * n - N) : b0;
  constexpr std::integral_constant<int, 0> even{};
  constexpr std::integral_constant<int, 1> odd{};
  V best = every_other(a0, a1, lanes, even);
  typename V::Bits at{};
  const auto see = [&](V v, IntOf<T> place) __attribute__((always_inline)) {
    const Mask<T> wins = (v > best) | (v != v);
    best = select(wins, v, best);
    at = select(wins, V::from_bits(typename V::Bits{} + place), V::from_bits(at)).bits();
  };
  see(every_other(a0, a1, lanes, odd), 1);
  see(every_other(b0, b1, lanes, even), IntOf<T>(width));
  see(every_other(b0, b1, lanes, odd), IntOf<T>(width) + 1);
  IntOf<T> steps[N];
  __builtin_memcpy(steps, &at, sizeof at);
  if (n == N) {
    best.store(y);
    for (std::int64_t i = 0; i < N; ++i) places[i] = first + 2 * i + steps[i];
  } else {
    best.store_partial(y, n);
    for (std::int64_t i = 0; i < n; ++i) places[i] = first + 2 * i + steps[i];
  }
}

template <class T>
void pool_pairs(const PoolPairs<T>& p) {
  constexpr std::int64_t N = Vec<T>::N;
  T* y = p.y;
  std::int64_t* places = p.places;
  for (std::int64_t i = 0; i < p.rows; ++i, y += p.count, places += p.count) {
    const std::int64_t first = 2 * i * p.width;
    const T *const a = p.plane + first, *const b = a + p.width;
    std::int64_t j = 0;
    for (; j + N <= p.count; j += N) pool_vector(a + 2 * j, b + 2 * j, p.width, first + 2 * j, y + j, places + j, N);
    if (j < p.count) pool_vector(a + 2 * j, b + 2 * j, p.width, first + 2 * j, y + j, places + j, p.count - j);
  }
}

template <class T>
void pool_channels(const PoolTap<T>& tap) {
  using Place = typename PoolTap<T>::Place;
  const T* __restrict x = tap.x;
  T* __restrict best = tap.best;
  Place* __restrict at = tap.at;
  const Place place = tap.place;
  for (std::int64_t j = 0; j < tap.count; ++j) {
    const T v = x[j], b = best[j];
    const Place p = at[j];
    const Place wins = (p < 0 ? -1 : 0) | (v > b ? -1 : 0) | (v != v ? -1 : 0);
    best[j] = wins ? v : b;
    at[j] = wins ? place : p;
  }
}

/// Sees the rows of as many columns as `ways` vectors have, or of n if that is less than one vector; the maxima stay in
/// registers.
template <int ways, class T>
VESTA_INLINE void pool_some_columns(const PoolColumns<T>& p, std::int64_t i, std::int64_t n) {
  using V = Vec<T>;
  constexpr int N = V::N;
  const auto load = [&](const T* from)
                        __attribute__((always_inline)) { return n >= N ? V::load(from) : V::load_partial(from, n); };
  const T* x = p.x + i;
  std::int64_t row = 0;
  IntOf<T> place = IntOf<T>(p.place + i);
  V best[ways];
  typename V::Bits at[ways], lanes;
  for (int k = 0; k < N; ++k) lanes[k] = k;
  if (p.fresh) {
#pragma GCC unroll 4
    for (int k = 0; k < ways; ++k) best[k] = load(x + k * N), at[k] = lanes + (place + k * N);
    row = 1, x += p.step, place += IntOf<T>(p.step);
  } else {
#pragma GCC unroll 4
    for (int k = 0; k < ways; ++k) {
      best[k] = load(p.best + i + k * N);
      at[k] = load(reinterpret_cast<const T*>(p.at) + i + k * N).bits();
    }
  }
  for (; row < p.rows; ++row, x += p.step, place += IntOf<T>(p.step)) {
#pragma GCC unroll 4
    for (int k = 0; k < ways; ++k) {
      const V v = load(x + k * N);
      const Mask<T> wins = (v > best[k]) | (v != v);
      best[k] = select(wins, v, best[k]);
      at[k] = select(wins, V::from_bits(lanes + (place + k * N)), V::from_bits(at[k])).bits();
    }
  }
  const auto store = [&](V v, T* to) __attribute__((always_inline)) { n >= N ? v.store(to) : v.store_partial(to, n); };
#pragma GCC unroll 4
  for (int k = 0; k < ways; ++k) {
    store(best[k], p.best + i + k * N);
    store(V::from_bits(at[k]), reinterpret_cast<T*>(p.at) + i + k * N);
  }
}

template <class T>
void pool_columns(const PoolColumns<T>& p) {
  constexpr std::int64_t N = Vec<T>::N;
  std::int64_t i = 0;
  for (; i + 4 * N <= p.count; i += 4 * N) pool_some_columns<4>(p, i, N);
  for (; i + N <= p.count; i += N) pool_some_columns<1>(p, i, N);
  if (i < p.count) pool_some_columns<1>(p, i, p.count - i);
}

}  // namespace

void register_pool_kernels(PoolKernels<float>& singles, PoolKernels<double>& doubles) {
  singles = {&pool_tap<float>, &pool_pairs<float>, &pool_channels<float>, &pool_columns<float>};
  doubles = {&pool_tap<double>, &pool_pairs<double>, &pool_channels<double>, &pool_columns<double>};
}

}  // namespace vesta::cpu::VESTA_ISA_NS
