#include <vesta/cuda/nccl/nccl_library.h>

#include <fmt/format.h>

#include <vesta/cuda/lib/library.h>

namespace vesta::cuda::nccl {
namespace {

constexpr int kOldest = 21700;  // the version of ncclConfig_t in nccl_abi.h

struct Loaded {
  Library library{{"NCCL", "nccl", {"libnccl.so.2", "libnccl.so"}}};
  Functions f{};
  int version = 0;

  Loaded() {
    library.resolve(&f.version, "ncclGetVersion");
    library.resolve(&f.error_string, "ncclGetErrorString");
    library.resolve(&f.last_error, "ncclGetLastError");
    library.resolve(&f.unique_id, "ncclGetUniqueId");
    library.resolve(&f.comm_init, "ncclCommInitRankConfig");
    library.resolve(&f.comm_async_error, "ncclCommGetAsyncError");
    library.resolve(&f.comm_finalize, "ncclCommFinalize");
    library.resolve(&f.comm_destroy, "ncclCommDestroy");
    library.resolve(&f.comm_abort, "ncclCommAbort");
    library.resolve(&f.group_start, "ncclGroupStart");
    library.resolve(&f.group_end, "ncclGroupEnd");
    library.resolve(&f.all_reduce, "ncclAllReduce");
    library.resolve(&f.broadcast, "ncclBroadcast");
    library.resolve(&f.reduce, "ncclReduce");
    library.resolve(&f.all_gather, "ncclAllGather");
    library.resolve(&f.reduce_scatter, "ncclReduceScatter");
    library.resolve(&f.send, "ncclSend");
    library.resolve(&f.recv, "ncclRecv");
    library.resolve(&f.create_premul_sum, "ncclRedOpCreatePreMulSum");
    library.resolve(&f.destroy_op, "ncclRedOpDestroy");
    if (f.version && f.version(&version) == success && version < kOldest) {
      library.refuse(fmt::format("NCCL {} ({}) is too old, {} is the least. Install nvidia-nccl.", version,
                                 library.path(), kOldest));
    }
  }
  static Loaded& get() {
    static Loaded* loaded = new Loaded;  // never destroyed: threads may use it while the process ends
    return *loaded;
  }
};

}  // namespace

const Functions& functions() {
  Loaded& l = Loaded::get();
  VESTA_CHECK(l.library.usable(), runtime, "process group: NCCL cannot be used. ", l.library.problem());
  return l.f;
}

std::string problem() { return Loaded::get().library.problem(); }
int version() { return Loaded::get().library.usable() ? Loaded::get().version : 0; }

std::string describe(Result r, const char* call, Comm comm) {
  const Functions& f = functions();
  const char *name = f.error_string(r), *more = f.last_error(comm);
  return fmt::format("{}: {} ({}){}{}", call, name ? name : "error", int(r), more && *more ? ": " : "",
                     more ? more : "");
}

void check(Result r, const char* call, Comm comm) {
  if (r == success || r == in_progress) return;
  distributed_fail(DistributedCause::backend, describe(r, call, comm), ".");
}

}  // namespace vesta::cuda::nccl
