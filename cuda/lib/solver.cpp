#include <vesta/cuda/lib/solver.h>

#include <fmt/format.h>

#include <array>
#include <complex>

#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/precision.h>

namespace vesta::cuda::solver {
namespace {

struct LoadedSolver {
  Library library{{"cuSOLVER", "cusolver", {"libcusolver.so.12", "libcusolver.so.11", "libcusolver.so"}, 1}};
  SolverFunctions f{};

  LoadedSolver() {
    library.resolve(&f.create, "cusolverDnCreate");
    library.resolve(&f.create_params, "cusolverDnCreateParams");
    library.resolve(&f.set_stream, "cusolverDnSetStream");
    library.resolve(&f.set_deterministic, "cusolverDnSetDeterministicMode");
    library.resolve(&f.potrf_size, "cusolverDnXpotrf_bufferSize");
    library.resolve(&f.potrf, "cusolverDnXpotrf");
    library.resolve(&f.getrf_size, "cusolverDnXgetrf_bufferSize");
    library.resolve(&f.getrf, "cusolverDnXgetrf");
    library.resolve(&f.geqrf_size, "cusolverDnXgeqrf_bufferSize");
    library.resolve(&f.geqrf, "cusolverDnXgeqrf");
    library.resolve(&f.syevd_size, "cusolverDnXsyevd_bufferSize");
    library.resolve(&f.syevd, "cusolverDnXsyevd");
    library.resolve(&f.gesvd_size, "cusolverDnXgesvd_bufferSize");
    library.resolve(&f.gesvd, "cusolverDnXgesvd");
    for (int i = 0; i < 4; ++i) {
      const std::string q = fmt::format("cusolverDn{}{}", kLetters[i], i < 2 ? "orgqr" : "ungqr");
      library.resolve(&f.orgqr_size[i], (q + "_bufferSize").c_str());
      library.resolve(&f.orgqr[i], q.c_str());
      library.resolve(&f.potrf_batched[i], fmt::format("cusolverDn{}potrfBatched", kLetters[i]).c_str());
    }
  }
  static LoadedSolver& get() {
    static auto* loaded = new LoadedSolver;  // never destroyed: other threads may compute while the process ends
    return *loaded;
  }
};

struct LoadedBlas {
  Library library{{"cuBLAS", "cublas", {"libcublas.so.13", "libcublas.so.12", "libcublas.so"}}};
  BlasFunctions f{};

  LoadedBlas() {
    library.resolve(&f.create, "cublasCreate_v2");
    library.resolve(&f.set_stream, "cublasSetStream_v2");
    for (int i = 0; i < 4; ++i) {
      library.resolve(&f.trsm[i], fmt::format("cublas{}trsm_v2", kLetters[i]).c_str());
      library.resolve(&f.trsm_batched[i], fmt::format("cublas{}trsmBatched", kLetters[i]).c_str());
      library.resolve(&f.getrf_batched[i], fmt::format("cublas{}getrfBatched", kLetters[i]).c_str());
    }
  }
  static LoadedBlas& get() {
    static auto* loaded = new LoadedBlas;
    return *loaded;
  }
};

/// The handles of a device, used by one thread at a time (queueing is short).
struct PerDevice {
  std::mutex lock;
  Handle solver = nullptr, blas = nullptr;
  Params params = nullptr;
  static PerDevice& get(int device) {
    static auto& all = *new std::array<PerDevice, kMaxDevices>;
    return all[size_t(device)];
  }
};

/// Returns the place of a dtype in kLetters.
int letter_of(DType d) { return d == DType::float32 ? 0 : d == DType::float64 ? 1 : d == DType::complex64 ? 2 : 3; }
int type_of(DType d) {
  constexpr int types[] = {r_32f, r_64f, c_32f, c_64f};
  return types[letter_of(d)];
}

int* status_at(const Tensor& info, int64_t i) { return info.data_ptr<int32_t>() + i; }
void** pointers_in(const Tensor& table) { return reinterpret_cast<void**>(table.impl()->data()); }
char* row(const Tensor& t, int64_t i, int64_t columns) {
  return static_cast<char*>(t.impl()->data()) + i * columns * t.element_size();
}

}  // namespace

void* Matrices::at(int64_t i) const { return row(memory, i, step); }

void expect_libraries(bool blas) {
  const Library& other = LoadedBlas::get().library;  // first: cuSOLVER needs it
  const Library& library = LoadedSolver::get().library;
  const Library& missing = library.usable() ? other : library;
  if (library.usable() && (!blas || other.usable())) return;
  throw Refused(is_emulated() ? "" : missing.problem() + " Decompositions of matrices run on the host.");
}

Solver::Solver(const Tensor& like, bool needs_blas)
    : like_(like),
      letter_(letter_of(like.dtype())),
      type_(type_of(like.dtype())),
      real_type_(type_of(vesta::real_type(like.dtype()))),
      guard_(like.device().index()) {
  expect_libraries(needs_blas);
  LoadedSolver& loaded = LoadedSolver::get();
  LoadedBlas& blas = LoadedBlas::get();
  PerDevice& on = PerDevice::get(like.device().index());
  lock_ = std::unique_lock(on.lock);
  void* stream = current_stream(like.device().index()).handle();
  if (!on.solver) check(loaded.f.create(&on.solver), "cusolverDnCreate");
  if (!on.params) check(loaded.f.create_params(&on.params), "cusolverDnCreateParams");
  solver_ = on.solver, params_ = on.params;
  check(loaded.f.set_stream(solver_, stream), "cusolverDnSetStream");
  const int mode = may_be_nondeterministic() ? allow_nondeterministic_results : deterministic_results;
  check(loaded.f.set_deterministic(solver_, mode), "cusolverDnSetDeterministicMode");
  if (!blas.library.usable()) return;
  if (!on.blas) check(blas.f.create(&on.blas), "cublasCreate");
  blas_ = on.blas;
  check(blas.f.set_stream(blas_, stream), "cublasSetStream");
}

void Solver::check(Status s, const char* call) const {
  if (s != 0) throw Refused(fmt::format("{} failed with status {}; the host computes instead.", call, s));
}

Solver::Room Solver::room(size_t device, size_t host) {
  if (!workspace_.defined() || size_t(workspace_.numel()) < device) {
    workspace_ = empty_tensor(Dims{int64_t(std::max<size_t>(device, 1))}, DType::uint8, like_.device());
  }
  if (host_workspace_.size() < host) host_workspace_.resize(host);
  return {workspace_.impl()->data(), device, host ? host_workspace_.data() : nullptr, host};
}

Tensor Solver::pointers(const Matrices& a) const {
  const auto first = int64_t(reinterpret_cast<uintptr_t>(a.at(0)));
  const int64_t bytes = a.step * like_.element_size();
  return vesta::arange(first, first + a.count * bytes, bytes, DType::int64, like_.device());
}

int* Solver::own_info() {
  if (!info_.defined()) info_ = empty_tensor(Dims{1}, DType::int32, like_.device());
  return status_at(info_, 0);
}

void Solver::potrf(bool is_upper, int64_t n, const Matrices& a, const Tensor& info) {
  const SolverFunctions& f = LoadedSolver::get().f;
  const int fill = is_upper ? upper : lower;
  if (a.count > 1 && n <= kBatchedOrder) {
    const Tensor table = pointers(a);
    return check(f.potrf_batched[letter_](solver_, fill, int(n), pointers_in(table), int(a.ld), status_at(info, 0),
                                          int(a.count)),
                 "cusolverDnpotrfBatched");
  }
  size_t device = 0, host = 0;
  check(f.potrf_size(solver_, params_, fill, n, type_, a.at(0), a.ld, type_, &device, &host),
        "cusolverDnXpotrf_bufferSize");
  const Room r = room(device, host);
  for (int64_t i = 0; i < a.count; ++i) {
    check(f.potrf(solver_, params_, fill, n, type_, a.at(i), a.ld, type_, r.device, r.device_size, r.host, r.host_size,
                  status_at(info, i)),
          "cusolverDnXpotrf");
  }
}

void Solver::getrf(int64_t m, int64_t n, const Matrices& a, const Tensor& pivots, const Tensor& info) {
  const int64_t k = std::min(m, n);
  if (a.count > 1 && m == n && n <= kBatchedOrder && blas_) {
    const Tensor table = pointers(a);
    return check(
        LoadedBlas::get().f.getrf_batched[letter_](blas_, int(n), pointers_in(table), int(a.ld),
                                                   pivots.data_ptr<int32_t>(), status_at(info, 0), int(a.count)),
        "cublasgetrfBatched");
  }
  const SolverFunctions& f = LoadedSolver::get().f;
  size_t device = 0, host = 0;
  check(f.getrf_size(solver_, params_, m, n, type_, a.at(0), a.ld, type_, &device, &host),
        "cusolverDnXgetrf_bufferSize");
  const Room r = room(device, host);
  const Tensor wide = empty_tensor(Dims{a.count, k}, DType::int64, like_.device());
  for (int64_t i = 0; i < a.count; ++i) {
    check(f.getrf(solver_, params_, m, n, type_, a.at(i), a.ld, wide.data_ptr<int64_t>() + i * k, type_, r.device,
                  r.device_size, r.host, r.host_size, status_at(info, i)),
          "cusolverDnXgetrf");
  }
  copy_values(alias(pivots, Dims{a.count, k}, Dims{k, 1}, pivots.storage_offset(), "getrf"), wide);
}

void Solver::geqrf(int64_t m, int64_t n, const Matrices& a, const Tensor& tau) {
  const SolverFunctions& f = LoadedSolver::get().f;
  size_t device = 0, host = 0;
  check(f.geqrf_size(solver_, params_, m, n, type_, a.at(0), a.ld, type_, tau.impl()->data(), type_, &device, &host),
        "cusolverDnXgeqrf_bufferSize");
  const Room r = room(device, host);
  for (int64_t i = 0; i < a.count; ++i) {
    check(f.geqrf(solver_, params_, m, n, type_, a.at(i), a.ld, type_, row(tau, i, std::min(m, n)), type_, r.device,
                  r.device_size, r.host, r.host_size, own_info()),
          "cusolverDnXgeqrf");
  }
}

void Solver::orgqr(int64_t m, int64_t n, int64_t k, const Matrices& a, const Tensor& tau) {
  const SolverFunctions& f = LoadedSolver::get().f;
  int size = 0;
  check(f.orgqr_size[letter_](solver_, int(m), int(n), int(k), a.at(0), int(a.ld), tau.impl()->data(), &size),
        "cusolverDnorgqr_bufferSize");
  const Room r = room(size_t(size) * size_t(like_.element_size()), 0);
  for (int64_t i = 0; i < a.count; ++i) {
    check(f.orgqr[letter_](solver_, int(m), int(n), int(k), a.at(i), int(a.ld), row(tau, i, k), r.device, size,
                           own_info()),
          "cusolverDnorgqr");
  }
}

void Solver::syevd(bool is_upper, int64_t n, const Matrices& a, const Tensor& w, const Tensor& info) {
  const SolverFunctions& f = LoadedSolver::get().f;
  const int fill = is_upper ? upper : lower;
  size_t device = 0, host = 0;
  check(f.syevd_size(solver_, params_, eig_vectors, fill, n, type_, a.at(0), a.ld, real_type_, w.impl()->data(), type_,
                     &device, &host),
        "cusolverDnXsyevd_bufferSize");
  const Room r = room(device, host);
  for (int64_t i = 0; i < a.count; ++i) {
    check(f.syevd(solver_, params_, eig_vectors, fill, n, type_, a.at(i), a.ld, real_type_, row(w, i, n), type_,
                  r.device, r.device_size, r.host, r.host_size, status_at(info, i)),
          "cusolverDnXsyevd");
  }
}

void Solver::gesvd(bool all, int64_t m, int64_t n, const Matrices& a, const Tensor& s, const Matrices& u,
                   const Matrices& vh, const Tensor& info) {
  const SolverFunctions& f = LoadedSolver::get().f;
  const signed char job = all ? 'A' : 'S';
  size_t device = 0, host = 0;
  check(f.gesvd_size(solver_, params_, job, job, m, n, type_, a.at(0), a.ld, real_type_, s.impl()->data(), type_,
                     u.at(0), u.ld, type_, vh.at(0), vh.ld, type_, &device, &host),
        "cusolverDnXgesvd_bufferSize");
  const Room r = room(device, host);
  for (int64_t i = 0; i < a.count; ++i) {
    check(
        f.gesvd(solver_, params_, job, job, m, n, type_, a.at(i), a.ld, real_type_, row(s, i, n), type_, u.at(i), u.ld,
                type_, vh.at(i), vh.ld, type_, r.device, r.device_size, r.host, r.host_size, status_at(info, i)),
        "cusolverDnXgesvd");
  }
}

void Solver::trsm(bool is_left, bool is_upper, bool is_unit, int64_t m, int64_t n, const Matrices& a,
                  const Matrices& b) {
  const BlasFunctions& f = LoadedBlas::get().f;
  const int side = is_left ? left : right, fill = is_upper ? upper : lower, diagonal = is_unit ? unit : non_unit;
  const float one_f = 1;
  const double one_d = 1;
  const std::complex<float> one_c = 1;
  const std::complex<double> one_z = 1;
  const void* ones[] = {&one_f, &one_d, &one_c, &one_z};
  if (b.count > 1 && (is_left ? m : n) <= kBatchedOrder) {
    const Tensor as = pointers(a), bs = pointers(b);
    return check(f.trsm_batched[letter_](blas_, side, fill, op_n, diagonal, int(m), int(n), ones[letter_],
                                         pointers_in(as), int(a.ld), pointers_in(bs), int(b.ld), int(b.count)),
                 "cublastrsmBatched");
  }
  for (int64_t i = 0; i < b.count; ++i) {
    check(f.trsm[letter_](blas_, side, fill, op_n, diagonal, int(m), int(n), ones[letter_], a.at(i), int(a.ld), b.at(i),
                          int(b.ld)),
          "cublastrsm");
  }
}

}  // namespace vesta::cuda::solver
