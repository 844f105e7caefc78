// A cuFFT for the emulated device: the functions that cuda/lib/cufft.cpp calls, with their published meanings, computed
// in long double. Becomes build/fakes/cufft/libcufft.so.12.
//
// What the library leaves open is answered in the worst way: a complex-to-real transform spoils its input, and gives
// NaN where the spectrum is not Hermitian. Arguments are checked: layouts, alignment, a stream and a work area that
// were set (no plan allocates its own). A plan without layouts is refused: ours never are. FAKE_CUFFT chooses what else
// it does: `refuse` makes no plan, `small` has memory for the tables of three plans.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <vector>

#include <vesta/cuda/lib/cufft_abi.h>

namespace {
namespace fft = vesta::cuda::cufft;
using fft::Status;
using Real = long double;
using Z = std::complex<Real>;

constexpr Status kInvalidPlan = 1, kInvalidType = 3, kInvalidValue = 4, kInternalError = 5, kExecutionFailed = 6,
                 kInvalidSize = 8, kUnaligned = 9, kNoWorkspace = 13, kNotImplemented = 14;
constexpr Real kPi = 3.141592653589793238462643383279502884L;

bool told(const char* what) {
  const char* text = std::getenv("FAKE_CUFFT");
  return text && std::strcmp(text, what) == 0;
}
bool is_complex(int type) { return type == fft::c_32f || type == fft::c_64f; }
bool is_double(int type) { return type == fft::r_64f || type == fft::c_64f; }

struct Side {
  std::array<long long, 3> embed{};
  long long stride = 0, dist = 0;
  int type = 0;
  bool operator==(const Side&) const = default;
};
struct Plan {
  bool allocates = true, is_made = false, has_stream = false;
  int rank = 0;
  std::array<long long, 3> n{};
  long long batch = 0;
  Side in, out;
  size_t work_size = 0;
  void *stream = nullptr, *area = nullptr;

  /// The points along a dimension of one side: of half a spectrum, n / 2 + 1.
  long long points(const Side& side, int d) const {
    const bool half = d == rank - 1 && is_complex(side.type) && !(is_complex(in.type) && is_complex(out.type));
    return half ? n[size_t(d)] / 2 + 1 : n[size_t(d)];
  }
};

std::mutex lock;
std::map<int, Plan> plans;
int next_plan = 1;
uint64_t calls = 0, made = 0;

// ---- Transforms ----

/// Transforms n points; `roots`: those of unity, of an order that n divides.
void transform(Z* x, size_t n, const std::vector<Z>& roots) {
  if (n == 1) return;
  size_t p = 2;
  while (p * p <= n && n % p != 0) ++p;
  if (n % p != 0) p = n;
  const size_t m = n / p, root_step = roots.size() / n;
  std::vector<Z> parts(n), result(n);
  for (size_t r = 0; r < p; ++r) {
    for (size_t i = 0; i < m; ++i) parts[r * m + i] = x[i * p + r];
    transform(&parts[r * m], m, roots);
  }
  for (size_t k = 0; k < n; ++k) {
    for (size_t r = 0; r < p; ++r) result[k] += parts[r * m + k % m] * roots[(r * k % n) * root_step];
  }
  std::copy(result.begin(), result.end(), x);
}

std::vector<Z> roots_of(size_t n, int direction) {
  std::vector<Z> roots(n);
  for (size_t k = 0; k < n; ++k) roots[k] = std::polar(Real(1), Real(direction) * 2 * kPi * Real(k) / Real(n));
  return roots;
}

Z read(const Side& side, const void* p, long long i) {
  switch (side.type) {
    case fft::r_32f: return static_cast<const float*>(p)[i];
    case fft::r_64f: return static_cast<const double*>(p)[i];
    case fft::c_32f: return Z(static_cast<const std::complex<float>*>(p)[i]);
    default: return Z(static_cast<const std::complex<double>*>(p)[i]);
  }
}
void write(const Side& side, void* p, long long i, Z v) {
  switch (side.type) {
    case fft::r_32f: static_cast<float*>(p)[i] = float(v.real()); break;
    case fft::r_64f: static_cast<double*>(p)[i] = double(v.real()); break;
    case fft::c_32f: static_cast<std::complex<float>*>(p)[i] = std::complex<float>(v); break;
    default: static_cast<std::complex<double>*>(p)[i] = std::complex<double>(v); break;
  }
}

/// Calls f(place in the whole signal, element of the side's memory, place along the last dimension) for each point.
template <class F>
void for_points(const Plan& p, const Side& side, long long b, const F& f) {
  std::array<long long, 3> n = {1, 1, 1}, count = {1, 1, 1}, embed = {1, 1, 1};  // the last `rank` ones are used
  for (int d = 0; d < p.rank; ++d) {
    const auto at = size_t(3 - p.rank) + size_t(d);
    n[at] = p.n[size_t(d)], count[at] = p.points(side, d), embed[at] = side.embed[size_t(d)];
  }
  for (long long i = 0; i < count[0]; ++i) {
    for (long long j = 0; j < count[1]; ++j) {
      for (long long k = 0; k < count[2]; ++k) {
        f(size_t((i * n[1] + j) * n[2] + k), b * side.dist + ((i * embed[1] + j) * embed[2] + k) * side.stride, k);
      }
    }
  }
}

/// Returns the place of the negative frequency.
size_t mirror_of(const Plan& p, size_t at) {
  size_t mirrored = 0, step = 1;
  for (int d = p.rank; d-- > 0;) {
    const auto n = size_t(p.n[size_t(d)]), i = at % n;
    mirrored += (n - i) % n * step;
    at /= n, step *= n;
  }
  return mirrored;
}

void compute(const Plan& p, void* in, void* out, int direction) {
  std::memset(p.area, 0xa5, p.work_size);  // so that one that is too small or freed is noticed
  size_t points = 1;
  for (int d = 0; d < p.rank; ++d) points *= size_t(p.n[size_t(d)]);
  const bool to_real = !is_complex(p.out.type);
  std::vector<std::vector<Z>> signals;
  for (long long b = 0; b < p.batch; ++b) {
    std::vector<Z>& x = signals.emplace_back(points);
    for_points(p, p.in, b, [&](size_t to, long long from, long long) { x[to] = read(p.in, in, from); });
    if (to_real) {
      for_points(p, p.in, b, [&](size_t at, long long, long long k) {
        const size_t mirrored = mirror_of(p, at);
        const bool own_mirror = k == 0 || 2 * k == p.n[size_t(p.rank - 1)];
        if (own_mirror && x[mirrored] != std::conj(x[at])) x[at] = std::numeric_limits<Real>::quiet_NaN();
        if (!own_mirror) x[mirrored] = std::conj(x[at]);
      });
    }
    size_t inner = points;
    for (int d = 0; d < p.rank; ++d) {
      const auto n = size_t(p.n[size_t(d)]);
      const std::vector<Z> roots = roots_of(n, direction);
      inner /= n;
      std::vector<Z> line(n);
      for (size_t o = 0; o < points / (n * inner); ++o) {
        for (size_t i = 0; i < inner; ++i) {
          for (size_t k = 0; k < n; ++k) line[k] = x[(o * n + k) * inner + i];
          transform(line.data(), n, roots);
          for (size_t k = 0; k < n; ++k) x[(o * n + k) * inner + i] = line[k];
        }
      }
    }
  }
  if (to_real) {
    for (long long b = 0; b < p.batch; ++b) {
      for_points(p, p.in, b, [&](size_t, long long at, long long) { write(p.in, in, at, Z(12345, 6789)); });
    }
  }
  for (long long b = 0; b < p.batch; ++b) {
    for_points(p, p.out, b,
               [&](size_t from, long long to, long long) { write(p.out, out, to, signals[size_t(b)][from]); });
  }
}

// ---- The emulated device ----

void run(void* f) {
  auto* work = static_cast<std::function<void()>*>(f);
  (*work)();
  delete work;
}
void enqueue(void* stream, std::function<void()> work) {
  using Enqueue = void (*)(void*, const char*, void (*)(void*), void*);
  void* library = dlopen(std::getenv("VESTA_CUDA_LIBRARY"), RTLD_NOW | RTLD_NOLOAD);
  reinterpret_cast<Enqueue>(dlsym(library, "vesta_emulation_enqueue"))(stream, "fake_cufft", run,
                                                                       new std::function<void()>(std::move(work)));
  dlclose(library);
}

Plan* find(fft::Handle h) {
  const auto at = plans.find(h);
  return at == plans.end() ? nullptr : &at->second;
}

Status set_side(Side& side, const Plan& p, const long long* embed, long long stride, long long dist, int type) {
  if (!embed) return kNotImplemented;
  if (stride < 1 || dist < 1) return kInvalidValue;
  side = {{}, stride, dist, type};
  std::copy_n(embed, p.rank, side.embed.begin());
  return 0;
}
Status check_side(const Side& side, const Plan& p) {
  for (int d = 1; d < p.rank; ++d) {
    if (side.embed[size_t(d)] < p.points(side, d)) return kInvalidSize;
  }
  return 0;
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT uint64_t fake_cufft_calls() { return calls; }
EXPORT uint64_t fake_cufft_plans_made() { return made; }
EXPORT uint64_t fake_cufft_plans_alive() { return plans.size(); }

EXPORT Status cufftCreate(fft::Handle* to) {
  std::lock_guard guard(lock);
  *to = next_plan++;
  plans[*to] = {};
  return 0;
}
EXPORT Status cufftDestroy(fft::Handle h) {
  std::lock_guard guard(lock);
  return plans.erase(h) ? 0 : kInvalidPlan;
}
EXPORT Status cufftSetAutoAllocation(fft::Handle h, int is_on) {
  std::lock_guard guard(lock);
  Plan* p = find(h);
  if (!p || p->is_made) return kInvalidPlan;
  p->allocates = is_on != 0;
  return 0;
}
EXPORT Status cufftXtMakePlanMany(fft::Handle h, int rank, long long* n, long long* in_embed, long long in_stride,
                                  long long in_dist, int in_type, long long* out_embed, long long out_stride,
                                  long long out_dist, int out_type, long long batch, size_t* work_size,
                                  int execution_type) {
  std::lock_guard guard(lock);
  Plan* p = find(h);
  if (!p || p->is_made || p->allocates) return kInvalidPlan;
  if (told("refuse")) return kInternalError;
  if (told("small") && plans.size() > 3) return plans.size() % 2 ? fft::kAllocationFailed : fft::kInternalError;
  const bool same = is_double(in_type) == is_double(out_type) && is_double(in_type) == is_double(execution_type);
  if (!same || !is_complex(execution_type) || (!is_complex(in_type) && !is_complex(out_type))) return kInvalidType;
  if (rank < 1 || rank > 3 || batch < 1 || !work_size) return kInvalidValue;
  p->rank = rank, p->batch = batch;
  for (int d = 0; d < rank; ++d) {
    if (n[d] < 1) return kInvalidSize;
    p->n[size_t(d)] = n[d];
  }
  for (const Status s : {set_side(p->in, *p, in_embed, in_stride, in_dist, in_type),
                         set_side(p->out, *p, out_embed, out_stride, out_dist, out_type)}) {
    if (s != 0) return s;
  }
  for (const Side* side : {&p->in, &p->out}) {
    if (const Status s = check_side(*side, *p); s != 0) return s;
  }
  p->is_made = true;
  p->work_size = *work_size = size_t(16 * n[0]);
  ++made;
  return 0;
}
EXPORT Status cufftSetStream(fft::Handle h, void* stream) {
  std::lock_guard guard(lock);
  Plan* p = find(h);
  if (!p || !p->is_made) return kInvalidPlan;
  p->stream = stream, p->has_stream = true;
  return 0;
}
EXPORT Status cufftSetWorkArea(fft::Handle h, void* area) {
  std::lock_guard guard(lock);
  Plan* p = find(h);
  if (!p || !p->is_made) return kInvalidPlan;
  p->area = area;
  return 0;
}
EXPORT Status cufftXtExec(fft::Handle h, void* in, void* out, int direction) {
  std::lock_guard guard(lock);
  Plan* p = find(h);
  if (!p || !p->is_made || !p->has_stream) return kInvalidPlan;
  if (!p->area) return kNoWorkspace;
  const size_t alignment = is_double(p->in.type) ? 16 : 8;
  if (reinterpret_cast<uintptr_t>(in) % alignment || reinterpret_cast<uintptr_t>(out) % alignment) return kUnaligned;
  const bool to_real = !is_complex(p->out.type), from_real = !is_complex(p->in.type);
  if ((direction != fft::forward && direction != fft::inverse) || (to_real && direction != fft::inverse) ||
      (from_real && direction != fft::forward)) {
    return kInvalidValue;
  }
  if (in == out && !(p->in == p->out)) return kExecutionFailed;
  enqueue(p->stream, [plan = *p, in, out, direction] { compute(plan, in, out, direction); });
  p->area = nullptr;  // set anew for each call: it is freed after it
  p->has_stream = false;
  ++calls;
  return 0;
}
