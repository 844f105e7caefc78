// Fills, reversals, strided copies, concatenations, and transpositions of a matrix: by tiles that stay in the first
// cache, or of few lines at once.
#include <vesta/core/cpu/copy.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include <vesta/core/base/macros.h>
#include <vesta/core/cpu/elements.h>
#include <vesta/core/cpu/non_temporal.h>
#include <vesta/core/cpu/rows.h>
#include <vesta/core/cpu/simd.h>

namespace vesta::cpu::VESTA_ISA_NS {
namespace {

/// Calls f<T>() for the type T of items of this size.
template <class F>
VESTA_INLINE void of_size(int64_t item, F f) {
  switch (item) {
    case 1: return f.template operator()<uint8_t>();
    case 2: return f.template operator()<uint16_t>();
    case 4: return f.template operator()<uint32_t>();
    case 8: return f.template operator()<uint64_t>();
    default: return f.template operator()<Wide>();
  }
}

template <class T>
void fill_items(char* to, const char* value, int64_t n) {
  T v;
  std::memcpy(&v, value, sizeof v);
  T* p = reinterpret_cast<T*>(to);
  for (int64_t i = 0; i < n; ++i) p[i] = v;
}

template <class T>
void copy_items(const CopiedPlane& c) {
  constexpr int64_t kItem = sizeof(T);
  const int64_t n = c.size[0], x = c.from_step[0], y = c.to_step[0];
  for (int64_t row = 0; row < c.size[1]; ++row) {
    const char* const from = c.from + row * c.from_step[1];
    char* const to = c.to + row * c.to_step[1];
    if (x == 0 && y == kItem) {
      fill_items<T>(to, from, n);
    } else {
#pragma GCC ivdep  // never the same memory
      for (int64_t i = 0; i < n; ++i) {
        T item;
        std::memcpy(&item, from + i * x, sizeof item);  // of any alignment
        std::memcpy(to + i * y, &item, sizeof item);
      }
    }
  }
}

/// Copies items in the reverse order: where the processor reverses a vector of them in an instruction, two at a time,
/// a line of the cache (benchmarks/compare_torch.py, flip: as fast as a copy, by single vectors 1.2 times as slow).
template <class T>
void reverse_items(char* to, const char* from, int64_t n) {
  T* const p = reinterpret_cast<T*>(to);
  const T* const q = reinterpret_cast<const T*>(from) + n - 1;
  int64_t i = 0;
  if constexpr (sizeof(T) == 4 || sizeof(T) == 8) {
    constexpr int64_t N = kVectorBytes / sizeof(T);
    typedef T Vector __attribute__((vector_size(kVectorBytes)));
    typedef T Unaligned __attribute__((vector_size(kVectorBytes), aligned(1), may_alias));
    const auto reversed = [&]<int... I>(int64_t at, std::integer_sequence<int, I...>) __attribute__((always_inline)) {
      const Vector v = *reinterpret_cast<const Unaligned*>(q - at - (N - 1));
      *reinterpret_cast<Unaligned*>(p + at) = __builtin_shufflevector(v, v, (int(N) - 1 - I)...);
    };
    constexpr std::make_integer_sequence<int, N> lanes{};
    for (; i + 2 * N <= n; i += 2 * N) reversed(i, lanes), reversed(i + N, lanes);
  }
#pragma GCC ivdep  // never the same memory
  for (; i < n; ++i) p[i] = q[-i];
}

/// reverse_items() of whole lines of the cache, past the caches; finish() must follow before another thread reads.
template <class T>
void reverse_items_non_temporal(char* to, const char* from, int64_t n) {
  constexpr int64_t kItems = kLine / int64_t(sizeof(T));
  const T* q = reinterpret_cast<const T*>(from) + n - 1;
  for (int64_t i = 0; i < n; i += kItems, q -= kItems) {
    alignas(kLine) T line[kItems];
    for (int64_t k = 0; k < kItems; ++k) line[k] = q[-k];
    for (int64_t k = 0; k < kLine; k += kVectorBytes) {
      Vec<float>::load(reinterpret_cast<const float*>(reinterpret_cast<const char*>(line) + k))
          .stream(reinterpret_cast<float*>(to + i * int64_t(sizeof(T)) + k));
    }
  }
}

/// write_non_temporal(); finish() must follow before another thread reads.
VESTA_INLINE void stream_bytes(char* to, const char* from, int64_t n) {
  const int64_t before = std::min(n, int64_t(-reinterpret_cast<uintptr_t>(to) % kLine));
  if (before) std::memcpy(to, from, size_t(before));
  int64_t i = before;
  for (; i + kLine <= n; i += kLine) {
    for (int64_t k = 0; k < kLine; k += kVectorBytes) {
      Vec<float>::load(reinterpret_cast<const float*>(from + i + k)).stream(reinterpret_cast<float*>(to + i + k));
    }
  }
  if (i < n) std::memcpy(to + i, from + i, size_t(n - i));
}
VESTA_INLINE void finish() { _mm_sfence(); }

/// The vectors whose squares are transposed: as many items as registers hold a square of.
template <int size>
inline constexpr int kSquareBytes = size == 1 || size == 16          ? 16
                                    : size == 2 && kVectorBytes > 32 ? 32
                                                                     : kVectorBytes;

/// A square of N x N items, N to a vector.
template <class T>
struct Square {
  static constexpr int kBytes = kSquareBytes<sizeof(T)>, N = kBytes / sizeof(T);
  typedef T Vector __attribute__((vector_size(kBytes)));
  typedef T Unaligned __attribute__((vector_size(kBytes), aligned(1), may_alias));

  /// Transposes in registers. Each stage interleaves the first half of the rows with the second, and log2(N) such
  /// stages bring item (r, c) to (c, r). Vectors of two halves, whose items take longer to cross between them, are put
  /// together of the halves of two rows instead, and each half is transposed by itself.
  VESTA_INLINE static void transpose(const char* from, int64_t from_row, char* to, int64_t to_row) {
    constexpr bool kHalves = kBytes == 32;
    constexpr int kRows = kHalves ? N / 2 : N;  // vectors that are transposed together
#pragma GCC unroll 2
    for (int part = 0; part < N / kRows; ++part) {
      Vector v[kRows], w[kRows];
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const char* const at = from + r * from_row + part * 16;
        if constexpr (kHalves) v[r] = joined(at, at + kRows * from_row, std::make_index_sequence<N>{});
        else v[r] = *reinterpret_cast<const Unaligned*>(at);
      }
#pragma GCC unroll 4
      for (int stage = 1; stage < kRows; stage *= 2) {
#pragma GCC unroll 8
        for (int r = 0; r < kRows / 2; ++r) {
          w[2 * r] = interleave<kRows, 0>(v[r], v[r + kRows / 2], std::make_index_sequence<N>{});
          w[2 * r + 1] = interleave<kRows, kRows / 2>(v[r], v[r + kRows / 2], std::make_index_sequence<N>{});
        }
#pragma GCC unroll 16
        for (int r = 0; r < kRows; ++r) v[r] = w[r];
      }
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) *reinterpret_cast<Unaligned*>(to + (part * kRows + r) * to_row) = v[r];
    }
  }

 private:
  /// Interleaves items from `first` on of each `width` ones of two vectors.
  template <int width, int first, size_t... I>
  VESTA_INLINE static Vector interleave(Vector a, Vector b, std::index_sequence<I...>) {
    return __builtin_shufflevector(a, b,
                                   (int(I) % 2 ? N : 0) + int(I) / width * width + first + int(I) % width / 2 ...);
  }
  /// Reads 16 bytes from two places each.
  template <size_t... I>
  VESTA_INLINE static Vector joined(const char* low, const char* high, std::index_sequence<I...>) {
    typedef T Half __attribute__((vector_size(16)));
    typedef T Piece __attribute__((vector_size(16), aligned(1), may_alias));
    const Half a = *reinterpret_cast<const Piece*>(low), b = *reinterpret_cast<const Piece*>(high);
    return __builtin_shufflevector(a, b, int(I)...);
  }
};

/// Asks for `rows` rows of n bytes: rows far apart are no stream that the processor foresees.
VESTA_INLINE void expect_tile(const char* from, int64_t row, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < n; i += kLine) __builtin_prefetch(from + r * row + i, 0, 2);
  }
}

// A tile is read row by row, each a whole number of cache lines, into a buffer that is laid out transposed, and written
// row by row. Reading columns directly, or writing pieces of lines, would fetch the same lines again: rows a power of
// two apart share a cache set (benchmarks/compare_torch.py, x + y.t(): 1.6 times as long without the buffer).
template <class T>
void transpose_items(const Transposition& t) {
  constexpr int64_t kSize = sizeof(T),
                    kTile = kSize <= 4   ? 64
                            : kSize == 8 ? 32
                                         : 16,
                    kSide = kSquareBytes<kSize> / kSize;
  constexpr int64_t kRow = kTile * kSize + 32;  // of the buffer, in bytes
  alignas(64) char tile[kTile * kRow];
  for (int64_t i = 0; i < t.rows; i += kTile) {
    int64_t rows = t.rows - i < kTile ? t.rows - i : kTile;
    for (int64_t j = 0; j < t.columns; j += kTile) {
      int64_t columns = t.columns - j < kTile ? t.columns - j : kTile;
      const char* from = t.from + i * t.from_row + j * kSize;
      char* to = t.to + j * t.to_row + i * kSize;
      if (t.non_temporal)
        expect_tile(from + kTile * kSize, t.from_row, rows, std::min(kTile, t.columns - j - columns) * kSize);
      auto items = [&](int64_t r, int64_t n, int64_t c, int64_t end) {
        for (; c < end; ++c) {
          for (int64_t k = r; k < r + n; ++k)
            std::memcpy(tile + c * kRow + k * kSize, from + k * t.from_row + c * kSize, kSize);
        }
      };
      int64_t r = 0;
      for (; r + kSide <= rows; r += kSide) {
        int64_t c = 0;
        if constexpr (kSide > 1) {
          for (; c + kSide <= columns; c += kSide) {
            Square<T>::transpose(from + r * t.from_row + c * kSize, t.from_row, tile + c * kRow + r * kSize, kRow);
          }
        }
        items(r, kSide, c, columns);
      }
      items(r, rows - r, 0, columns);
      for (int64_t c = 0; c < columns; ++c) {
        if (t.non_temporal) stream_bytes(to + c * t.to_row, tile + c * kRow, rows * kSize);
        else copy_row(to + c * t.to_row, tile + c * kRow, rows * kSize);
      }
    }
  }
  if (t.non_temporal) finish();
}

/// Calls f<S>() with the number of lines that a loop takes together.
template <class F>
VESTA_INLINE void of_lines(int64_t lines, F f) {
  switch (lines) {
    case 2: return f.template operator()<2>();
    case 3: return f.template operator()<3>();
    default: return f.template operator()<4>();
  }
}
/// Joins n items of each of several lines: red, green and blue to pixels.
template <class T>
void join_lines(const char* const* lines, int64_t count, int64_t n, char* to) {
  T* const out = reinterpret_cast<T*>(to);
  if (count <= 4) {
    return of_lines(count, [&]<int S>() {
      const T* from[S];
      for (int s = 0; s < S; ++s) from[s] = reinterpret_cast<const T*>(lines[s]);
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) {
#pragma GCC unroll 4
        for (int s = 0; s < S; ++s) out[i * S + s] = from[s][i];
      }
    });
  }
  for (int64_t s = 0; s < count; ++s) {
    const T* const from = reinterpret_cast<const T*>(lines[s]);
    for (int64_t i = 0; i < n; ++i) out[i * count + s] = from[i];
  }
}

/// Splits n groups of items into lines: pixels to red, green and blue.
template <class T>
void split_lines(const char* from, int64_t n, char* const* lines, int64_t count) {
  const T* const in = reinterpret_cast<const T*>(from);
  if (count <= 4) {
    return of_lines(count, [&]<int S>() {
      T* to[S];
      for (int s = 0; s < S; ++s) to[s] = reinterpret_cast<T*>(lines[s]);
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) {
#pragma GCC unroll 4
        for (int s = 0; s < S; ++s) to[s][i] = in[i * S + s];
      }
    });
  }
  for (int64_t s = 0; s < count; ++s) {
    T* const to = reinterpret_cast<T*>(lines[s]);
    for (int64_t i = 0; i < n; ++i) to[i] = in[i * count + s];
  }
}

}  // namespace

void fill(char* to, const char* value, int64_t item, int64_t n) {
  of_size(item, [&]<class T>() { fill_items<T>(to, value, n); });
}

void copy_plane(const CopiedPlane& c) {
  of_size(c.item, [&]<class T>() { copy_items<T>(c); });
}

void stream(char* to, const char* from, int64_t n) { stream_bytes(to, from, n); }

void copy_lines(const CopiedLines& l) {
  if (l.non_temporal) {
    for (int64_t i = 0; i < l.lines; ++i) stream_bytes(l.to + i * l.to_step, l.from + i * l.from_step, l.bytes);
    return finish();
  }
  for (int64_t i = 0; i < l.lines; ++i) copy_row(l.to + i * l.to_step, l.from + i * l.from_step, l.bytes);
}

namespace {
/// Joins rows of pieces that are single items of up to 16 bytes: piece by piece, some rows at a time that the first
/// cache holds.
void join_items(const JoinedRows& j, int64_t row_bytes) {
  const int64_t most = 16384 / row_bytes + 1;
  for (int64_t row = 0; row < j.rows; row += most) {
    const int64_t rows = j.rows - row < most ? j.rows - row : most;
    char* to = j.to + row * row_bytes;
    for (int64_t k = 0; k < j.count; ++k) {
      const RowPiece& p = j.pieces[k];
      copy_plane({p.from + row * p.step, to, {p.step, 0}, {row_bytes, 0}, {rows, 1}, p.bytes});
      to += p.bytes;
    }
  }
}
}  // namespace

void join_rows(const JoinedRows& j) {
  constexpr int64_t kNonTemporalPiece = 1024;  // bytes of a piece that are mostly whole lines
  char* to = j.to;
  int64_t row_bytes = 0;
  bool items = !j.non_temporal, lines = j.count > 1 && j.count < kFewLines;
  for (int64_t k = 0; k < j.count; ++k) {
    const RowPiece& p = j.pieces[k];
    row_bytes += p.bytes;
    items = items && p.bytes > 0 && p.bytes <= 16 && (p.bytes & (p.bytes - 1)) == 0;
    lines = lines && items && p.bytes == j.pieces[0].bytes && p.step == p.bytes;
  }
  if (lines) {
    const char* from[kFewLines];
    for (int64_t k = 0; k < j.count; ++k) from[k] = j.pieces[k].from;
    return of_size(j.pieces[0].bytes, [&]<class T>() { join_lines<T>(from, j.count, j.rows, to); });
  }
  if (items) return join_items(j, row_bytes);
  for (int64_t i = 0; i < j.rows; ++i) {
    for (int64_t k = 0; k < j.count; ++k) {
      const RowPiece& piece = j.pieces[k];
      const char* const from = piece.from + i * piece.step;
      if (j.non_temporal && piece.bytes >= kNonTemporalPiece) stream_bytes(to, from, piece.bytes);
      else copy_row(to, from, piece.bytes);
      to += piece.bytes;
    }
  }
  if (j.non_temporal) finish();
}

void reverse(char* to, const char* from, int64_t item, int64_t n, bool non_temporal) {
  of_size(item, [&]<class T>() {
    non_temporal ? reverse_items_non_temporal<T>(to, from, n) : reverse_items<T>(to, from, n);
  });
}

void transpose(const Transposition& t) {
  of_size(t.item, [&]<class T>() {
    const auto few = [](int64_t lines) { return lines > 1 && lines < kFewLines; };
    if (few(t.rows) && t.to_row == t.rows * t.item) {
      const char* lines[kFewLines];
      for (int64_t r = 0; r < t.rows; ++r) lines[r] = t.from + r * t.from_row;
      join_lines<T>(lines, t.rows, t.columns, t.to);
    } else if (few(t.columns) && t.from_row == t.columns * t.item) {
      char* lines[kFewLines];
      for (int64_t c = 0; c < t.columns; ++c) lines[c] = t.to + c * t.to_row;
      split_lines<T>(t.from, t.rows, lines, t.columns);
    } else {
      transpose_items<T>(t);
    }
  });
}

}  // namespace vesta::cpu::VESTA_ISA_NS
