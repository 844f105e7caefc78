// A cuSOLVER and cuBLAS for the emulated device: the functions that cuda/lib/solver.cpp calls, with their published
// meanings, by textbook algorithms in long double. Becomes build/fakes/solver/libcusolver.so.12 and libcublas.so.13.
//
// Arguments are checked as the libraries check them: sizes, leading dimensions, types, the size of the workspace (that
// of the query for the same sizes), a stream that was set. FAKE_CUSOLVER chooses what it does: `refuse` fails each
// decomposition, `unconverged` reports that eigenvalues and singular values did not converge.
#include <dlfcn.h>

#include <algorithm>
#include <complex>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <vector>

#include <vesta/cuda/lib/solver_abi.h>

namespace {
namespace sv = vesta::cuda::solver;
using Real = long double;
using Z = std::complex<Real>;
using sv::Status;

constexpr Status kInvalid = 3, kFailed = 6;  // CUSOLVER_STATUS_INVALID_VALUE, EXECUTION_FAILED
uint64_t calls = 0, batched_calls = 0;

bool told(const char* what) {
  const char* text = std::getenv("FAKE_CUSOLVER");
  return text && std::strcmp(text, what) == 0;
}

struct Context {
  void* stream = nullptr;
  bool has_stream = false;
  int mode = 0;
};

void run(void* f) {
  auto* work = static_cast<std::function<void()>*>(f);
  (*work)();
  delete work;
}
Status enqueue(sv::Handle h, std::function<void()> work) {
  auto* c = static_cast<Context*>(h);
  if (!c->has_stream) return kInvalid;
  using Enqueue = void (*)(void*, const char*, void (*)(void*), void*);
  void* library = dlopen(std::getenv("VESTA_CUDA_LIBRARY"), RTLD_NOW | RTLD_NOLOAD);
  reinterpret_cast<Enqueue>(dlsym(library, "vesta_emulation_enqueue"))(c->stream, "fake_cusolver", run,
                                                                       new std::function<void()>(std::move(work)));
  dlclose(library);
  ++calls;
  return 0;
}

// ---- Matrices by columns, of any type ----

Z get(int type, const void* p, int64_t i) {
  switch (type) {
    case sv::r_32f: return static_cast<const float*>(p)[i];
    case sv::r_64f: return static_cast<const double*>(p)[i];
    case sv::c_32f: return Z(static_cast<const std::complex<float>*>(p)[i]);
    default: return Z(static_cast<const std::complex<double>*>(p)[i]);
  }
}
void put(int type, void* p, int64_t i, Z v) {
  switch (type) {
    case sv::r_32f: static_cast<float*>(p)[i] = float(v.real()); break;
    case sv::r_64f: static_cast<double*>(p)[i] = double(v.real()); break;
    case sv::c_32f: static_cast<std::complex<float>*>(p)[i] = std::complex<float>(v); break;
    default: static_cast<std::complex<double>*>(p)[i] = std::complex<double>(v); break;
  }
}
int real_of(int type) { return type == sv::c_32f ? sv::r_32f : type == sv::c_64f ? sv::r_64f : type; }
int type_of(int letter) {
  constexpr int types[] = {sv::r_32f, sv::r_64f, sv::c_32f, sv::c_64f};
  return types[letter];
}

struct Matrix {
  int64_t m, n;
  std::vector<Z> v = std::vector<Z>(size_t(m * n));
  Z& operator()(int64_t i, int64_t j) { return v[size_t(j * m + i)]; }
  const Z& operator()(int64_t i, int64_t j) const { return v[size_t(j * m + i)]; }
};
Matrix read(int type, const void* p, int64_t m, int64_t n, int64_t ld) {
  Matrix a{m, n};
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < m; ++i) a(i, j) = get(type, p, j * ld + i);
  return a;
}
void write(int type, void* p, const Matrix& a, int64_t ld) {
  for (int64_t j = 0; j < a.n; ++j)
    for (int64_t i = 0; i < a.m; ++i) put(type, p, j * ld + i, a(i, j));
}

/// Factors one triangle; returns the order of the first minor that is not positive.
int cholesky(int type, bool is_upper, int64_t n, void* p, int64_t ld) {
  auto at = [&](int64_t i, int64_t j) {
    return is_upper ? std::conj(get(type, p, i * ld + j)) : get(type, p, j * ld + i);
  };
  auto set = [&](int64_t i, int64_t j, Z v) {
    if (is_upper) put(type, p, i * ld + j, std::conj(v));
    else put(type, p, j * ld + i, v);
  };
  for (int64_t j = 0; j < n; ++j) {
    Real d = at(j, j).real();
    for (int64_t k = 0; k < j; ++k) d -= std::norm(at(j, k));
    if (!(d > 0)) return int(j + 1);
    const Real root = std::sqrt(d);
    set(j, j, root);
    for (int64_t i = j + 1; i < n; ++i) {
      Z sum = at(i, j);
      for (int64_t k = 0; k < j; ++k) sum -= at(i, k) * std::conj(at(j, k));
      set(i, j, sum / root);
    }
  }
  return 0;
}

template <class Int>
int lu(int type, int64_t m, int64_t n, void* p, int64_t ld, Int* pivots) {
  Matrix a = read(type, p, m, n, ld);
  int info = 0;
  for (int64_t k = 0; k < std::min(m, n); ++k) {
    auto size = [&](int64_t i) { return std::abs(a(i, k).real()) + std::abs(a(i, k).imag()); };
    int64_t best = k;
    for (int64_t i = k + 1; i < m; ++i) best = size(i) > size(best) ? i : best;
    pivots[k] = Int(best + 1);
    for (int64_t j = 0; j < n; ++j) std::swap(a(k, j), a(best, j));
    if (a(k, k) == Z(0)) {
      if (info == 0) info = int(k + 1);
      continue;
    }
    for (int64_t i = k + 1; i < m; ++i) {
      a(i, k) /= a(k, k);
      for (int64_t j = k + 1; j < n; ++j) a(i, j) -= a(i, k) * a(k, j);
    }
  }
  write(type, p, a, ld);
  return info;
}

/// Applies H = I - tau v v^H (or its adjoint) to columns [from, n) of `a`, v being below row k of column k of `h`.
void reflect(Matrix& a, const Matrix& h, int64_t k, Z tau, int64_t from) {
  for (int64_t j = from; j < a.n; ++j) {
    Z sum = a(k, j);
    for (int64_t i = k + 1; i < a.m; ++i) sum += std::conj(h(i, k)) * a(i, j);
    sum *= tau;
    a(k, j) -= sum;
    for (int64_t i = k + 1; i < a.m; ++i) a(i, j) -= h(i, k) * sum;
  }
}
void householder(Matrix& a, std::vector<Z>& tau) {
  for (int64_t k = 0; k < std::min(a.m, a.n); ++k) {
    Real below = 0;
    for (int64_t i = k + 1; i < a.m; ++i) below += std::norm(a(i, k));
    const Z alpha = a(k, k);
    if (below == 0 && alpha.imag() == 0) {
      tau.emplace_back(0);
      continue;
    }
    const Real norm = std::sqrt(std::norm(alpha) + below), beta = alpha.real() > 0 ? -norm : norm;
    tau.push_back(Z((beta - alpha.real()) / beta, -alpha.imag() / beta));
    for (int64_t i = k + 1; i < a.m; ++i) a(i, k) /= alpha - beta;
    reflect(a, a, k, std::conj(tau.back()), k + 1);
    a(k, k) = beta;
  }
}

/// Makes the columns of a orthogonal by rotations from the right, which v collects (one-sided Jacobi).
void rotate_columns(Matrix& a, Matrix& v) {
  for (int sweep = 0; sweep < 60; ++sweep) {
    bool rotated = false;
    for (int64_t p = 0; p < a.n; ++p) {
      for (int64_t q = p + 1; q < a.n; ++q) {
        Real pp = 0, qq = 0;
        Z pq = 0;
        for (int64_t i = 0; i < a.m; ++i) {
          pp += std::norm(a(i, p)), qq += std::norm(a(i, q)), pq += std::conj(a(i, p)) * a(i, q);
        }
        const Real size = std::abs(pq);
        if (size <= 1e-18L * std::sqrt(pp * qq) || size == 0) continue;
        rotated = true;
        const Real zeta = (qq - pp) / (2 * size);
        const Real t = (zeta >= 0 ? 1 : -1) / (std::abs(zeta) + std::sqrt(1 + zeta * zeta));
        const Real c = 1 / std::sqrt(1 + t * t);
        const Z s = c * t * (pq / size);
        for (Matrix* x : {&a, &v}) {
          for (int64_t i = 0; i < x->m; ++i) {
            const Z xp = (*x)(i, p), xq = (*x)(i, q);
            (*x)(i, p) = c * xp - std::conj(s) * xq;
            (*x)(i, q) = s * xp + c * xq;
          }
        }
      }
    }
    if (!rotated) return;
  }
}

struct Svd {
  Matrix u;  // [m, columns]
  std::vector<Real> s;
  Matrix v;  // [n, n]
};
/// Decomposes [m, n], m >= n.
Svd singular(Matrix a, int64_t columns) {
  Matrix v{a.n, a.n};
  for (int64_t i = 0; i < a.n; ++i) v(i, i) = 1;
  rotate_columns(a, v);
  std::vector<Real> s;
  for (int64_t j = 0; j < a.n; ++j) {
    Real sum = 0;
    for (int64_t i = 0; i < a.m; ++i) sum += std::norm(a(i, j));
    s.push_back(std::sqrt(sum));
  }
  std::vector<int64_t> order(static_cast<size_t>(a.n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t x, int64_t y) { return s[size_t(x)] > s[size_t(y)]; });
  Svd r{Matrix{a.m, columns}, {}, Matrix{a.n, a.n}};
  const Real least = (s.empty() ? 0 : s[size_t(order[0])]) * 1e-17L;
  for (int64_t j = 0; j < columns; ++j) {
    const int64_t from = j < a.n ? order[size_t(j)] : -1;
    if (from >= 0) {
      r.s.push_back(s[size_t(from)]);
      for (int64_t i = 0; i < a.n; ++i) r.v(i, j) = v(i, from);
    }
    for (int64_t guess = 0; guess <= a.m; ++guess) {  // the column itself, else a unit vector made orthogonal
      std::vector<Z> column(static_cast<size_t>(a.m));
      const bool own = guess == 0 && from >= 0 && s[size_t(from)] > least;
      if (guess == 0 && !own) continue;
      for (int64_t i = 0; i < a.m; ++i) column[size_t(i)] = own ? a(i, from) / s[size_t(from)] : Z(i == guess - 1);
      for (int twice = 0; twice < 2; ++twice) {
        for (int64_t k = 0; k < j; ++k) {
          Z dot = 0;
          for (int64_t i = 0; i < a.m; ++i) dot += std::conj(r.u(i, k)) * column[size_t(i)];
          for (int64_t i = 0; i < a.m; ++i) column[size_t(i)] -= dot * r.u(i, k);
        }
      }
      Real norm = 0;
      for (Z x : column) norm += std::norm(x);
      norm = std::sqrt(norm);
      if (norm < 0.1L / Real(a.m)) continue;
      for (int64_t i = 0; i < a.m; ++i) r.u(i, j) = column[size_t(i)] / norm;
      break;
    }
  }
  return r;
}

/// Finds ascending eigenvalues and vectors of a Hermitian matrix: those of A + shift, which is positive definite, are
/// its singular values and vectors.
void hermitian(const Matrix& a, std::vector<Real>& w, Matrix& vectors) {
  Real shift = 0;
  for (Z x : a.v) shift += std::abs(x);
  Matrix b = a;
  for (int64_t i = 0; i < a.n; ++i) b(i, i) += 2 * shift + 1;
  Svd r = singular(b, a.n);
  for (int64_t j = 0; j < a.n; ++j) {
    w.push_back(r.s[size_t(a.n - 1 - j)] - 2 * shift - 1);
    for (int64_t i = 0; i < a.n; ++i) vectors(i, j) = r.v(i, a.n - 1 - j);
  }
}

bool known(int type) { return type == sv::r_32f || type == sv::r_64f || type == sv::c_32f || type == sv::c_64f; }
/// The sizes of workspaces, which depend on all sizes of a call.
Status sizes(int64_t m, int64_t n, int64_t ld, int type, int compute, size_t* device, size_t* host) {
  if (m <= 0 || n <= 0 || ld < m || !known(type) || compute != type) return kInvalid;
  *device = size_t(64 + 8 * m + 16 * n), *host = size_t(8 * n);
  return 0;
}
struct Room {
  void* device;
  size_t device_size;
  void* host;
  size_t host_size;
};
bool fits(int64_t m, int64_t n, int64_t ld, int type, int compute, const Room& r, const void* info) {
  size_t device = 0, host = 0;
  return sizes(m, n, ld, type, compute, &device, &host) == 0 && r.device && r.host && r.device_size >= device &&
         r.host_size >= host && info;
}
/// Uses a workspace, so that one that is too small or freed is noticed.
void use(const Room& r) { std::memset(r.device, 0xa5, r.device_size); }
}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT uint64_t fake_solver_calls() { return calls; }
EXPORT uint64_t fake_solver_batched_calls() { return batched_calls; }
EXPORT Status cusolverDnCreate(sv::Handle* to) {
  *to = new Context;
  return 0;
}
EXPORT Status cusolverDnCreateParams(sv::Params* to) {
  *to = new int;
  return 0;
}
EXPORT Status cusolverDnSetStream(sv::Handle h, void* stream) {
  static_cast<Context*>(h)->stream = stream;
  static_cast<Context*>(h)->has_stream = true;
  return 0;
}
EXPORT Status cusolverDnSetDeterministicMode(sv::Handle h, int mode) {
  static_cast<Context*>(h)->mode = mode;
  return mode == sv::deterministic_results || mode == sv::allow_nondeterministic_results ? 0 : kInvalid;
}
EXPORT Status cusolverDnXpotrf_bufferSize(sv::Handle, sv::Params, int, int64_t n, int type, const void*, int64_t lda,
                                          int compute, size_t* device, size_t* host) {
  return sizes(n, n, lda, type, compute, device, host);
}
EXPORT Status cusolverDnXpotrf(sv::Handle h, sv::Params params, int fill, int64_t n, int type, void* a, int64_t lda,
                               int compute, void* d, size_t ds, void* hb, size_t hs, int* info) {
  const Room r{d, ds, hb, hs};
  if (!params || !fits(n, n, lda, type, compute, r, info) || fill < 0 || fill > 1) return kInvalid;
  if (told("refuse")) return kFailed;
  return enqueue(h, [=] { use(r), *info = cholesky(type, fill == sv::upper, n, a, lda); });
}
EXPORT Status cusolverDnXgetrf_bufferSize(sv::Handle, sv::Params, int64_t m, int64_t n, int type, const void*,
                                          int64_t lda, int compute, size_t* device, size_t* host) {
  return sizes(m, n, lda, type, compute, device, host);
}
EXPORT Status cusolverDnXgetrf(sv::Handle h, sv::Params params, int64_t m, int64_t n, int type, void* a, int64_t lda,
                               int64_t* pivots, int compute, void* d, size_t ds, void* hb, size_t hs, int* info) {
  const Room r{d, ds, hb, hs};
  if (!params || !fits(m, n, lda, type, compute, r, info) || !pivots) return kInvalid;
  if (told("refuse")) return kFailed;
  return enqueue(h, [=] { use(r), *info = lu(type, m, n, a, lda, pivots); });
}
EXPORT Status cusolverDnXgeqrf_bufferSize(sv::Handle, sv::Params, int64_t m, int64_t n, int type, const void*,
                                          int64_t lda, int tau_type, const void*, int compute, size_t* device,
                                          size_t* host) {
  return tau_type != type ? kInvalid : sizes(m, n, lda, type, compute, device, host);
}
EXPORT Status cusolverDnXgeqrf(sv::Handle h, sv::Params params, int64_t m, int64_t n, int type, void* a, int64_t lda,
                               int tau_type, void* tau, int compute, void* d, size_t ds, void* hb, size_t hs,
                               int* info) {
  const Room r{d, ds, hb, hs};
  if (!params || !fits(m, n, lda, type, compute, r, info) || tau_type != type || !tau) return kInvalid;
  if (told("refuse")) return kFailed;
  return enqueue(h, [=] {
    use(r);
    Matrix x = read(type, a, m, n, lda);
    std::vector<Z> t;
    householder(x, t);
    write(type, a, x, lda);
    for (size_t i = 0; i < t.size(); ++i) put(type, tau, int64_t(i), t[i]);
    *info = 0;
  });
}
EXPORT Status cusolverDnXsyevd_bufferSize(sv::Handle, sv::Params, int mode, int, int64_t n, int type, const void*,
                                          int64_t lda, int w_type, const void*, int compute, size_t* device,
                                          size_t* host) {
  return mode != sv::eig_vectors || w_type != real_of(type) ? kInvalid : sizes(n, n, lda, type, compute, device, host);
}
EXPORT Status cusolverDnXsyevd(sv::Handle h, sv::Params params, int mode, int fill, int64_t n, int type, void* a,
                               int64_t lda, int w_type, void* w, int compute, void* d, size_t ds, void* hb, size_t hs,
                               int* info) {
  const Room r{d, ds, hb, hs};
  if (!params || !fits(n, n, lda, type, compute, r, info) || w_type != real_of(type) || mode != sv::eig_vectors)
    return kInvalid;
  if (told("refuse")) return kFailed;
  const int status = told("unconverged") ? 2 : 0;
  return enqueue(h, [=] {
    use(r);
    Matrix x = read(type, a, n, n, lda);
    for (int64_t j = 0; j < n; ++j) {  // from one triangle
      x(j, j) = x(j, j).real();
      for (int64_t i = 0; i < j; ++i) {
        if (fill == sv::upper) x(j, i) = std::conj(x(i, j));
        else x(i, j) = std::conj(x(j, i));
      }
    }
    Matrix vectors{n, n};
    std::vector<Real> values;
    hermitian(x, values, vectors);
    write(type, a, vectors, lda);
    for (int64_t i = 0; i < n; ++i) put(w_type, w, i, values[size_t(i)]);
    *info = status;
  });
}
EXPORT Status cusolverDnXgesvd_bufferSize(sv::Handle, sv::Params, signed char, signed char, int64_t m, int64_t n,
                                          int type, const void*, int64_t lda, int s_type, const void*, int u_type,
                                          const void*, int64_t, int vt_type, const void*, int64_t, int compute,
                                          size_t* device, size_t* host) {
  if (m < n || s_type != real_of(type) || u_type != type || vt_type != type) return kInvalid;
  return sizes(m, n, lda, type, compute, device, host);
}
EXPORT Status cusolverDnXgesvd(sv::Handle h, sv::Params params, signed char job_u, signed char job_vt, int64_t m,
                               int64_t n, int type, void* a, int64_t lda, int s_type, void* s, int u_type, void* u,
                               int64_t ldu, int vt_type, void* vt, int64_t ldvt, int compute, void* d, size_t ds,
                               void* hb, size_t hs, int* info) {
  const Room r{d, ds, hb, hs};
  const bool types = s_type == real_of(type) && u_type == type && vt_type == type;
  const bool jobs = job_u == job_vt && (job_u == 'A' || job_u == 'S');
  if (!params || !fits(m, n, lda, type, compute, r, info) || m < n || !types || !jobs || ldu < m || ldvt < n)
    return kInvalid;
  if (told("refuse")) return kFailed;
  const int status = told("unconverged") ? 2 : 0;
  return enqueue(h, [=] {
    use(r);
    const Svd x = singular(read(type, a, m, n, lda), job_u == 'A' ? m : n);
    write(type, u, x.u, ldu);
    for (int64_t j = 0; j < n; ++j) {
      put(s_type, s, j, x.s[size_t(j)]);
      for (int64_t i = 0; i < n; ++i) put(type, vt, i * ldvt + j, std::conj(x.v(i, j)));
    }
    *info = status;
  });
}

namespace {
Status orgqr_size(int m, int n, int k, int lda, int* size) {
  if (n > m || k > n || k <= 0 || lda < m) return kInvalid;
  *size = 32 * n;
  return 0;
}
Status orgqr(int letter, sv::Handle h, int m, int n, int k, void* a, int lda, const void* tau, void* work, int size,
             int* info) {
  int wanted = 0;
  if (orgqr_size(m, n, k, lda, &wanted) != 0 || size < wanted || !work || !info) return kInvalid;
  const int type = type_of(letter);
  return enqueue(h, [=] {
    std::memset(work, 0xa5, size_t(size) * 4);
    const Matrix reflections = read(type, a, m, k, lda);
    Matrix q{m, n};
    for (int64_t i = 0; i < n; ++i) q(i, i) = 1;
    for (int64_t i = k; i-- > 0;) reflect(q, reflections, i, get(type, tau, i), 0);
    write(type, a, q, lda);
    *info = 0;
  });
}
Status potrf_batched(int letter, sv::Handle h, int fill, int n, void* const* a, int lda, int* info, int count) {
  if (n <= 0 || lda < n || count <= 0 || !a || !info) return kInvalid;
  if (told("refuse")) return kFailed;
  ++batched_calls;
  return enqueue(h, [=] {
    for (int i = 0; i < count; ++i) {
      info[i] = cholesky(type_of(letter), fill == sv::upper, n, a[i], lda);
      for (int64_t j = 0; j < n; ++j) {  // the real one leaves numbers in the other triangle
        for (int64_t k = 0; k < j; ++k) {
          const int64_t row = fill == sv::upper ? j : k, column = fill == sv::upper ? k : j;
          put(type_of(letter), a[i], column * lda + row, 7);
        }
      }
    }
  });
}
Status getrf_batched(int letter, sv::Handle h, int n, void* const* a, int lda, int* pivots, int* info, int count) {
  if (n <= 0 || lda < n || count <= 0 || !a || !info || !pivots) return kInvalid;
  if (told("refuse")) return kFailed;
  ++batched_calls;
  return enqueue(h, [=] {
    for (int i = 0; i < count; ++i) info[i] = lu(type_of(letter), n, n, a[i], lda, pivots + int64_t(i) * n);
  });
}
/// Solves one system of one triangle.
void solve(int type, bool is_left, bool is_upper, bool is_unit, int64_t m, int64_t n, const void* a, int64_t lda,
           void* b, int64_t ldb) {
  const int64_t order = is_left ? m : n, others = is_left ? n : m;
  auto at = [&](int64_t i, int64_t j) { return get(type, a, j * lda + i); };
  auto place = [&](int64_t i, int64_t other) { return is_left ? other * ldb + i : i * ldb + other; };
  for (int64_t o = 0; o < others; ++o) {
    for (int64_t step = 0; step < order; ++step) {
      const bool from_end = is_left == is_upper;
      const int64_t i = from_end ? order - 1 - step : step;
      Z sum = get(type, b, place(i, o));
      for (int64_t done = 0; done < step; ++done) {
        const int64_t k = from_end ? order - 1 - done : done;
        sum -= (is_left ? at(i, k) : at(k, i)) * get(type, b, place(k, o));
      }
      put(type, b, place(i, o), is_unit ? sum : sum / at(i, i));
    }
  }
}
Status trsm(int letter, sv::Handle h, int side, int fill, int transpose, int diagonal, int m, int n, const void* alpha,
            const void* a, int lda, void* b, int ldb) {
  const int type = type_of(letter);
  if (m <= 0 || n <= 0 || lda < (side == sv::left ? m : n) || ldb < m || transpose != sv::op_n) return kInvalid;
  if (get(type, alpha, 0) != Z(1)) return kInvalid;
  return enqueue(h,
                 [=] { solve(type, side == sv::left, fill == sv::upper, diagonal == sv::unit, m, n, a, lda, b, ldb); });
}
Status trsm_batched(int letter, sv::Handle h, int side, int fill, int transpose, int diagonal, int m, int n,
                    const void* alpha, const void* const* a, int lda, void* const* b, int ldb, int count) {
  const int type = type_of(letter);
  if (m <= 0 || n <= 0 || lda < (side == sv::left ? m : n) || ldb < m || transpose != sv::op_n) return kInvalid;
  if (get(type, alpha, 0) != Z(1) || count <= 0) return kInvalid;
  ++batched_calls;
  return enqueue(h, [=] {
    for (int i = 0; i < count; ++i) {
      solve(type, side == sv::left, fill == sv::upper, diagonal == sv::unit, m, n, a[i], lda, b[i], ldb);
    }
  });
}
}  // namespace

EXPORT Status cublasCreate_v2(sv::Handle* to) { return cusolverDnCreate(to); }
EXPORT Status cublasSetStream_v2(sv::Handle h, void* stream) { return cusolverDnSetStream(h, stream); }

#define FOR_LETTER(number, letter, q)                                                                                  \
  EXPORT Status cusolverDn##letter##q##_bufferSize(sv::Handle, int m, int n, int k, const void*, int lda, const void*, \
                                                   int* size) {                                                        \
    return orgqr_size(m, n, k, lda, size);                                                                             \
  }                                                                                                                    \
  EXPORT Status cusolverDn##letter##q(sv::Handle h, int m, int n, int k, void* a, int lda, const void* tau, void* w,   \
                                      int size, int* info) {                                                           \
    return orgqr(number, h, m, n, k, a, lda, tau, w, size, info);                                                      \
  }                                                                                                                    \
  EXPORT Status cusolverDn##letter##potrfBatched(sv::Handle h, int fill, int n, void* const* a, int lda, int* info,    \
                                                 int count) {                                                          \
    return potrf_batched(number, h, fill, n, a, lda, info, count);                                                     \
  }                                                                                                                    \
  EXPORT Status cublas##letter##getrfBatched(sv::Handle h, int n, void* const* a, int lda, int* pivots, int* info,     \
                                             int count) {                                                              \
    return getrf_batched(number, h, n, a, lda, pivots, info, count);                                                   \
  }                                                                                                                    \
  EXPORT Status cublas##letter##trsm_v2(sv::Handle h, int side, int fill, int t, int diagonal, int m, int n,           \
                                        const void* alpha, const void* a, int lda, void* b, int ldb) {                 \
    return trsm(number, h, side, fill, t, diagonal, m, n, alpha, a, lda, b, ldb);                                      \
  }                                                                                                                    \
  EXPORT Status cublas##letter##trsmBatched(sv::Handle h, int side, int fill, int t, int diagonal, int m, int n,       \
                                            const void* alpha, const void* const* a, int lda, void* const* b, int ldb, \
                                            int count) {                                                               \
    return trsm_batched(number, h, side, fill, t, diagonal, m, n, alpha, a, lda, b, ldb, count);                       \
  }
FOR_LETTER(0, S, orgqr)
FOR_LETTER(1, D, orgqr)
FOR_LETTER(2, C, ungqr)
FOR_LETTER(3, Z, ungqr)
