// What the stores share among themselves. Internal to multiprocessing.
#pragma once
#include <vesta/multiprocessing/store.h>

namespace vesta::detail {

/// Reads the number that a key holds; DistributedError(store) where it is none.
int64_t stored_number(const std::string& key, const std::string& text);
/// Throws what `wait` throws when the time is over.
[[noreturn]] void wait_timed_out(const Keys& missing, Milliseconds timeout);

}  // namespace vesta::detail
