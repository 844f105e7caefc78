// The thread's autocast modes, and its cache of cast weights.
#include <vesta/core/dispatch/autocast.h>

#include <array>
#include <unordered_map>
#include <utility>

#include <vesta/core/autograd_port.h>

namespace vesta {
namespace autocast {
namespace {

struct State {
  std::array<Mode, kNumDeviceTypes> modes{};
  bool cache_enabled = true;
  int nesting = 0;
  CacheCounts counts;
  constexpr State() { modes[int(DeviceType::cuda)].dtype = DType::float16; }
};
constinit thread_local State state;

/// A leaf's cast, and what of the leaf it was made from.
struct Entry {
  Tensor leaf, cast;
  StoragePtr storage;
  uint32_t version = 0;
};
struct Key {
  const TensorImpl* leaf;
  DType dtype;
  bool operator==(const Key&) const = default;
};
struct KeyHash {
  size_t operator()(const Key& k) const { return std::hash<const void*>()(k.leaf) ^ size_t(k.dtype); }
};
std::unordered_map<Key, Entry, KeyHash>& cache() {
  static thread_local std::unordered_map<Key, Entry, KeyHash> casts;
  return casts;
}

Mode& mode_of(DeviceType d) {
  VESTA_CHECK(int(d) < kNumDeviceTypes, device, "autocast: expected a known device type, got number ", int(d), ".");
  return state.modes[size_t(d)];
}

/// Brings the thread's layer bit in line with the modes: it is set while any of them is on.
void update_layer() {
  bool any = false;
  for (const Mode& m : state.modes) any = any || m.enabled;
  if (any) layer_state.included |= bit(Layer::autocast);
  else layer_state.included &= uint8_t(~bit(Layer::autocast));
}

bool usable(const Entry& e, const Tensor& t) {
  return e.storage == t.impl()->storage() && e.version == e.storage->writes() &&
         (!GradMode::enabled() || e.cast.requires_grad());
}

}  // namespace

Mode mode(DeviceType d) { return mode_of(d); }
void set_enabled(DeviceType d, bool on) {
  mode_of(d).enabled = on;
  update_layer();
}
void set_dtype(DeviceType d, DType dtype) {
  VESTA_CHECK(is_float(dtype), type, "autocast: expected a floating-point dtype, got ", dtype, " (dtype).");
  mode_of(d).dtype = dtype;
}
bool cache_enabled() { return state.cache_enabled; }
void set_cache_enabled(bool on) { state.cache_enabled = on; }
int increment_nesting() { return ++state.nesting; }
int decrement_nesting() { return --state.nesting; }
void clear_cache() {
  auto casts = std::exchange(cache(), {});  // dying tensors may run code that casts
}
CacheCounts cache_counts() {
  CacheCounts c = state.counts;
  c.entries = int64_t(cache().size());
  return c;
}

Tensor cast(const Tensor& t, DType dtype, bool lower) {
  const bool keep = lower && state.cache_enabled && state.nesting > 0 && t.dtype() == DType::float32 &&
                    t.requires_grad() && t.is_leaf() && !layer_state.inference;
  if (!keep) return t.to(dtype);
  const Key key{t.impl(), dtype};
  if (auto found = cache().find(key); found != cache().end() && usable(found->second, t)) {
    ++state.counts.hits;
    return found->second.cast;
  }
  const uint32_t version = t.impl()->storage()->writes();
  Tensor r = t.to(dtype);
  ++state.counts.casts;
  Entry stale = std::exchange(cache()[key], Entry{t, r, t.impl()->storage(), version});
  return r;
}

}  // namespace autocast

AutocastMode::AutocastMode(DeviceType device, MaybeDType dtype, bool enabled, std::optional<bool> cache_enabled)
    : device_(device), before_(autocast::mode(device)), cache_before_(autocast::cache_enabled()) {
  const DType d = dtype.value_or(before_.dtype);
  VESTA_CHECK(!enabled || d == DType::float16 || d == DType::bfloat16 || d == DType::float32, type,
              "autocast: expected float16, bfloat16 or float32, got ", d, " (dtype).");
  autocast::set_dtype(device, d);
  autocast::set_enabled(device, enabled);
  if (cache_enabled) autocast::set_cache_enabled(*cache_enabled);
  autocast::increment_nesting();
}

AutocastMode::~AutocastMode() {
  if (autocast::decrement_nesting() == 0) autocast::clear_cache();
  autocast::state.modes[size_t(device_)] = before_;
  autocast::update_layer();
  autocast::state.cache_enabled = cache_before_;
}

}  // namespace vesta
