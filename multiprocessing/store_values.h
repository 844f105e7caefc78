// Functions shared by the stores. Internal to multiprocessing.
#pragma once
#include <vesta/multiprocessing/store.h>

namespace vesta::detail {

/// Reads the number that a key holds; DistributedError(store) if it is not a number.
int64_t stored_number(const std::string& key, const std::string& text);
/// Throws the timeout error of `wait`.
[[noreturn]] void wait_timed_out(const Keys& missing, Milliseconds timeout);

}  // namespace vesta::detail
