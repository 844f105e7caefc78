#include <vesta/core/cpu/index.h>

#include <type_traits>

#include <vesta/core/base/macros.h>
#include <vesta/core/cpu/elements.h>
#include <vesta/core/cpu/non_temporal.h>
#include <vesta/core/cpu/rows.h>

namespace vesta::cpu::VESTA_ISA_NS {
namespace {

template <class T>
void take(const AtPlaces& a) {
  for (int64_t i = 0; i < a.n; ++i) {
    *reinterpret_cast<T*>(a.run + i * a.run_stride) = *reinterpret_cast<const T*>(a.base + a.offset[i]);
  }
}
template <class T>
void put(const AtPlaces& a) {
  for (int64_t i = 0; i < a.n; ++i) {
    *reinterpret_cast<T*>(a.base + a.offset[i]) = *reinterpret_cast<const T*>(a.run + i * a.run_stride);
  }
}

/// Adds one element; integers wrap, bool is "or", 16-bit floats are rounded after each addition.
template <class T>
VESTA_INLINE void add_to(T& to, T from, double alpha) {
  if constexpr (std::is_same_v<T, bool>) {
    to = to || (from && alpha != 0);
  } else if constexpr (std::is_integral_v<T>) {
    to = T(uint64_t(to) + uint64_t(from) * uint64_t(int64_t(alpha)));
  } else if constexpr (is_complex(dtype_of<T>)) {
    using Part = typename T::value_type;
    Part* p = reinterpret_cast<Part*>(&to);
    const Part* q = reinterpret_cast<const Part*>(&from);
    p[0] += q[0] * Part(alpha);
    p[1] += q[1] * Part(alpha);
  } else {
    using C = compute_t<T>;
    to = T(C(to) + C(from) * C(alpha));
  }
}

template <class T>
void add_at(const AtPlaces& a) {
  for (int64_t i = 0; i < a.n; ++i) {
    add_to(*reinterpret_cast<T*>(a.base + a.offset[i]), *reinterpret_cast<const T*>(a.run + i * a.run_stride), a.alpha);
  }
}
template <class T>
void add_row(const RowAddition& a) {
  if (a.to_stride == int64_t(sizeof(T)) && a.from_stride == int64_t(sizeof(T))) {
    T* to = reinterpret_cast<T*>(a.to);
    const T* from = reinterpret_cast<const T*>(a.from);
    for (int64_t i = 0; i < a.n; ++i) add_to(to[i], from[i], a.alpha);
    return;
  }
  if (a.to_stride == int64_t(sizeof(T)) && a.from_stride == 0) {  // one value, as the gradient of a sum has
    T* to = reinterpret_cast<T*>(a.to);
    const T value = *reinterpret_cast<const T*>(a.from);
    for (int64_t i = 0; i < a.n; ++i) add_to(to[i], value, a.alpha);
    return;
  }
  for (int64_t i = 0; i < a.n; ++i) {
    add_to(*reinterpret_cast<T*>(a.to + i * a.to_stride), *reinterpret_cast<const T*>(a.from + i * a.from_stride),
           a.alpha);
  }
}

/// The rows of a move, in the order in which they are processed. Those that come next are asked for: at random
/// positions they are no stream that the CPU foresees.
class RowPairs {
 public:
  VESTA_INLINE RowPairs(const RowsAtPlaces& a, int64_t bytes)
      : a_(a), bytes_(bytes < kMost ? bytes : kMost), ahead_(bytes < kMost ? 1 + kMost / 2 / (bytes + 1) : 1) {}
  VESTA_INLINE char* place(int64_t k) const { return a_.base + a_.offset[number(k)]; }
  VESTA_INLINE char* run(int64_t k) const { return a_.run + number(k) * a_.run_step; }
  /// Asks for the rows some way behind row k.
  VESTA_INLINE void expect(int64_t k) const {
    if (k + ahead_ >= a_.rows) return;
    const char *const there = place(k + ahead_), *const here = run(k + ahead_);
    for (int64_t i = 0; i < bytes_; i += kLine) __builtin_prefetch(there + i);
    if (a_.order == nullptr) return;
    for (int64_t i = 0; i < bytes_; i += kLine) __builtin_prefetch(here + i);
  }

 private:
  static constexpr int64_t kMost = 2048;  // bytes: what follows in a long row is foreseen
  VESTA_INLINE int64_t number(int64_t k) const { return a_.order != nullptr ? a_.order[k] : k; }

  const RowsAtPlaces& a_;
  const int64_t bytes_, ahead_;
};

template <bool put>
void move_rows(const RowsAtPlaces& a) {
  const RowPairs rows(a, a.n);
  for (int64_t k = 0; k < a.rows; ++k) {
    char *const row = rows.place(k), *const run = rows.run(k);
    rows.expect(k);
    if (put) copy_row(row, run, a.n);
    else copy_row(run, row, a.n);
  }
}
template <class T>
void add_rows(const RowsAtPlaces& a) {
  const RowPairs rows(a, a.n * int64_t(sizeof(T)));
  for (int64_t k = 0; k < a.rows; ++k) {
    T* const to = reinterpret_cast<T*>(rows.place(k));
    const T* const from = reinterpret_cast<const T*>(rows.run(k));
    rows.expect(k);
#pragma GCC ivdep  // the rows of the run lie apart from the positions
    for (int64_t i = 0; i < a.n; ++i) add_to(to[i], from[i], a.alpha);
  }
}

template <class T>
void enter_moves(IndexKernels& k, int size) {
  k.take[size] = &take<T>;
  k.put[size] = &put<T>;
}

}  // namespace

void register_index(IndexKernels& k) {
  enter_moves<uint8_t>(k, 0);
  enter_moves<uint16_t>(k, 1);
  enter_moves<uint32_t>(k, 2);
  enter_moves<uint64_t>(k, 3);
  enter_moves<Wide>(k, 4);
  k.take_rows = &move_rows<false>;
  k.put_rows = &move_rows<true>;
#define VESTA_X(name, type, text)                    \
  k.add_at[int(DType::name)] = &add_at<type>;        \
  k.add_row[int(DType::name)] = &add_row<type>;      \
  k.add_rows[int(DType::name)] = &add_rows<type>;
  VESTA_DTYPES(VESTA_X)
#undef VESTA_X
}

}  // namespace vesta::cpu::VESTA_ISA_NS
