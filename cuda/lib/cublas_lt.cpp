// A tour: gemm() makes a Key from everything the choice of an algorithm depends on, finds the Plan for it (descriptors
// and algorithm; the thread's last one first, then the table of all), and runs it.
//
// cuBLASLt is column-major. Memory that holds C[m, n] by rows holds the transposed C by columns, and the transposed C
// is op(B)^T @ op(A)^T: so B is the first operand and A the second, and nothing is moved.
#include <vesta/cuda/lib/cublas_lt.h>

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include <vesta/core/precision.h>
#include <vesta/core/tensor.h>
#include <vesta/cuda/device.h>
#include <vesta/cuda/lib/cublas_lt_abi.h>
#include <vesta/cuda/lib/library.h>

namespace vesta::cuda {
namespace {
namespace lt = cublas_lt;

constexpr uint64_t kWorkspace = uint64_t(32) << 20;  // the most that Hopper's kernels ask for
constexpr size_t kMaxPlans = 4096;
constexpr size_t kOldest = 120400;  // of CUDA 12.4, the oldest toolkit we build with

struct Loaded {
  Library library{{"cuBLASLt", "cublas", {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"}}};
  lt::Functions f{};

  Loaded() {
    library.resolve(&f.version, "cublasLtGetVersion");
    library.resolve(&f.create, "cublasLtCreate");
    library.resolve(&f.desc_create, "cublasLtMatmulDescCreate");
    library.resolve(&f.desc_destroy, "cublasLtMatmulDescDestroy");
    library.resolve(&f.desc_set, "cublasLtMatmulDescSetAttribute");
    library.resolve(&f.layout_create, "cublasLtMatrixLayoutCreate");
    library.resolve(&f.layout_destroy, "cublasLtMatrixLayoutDestroy");
    library.resolve(&f.layout_set, "cublasLtMatrixLayoutSetAttribute");
    library.resolve(&f.preference_create, "cublasLtMatmulPreferenceCreate");
    library.resolve(&f.preference_destroy, "cublasLtMatmulPreferenceDestroy");
    library.resolve(&f.preference_set, "cublasLtMatmulPreferenceSetAttribute");
    library.resolve(&f.heuristic, "cublasLtMatmulAlgoGetHeuristic");
    library.resolve(&f.matmul, "cublasLtMatmul");
    if (!library.usable()) return;
    if (const size_t v = f.version(); v < kOldest) {
      library.refuse(fmt::format("cuBLASLt {} ({}) is too old, {} is the least. Install nvidia-cublas.", v,
                                 library.path(), kOldest));
    }
  }
  static Loaded& get() {
    static Loaded* loaded = new Loaded;  // never destroyed: other threads may compute while the process ends
    return *loaded;
  }
};

/// Returns a device's handle, or null with a warning.
lt::Handle handle_of(int device) {
  static std::mutex lock;
  static std::array<lt::Handle, kMaxDevices> handles{};
  std::unique_lock guard(lock);
  lt::Handle& h = handles[size_t(device)];
  if (h) return h;
  if (const lt::Status s = Loaded::get().f.create(&h); s != 0) {
    h = nullptr;
    guard.unlock();  // a warning may wait for Python's lock, and its holder for ours
    warn_once(fmt::format("cuBLASLt could not be started on cuda:{} (status {}); plain kernels are used.", device, s));
    return nullptr;
  }
  return h;
}

int data_type(DType d) {
  switch (d) {
    case DType::float32: return lt::r_32f;
    case DType::float64: return lt::r_64f;
    case DType::float16: return lt::r_16f;
    case DType::bfloat16: return lt::r_16bf;
    case DType::complex64: return lt::c_32f;
    case DType::complex128: return lt::c_64f;
    default: return -1;
  }
}
int scale_type(DType d) { return d == DType::float16 || d == DType::bfloat16 ? lt::r_32f : data_type(d); }

/// Everything an algorithm depends on. Compared and hashed as bytes: no padding, all set.
struct Key {
  int64_t m, n, k, count, lda, ldb, ldc, a_step, b_step, c_step, added_step;
  int32_t device;
  uint8_t dtype, epilogue, a_transposed, b_transposed, tf32, align_a, align_b, align_c, align_bias, align_kept,
      pointers, has_bias, result_dtype, adds, align_added, of_convolution, unused[4];
  bool operator==(const Key& o) const { return std::memcmp(this, &o, sizeof *this) == 0; }
};
static_assert(sizeof(Key) == 112);

struct KeyHash {
  size_t operator()(const Key& key) const {
    uint64_t words[sizeof(Key) / 8], h = 0x9e3779b97f4a7c15u;
    std::memcpy(words, &key, sizeof key);
    for (uint64_t w : words) h = (h ^ w) * 0xff51afd7ed558ccdu, h ^= h >> 32;
    return h;
  }
};

/// Returns log2 of the alignment of a matrix and its batch, at most 8 (256 bytes).
uint8_t alignment(const void* p, int64_t step_bytes) {
  const uintptr_t bits = reinterpret_cast<uintptr_t>(p) | uintptr_t(step_bytes) | 256;
  return uint8_t(__builtin_ctzll(bits));
}

Key key_of(const GemmDesc& d, int device, bool tf32) {
  const DType result = d.wide_result ? DType::float32 : d.dtype;
  const int64_t item = itemsize(d.dtype);
  Key k{};
  k.m = d.m, k.n = d.n, k.k = d.k, k.count = d.count;
  k.lda = d.lda, k.ldb = d.ldb, k.ldc = d.ldc;
  if (d.count > 1) k.a_step = d.a_step, k.b_step = d.b_step, k.c_step = d.c_step;
  k.device = device;
  k.dtype = uint8_t(d.dtype), k.epilogue = uint8_t(d.epilogue);
  k.a_transposed = d.a_transposed, k.b_transposed = d.b_transposed, k.tf32 = tf32;
  k.align_a = alignment(d.a, k.a_step * item), k.align_b = alignment(d.b, k.b_step * item);
  k.align_c = alignment(d.c, k.c_step * itemsize(result));
  k.result_dtype = uint8_t(result), k.of_convolution = d.of_convolution;
  if (d.added) {
    k.adds = 1;
    if (d.count > 1) k.added_step = d.added_step;
    k.align_added = alignment(d.added, k.added_step * itemsize(result));
  }
  k.pointers = d.by_pointers;
  if (d.by_pointers) k.a_step = k.b_step = k.c_step = 0;
  k.has_bias = d.bias != nullptr;
  if (d.bias) k.align_bias = alignment(d.bias, 0);
  if (d.kept) k.align_kept = alignment(d.kept, 0);
  return k;
}

/// What cuBLASLt needs to run a key: descriptors and an algorithm. They are in its own order: "a" is our B.
class Plan {
 public:
  Plan(const Key& key, lt::Handle handle);
  ~Plan();
  Plan(const Plan&) = delete;
  bool usable() const { return usable_; }
  const std::string& problem() const { return problem_; }
  /// Queues a product. `workspace` is what this or an earlier one on the stream has left; it grows if it must.
  bool run(const GemmDesc& d, lt::Handle handle, StreamHandle stream, Tensor& workspace) const;

 private:
  const lt::Functions& f_ = Loaded::get().f;
  Key key_;
  lt::MatmulDesc desc_ = nullptr;  // without bias and kept, whose addresses change from call to call
  lt::Layout a_ = nullptr, b_ = nullptr, c_ = nullptr;
  lt::Layout added_ = nullptr;  // c_, or its like at another distance
  lt::Algo algo_{};
  size_t workspace_ = 0;
  bool usable_ = false;
  std::string problem_;

  lt::Status make_desc(lt::MatmulDesc* to, const void* bias, const void* kept) const;
  lt::Status make_layout(lt::Layout* to, uint8_t dtype, int64_t rows, int64_t columns, int64_t ld, int64_t step) const;
  lt::Status choose(lt::Handle handle);
};

/// Runs calls in order until one fails; returns its status.
template <class... F>
lt::Status all_of(F... calls) {
  lt::Status s = 0;
  static_cast<void>(((s = calls(), s == 0) && ...));
  return s;
}

/// What the library calls an epilogue, without and with a bias (0: there is none), and what lies behind its auxiliary
/// pointer: rows of elements or of bits, whose distance is a multiple of a number of them.
struct EpilogueForm {
  int32_t number, with_bias;
  int32_t kept_bits = 0;  // of each sum; 0: nothing is kept. Of elements, those of the dtype
  int32_t kept_multiple = 0;
};
constexpr int32_t kElement = -1;

constexpr EpilogueForm form_of(Epilogue e) {
  switch (e) {
    case Epilogue::none: return {lt::epilogue_default, 0};
    case Epilogue::bias: return {0, lt::epilogue_bias};
    case Epilogue::relu: return {lt::epilogue_relu, lt::epilogue_relu_bias};
    case Epilogue::relu_kept: return {lt::epilogue_relu_aux, lt::epilogue_relu_aux_bias, 1, 128};
    case Epilogue::relu_backward: return {lt::epilogue_relu_backward, 0, 1, 128};
    case Epilogue::gelu: return {lt::epilogue_gelu, lt::epilogue_gelu_bias};
    case Epilogue::gelu_kept: return {lt::epilogue_gelu_aux, lt::epilogue_gelu_aux_bias, kElement, 8};
    case Epilogue::gelu_backward: return {lt::epilogue_gelu_backward, 0, kElement, 8};
    case Epilogue::row_sums: return {0, lt::epilogue_bias_gradient_b};
  }
  return {};
}

/// Returns the distance of what is kept of two rows of n sums, in its own elements.
constexpr int64_t kept_distance(const EpilogueForm& form, int64_t n) {
  if (form.kept_bits == kElement) return n;
  return (n + form.kept_multiple - 1) / form.kept_multiple * form.kept_multiple;
}

lt::Status Plan::make_desc(lt::MatmulDesc* to, const void* bias, const void* kept) const {
  const DType dtype = DType(key_.dtype);
  const bool wide = dtype == DType::float64 || dtype == DType::complex128;
  const int compute = wide ? lt::compute_64f : key_.tf32 ? lt::compute_32f_fast_tf32 : lt::compute_32f;
  const int32_t first = key_.b_transposed ? lt::op_t : lt::op_n, second = key_.a_transposed ? lt::op_t : lt::op_n;
  const EpilogueForm form = form_of(Epilogue(key_.epilogue));
  const int32_t epilogue = key_.has_bias ? form.with_bias : form.number, bias_type = data_type(dtype);
  auto set = [&](int attribute, const auto& value) {
    return [&f = f_, to, attribute, &value] { return f.desc_set(*to, attribute, &value, sizeof value); };
  };
  lt::Status s = all_of([&] { return f_.desc_create(to, compute, scale_type(dtype)); }, set(lt::desc_transa, first),
                        set(lt::desc_transb, second), set(lt::desc_epilogue, epilogue));
  if (s == 0 && key_.has_bias) s = all_of(set(lt::desc_bias_pointer, bias), set(lt::desc_bias_data_type, bias_type));
  if (s == 0 && form.kept_bits != 0)
    s = all_of(set(lt::desc_aux_pointer, kept), set(lt::desc_aux_ld, kept_distance(form, key_.n)));
  return s;
}

lt::Status Plan::make_layout(lt::Layout* to, uint8_t dtype, int64_t rows, int64_t columns, int64_t ld,
                             int64_t step) const {
  const int32_t count = int32_t(key_.count);
  const lt::Status s = f_.layout_create(to, data_type(DType(dtype)), uint64_t(rows), uint64_t(columns), ld);
  if (s != 0 || (count == 1 && !key_.pointers)) return s;
  const auto mode = lt::batch_pointer_array;
  return all_of([&] { return f_.layout_set(*to, lt::layout_batch_count, &count, sizeof count); },
                [&] {
                  return key_.pointers ? f_.layout_set(*to, lt::layout_batch_mode, &mode, sizeof mode)
                                       : f_.layout_set(*to, lt::layout_strided_batch_offset, &step, sizeof step);
                });
}

lt::Status Plan::choose(lt::Handle handle) {
  lt::Preference preference = nullptr;
  auto set = [&](int attribute, auto value) {
    return [this, &preference, attribute, value] {
      return f_.preference_set(preference, attribute, &value, sizeof value);
    };
  };
  lt::HeuristicResult results[8];
  int found = 0;
  const lt::Status s =
      all_of([&] { return f_.preference_create(&preference); }, set(lt::pref_max_workspace_bytes, kWorkspace),
             set(lt::pref_min_alignment_a, uint32_t(1) << key_.align_b),
             set(lt::pref_min_alignment_b, uint32_t(1) << key_.align_a),
             set(lt::pref_min_alignment_c, uint32_t(1) << (key_.adds ? key_.align_added : key_.align_c)),
             set(lt::pref_min_alignment_d, uint32_t(1) << key_.align_c),
             [&] { return f_.heuristic(handle, desc_, a_, b_, added_, c_, preference, 8, results, &found); });
  if (preference) f_.preference_destroy(preference);
  for (int i = 0; s == 0 && i < found && !usable_; ++i) {
    if (results[i].state != 0 || results[i].workspace > kWorkspace) continue;
    algo_ = results[i].algo, workspace_ = results[i].workspace, usable_ = true;
  }
  return s;
}

Plan::Plan(const Key& key, lt::Handle handle) : key_(key) {
  // only the alignment of these addresses matters; the real ones are set before each run
  const void* bias = reinterpret_cast<const void*>(uintptr_t(1) << key.align_bias);
  const void* kept = reinterpret_cast<const void*>(uintptr_t(1) << key.align_kept);
  const lt::Status s =
      all_of([&] { return make_desc(&desc_, bias, kept); },
             [&] {
               return key.b_transposed ? make_layout(&a_, key.dtype, key.k, key.n, key.ldb, key.b_step)
                                       : make_layout(&a_, key.dtype, key.n, key.k, key.ldb, key.b_step);
             },
             [&] {
               return key.a_transposed ? make_layout(&b_, key.dtype, key.m, key.k, key.lda, key.a_step)
                                       : make_layout(&b_, key.dtype, key.k, key.m, key.lda, key.a_step);
             },
             [&] { return make_layout(&c_, key.result_dtype, key.n, key.m, key.ldc, key.c_step); },
             [&] {
               if (key.adds) return make_layout(&added_, key.result_dtype, key.n, key.m, key.ldc, key.added_step);
               added_ = c_;
               return lt::Status(0);
             },
             [&] { return choose(handle); });
  if (usable_) return;
  problem_ = fmt::format(
      "cuBLASLt has no algorithm for a product of {} [{}, {}] and [{}, {}] (status {}); plain "
      "kernels are used.",
      vesta::name(DType(key.dtype)), key.m, key.k, key.k, key.n, s);
}

Plan::~Plan() {
  if (desc_) f_.desc_destroy(desc_);
  for (lt::Layout l : {a_, b_, c_, added_ == c_ ? nullptr : added_}) {
    if (l) f_.layout_destroy(l);
  }
}

bool Plan::run(const GemmDesc& d, lt::Handle handle, StreamHandle stream, Tensor& workspace) const {
  // 1 and 0 in every scale type: a real one reads the first number of its kind
  alignas(16) const float ones[2] = {1, 0};
  alignas(16) const double wide_ones[2] = {1, 0};
  static constexpr double zeros[2] = {0, 0};
  const bool wide = d.dtype == DType::float64 || d.dtype == DType::complex128;
  const void* alpha = wide ? static_cast<const void*>(wide_ones) : ones;
  const void* beta = d.added ? alpha : zeros;
  if (workspace_ && (!workspace.defined() || workspace.numel() < int64_t(workspace_)))
    workspace = empty_tensor(Dims{int64_t(workspace_)}, DType::uint8, Device(DeviceType::cuda, key_.device));
  void* scratch = workspace_ ? workspace.impl()->data() : nullptr;
  lt::MatmulDesc desc = desc_;
  lt::Status s = 0;
  if (d.epilogue != Epilogue::none) desc = nullptr, s = make_desc(&desc, d.bias, d.kept);
  const void *a = d.a, *b = d.b;
  void* c = d.c;
  if (d.by_pointers) {
    a = d.pointers, b = d.pointers + d.count;
    c = const_cast<void*>(static_cast<const void*>(d.pointers + 2 * d.count));  // read only
  }
  if (s == 0)
    s = f_.matmul(handle, desc, alpha, b, a_, a, b_, beta, d.added ? d.added : c, added_, c, c_, &algo_, scratch,
                  workspace_, stream);
  if (desc && desc != desc_) f_.desc_destroy(desc);
  if (s != 0 && !d.of_convolution)
    warn_once(fmt::format("cuBLASLt refused a product (status {}); plain kernels are used.", s));
  return s == 0;
}

std::atomic<uint64_t> hits{0}, misses{0};

/// Finds or makes the plan of a key. Plans are shared: a dropped one lives until its last user is done.
std::shared_ptr<const Plan> plan_of(const Key& key, lt::Handle handle) {
  struct Last {
    Key key{};
    std::shared_ptr<const Plan> plan;
  };
  static thread_local Last last;
  static auto& lock = *new std::shared_mutex;
  static auto& plans = *new std::unordered_map<Key, std::shared_ptr<const Plan>, KeyHash>;
  if (last.plan && last.key == key) {
    hits.fetch_add(1, std::memory_order_relaxed);
    return last.plan;
  }
  {
    std::shared_lock guard(lock);
    if (auto it = plans.find(key); it != plans.end()) {
      hits.fetch_add(1, std::memory_order_relaxed);
      last = {key, it->second};
      return it->second;
    }
  }
  misses.fetch_add(1, std::memory_order_relaxed);
  auto made = std::make_shared<const Plan>(key, handle);
  const bool more_than_product = key.pointers || Epilogue(key.epilogue) > Epilogue::bias;
  if (!made->usable() && !more_than_product && !key.of_convolution) warn_once(made->problem());
  std::unique_lock guard(lock);
  if (plans.size() >= kMaxPlans) plans.clear();
  auto [it, fresh] = plans.emplace(key, std::move(made));
  last = {key, it->second};
  return it->second;
}

bool may_use_tf32(DType d, bool of_convolution) {
  const ProductSettings& s = product_settings();
  return d == DType::float32 && (of_convolution ? s.convolution_allow_tf32 : s.matmul_allow_tf32);
}

}  // namespace

bool gemm_available(DType dtype) {
  if (data_type(dtype) < 0) return false;
  const Loaded& loaded = Loaded::get();
  if (loaded.library.usable()) return true;
  if (std::strcmp(rt::implementation(), "CUDA") == 0) {
    warn_once(loaded.library.problem() + " Matrix products use plain kernels, which are slower.");
  }
  return false;
}

bool gemm_takes_bias(DType dtype) {
  return dtype == DType::float32 || dtype == DType::float16 || dtype == DType::bfloat16;
}

int64_t bytes_kept(Epilogue epilogue, DType dtype, int64_t m, int64_t n) {
  const EpilogueForm form = form_of(epilogue);
  if (form.kept_bits == 0) return 0;
  const int64_t distance = kept_distance(form, n);
  if (distance % form.kept_multiple != 0) return 0;
  return form.kept_bits == kElement ? m * distance * itemsize(dtype) : m * distance / 8;
}

bool gemm(const GemmDesc& d, int device, StreamHandle stream) {
  constexpr int64_t kMost = INT32_MAX;
  if (!gemm_available(d.dtype) || d.count > kMost) return false;
  const lt::Handle handle = handle_of(device);
  if (!handle) return false;
  const auto plan = plan_of(key_of(d, device, may_use_tf32(d.dtype, d.of_convolution)), handle);
  Tensor workspace;
  return plan->usable() && plan->run(d, handle, stream, workspace);
}

struct RepeatedGemm::State {
  lt::Handle handle;
  int device;
  StreamHandle stream;
  bool tf32;
  Key key{};
  std::shared_ptr<const Plan> plan;
  Tensor workspace;
};

RepeatedGemm::RepeatedGemm(DType dtype, int device, StreamHandle stream) {
  const lt::Handle handle = gemm_available(dtype) ? handle_of(device) : nullptr;
  if (handle) state_.reset(new State{handle, device, stream, may_use_tf32(dtype, false), {}, {}, {}});
}
RepeatedGemm::~RepeatedGemm() = default;

bool RepeatedGemm::operator()(const GemmDesc& d) {
  if (!state_) return false;
  State& s = *state_;
  if (const Key key = key_of(d, s.device, s.tf32); !s.plan || !(s.key == key)) {
    s.plan = plan_of(key, s.handle), s.key = key;
  }
  return s.plan->usable() && s.plan->run(d, s.handle, s.stream, s.workspace);
}

bool gemm_takes_pointers(const GemmDesc& d, int device) {
  if (!gemm_available(d.dtype) || d.count > INT32_MAX) return false;
  const lt::Handle handle = handle_of(device);
  return handle && plan_of(key_of(d, device, may_use_tf32(d.dtype, d.of_convolution)), handle)->usable();
}

GemmCounters gemm_counters() { return {hits.load(), misses.load()}; }

}  // namespace vesta::cuda
