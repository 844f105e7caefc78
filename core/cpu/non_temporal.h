// Non-temporal stores: results that no cache can hold bypass the caches, whose lines are not read before a write.
#pragma once

#include <cstdint>

#include <vesta/core/cpu/isa.h>

namespace vesta::cpu {

constexpr int64_t kLine = 64;  // bytes of a line of the caches

/// Returns the bytes of the last level of cache that one core reaches.
int64_t last_level_bytes();

/// Returns whether a result of so many bytes bypasses the caches: more than the last levels of all threads can hold.
/// A plain store reads a line before it is written, a third of the traffic of a copy (build/bin/bandwidth clone, 64
/// MiB: as fast as a plain loop, 1.1 to 1.3 times so). Reading and writing must alternate by a few hundred bytes:
/// through a buffer of 8 KiB element-wise ops took 1.2 to 1.4 times as long wherever memory was not the limit.
bool bypasses_caches(int64_t bytes);

/// Returns the same for rows; false unless they are whole cache lines.
bool rows_bypass_caches(const void* to, int64_t rows, int64_t row_bytes);

/// Copies n bytes with non-temporal stores, as far as they are whole cache lines. finish_non_temporal() must follow
/// before another thread reads them.
void write_non_temporal(char* to, const char* from, int64_t n);

/// Orders this thread's non-temporal stores before its later stores.
void finish_non_temporal();

}  // namespace vesta::cpu

VESTA_DECLARE_ON_ISA(void stream(char* to, const char* from, int64_t n))
