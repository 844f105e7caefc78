// The inner loops of max pooling: one tap of many windows, or windows of 2 x 2, which the compiler turns into vectors.
#include <vesta/core/cpu/pool_kernels.h>

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
    const Place wins = (p < 0 ? -1 : 0) | (v > b ? -1 : 0) | ((v != v ? -1 : 0) & (b == b ? -1 : 0));
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

template <class T>
void pool_pairs(const PoolPairs<T>& p) {
  using Place = typename PoolTap<T>::Place;
  const T* __restrict a = p.a;
  const T* __restrict b = p.a + p.width;
  T* __restrict y = p.y;
  std::int64_t* __restrict places = p.places;
  const std::int64_t n = p.count, first = p.place;
  const Place below = static_cast<Place>(p.width);
  for (std::int64_t j = 0; j < n; ++j) {
    T best = a[2 * j];
    Place at = 0;
    auto see = [&](T v, Place place) __attribute__((always_inline)) {
      const Place wins = (v > best ? -1 : 0) | ((v != v ? -1 : 0) & (best == best ? -1 : 0));
      best = wins ? v : best;
      at = wins ? place : at;
    };
    see(a[2 * j + 1], 1);
    see(b[2 * j], below);
    see(b[2 * j + 1], below + 1);
    y[j] = best;
    places[j] = first + 2 * j + at;
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
    const Place wins = (p < 0 ? -1 : 0) | (v > b ? -1 : 0) | ((v != v ? -1 : 0) & (b == b ? -1 : 0));
    best[j] = wins ? v : b;
    at[j] = wins ? place : p;
  }
}

}  // namespace

void register_pool_kernels(PoolKernels<float>& singles, PoolKernels<double>& doubles) {
  singles = {&pool_tap<float>, &pool_pairs<float>, &pool_channels<float>};
  doubles = {&pool_tap<double>, &pool_pairs<double>, &pool_channels<double>};
}

}  // namespace vesta::cpu::VESTA_ISA_NS
