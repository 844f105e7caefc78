// The allocator's size classes and its settings, which a user writes as VESTA_CUDA_ALLOC_CONF in PyTorch's syntax.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

#include <vesta/core/base/error.h>

namespace vesta::cuda {

inline constexpr size_t kKiB = 1024;
inline constexpr size_t kMiB = 1024 * kKiB;
inline constexpr size_t kGiB = 1024 * kMiB;

// PyTorch's size classes, so that memory reports can be compared directly.
inline constexpr size_t kMinBlock = 512;           // every block is a multiple
inline constexpr size_t kSmallSize = kMiB;         // up to here a request comes from the small pool
inline constexpr size_t kSmallSegment = 2 * kMiB;  // what the small pool requests from the driver
inline constexpr size_t kLargeSegment = 20 * kMiB;
inline constexpr size_t kMinOwnSegment = 10 * kMiB;  // from here on a request gets its own segment,
inline constexpr size_t kRoundSegment = 2 * kMiB;    // rounded up to this
inline constexpr size_t kSmallWaste = 64 * kMiB;     // is never worth a call of the driver
inline constexpr size_t kMaxRequest = size_t(1) << 46;
inline constexpr size_t kUnlimited = std::numeric_limits<size_t>::max();

/// The settings of one allocator; parse_options() reads them from text.
struct Options {
  /// Blocks of this size and more are never split (max_split_size_mb).
  size_t max_split_size = kUnlimited;
  /// The amount by which an unsplit block may exceed a request, for requests >= max_split_size
  /// (max_non_split_rounding_mb).
  size_t max_non_split_rounding = kLargeSegment;
  /// True to grow mapped address ranges instead of separate segments (expandable_segments).
  bool expandable = false;
  /// The part of the limit from which idle segments are returned before growing; 0 is never.
  double gc_threshold = 0;
  /// The part of the highest demand that may lie idle in separate segments when one is added (max_waste); 0 is any.
  double max_waste = 0.08;
  /// The part of the device's memory that may be reserved (per_process_memory_fraction).
  double fraction = 1;
  /// Requests from this size on may take memory that another stream freed before the allocator grows: the requesting
  /// stream then waits for the other one (cross_stream_min_mb). Smaller requests do so only when growing fails.
  size_t cross_stream_min = kMiB;
  /// The steps per power of two to which a request is rounded up, for sizes of 2^(20+i) bytes and more; 0 is none.
  std::array<size_t, 16> roundup_divisions{};
  /// True if roundup_divisions holds any, so that the usual request need not look.
  bool rounds_up = false;
};

/// Rounds a request up by roundup_power2_divisions.
inline size_t round_to_division(size_t nbytes, const Options& options) {
  const int log = std::bit_width(nbytes) - 1;
  const size_t steps = options.roundup_divisions[size_t(std::clamp(log - 20, 0, 15))];
  if (steps <= 1 || nbytes <= kMinBlock * steps) return nbytes;
  const size_t step = std::max((size_t(1) << log) / steps, kMinBlock);
  return (nbytes + step - 1) / step * step;
}

/// Rounds a request up to the size of its block.
inline size_t round_size(size_t nbytes, const Options& options) {
  if (options.rounds_up) [[unlikely]]
    nbytes = round_to_division(nbytes, options);
  return std::max((nbytes + kMinBlock - 1) & ~(kMinBlock - 1), kMinBlock);
}

/// Returns the bytes to request from the driver for a block of `size`.
inline size_t segment_size(size_t size) {
  if (size <= kSmallSize) return kSmallSegment;
  if (size < kMinOwnSegment) return kLargeSegment;
  return (size + kRoundSegment - 1) & ~(kRoundSegment - 1);
}

namespace detail {

inline constexpr std::string_view kOptionKeys =
    "backend, cross_stream_min_mb, expandable_segments, garbage_collection_threshold, max_non_split_rounding_mb, "
    "max_split_size_mb, max_waste, per_process_memory_fraction, roundup_power2_divisions";

[[noreturn]] inline void bad_option(std::string_view key, std::string_view wanted, std::string_view got) {
  fail(Cause::value, "VESTA_CUDA_ALLOC_CONF: expected ", wanted, ", got '", got, "' (", key, ").");
}

inline size_t option_count(std::string_view key, std::string_view value, size_t least, size_t most) {
  size_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number < least || number > most)
    bad_option(key, text("a whole number from ", least, " to ", most), value);
  return number;
}

inline double option_part(std::string_view key, std::string_view value) {
  double number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || !(number > 0 && number <= 1))
    bad_option(key, "a number over 0, at most 1", value);
  return number;
}

inline size_t option_divisions(std::string_view value) {
  const size_t number = option_count("roundup_power2_divisions", value, 0, 256);
  if (number && !std::has_single_bit(number))
    bad_option("roundup_power2_divisions", "0 or a power of two up to 256", value);
  return number;
}

/// Reads `8` or `[256:1,512:2,>:4]`: keys are MiB; each entry applies from its size up to the next; `>` is all above.
inline void read_divisions(std::string_view value, std::array<size_t, 16>& divisions) {
  if (!value.starts_with('[')) return divisions.fill(option_divisions(value));
  if (!value.ends_with(']')) bad_option("roundup_power2_divisions", "a closing ]", value);
  std::string_view rest = value.substr(1, value.size() - 2);
  size_t from = 0;
  size_t last = 0;
  while (!rest.empty()) {
    const std::string_view entry = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), entry.size() + 1));
    const size_t colon = entry.find(':');
    if (colon == std::string_view::npos) bad_option("roundup_power2_divisions", "SIZE_MB:DIVISIONS", entry);
    const std::string_view key = entry.substr(0, colon);
    const size_t steps = option_divisions(entry.substr(colon + 1));
    if (key == ">") {
      for (size_t i = from; i < divisions.size(); ++i) divisions[i] = steps;
      return;
    }
    const size_t mb = option_count("roundup_power2_divisions", key, 1, size_t(1) << 15);
    const size_t at = size_t(std::bit_width(mb)) - 1;
    if (!std::has_single_bit(mb) || at < from)
      bad_option("roundup_power2_divisions", "sizes that are rising powers of two", key);
    for (size_t i = from; i < at; ++i) divisions[i] = last;
    divisions[at] = last = steps;
    from = at + 1;
  }
  for (size_t i = from; i < divisions.size(); ++i) divisions[i] = last;
}

inline void read_option(std::string_view key, std::string_view value, Options& options) {
  constexpr size_t kMost = kMaxRequest / kMiB;
  if (key == "max_split_size_mb") {
    options.max_split_size = option_count(key, value, 21, kMost) * kMiB;  // PyTorch's rule: above the large segment
  } else if (key == "max_non_split_rounding_mb") {
    options.max_non_split_rounding = option_count(key, value, 21, kMost) * kMiB;
  } else if (key == "cross_stream_min_mb") {
    options.cross_stream_min = option_count(key, value, 0, kMost) * kMiB;
  } else if (key == "garbage_collection_threshold") {
    options.gc_threshold = option_part(key, value);
  } else if (key == "max_waste") {
    options.max_waste = value == "0" ? 0 : option_part(key, value);
  } else if (key == "per_process_memory_fraction") {
    options.fraction = option_part(key, value);
  } else if (key == "roundup_power2_divisions") {
    read_divisions(value, options.roundup_divisions);
    options.rounds_up = true;
  } else if (key == "expandable_segments") {
    if (value != "True" && value != "False") bad_option(key, "True or False", value);
    options.expandable = value == "True";
  } else if (key == "backend") {
    if (value != "native") bad_option(key, "native, the only one available", value);
  } else {
    fail(Cause::value, "VESTA_CUDA_ALLOC_CONF: expected one of ", kOptionKeys, ", got '", key,
         "' (key). Remove or correct it.");
  }
}

}  // namespace detail

/// Reads `key:value,key:value` as PyTorch's PYTORCH_CUDA_ALLOC_CONF; Error(value) naming an unknown key or value.
inline Options parse_options(std::string_view conf) {
  std::string squeezed;
  for (char c : conf)
    if (c != ' ' && c != '\t' && c != '\n') squeezed.push_back(c);
  Options options;
  std::string_view rest = squeezed;
  while (!rest.empty()) {
    size_t end = 0;
    for (int depth = 0; end < rest.size() && (rest[end] != ',' || depth > 0); ++end)
      depth += rest[end] == '[' ? 1 : rest[end] == ']' ? -1 : 0;
    const std::string_view entry = rest.substr(0, end);
    rest.remove_prefix(std::min(rest.size(), end + 1));
    const size_t colon = entry.find(':');
    if (colon == std::string_view::npos)
      fail(Cause::value, "VESTA_CUDA_ALLOC_CONF: expected key:value, got '", entry, "' (entry).");
    detail::read_option(entry.substr(0, colon), entry.substr(colon + 1), options);
  }
  return options;
}

}  // namespace vesta::cuda
