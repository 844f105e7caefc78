// Kernels of reductions: contiguous runs in vectors, columns side by side, and the search for an extremum.
#include <vesta/core/cpu/reduce.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include <vesta/core/cpu/rows.h>
#include <vesta/core/cpu/simd.h>
#include <vesta/core/ops/math.h>

namespace vesta::cpu::VESTA_ISA_NS {
namespace {

struct Sum {
  template <class A> static A identity() { return A(0); }
  template <class A> VESTA_INLINE static A combine(A a, A b) { return A(a + b); }
};
/// A sum of squares: what is read is squared, partial results are added.
struct Squares : Sum {
  static constexpr bool squares = true;
};
struct Product {
  template <class A> static A identity() { return A(1); }
  template <class A> VESTA_INLINE static A combine(A a, A b) {
    if constexpr (std::is_same_v<A, int64_t>) return A(uint64_t(a) * uint64_t(b));  // wraps
    else return math::product(a, b);
  }
};
struct Max {
  template <class A> static A identity() {
    if constexpr (std::is_same_v<A, bool>) return false;
    else if constexpr (std::numeric_limits<A>::has_infinity) return -std::numeric_limits<A>::infinity();
    else return std::numeric_limits<A>::min();
  }
  template <class A> VESTA_INLINE static A combine(A a, A b) { return math::maximum(a, b); }
};
struct Min {
  template <class A> static A identity() {
    if constexpr (std::is_same_v<A, bool>) return true;
    else if constexpr (std::numeric_limits<A>::has_infinity) return std::numeric_limits<A>::infinity();
    else return std::numeric_limits<A>::max();
  }
  template <class A> VESTA_INLINE static A combine(A a, A b) { return math::minimum(a, b); }
};
struct Any {
  template <class A> static A identity() { return false; }
  template <class A> VESTA_INLINE static A combine(A a, A b) { return a | b; }
};
struct All {
  template <class A> static A identity() { return true; }
  template <class A> VESTA_INLINE static A combine(A a, A b) { return a & b; }
};

/// The choice of accumulator: int64 for sums and products of integers, float for 16-bit floats, bool for any and all.
template <class Op, class T>
struct Accumulator {
  using type = compute_t<T>;
};
template <class T>
  requires std::is_integral_v<T>
struct Accumulator<Sum, T> {
  using type = int64_t;
};
template <class T>
  requires std::is_integral_v<T>
struct Accumulator<Product, T> {
  using type = int64_t;
};
template <class T>
struct Accumulator<Any, T> {
  using type = bool;
};
template <class T>
struct Accumulator<All, T> {
  using type = bool;
};
template <class Op, class T>
using acc_t = typename Accumulator<Op, T>::type;

/// A counter of rows as wide as the numbers beside it, so that both fill as many vectors; 32 bits at least.
template <size_t bytes>
using IntOfSize = std::conditional_t<bytes == 8, int64_t, int32_t>;

/// Returns what an element counts for.
template <class Op, class A>
VESTA_INLINE A counted(A v) {
  if constexpr (requires { Op::squares; }) return v * v;
  else return v;
}
template <class Op, class A, class T>
VESTA_INLINE A widen(T v) {
  if constexpr (std::is_same_v<A, bool>) return v != T(0);
  else return counted<Op>(static_cast<A>(v));
}

/// Partial results, combined like the carries of a binary counter: a balanced tree in the order of arrival.
template <class Op, class V>
struct Carries {
  V level[48];
  uint64_t count = 0;
  VESTA_INLINE void add(V v) {
    int i = 0;
    for (uint64_t c = count; c & 1; c >>= 1) v = Op::combine(level[i++], v);
    level[i] = v;
    ++count;
  }
  VESTA_INLINE V result(V identity) const {
    V v = identity;
    bool any = false;
    int i = 0;
    for (uint64_t c = count; c; c >>= 1, ++i) {
      if (!(c & 1)) continue;
      v = any ? Op::combine(level[i], v) : level[i];
      any = true;
    }
    return v;
  }
};

constexpr int kWays = 8;          // independent chains: hides the latency of an add
constexpr int64_t kBlockSteps = 16;  // vectors a chain adds up before the block joins the tree

/// Returns the mask of the first n lanes.
template <class C>
VESTA_INLINE Mask<C> lanes_below(int64_t n) {
  constexpr auto number = []<int... I>(std::integer_sequence<int, I...>) {
    return typename Vec<C>::Raw{C(I)...};
  }(std::make_integer_sequence<int, Vec<C>::N>{});
  return Vec<C>(number) < Vec<C>(C(n));
}

/// Combines the lanes of v by halves: lane i with lane i + half. The result is in lane 0.
template <class Op, int half, class V>
VESTA_INLINE V folded(V v) {
  if constexpr (half == 0) {
    return v;
  } else {
    auto rotated = [&]<int... I>(std::integer_sequence<int, I...>) {
      return V(__builtin_shufflevector(v.raw, v.raw, ((I + half) % V::N)...));
    };
    return folded<Op, half / 2>(Op::combine(v, rotated(std::make_integer_sequence<int, V::N>{})));
  }
}

/// Calls f(0), ..., f(n - 1) with numbers that the compiler knows, so that arrays of vectors they index stay in
/// registers.
template <int n, class F>
VESTA_INLINE void unrolled(F&& f) {
  [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) {
    (f(std::integral_constant<int, I>{}), ...);
  }(std::make_integer_sequence<int, n>{});
}

/// Combines chains by halves: chain i with chain i + half. The result is in chain 0.
template <class Op, int half, class V>
VESTA_INLINE void join(V (&chain)[kWays]) {
  if constexpr (half > 0) {
    unrolled<half>([&](auto w) __attribute__((always_inline)) { chain[w] = Op::combine(chain[w], chain[w + half]); });
    join<Op, half / 2>(chain);
  }
}

template <class Op, class T>
void run_vector(const char* bytes, int64_t n, char* out) {
  using C = compute_t<T>;
  using V = Vec<C>;
  constexpr int64_t N = V::N, kBlock = N * kWays * kBlockSteps;
  const T* x = reinterpret_cast<const T*>(bytes);
  const V identity = V(Op::template identity<C>());
  Carries<Op, V> tree;
  int64_t i = 0;
  while (i < n) {
    V chain[kWays];
    auto take = [&](auto w, int64_t at) __attribute__((always_inline)) {
      chain[w] = Op::combine(chain[w], counted<Op>(load_convert<C, T>(x + at)));
    };
    unrolled<kWays>([&](auto w) __attribute__((always_inline)) { chain[w] = identity; });
    int64_t end = std::min(n, i + kBlock);
    for (; i + N * kWays <= end; i += N * kWays) {
      unrolled<kWays>([&](auto w) __attribute__((always_inline)) { take(w, i + w * N); });
    }
    if (i < end) {
      unrolled<kWays>([&](auto w) __attribute__((always_inline)) {
        if (i + N <= end) take(w, i), i += N;
      });
      if (i < end) {
        const V v = counted<Op>(load_row<C>(x + i, end - i));
        chain[kWays - 1] = Op::combine(chain[kWays - 1], select(lanes_below<C>(end - i), v, identity));
        i = end;
      }
    }
    join<Op, kWays / 2>(chain);
    if (n <= kBlock) {  // a tree of one
      *reinterpret_cast<C*>(out) = folded<Op, N / 2>(chain[0])[0];
      return;
    }
    tree.add(chain[0]);
  }
  *reinterpret_cast<C*>(out) = folded<Op, N / 2>(tree.result(identity))[0];
}

/// Combines the lanes of v[0], ..., v[N - 1] by halves, as folded() does: lane r of the result is that of v[r]. A step
/// makes one vector of two, which hold the results of `rows` vectors each.
template <class Op, int rows = 1, class V>
VESTA_INLINE V folded_rows(V* v) {
  constexpr int N = V::N;
  if constexpr (rows == N) {
    return v[0];
  } else {
    constexpr int half = N / rows / 2;
    const auto take = [&]<int... L>(V a, V b, std::integer_sequence<int, L...>, auto from)
                          __attribute__((always_inline)) {
                            return V(__builtin_shufflevector(a.raw, b.raw, (L / half * 2 * half + L % half + from)...));
                          };
    constexpr std::make_integer_sequence<int, N> lanes{};
    for (int r = 0; r < N / rows; r += 2) {
      v[r / 2] = Op::combine(take(v[r], v[r + 1], lanes, std::integral_constant<int, 0>{}),
                             take(v[r], v[r + 1], lanes, std::integral_constant<int, half>{}));
    }
    return folded_rows<Op, 2 * rows>(v);
  }
}

/// Does what run_vector does for rows `stride` bytes apart. Short rows, for which its chains are more than they have
/// vectors, are combined as many at a time as a vector has lanes.
template <class Op, class T>
void runs_vector(const char* bytes, int64_t stride, int64_t rows, int64_t n, char* out) {
  using C = compute_t<T>;
  using V = Vec<C>;
  constexpr int64_t N = V::N;
  C* to = reinterpret_cast<C*>(out);
  if (n > N * kWays) {
    for (int64_t r = 0; r < rows; ++r) run_vector<Op, T>(bytes + r * stride, n, reinterpret_cast<char*>(to + r));
    return;
  }
  const V identity = V(Op::template identity<C>());
  const int64_t whole = n / N, rest = n - whole * N;
  const auto below = lanes_below<C>(rest);
  for (int64_t first = 0; first < rows; first += N) {
    const int64_t count = std::min(N, rows - first);
    V v[N];
    for (int64_t r = 0; r < N; ++r) v[r] = identity;
    for (int64_t r = 0; r < count; ++r) {
      const T* const x = reinterpret_cast<const T*>(bytes + (first + r) * stride);
      V chain[kWays];
      unrolled<kWays>([&](auto w) __attribute__((always_inline)) {
        chain[w] = identity;
        if (w < whole) chain[w] = Op::combine(chain[w], counted<Op>(load_convert<C, T>(x + w * N)));
      });
      if (rest > 0) {
        const V last = counted<Op>(load_row<C>(x + whole * N, rest));
        chain[kWays - 1] = Op::combine(chain[kWays - 1], select(below, last, identity));
      }
      join<Op, kWays / 2>(chain);
      v[r] = chain[0];
    }
    store_row<C>(folded_rows<Op>(v), to + first, count);
  }
}

template <class Op, class T>
void run_scalar(const char* bytes, int64_t n, char* out) {
  using A = acc_t<Op, T>;
  const T* x = reinterpret_cast<const T*>(bytes);
  constexpr int64_t kBlock = 128;
  Carries<Op, A> tree;
  for (int64_t i = 0; i < n; i += kBlock) {
    if constexpr (std::is_same_v<Op, Sum> &&
                  std::is_same_v<T, bool>) {  // as bytes, which the compiler makes vectors of
      uint8_t sum = 0;
      for (int64_t k = i; k < std::min(n, i + kBlock); ++k) sum = uint8_t(sum + uint8_t(bytes[k] != 0));
      tree.add(A(sum));
      continue;
    }
    A a = Op::template identity<A>();
    for (int64_t k = i; k < std::min(n, i + kBlock); ++k) a = Op::template combine<A>(a, widen<Op, A>(x[k]));
    tree.add(a);
  }
  *reinterpret_cast<A*>(out) = tree.result(Op::template identity<A>());
}

/// Returns whether any element is not zero, or whether all are: a block at a time, up to the first that decides.
template <class Op, class T>
void run_flags(const char* bytes, int64_t n, char* out) {
  constexpr bool kAny = std::is_same_v<Op, Any>;
  using Flag = std::conditional_t<sizeof(T) == 1, uint8_t, std::conditional_t<sizeof(T) == 2, uint16_t, uint32_t>>;
  constexpr int64_t kBlock = 4096;
  const T* x = reinterpret_cast<const T*>(bytes);
  bool decided = false;
  for (int64_t i = 0; i < n && !decided; i += kBlock) {
    const int64_t end = std::min(n, i + kBlock);
    Flag found = 0;  // as wide as the elements, so that the compiler makes vectors
    for (int64_t k = i; k < end; ++k) found |= Flag((x[k] != T(0)) == kAny);
    decided = found != 0;
  }
  *reinterpret_cast<bool*>(out) = decided == kAny;
}

/// Combines `rows` rows of w elements into a block of results, in their order. Four rows are read side by side, so that
/// the block is read and written once for four; each is a long stream, which the processor foresees.
template <class Op, class A, class T>
VESTA_INLINE void add_block(const char* bytes, int64_t stride, int64_t rows, int64_t w, A* block) {
  const auto row = [&](int64_t k) { return reinterpret_cast<const T*>(bytes + k * stride); };
  int64_t k = 0;
  if constexpr (std::is_floating_point_v<A>) {
    for (; k + 4 <= rows; k += 4) {
      const T *const a = row(k), *const b = row(k + 1), *const c = row(k + 2), *const d = row(k + 3);
      each_vector<A>(w, [&](int64_t j, int64_t n) __attribute__((always_inline)) {
        for (const T* x : {a, b, c, d}) __builtin_prefetch(reinterpret_cast<const char*>(x + j) + 4 * stride, 0, 2);
        const auto counts = [&](const T* x)
                                __attribute__((always_inline)) { return counted<Op>(load_row<A>(x + j, n)); };
        Vec<A> r = Op::combine(load_row<A>(block + j, n), counts(a));
        r = Op::combine(r, counts(b));
        r = Op::combine(r, counts(c));
        store_row<A>(Op::combine(r, counts(d)), block + j, n);
      });
    }
    for (; k < rows; ++k) {
      const T* const a = row(k);
      each_vector<A>(w, [&](int64_t j, int64_t n) __attribute__((always_inline)) {
        store_row<A>(Op::combine(load_row<A>(block + j, n), counted<Op>(load_row<A>(a + j, n))), block + j, n);
      });
    }
  } else {
    for (; k + 4 <= rows; k += 4) {
      const T *const a = row(k), *const b = row(k + 1), *const c = row(k + 2), *const d = row(k + 3);
#pragma GCC ivdep  // the block is nobody else's
      for (int64_t j = 0; j < w; ++j) {
        A r = Op::template combine<A>(block[j], widen<Op, A>(a[j]));
        r = Op::template combine<A>(r, widen<Op, A>(b[j]));
        r = Op::template combine<A>(r, widen<Op, A>(c[j]));
        block[j] = Op::template combine<A>(r, widen<Op, A>(d[j]));
      }
    }
    for (; k < rows; ++k) {
      const T* const a = row(k);
#pragma GCC ivdep
      for (int64_t j = 0; j < w; ++j) block[j] = Op::template combine<A>(block[j], widen<Op, A>(a[j]));
    }
  }
}

template <class Op, class A>
[[gnu::noinline]] void combine(char* into, const char* from, int64_t n) {
  A* a = reinterpret_cast<A*>(into);
  const A* b = reinterpret_cast<const A*>(from);
  for (int64_t i = 0; i < n; ++i) a[i] = Op::template combine<A>(a[i], b[i]);
}

template <class Op, class A>
[[gnu::noinline]] void identity(char* acc, int64_t n) {
  std::fill_n(reinterpret_cast<A*>(acc), n, Op::template identity<A>());
}

/// Reduces down the columns: blocks of rows first, then the blocks as a tree, for a strip of columns at a time. A strip
/// is wide enough for the prefetcher to follow its rows.
template <class Op, class T>
void columns(const char* bytes, int64_t stride, int64_t rows, int64_t cols, char* out) {
  using A = acc_t<Op, T>;
  constexpr int64_t kStrip = 8192 / sizeof(A), kRows = 32;
  constexpr int kLevels = std::bit_width(uint64_t(kReduceRows / kRows));  // of the blocks of a leaf
  static_assert(kLevels * kStrip * sizeof(A) <= 48 << 10, "on the stack, which a thread may have 128 KiB of");
  // Loops that know the accumulator alone are functions: all types that have it share them.
  A level[kLevels][kStrip], block[kStrip];
  const auto bytes_of = [](A* a) { return reinterpret_cast<char*>(a); };
  for (int64_t c = 0; c < cols; c += kStrip) {
    const int64_t w = std::min(kStrip, cols - c), size = w * int64_t(sizeof(A));
    uint64_t count = 0;
    for (int64_t r = 0; r < rows; r += kRows) {
      identity<Op, A>(bytes_of(block), w);
      const char* const at = bytes + r * stride + c * int64_t(sizeof(T));
      add_block<Op, A, T>(at, stride, std::min(kRows, rows - r), w, block);
      const A* sum = block;
      int i = 0;
      for (uint64_t carry = count; carry & 1; carry >>= 1, ++i) {
        combine<Op, A>(bytes_of(level[i]), reinterpret_cast<const char*>(sum), w);
        sum = level[i];
      }
      std::memcpy(level[i], sum, size_t(size));
      ++count;
    }
    char* const result = out + c * int64_t(sizeof(A));
    if (count == 0) identity<Op, A>(result, w);
    const A* sum = nullptr;
    int i = 0;
    for (uint64_t carry = count; carry; carry >>= 1, ++i) {
      if (!(carry & 1)) continue;
      if (sum) combine<Op, A>(bytes_of(level[i]), reinterpret_cast<const char*>(sum), w);
      sum = level[i];
    }
    if (sum) std::memcpy(result, sum, size_t(size));
  }
}

/// Finds the first of n numbers that is `best`, one of them; of NaNs any is.
template <class T>
  requires(!std::is_integral_v<T>)
int64_t find_in_span(const T* x, int64_t n, compute_t<T> best) {
  using C = compute_t<T>;
  using V = Vec<C>;
  constexpr int64_t N = V::N, kBlock = 4 * N;
  const auto find = [&](auto matches) __attribute__((always_inline)) {
    int64_t i = 0;
    for (; i + kBlock <= n; i += kBlock) {
      Mask<C> m[4];
#pragma GCC unroll 4
      for (int64_t k = 0; k < 4; ++k) m[k] = matches(load_convert<C, T>(x + i + k * N));
      if (any((m[0] | m[1]) | (m[2] | m[3]))) break;
    }
    for (; i < n; i += N) {
      const int64_t w = std::min(N, n - i);
      const unsigned found = matches(load_row<C>(x + i, w)).bits() & ((w < N ? 1u << w : 0u) - 1u);
      if (found != 0) return i + __builtin_ctz(found);
    }
    return int64_t(0);
  };
  if (best != best) return find([](V v) __attribute__((always_inline)) { return v != v; });
  return find([b = V(best)](V v) __attribute__((always_inline)) { return v == b; });
}
/// Finds the first of n integers that is `best`: a block is searched for any match, which the compiler turns into
/// vectors, before it is searched for the first.
template <class T>
  requires std::is_integral_v<T>
int64_t find_in_span(const T* x, int64_t n, T best) {
  constexpr int64_t kBlock = 128;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = std::min(n, begin + kBlock);
    unsigned any = 0;
    if (end - begin == kBlock) {
      for (int64_t i = 0; i < kBlock; ++i) any |= unsigned(x[begin + i] == best);
      if (!any) continue;
    }
    for (int64_t i = begin; i < end; ++i) {
      if (x[i] == best) return i;
    }
  }
  return 0;
}

/// Finds the extremum's value in vectors, a span at a time, then its first index in the first span that has it.
template <class Op, class T>
int64_t find(const char* bytes, int64_t n) {
  using C = compute_t<T>;
  constexpr int64_t kSpan = 2048;
  const auto extremum = [](const char* from, int64_t count) {
    alignas(64) char result[64];
    if constexpr (std::is_floating_point_v<C>) run_vector<Op, T>(from, count, result);
    else run_scalar<Op, T>(from, count, result);
    C value;
    std::memcpy(&value, result, sizeof value);
    return value;
  };
  C best = extremum(bytes, std::min(n, kSpan));
  int64_t first = 0;
  for (int64_t i = kSpan; i < n && best == best; i += kSpan) {
    const C v = extremum(bytes + i * int64_t(sizeof(T)), std::min(n - i, kSpan));
    if ((std::is_same_v<Op, Max> ? v > best : v < best) || v != v) best = v, first = i;
  }
  return first + find_in_span<T>(reinterpret_cast<const T*>(bytes) + first, std::min(n - first, kSpan), best);
}
/// Shows rows [r, r + count) of w columns to their extrema so far. NaN wins, the first one.
template <class Op, class T, class Count>
VESTA_INLINE void see_vectors(const char* bytes, int64_t stride, int64_t r, Count count, int64_t w, compute_t<T>* best,
                              IntOf<compute_t<T>>* place) {
  using C = compute_t<T>;
  using V = Vec<C>;
  each_vector<C>(w, [&](int64_t j, int64_t n) __attribute__((always_inline)) {
    V b = load_row<C>(best + j, n), p = load_row<C>(reinterpret_cast<const C*>(place + j), n);
    for (int64_t k = 0; k < count; ++k) {
      __builtin_prefetch(bytes + (r + k + count) * stride + j * int64_t(sizeof(T)), 0, 2);
      const V v = load_row<C>(reinterpret_cast<const T*>(bytes + (r + k) * stride) + j, n);
      const auto take = ((std::is_same_v<Op, Max> ? v > b : v < b) | (v != v)) & (b == b);
      b = select(take, v, b);
      p = select(take, V::from_bits(typename V::Bits{} + IntOf<C>(r + k)), p);
    }
    store_row<C>(b, best + j, n), store_row<C>(p, reinterpret_cast<C*>(place + j), n);
  });
}

/// Finds the rows of the extrema of columns, a strip of columns at a time, four rows side by side.
template <class Op, class T>
void find_columns(const char* bytes, int64_t stride, int64_t rows, int64_t cols, int64_t* places) {
  using C = compute_t<T>;
  using Place = IntOfSize<sizeof(C)>;
  constexpr int64_t kStrip = 4096 / sizeof(C);
  const auto search = [&](int64_t c, int64_t w) __attribute__((always_inline)) {
    C best[kStrip];
    Place place[kStrip];
    const auto row = [&](int64_t r) { return reinterpret_cast<const T*>(bytes + r * stride) + c; };
    const T* const first = row(0);
    for (int64_t j = 0; j < w; ++j) best[j] = static_cast<C>(first[j]), place[j] = 0;
    const auto see_all = [&](int64_t r, auto count) __attribute__((always_inline)) {
      if constexpr (std::is_floating_point_v<C>) {
        see_vectors<Op, T>(bytes + c * int64_t(sizeof(T)), stride, r, count, w, best, place);
      } else {
        for (int64_t k = 0; k < count; ++k) {
          const T* const x = row(r + k);
          const Place at = Place(r + k);
          for (int64_t j = 0; j < w; ++j) {
            const C v = static_cast<C>(x[j]), b = best[j];
            const bool take = std::is_same_v<Op, Max> ? v > b : v < b;
            best[j] = take ? v : b;
            place[j] = take ? at : place[j];
          }
        }
      }
    };
    int64_t r = 1;
    for (; r + 4 <= rows; r += 4) see_all(r, std::integral_constant<int64_t, 4>{});
    for (; r < rows; ++r) see_all(r, std::integral_constant<int64_t, 1>{});
    for (int64_t j = 0; j < w; ++j) places[c + j] = int64_t(place[j]);
  };
  for (int64_t c = 0; c < cols; c += kStrip) search(c, std::min(kStrip, cols - c));
}

template <class Op, class T>
void enter(ReduceKernels& k) {
  using A = acc_t<Op, T>;
  constexpr bool kFlags = std::is_same_v<Op, Any> || std::is_same_v<Op, All>;
  k.acc = dtype_of<A>, k.acc_bytes = sizeof(A);
  if constexpr (std::is_floating_point_v<A>) k.run = &run_vector<Op, T>, k.runs = &runs_vector<Op, T>;
  else if constexpr (kFlags && std::is_arithmetic_v<T>) k.run = &run_flags<Op, T>;
  else k.run = &run_scalar<Op, T>;
  k.columns = &columns<Op, T>;
  k.combine = &combine<Op, A>;
  k.identity = &identity<Op, A>;
  if constexpr (std::is_same_v<Op, Max> || std::is_same_v<Op, Min>) {
    k.find = &find<Op, T>;
    k.find_columns = &find_columns<Op, T>;
  }
}

}  // namespace

void register_reduce(ReduceKernels (&table)[kNumReductions][kNumDTypes]) {
  auto one = [&]<class T>() {
    int d = int(dtype_of<T>);
    enter<Sum, T>(table[int(Reduction::sum)][d]);
    enter<Product, T>(table[int(Reduction::product)][d]);
    enter<Any, T>(table[int(Reduction::any)][d]);
    enter<All, T>(table[int(Reduction::all)][d]);
    if constexpr (is_float(dtype_of<T>)) enter<Squares, T>(table[int(Reduction::squares)][d]);
    if constexpr (!is_complex(dtype_of<T>)) {
      enter<Max, T>(table[int(Reduction::max)][d]);
      enter<Min, T>(table[int(Reduction::min)][d]);
    }
  };
#define VESTA_X(name, type, text) one.template operator()<type>();
  VESTA_DTYPES(VESTA_X)
#undef VESTA_X
}

}  // namespace vesta::cpu::VESTA_ISA_NS
