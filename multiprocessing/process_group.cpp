#include <vesta/multiprocessing/process_group.h>

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>

#include <vesta/core/backend.h>
#include <vesta/core/plug_in.h>
#include <vesta/multiprocessing/process_group_by_device.h>
#include <vesta/multiprocessing/store.h>

namespace vesta {
namespace {

std::mutex backends_mutex;
struct Registered {
  GroupFactory factory;
  BackendProbe probe;
};
std::map<std::string, Registered>& backends() {
  static std::map<std::string, Registered> map;
  return map;
}

/// Returns the path of a backend's plug-in: beside this library, or the value of VESTA_GLOO_LIBRARY (for gloo).
std::string plug_in_path(const std::string& backend) {
  std::string variable = "VESTA_" + backend + "_LIBRARY";
  for (char& c : variable) c = char(std::toupper(c));
  if (const char* given = std::getenv(variable.c_str()); given && *given) return given;
  Dl_info here{};
  dladdr(reinterpret_cast<void*>(&register_backend), &here);
  const std::string path = here.dli_fname ? here.dli_fname : "";
  return path.substr(0, path.rfind('/') + 1) + "libvesta_" + backend + ".so";
}

bool is_word(const std::string& s) {
  return !s.empty() && std::all_of(s.begin(), s.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

/// Returns a backend's factory, loading the plug-in that has it; null, with the loader's message, if there is none.
GroupFactory find_backend(const std::string& backend, std::string& why_not) {
  static std::mutex loading;  // one loader at a time; a failed one may be tried again (the user may install it)
  std::lock_guard one(loading);
  bool found = false;  // registered, even if it cannot be used here
  auto known = [&]() -> GroupFactory {
    std::unique_lock lock(backends_mutex);
    auto at = backends().find(backend);
    if (at == backends().end()) return nullptr;
    found = true;
    const Registered r = at->second;
    lock.unlock();
    return !r.probe || r.probe(&why_not) ? r.factory : nullptr;
  };
  if (GroupFactory f = known(); f || found) return f;
  if (!is_word(backend)) {
    why_not = "no backend has such a name";
    return nullptr;
  }
  const std::string path = plug_in_path(backend);
  void* library = load_plug_in(path, why_not);
  if (!library) {
    for (int t = 0; t < kNumDeviceTypes; ++t) has_backend(DeviceType(t));  // a device's library may register its own
    return known();
  }
  auto plug_in = reinterpret_cast<void (*)()>(dlsym(library, "vesta_plug_in"));
  if (plug_in) plug_in();
  if (GroupFactory f = known(); f || found) return f;
  why_not = path + " registers no backend of that name";
  return nullptr;
}

// The innermost scope on this thread.
thread_local CallSite* innermost = nullptr;
/// The list of an open start_coalescing on this thread, by group.
thread_local std::map<const ProcessGroup*, std::vector<WorkPtr>> coalescing;

}  // namespace

const char* name(Collective c) {
  static constexpr const char* kNames[] = {"all_reduce",
                                           "broadcast",
                                           "reduce",
                                           "all_gather",
                                           "all_gather_into_tensor",
                                           "reduce_scatter",
                                           "reduce_scatter_tensor",
                                           "all_to_all",
                                           "all_to_all_single",
                                           "gather",
                                           "scatter",
                                           "barrier",
                                           "send",
                                           "recv"};
  return kNames[int(c)];
}

const char* name(ReduceOp op) {
  static constexpr const char* kNames[] = {"SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "PREMUL_SUM"};
  return kNames[int(op.kind)];
}

CallSite::CallSite(std::string where) : where_(std::move(where)), below_(innermost) { innermost = this; }
CallSite::~CallSite() { innermost = below_; }
const std::string& CallSite::current() {
  static const std::string nowhere;
  return innermost ? innermost->where_ : nowhere;
}

ProcessGroup::ProcessGroup(std::string name, std::string backend, int rank, int size, Milliseconds timeout)
    : name_(std::move(name)), backend_(std::move(backend)), rank_(rank), size_(size), timeout_(timeout) {
  VESTA_CHECK(size > 0 && rank >= 0 && rank < size, value, "ProcessGroup: expected a rank from 0 to ", size - 1,
              ", got ", rank, " (rank).");
  for (int i = 0; i < size; ++i) ranks_.push_back(i);
}

void ProcessGroup::refuse(Collective what) const {
  fail(Cause::not_implemented, vesta::name(what), ": the backend ", backend_, " has no such operation.");
}

WorkPtr ProcessGroup::all_reduce(std::vector<Tensor>, ReduceOp, const CallOptions&) { refuse(Collective::all_reduce); }
WorkPtr ProcessGroup::broadcast(std::vector<Tensor>, int, const CallOptions&) { refuse(Collective::broadcast); }
WorkPtr ProcessGroup::reduce(Tensor, int, ReduceOp, const CallOptions&) { refuse(Collective::reduce); }
WorkPtr ProcessGroup::all_gather(std::vector<Tensor>, Tensor, const CallOptions&) { refuse(Collective::all_gather); }
WorkPtr ProcessGroup::all_gather_into(Tensor, Tensor, const CallOptions&) { refuse(Collective::all_gather_into); }
WorkPtr ProcessGroup::reduce_scatter(Tensor, std::vector<Tensor>, ReduceOp, const CallOptions&) {
  refuse(Collective::reduce_scatter);
}
WorkPtr ProcessGroup::reduce_scatter_tensor(Tensor, Tensor, ReduceOp, const CallOptions&) {
  refuse(Collective::reduce_scatter_tensor);
}
WorkPtr ProcessGroup::all_to_all(std::vector<Tensor>, std::vector<Tensor>, const CallOptions&) {
  refuse(Collective::all_to_all);
}
WorkPtr ProcessGroup::all_to_all_single(Tensor, Tensor, std::vector<int64_t>, std::vector<int64_t>,
                                        const CallOptions&) {
  refuse(Collective::all_to_all_single);
}
WorkPtr ProcessGroup::gather(std::vector<Tensor>, Tensor, int, const CallOptions&) { refuse(Collective::gather); }
WorkPtr ProcessGroup::scatter(Tensor, std::vector<Tensor>, int, const CallOptions&) { refuse(Collective::scatter); }
WorkPtr ProcessGroup::send(Tensor, int, int, const CallOptions&) { refuse(Collective::send); }
WorkPtr ProcessGroup::recv(Tensor, int, int, const CallOptions&) { refuse(Collective::recv); }
WorkPtr ProcessGroup::barrier(const CallOptions&) { refuse(Collective::barrier); }
void ProcessGroup::abort(const std::string&) {}
void ProcessGroup::shutdown() {}
std::string ProcessGroup::report(uint64_t) const { return {}; }
uint64_t ProcessGroup::sequence_number() const { return 0; }

void ProcessGroup::start_coalescing() {
  VESTA_CHECK(!coalescing.count(this), runtime, "start_coalescing: group '", name_,
              "' already collects calls on this thread. Call end_coalescing first.");
  coalescing[this];
}

WorkPtr ProcessGroup::end_coalescing() {
  auto at = coalescing.find(this);
  VESTA_CHECK(at != coalescing.end(), runtime, "end_coalescing: group '", name_,
              "' collects no calls on this thread. Call start_coalescing first.");
  std::vector<WorkPtr> parts = std::move(at->second);
  coalescing.erase(at);
  return all_of(std::move(parts));
}

WorkPtr ProcessGroup::collected(WorkPtr work) {
  if (!coalescing.empty()) {
    if (auto at = coalescing.find(this); at != coalescing.end()) at->second.push_back(work);
  }
  return work;
}

Milliseconds ProcessGroup::timeout_of(const CallOptions& options) const {
  return options.timeout.count() > 0 ? options.timeout : timeout_;
}

ProcessGroupPtr new_process_group(const std::string& backend, StorePtr store, int rank, int size,
                                  const GroupOptions& options) {
  if (backend.find(':') != std::string::npos) {
    return new_group_by_device(backend, std::move(store), rank, size, options);
  }
  std::string why_not;
  GroupFactory factory = find_backend(backend, why_not);
  if (!factory) {
    distributed_fail(DistributedCause::backend, "process group: there is no backend '", backend, "' (", why_not, "). ",
                     backend == "gloo" ? "Install Gloo (Debian: libgloo0)." : "Register one, or choose 'gloo'.");
  }
  return factory(std::move(store), rank, size, options);
}

void register_backend(const std::string& backend, GroupFactory factory, BackendProbe probe) {
  std::lock_guard lock(backends_mutex);
  backends()[backend] = {factory, probe};
}

bool has_group_backend(const std::string& backend, std::string* why_not) {
  std::string words;
  const bool found = find_backend(backend, words) != nullptr;
  if (why_not) *why_not = words;
  return found;
}

}  // namespace vesta
