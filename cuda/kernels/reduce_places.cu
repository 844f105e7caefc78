// The indices of extrema: the accumulator holds the value and its number; if only the index is wanted, as one number
// that is larger the better they are.
#include <vesta/core/ops/sort_key.h>
#include <vesta/cuda/kernels/reduce.cuh>

namespace vesta::cuda {
namespace {

template <class C>
struct Found {
  C value;
  int64_t place;
};

/// The largest (or smallest) value of floats and the first index where it is; NaN wins, the first NaN among several.
template <class T>
struct Place {
  using In = T;
  using C = compute_of<T>;
  using Acc = Found<C>;
  static constexpr bool converts = false;
  T* out;  // null: the value is not needed
  int64_t* out_places;
  const int64_t* places;
  bool smallest;

  VESTA_DEVICE Acc identity() const { return {extreme_value<C>(smallest), INT64_MAX}; }
  VESTA_DEVICE Acc combine(Acc a, Acc b) const {
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    const bool equal = a.value == b.value || (a_nan && b_nan);
    const bool before = smallest ? a.value < b.value : a.value > b.value;
    return equal ? (a.place < b.place ? a : b) : (a_nan || (before && !b_nan) ? a : b);
  }
  VESTA_DEVICE Acc load(T v, int64_t i, int64_t at) const { return {convert<C>(v), places ? places[at] : i}; }
  VESTA_DEVICE void store(int64_t k, Acc a) const {
    if (out) out[k] = convert<T>(a.value);
    out_places[k] = a.place;
  }
};

/// The same of integers.
template <class T>
struct IntegerPlace {
  using In = T;
  using C = std::conditional_t<sizeof(T) < 4, int, T>;
  using Acc = Found<C>;
  static constexpr bool converts = false;
  T* out;  // null: the value is not needed
  int64_t* out_places;
  const int64_t* places;
  TurnedIntegers<T> turn;

  VESTA_DEVICE Acc identity() const { return {extreme_value<C>(false), INT64_MAX}; }
  VESTA_DEVICE Acc combine(Acc a, Acc b) const {
    return a.value == b.value ? (a.place < b.place ? a : b) : (a.value > b.value ? a : b);
  }
  VESTA_DEVICE Acc load(T v, int64_t i, int64_t at) const { return {C(turn(v)), places ? places[at] : i}; }
  VESTA_DEVICE void store(int64_t k, Acc a) const {
    if (out) out[k] = turn(T(a.value));
    out_places[k] = a.place;
  }
};

/// The accumulator of an index alone: the value's key, above the complement of the index.
struct KeyAndPlace {
  using Acc = uint64_t;
  static constexpr bool converts = false;
  int64_t* out_places;

  VESTA_DEVICE Acc identity() const { return 0; }
  VESTA_DEVICE Acc combine(Acc a, Acc b) const { return a > b ? a : b; }
  VESTA_DEVICE static Acc of(uint32_t key, uint32_t place) { return uint64_t(key) << 32 | uint32_t(~place); }
  VESTA_DEVICE void store(int64_t k, Acc a) const { out_places[k] = int64_t(uint32_t(~uint32_t(a))); }
};

/// Place for floats of at most four bytes and results of less than 2^32 of them: the value's key, above the
/// complement of the index.
template <class T, bool smallest>
struct PlaceAlone : KeyAndPlace {
  using In = T;
  using C = compute_of<T>;

  VESTA_DEVICE static uint32_t key_of(T v) {
    const SortKey<T> key = sort_key(v);
    const bool nan = key == SortKey<T>(~SortKey<T>(0));  // wins in any case
    return smallest && !nan ? SortKey<T>(~key) : key;
  }
  VESTA_DEVICE Acc load(T v, int64_t i, int64_t) const { return of(key_of(v), uint32_t(i)); }
  /// Looks for the index only where the pack's extremum is better than what was found before it, which is rare.
  template <int N>
  VESTA_DEVICE Acc fold(Acc a, const Elements<T, N>& pack, int64_t first) const {
    C v[N];
    widen(pack, v);
    const C best = pack_extremum<N, smallest>(v);
    const uint32_t key = key_of(convert<T>(best));  // exact: it is one of the pack
    if (a != 0 && key <= uint32_t(a >> 32)) return a;
    uint32_t place = 0;
    VESTA_UNROLL
    for (int j = N - 1; j > 0; --j) {
      const bool is_best = v[j - 1] == best || (best != best && v[j - 1] != v[j - 1]);
      place = is_best ? 0 : place + 1;
    }
    return of(key, uint32_t(first) + place);
  }
};

/// The same for integers.
template <class T>
struct IntegerPlaceAlone : KeyAndPlace {
  using In = T;
  TurnedIntegers<T> turn;

  VESTA_DEVICE Acc load(T v, int64_t i, int64_t) const { return of(sort_key(turn(v)), uint32_t(i)); }
  template <int N>
  VESTA_DEVICE Acc fold(Acc a, const Elements<T, N>& pack, int64_t first) const {
    T v[N];
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) v[j] = turn(pack.v[j]);
    const T best = pack_extremum<N, false>(v);
    const uint32_t key = sort_key(best);
    if (a != 0 && key <= uint32_t(a >> 32)) return a;
    uint32_t place = 0;
    VESTA_UNROLL
    for (int j = N - 1; j > 0; --j) place = v[j - 1] == best ? 0 : place + 1;
    return of(key, uint32_t(first) + place);
  }
};

}  // namespace

void reduce_places(const ReduceStage& s) {
  const bool smallest = s.op == Reduction::argmin;
  const bool alone = !s.out && !s.places && s.reduced.numel() < UINT32_MAX;
  visit_by_order(s.dtype, [&]<class T>(DType d) {
    if constexpr (std::is_integral_v<T>) {
      const auto turn = TurnedIntegers<T>::of(d, smallest);
      if constexpr (sizeof(T) <= 4) {
        if (alone) return run_stage(IntegerPlaceAlone<T>{{s.out_places}, turn}, s);
      }
      run_stage(IntegerPlace<T>{reinterpret_cast<T*>(s.out), s.out_places, s.places, turn}, s);
    } else {
      if constexpr (sizeof(T) <= 4) {
        if (alone && smallest) return run_stage(PlaceAlone<T, true>{{s.out_places}}, s);
        if (alone) return run_stage(PlaceAlone<T, false>{{s.out_places}}, s);
      }
      run_stage(Place<T>{reinterpret_cast<T*>(s.out), s.out_places, s.places, smallest}, s);
    }
  });
}

}  // namespace vesta::cuda
