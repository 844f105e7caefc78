// The table of api.h: the front ends' calls, one line each.
#include <vesta/cuda/api.h>

#include <vesta/cuda/allocator.h>
#include <vesta/cuda/constants.h>
#include <vesta/cuda/fault.h>
#include <vesta/cuda/lib/channels_last.h>
#include <vesta/cuda/lib/cudnn_graph.h>
#include <vesta/cuda/lib/cufft.h>
#include <vesta/cuda/nccl/nccl_library.h>

namespace vesta::cuda {
namespace {

Stream stream_of(int device, uint32_t number) { return checked_stream(device, number); }
/// Returns the number of a device that exists; raises for another.
int existing(int device) { return checked_stream(device, 0).device(); }
Event& event_of(void* e) { return *static_cast<Event*>(e); }

DeviceInfo info_of(int device) {
  const DeviceProperties& p = properties(device);
  return {p.name,
          p.major,
          p.minor,
          p.multi_processor_count,
          p.max_threads_per_multi_processor,
          p.regs_per_multiprocessor,
          p.warp_size,
          p.total_memory,
          p.l2_cache_size,
          p.shared_memory_per_block_optin,
          p.is_integrated};
}

bool peer_access(int a, int b) {
  bool yes = false;
  VESTA_CUDA_CHECK(rt::can_access_peer(a, b, &yes));
  return yes;
}

void empty_caches() {
  for (int d = 0; d < visible_devices(); ++d) {
    if (!has_allocator(d)) continue;
    forget_constants(d);
    allocator(d).empty_cache();
  }
  pinned_allocator().empty_cache();
}

std::pair<size_t, size_t> free_and_total(int device) {
  DeviceGuard guard(device);
  std::pair<size_t, size_t> r;
  VESTA_CUDA_CHECK(rt::memory_info(&r.first, &r.second));
  return r;
}

std::vector<std::pair<std::string, uint64_t>> count() {
  const rt::Counters c = rt::counters();
  const LayoutCounters l = layout_counters();
  return {{"launches", c.launches},
          {"copies", c.copies},
          {"mallocs", c.mallocs},
          {"synchronizations", c.synchronizations},
          {"staged_copies", c.staged_copies},
          {"layouts_made", l.made},
          {"layouts_taken", l.taken},
          {"layout_bytes", uint64_t(l.kept_bytes)}};
}

/// Returns cuDNN's version in its own numbering (91900 for 9.19) and where it was found; if it is missing, 0 and the
/// reason.
std::pair<size_t, std::string> version_of_cudnn() {
  const cudnn::Loaded& loaded = cudnn::Loaded::get();
  if (!loaded.library.usable()) return {0, loaded.library.problem()};
  return {loaded.f.version(), loaded.library.path()};
}

}  // namespace
}  // namespace vesta::cuda

using namespace vesta;
using namespace vesta::cuda;

/// Returns the current stream of a device in DLPack's numbering: 1 is the default stream, others are handles. Found by
/// name, from where the table is not known (python/bindings/dlpack.cpp).
extern "C" VESTA_API uint64_t vesta_cuda_dlpack_stream(int device) {
  const StreamHandle handle = vesta::cuda::current_stream(device).handle();
  return handle ? uint64_t(reinterpret_cast<uintptr_t>(handle)) : 1;
}
/// Makes later work of `stream`, in that numbering and of any library, wait for what the current stream has queued.
extern "C" VESTA_API void vesta_cuda_dlpack_order(int device, uint64_t stream) {
  if (stream == vesta_cuda_dlpack_stream(device)) return;
  Event queued;
  queued.record(vesta::cuda::current_stream(device));
  DeviceGuard guard(device);
  // CUDA knows the numbers 1 and 2, the default streams, as handles
  VESTA_CUDA_CHECK(rt::stream_wait_event(reinterpret_cast<StreamHandle>(uintptr_t(stream)), queued.handle()));
}

/// The table, which is looked up by name (api.h).
extern "C" VESTA_API const Api vesta_cuda_api = {
    .implementation = rt::implementation,
    .runtime_version = rt::version,
    .device_count = visible_devices,
    .why_no_device = why_no_device,
    .current_device = vesta::cuda::current_device,
    .set_device = set_current_device,
    .device_info = info_of,
    .can_access_peer = peer_access,
    .synchronize = synchronize_device,

    .stream_from_pool = [](int d, int priority) { return uint32_t(stream_from_pool(d, priority < 0).number()); },
    .current_stream =
        [](int d) { return uint32_t(vesta::cuda::current_stream(checked_stream(d, 0).device()).number()); },
    .set_stream = [](int d, uint32_t s) { set_current_stream(stream_of(d, s)); },
    .stream_query = [](int d, uint32_t s) { return stream_of(d, s).query(); },
    .stream_synchronize = [](int d, uint32_t s) { stream_of(d, s).synchronize(); },
    .stream_wait_stream = [](int d, uint32_t later, uint32_t e) { stream_of(d, later).wait(stream_of(d, e)); },
    .stream_handle = [](int d, uint32_t s) { return uint64_t(reinterpret_cast<uintptr_t>(stream_of(d, s).handle())); },

    .event_create = [](bool timing) -> void* { return new Event(timing); },
    .event_destroy = [](void* e) { delete static_cast<Event*>(e); },
    .event_record = [](void* e, int d, uint32_t s) { event_of(e).record(stream_of(d, s)); },
    .event_wait = [](void* e, int d, uint32_t s) { event_of(e).block(stream_of(d, s)); },
    .event_query = [](void* e) { return event_of(e).query(); },
    .event_synchronize = [](void* e) { event_of(e).synchronize(); },
    .event_elapsed = [](void* a, void* b) { return event_of(a).elapsed(event_of(b)); },

    .memory_stats = [](int d) { return allocator(d).stats().items(); },
    .reset_peak_memory_stats = [](int d) { allocator(d).reset_peak(); },
    .reset_accumulated_memory_stats = [](int d) { allocator(d).reset_accumulated(); },
    .empty_cache = empty_caches,
    .memory_info = free_and_total,
    .set_memory_fraction = [](int d, double fraction) { allocator(d).set_fraction(fraction); },
    .memory_snapshot = [](int d) { return allocator(d).snapshot(); },
    .record_memory_history = [](int d, bool on, size_t n) { allocator(d).record_history(on, n); },
    .counters = count,
    .sync_debug_mode = [] { return int(sync_debug()); },
    .set_sync_debug_mode = [](int mode) { set_sync_debug(SyncDebug(mode)); },
    .cudnn_version = version_of_cudnn,
    .fft_plan_count = [](int d) { return cufft::plan_count(existing(d)); },
    .fft_plan_limit = [](int d) { return cufft::plan_limit(existing(d)); },
    .set_fft_plan_limit = [](int d, int64_t limit) { cufft::set_plan_limit(existing(d), limit); },
    .clear_fft_plans = [](int d) { cufft::clear_plans(existing(d)); },

    .nccl_version = nccl::version,
    .nccl_problem = nccl::problem,
};
