#include <vesta/core/cpu/fft_lanes.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <map>
#include <memory>
#include <mutex>
#include <numbers>

#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/scratch.h>

namespace vesta::cpu {
namespace {

FftKernels fft_kernels;

void run_kernel(const FftGroup<float>& g) { fft_kernels.of_float(g); }
void run_kernel(const FftGroup<double>& g) { fft_kernels.of_double(g); }
template <class T>
int64_t lanes() {
  return fft_kernels.lanes_of_float * int64_t(sizeof(float)) / int64_t(sizeof(T));
}

/// Returns exp(-2 pi i k / n), rounded from an angle of at most an eighth of the circle.
std::complex<double> root_of_unity(int64_t k, int64_t n) {
  k %= n;
  const int64_t eighth = 8 * k / n, quarter = (eighth + 1) / 2;  // the nearest axis
  const double angle = 2 * std::numbers::pi * double(4 * k - quarter * n) / double(4 * n);
  const double c = std::cos(angle), s = std::sin(angle);
  switch (quarter % 4) {
    case 0: return {c, -s};
    case 1: return {-s, -c};
    case 2: return {-c, s};
    default: return {s, c};
  }
}

std::vector<int> radices_of(int64_t n) {
  std::vector<int> radices;
  for (int r : {13, 11, 7, 5, 3}) {
    for (; n % r == 0; n /= r) radices.push_back(r);
  }
  int64_t twos = 0;
  for (; n % 2 == 0; n /= 2) ++twos;
  if (twos == 1) radices.push_back(2);
  for (; twos % 3 != 0 && twos > 1; twos -= 2) radices.push_back(4);
  radices.insert(radices.end(), size_t(twos / 3), 8);
  return radices;
}

template <class T>
void append_root(std::vector<T>& roots, int64_t k, int64_t n) {
  const std::complex<double> w = root_of_unity(k, n);
  roots.push_back(T(w.real())), roots.push_back(T(w.imag()));
}

template <class T>
FftTables<T> make_tables(int64_t n) {
  FftTables<T> t{.n = n, .passes = {}, .place = {}, .roots = {}, .halves = {}};
  int64_t length = 1;
  for (int r : radices_of(n)) {
    t.passes.push_back({r, length, int64_t(t.roots.size())});
    for (int64_t p = 1; p < length; ++p) {
      for (int64_t j = 1; j < r; ++j) append_root(t.roots, p * j, r * length);
    }
    length *= r;
  }
  for (int64_t k = 0; k < n; ++k) {
    int64_t rest = k, place = 0;
    for (size_t i = t.passes.size(); i-- > 0; rest /= t.passes[i].radix)
      place += rest % t.passes[i].radix * t.passes[i].length;
    t.place.push_back(int32_t(place));
  }
  t.place.push_back(int32_t(n));
  for (int64_t k = 0; 2 * k <= n; ++k) append_root(t.halves, k, 2 * n);
  return t;
}

constexpr size_t kMostKept = 32;  // tables of so many lengths stay, and of an eighth as many long ones
constexpr int64_t kLongestKept = 1 << 20;  // points; longer ones, of 16 MiB and more, are made each time

/// What make(n) made for the lengths asked for lately.
template <class Made, size_t most>
class Kept {
 public:
  template <class Make>
  std::shared_ptr<const Made> get(int64_t n, const Make& make) {
    if (n > kLongestKept) return std::make_shared<const Made>(make(n));
    {
      const std::lock_guard lock(mutex_);
      if (auto found = made_.find(n); found != made_.end()) return found->second;
    }
    auto fresh = std::make_shared<const Made>(make(n));  // by all threads, hence without the lock
    const std::lock_guard lock(mutex_);
    if (made_.size() >= most) made_.clear();
    return made_[n] = std::move(fresh);
  }

 private:
  std::mutex mutex_;
  std::map<int64_t, std::shared_ptr<const Made>> made_;
};

template <class T>
std::shared_ptr<const FftTables<T>> tables_of(int64_t n) {
  static Kept<FftTables<T>, kMostKept> kept;
  return kept.get(n, make_tables<T>);
}

/// Memory for the buffer of a group of lines of n points.
template <class T>
struct GroupBuffer : ScratchArray<T> {
  explicit GroupBuffer(int64_t n)
      : ScratchArray<T>(Scratch::partial, size_t(n + 1) * 2 * kFftVectorBytes / sizeof(T)) {}
};

/// How lines are cut into groups: rows of `inner` lines into `in_row` groups each.
struct Groups {
  int64_t lanes, inner, in_row, count;
  Groups(const Dims& sizes, int64_t lanes) : lanes(lanes) {
    int64_t lines = 1;
    for (int64_t size : sizes) lines *= size;
    inner = sizes.empty() || 2 * sizes.back() < lanes ? lines : sizes.back();
    in_row = (inner + lanes - 1) / lanes;
    count = inner ? lines / inner * in_row : 0;
  }
  int64_t first(int64_t group) const { return group / in_row * inner + group % in_row * lanes; }
  int64_t lines(int64_t group) const { return std::min(lanes, inner - group % in_row * lanes); }
};

constexpr int64_t kGroupGrain = 32768;  // points in one piece of a loop

/// Transforms lines of at most kFftLongest points; `turns`: rows that point k is multiplied by, a number per line.
template <class T>
void transform_short_lines(const FftJob<T>& job, const T* turns = nullptr, int64_t turns_row = 0) {
  const auto tables = tables_of<T>(job.n);
  const Groups groups(job.sizes, lanes<T>());
  const int64_t grain = std::max<int64_t>(1, kGroupGrain / (job.n * groups.lanes));
  parallel_for(groups.count, grain, [&](int64_t from, int64_t to) {
    const GroupBuffer<T> buffer(job.n);
    int64_t begin[kFftVectorBytes / sizeof(T)], end[kFftVectorBytes / sizeof(T)];
    for (int64_t group = from; group < to; ++group) {
      const int64_t lines = groups.lines(group);
      for (int64_t l = 0; l < lines; ++l) {
        begin[l] = offset_of_line(job.sizes, job.from.strides, groups.first(group) + l);
        end[l] = offset_of_line(job.sizes, job.to.strides, groups.first(group) + l);
      }
      run_kernel(FftGroup<T>{.tables = tables.get(),
                             .kind = job.kind,
                             .forward = job.forward,
                             .lines = int(lines),
                             .out = job.out,
                             .from = {job.from.data, begin, job.from.step, job.from.imaginary},
                             .to = {job.to.data, end, job.to.step, job.to.imaginary},
                             .scale = job.scale,
                             .buffer = buffer.data(),
                             .turns = turns ? turns + 2 * groups.first(group) : nullptr,
                             .turns_row = turns_row});
    }
  });
}

// ---- long lines ----------------------------------------------------------------------------------------------------

/// exp(-2 pi i k / n) for any k < n, each the product of two that are kept.
class Roots {
 public:
  explicit Roots(int64_t n) {
    for (int64_t k = 0; k < kFine; ++k) small_.push_back(root_of_unity(k, n));
    for (int64_t k = 0; k < n; k += kFine) large_.push_back(root_of_unity(k, n));
  }
  std::complex<double> operator()(int64_t k) const {
    return product(large_[size_t(k / kFine)], small_[size_t(k % kFine)]);
  }
  static std::complex<double> product(std::complex<double> a, std::complex<double> b) {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  }

 private:
  static constexpr int64_t kFine = 1024;
  std::vector<std::complex<double>> small_, large_;
};

/// A length as a product of two that are near to each other, and exp(-2 pi i j k / n) for all j < rows, k < columns.
template <class T>
struct LongTables {
  int64_t rows, columns;
  std::vector<T> turns;
};

/// Returns the largest divisor of n whose square is at most n.
int64_t rows_of(int64_t n) {
  for (int64_t rows = int64_t(std::sqrt(double(n))) + 1;; --rows) {
    if (rows * rows <= n && n % rows == 0) return rows;
  }
}

template <class T>
LongTables<T> make_long_tables(int64_t n) {
  LongTables<T> t{rows_of(n), 0, std::vector<T>(size_t(2 * n))};
  t.columns = n / t.rows;
  const Roots root(n);
  parallel_for(t.rows, std::max<int64_t>(1, kGroupGrain / t.columns), [&](int64_t from, int64_t to) {
    for (int64_t j = from; j < to; ++j) {
      for (int64_t k = 0; k < t.columns; ++k) {
        const std::complex<double> w = root(j * k);
        T* const at = &t.turns[size_t(2 * (j * t.columns + k))];
        at[0] = T(w.real()), at[1] = T(w.imag());
      }
    }
  });
  return t;
}

/// Long lines, one after the other: what their groups need.
template <class T>
class LongLines {
 public:
  explicit LongLines(const FftJob<T>& job)
      : job_(job),
        tables_(tables(job.n)),
        middle_(size_t(2 * job.n)),
        line_(job.kind == FftKind::complex ? 0 : size_t(2 * job.n)) {}

  void run(int64_t begin, int64_t end) {
    const FftLines<const T> from{job_.from.data + begin, nullptr, job_.from.step, job_.from.imaginary};
    const FftLines<T> to{job_.to.data + end, nullptr, job_.to.step, job_.to.imaginary};
    const FftLines<T> line{line_.data(), nullptr, 2, 1};
    const FftLines<const T> filled{line_.data(), nullptr, 2, 1};
    switch (job_.kind) {
      case FftKind::complex: return transform(from, to, job_.scale);
      case FftKind::from_pairs: transform(from, line, 1); return write_spectrum(to);
      case FftKind::from_real:
        for (int64_t k = 0; k < job_.n; ++k) set(k, {double(from.data[k * from.step]), 0});
        transform(filled, line, job_.scale);
        for (int64_t k = 0; k < job_.out; ++k) put(to, k, get(k));
        return;
      case FftKind::to_pairs: read_spectrum(from); return transform(filled, to, job_.scale);
      case FftKind::to_odd_reals:
        set(0, {double(from.data[0]), 0});
        for (int64_t k = 1; 2 * k < job_.n; ++k) {
          const std::complex<double> x = at(from, k);
          set(k, x), set(job_.n - k, std::conj(x));
        }
        transform(filled, line, job_.scale);
        for (int64_t k = 0; k < job_.n; ++k) to.data[k * to.step] = line_[size_t(2 * k)];
    }
  }

 private:
  using Number = std::complex<double>;
  static std::shared_ptr<const LongTables<T>> tables(int64_t n) {
    static Kept<LongTables<T>, kMostKept / 8> kept;
    return kept.get(n, make_long_tables<T>);
  }
  Number get(int64_t k) const { return {double(line_[size_t(2 * k)]), double(line_[size_t(2 * k + 1)])}; }
  void set(int64_t k, Number x) { line_[size_t(2 * k)] = T(x.real()), line_[size_t(2 * k + 1)] = T(x.imag()); }
  static Number at(const FftLines<const T>& lines, int64_t k) {
    const T* const p = lines.data + k * lines.step;
    return {double(p[0]), double(p[lines.imaginary])};
  }
  static void put(const FftLines<T>& lines, int64_t k, Number x) {
    T* const p = lines.data + k * lines.step;
    p[0] = T(x.real()), p[lines.imaginary] = T(x.imag());
  }

  /// Transforms a complex line by the columns and the rows of a matrix.
  void transform(const FftLines<const T>& from, const FftLines<T>& to, T scale) {
    const int64_t rows = tables_->rows, columns = tables_->columns, row = 2 * columns;
    transform_short_lines<T>({.kind = FftKind::complex,
                              .forward = job_.forward,
                              .n = rows,
                              .out = rows,
                              .sizes = {columns},
                              .from = {from.data, from.step * columns, from.imaginary, {from.step}},
                              .to = {middle_.data(), row, 1, {2}},
                              .scale = 1},
                             tables_->turns.data(), row);
    transform_short_lines<T>({.kind = FftKind::complex,
                              .forward = job_.forward,
                              .n = columns,
                              .out = columns,
                              .sizes = {rows},
                              .from = {middle_.data(), 2, 1, {row}},
                              .to = {to.data, to.step * rows, to.imaginary, {to.step}},
                              .scale = scale});
  }

  /// Does what unpack_pairs() of the kernels does.
  void write_spectrum(const FftLines<T>& to) {
    const Roots root(2 * job_.n);
    const double scale = double(job_.scale);
    const Number first = get(0);
    put(to, 0, scale * (first.real() + first.imag())), put(to, job_.n, scale * (first.real() - first.imag()));
    parallel_for(job_.n - 1, kGroupGrain, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin + 1; k <= end; ++k) {
        const Number z = get(k), mirrored = std::conj(get(job_.n - k)), odd = z - mirrored;
        const Number turned = Roots::product(root(k), {odd.imag(), -odd.real()});
        put(to, k, 0.5 * scale * (z + mirrored + turned));
      }
    });
  }
  /// Does what pack_pairs() does.
  void read_spectrum(const FftLines<const T>& from) {
    const Roots root(2 * job_.n);
    const double first = double(from.data[0]), last = double(from.data[job_.n * from.step]);
    set(0, {first + last, first - last});
    parallel_for(job_.n - 1, kGroupGrain, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin + 1; k <= end; ++k) {
        const Number x = at(from, k), mirrored = std::conj(at(from, job_.n - k));
        const Number odd = Roots::product(std::conj(root(k)), x - mirrored);
        set(k, x + mirrored + Number(-odd.imag(), odd.real()));
      }
    });
  }

  const FftJob<T>& job_;
  std::shared_ptr<const LongTables<T>> tables_;
  std::vector<T> middle_, line_;
};

template <class T>
void transform_any(const FftJob<T>& job) {
  if (job.n <= kFftLongest) return transform_short_lines(job);
  LongLines<T> line(job);
  int64_t lines = 1;
  for (int64_t size : job.sizes) lines *= size;
  for (int64_t i = 0; i < lines; ++i) {
    line.run(offset_of_line(job.sizes, job.from.strides, i), offset_of_line(job.sizes, job.to.strides, i));
  }
}

}  // namespace

int64_t offset_of_line(const Dims& sizes, const Dims& strides, int64_t number) {
  int64_t offset = 0;
  for (size_t d = sizes.size(); d-- > 0; number /= sizes[d]) offset += number % sizes[d] * strides[d];
  return offset;
}

void choose_fft_kernels() { VESTA_ON_ISA(register_fft_kernels, fft_kernels); }

bool has_small_factors(int64_t n) {
  const int64_t whole = n;
  for (int r : {2, 3, 5, 7, 11, 13}) {
    while (n % r == 0) n /= r;
  }
  return n == 1 && whole > 0 && (whole <= kFftLongest || whole / rows_of(whole) <= kFftLongest);
}

void transform_lines(const FftJob<float>& job) { transform_any(job); }
void transform_lines(const FftJob<double>& job) { transform_any(job); }

}  // namespace vesta::cpu
