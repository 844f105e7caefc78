#include <vesta/cuda/lib/cufft.h>

#include <fmt/format.h>

#include <list>
#include <map>
#include <mutex>

#include <vesta/cuda/allocator.h>
#include <vesta/cuda/lib/library.h>

namespace vesta::cuda::cufft {
namespace {

struct Loaded {
  // cuFFT 11 belongs to CUDA 12
  Library library{{"cuFFT", "cufft", {"libcufft.so.12", "libcufft.so.11", "libcufft.so"}, 1}};
  Functions f{};

  Loaded() {
    library.resolve(&f.create, "cufftCreate");
    library.resolve(&f.destroy, "cufftDestroy");
    library.resolve(&f.set_auto_allocation, "cufftSetAutoAllocation");
    library.resolve(&f.make_plan, "cufftXtMakePlanMany");
    library.resolve(&f.set_stream, "cufftSetStream");
    library.resolve(&f.set_work_area, "cufftSetWorkArea");
    library.resolve(&f.execute, "cufftXtExec");
  }
  static Loaded& get() {
    static auto* loaded = new Loaded;  // never destroyed: other threads may compute while the process ends
    return *loaded;
  }
};

void check(Status s, const char* call) {
  if (s != kSuccess) throw Refused(fmt::format("{} failed with status {}; the host computes instead.", call, s));
}

/// One plan, made on the current device. It has no work area of its own.
class Plan {
 public:
  Plan() = default;
  Plan(const Plan&) = delete;
  ~Plan() {
    if (handle_ >= 0) Loaded::get().f.destroy(handle_);
  }
  /// Returns the status of making it.
  Status make(Shape s) {
    const Functions& f = Loaded::get().f;
    check(f.create(&handle_), "cufftCreate");
    check(f.set_auto_allocation(handle_, 0), "cufftSetAutoAllocation");
    const bool is_double = s.in.type == r_64f || s.in.type == c_64f;
    std::array<long long, kMaxRank> sizes{}, in{}, out{};
    for (size_t i = 0; i < kMaxRank; ++i) sizes[i] = s.sizes[i], in[i] = s.in.embed[i], out[i] = s.out.embed[i];
    return f.make_plan(handle_, s.rank, sizes.data(), in.data(), s.in.stride, s.in.dist, s.in.type, out.data(),
                       s.out.stride, s.out.dist, s.out.type, s.batch, &work_size_, is_double ? c_64f : c_32f);
  }
  Handle handle() const { return handle_; }
  size_t work_size() const { return work_size_; }

 private:
  Handle handle_ = -1;
  size_t work_size_ = 0;
};

/// The plans of one device, the last used ones first. One thread at a time sets a plan's stream and queues it.
struct Plans {
  struct Entry {
    Shape shape;
    Plan plan;
    explicit Entry(const Shape& s) : shape(s) {}
  };
  std::mutex lock;
  std::list<Entry> by_use;
  std::map<Shape, std::list<Entry>::iterator> by_shape;
  int64_t limit = kDefaultPlanLimit;

  static Plans& of(int device) {
    static auto& all = *new std::array<Plans, kMaxDevices>;
    return all.at(size_t(device));
  }
  void keep(int64_t count) {
    while (int64_t(by_use.size()) > count) {
      by_shape.erase(by_use.back().shape);
      by_use.pop_back();
    }
  }
  /// Returns the plan of a shape, made if it is new: then there may be one more than the limit.
  const Plan& find(const Shape& shape, int device) {
    const auto found = by_shape.find(shape);
    if (found != by_shape.end()) {
      by_use.splice(by_use.begin(), by_use, found->second);
      return by_use.front().plan;
    }
    std::list<Entry> made;
    Status s = made.emplace_front(shape).plan.make(shape);
    if (s != kSuccess) {  // short of memory, cuFFT says so or speaks of an internal error: what we keep is given back
      made.clear();
      keep(0);
      allocator(device).empty_cache();
      s = made.emplace_front(shape).plan.make(shape);
    }
    check(s, "cufftXtMakePlanMany");
    by_shape.emplace(shape, made.begin());
    by_use.splice(by_use.begin(), made);
    return by_use.front().plan;
  }
};

}  // namespace

void expect_library() {
  const Library& library = Loaded::get().library;
  if (library.usable()) return;
  throw Refused(is_emulated() ? "" : library.problem() + " Fourier transforms run on the host.");
}

void transform(const Shape& shape, bool is_forward, Device device, void* in, void* out) {
  expect_library();
  const Functions& f = Loaded::get().f;
  DeviceGuard guard(device.index());
  Plans& plans = Plans::of(device.index());
  std::lock_guard lock(plans.lock);
  const Plan& plan = plans.find(shape, device.index());
  check(f.set_stream(plan.handle(), current_stream(device.index()).handle()), "cufftSetStream");
  // freed here, the work area is used again in the order of the stream
  const Tensor area = empty_tensor(Dims{int64_t(std::max<size_t>(plan.work_size(), 1))}, DType::uint8, device);
  check(f.set_work_area(plan.handle(), area.impl()->data()), "cufftSetWorkArea");
  check(f.execute(plan.handle(), in, out, is_forward ? forward : inverse), "cufftXtExec");
  plans.keep(plans.limit);
}

int64_t plan_count(int device) {
  Plans& plans = Plans::of(device);
  std::lock_guard lock(plans.lock);
  return int64_t(plans.by_use.size());
}

int64_t plan_limit(int device) {
  Plans& plans = Plans::of(device);
  std::lock_guard lock(plans.lock);
  return plans.limit;
}

void set_plan_limit(int device, int64_t limit) {
  VESTA_CHECK(limit >= 0, runtime, "cufft_plan_cache.max_size: expected a number of plans >= 0, got ", limit, ".");
  DeviceGuard guard(device);
  Plans& plans = Plans::of(device);
  std::lock_guard lock(plans.lock);
  plans.limit = limit;
  plans.keep(limit);
}

void clear_plans(int device) {
  DeviceGuard guard(device);
  Plans& plans = Plans::of(device);
  std::lock_guard lock(plans.lock);
  plans.keep(0);
}

}  // namespace vesta::cuda::cufft
