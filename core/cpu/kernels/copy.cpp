// Fills, and transpositions of a matrix by tiles that stay in the first cache.
#include <vesta/core/cpu/copy.h>

#include <cstring>

#include <vesta/core/base/macros.h>

namespace vesta::cpu::VESTA_ISA_NS {
namespace {

/// Is 16 bytes, moved as one.
struct Wide {
  uint64_t half[2];
};

template <class T>
void fill_items(char* to, const char* value, int64_t n) {
  T v;
  std::memcpy(&v, value, sizeof v);
  T* p = reinterpret_cast<T*>(to);
  for (int64_t i = 0; i < n; ++i) p[i] = v;
}

// A tile is read row by row, each a whole number of cache lines, into a buffer that is laid out transposed, and written
// row by row. Reading columns directly would fetch the same lines again: rows a power of two apart share a cache set.
template <class T>
void transpose_items(const Transposition& t) {
  constexpr int64_t kTile = sizeof(T) <= 2 ? 64 : sizeof(T) == 4 ? 32 : 16;
  alignas(64) T tile[kTile][kTile + 64 / sizeof(T) / 4 + 1];
  for (int64_t i = 0; i < t.rows; i += kTile) {
    int64_t rows = t.rows - i < kTile ? t.rows - i : kTile;
    for (int64_t j = 0; j < t.columns; j += kTile) {
      int64_t columns = t.columns - j < kTile ? t.columns - j : kTile;
      const char* from = t.from + i * t.from_row + j * int64_t(sizeof(T));
      char* to = t.to + j * t.to_row + i * int64_t(sizeof(T));
      for (int64_t r = 0; r < rows; ++r) {
        const T* row = reinterpret_cast<const T*>(from + r * t.from_row);
        for (int64_t c = 0; c < columns; ++c) tile[c][r] = row[c];
      }
      for (int64_t c = 0; c < columns; ++c) {
        T* row = reinterpret_cast<T*>(to + c * t.to_row);
        for (int64_t r = 0; r < rows; ++r) row[r] = tile[c][r];
      }
    }
  }
}

}  // namespace

void fill(char* to, const char* value, int64_t item, int64_t n) {
  switch (item) {
    case 1: return fill_items<uint8_t>(to, value, n);
    case 2: return fill_items<uint16_t>(to, value, n);
    case 4: return fill_items<uint32_t>(to, value, n);
    case 8: return fill_items<uint64_t>(to, value, n);
    default: return fill_items<Wide>(to, value, n);
  }
}

void transpose(const Transposition& t) {
  switch (t.item) {
    case 1: return transpose_items<uint8_t>(t);
    case 2: return transpose_items<uint16_t>(t);
    case 4: return transpose_items<uint32_t>(t);
    case 8: return transpose_items<uint64_t>(t);
    default: return transpose_items<Wide>(t);
  }
}

}  // namespace vesta::cpu::VESTA_ISA_NS
