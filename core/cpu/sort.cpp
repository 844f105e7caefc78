// Stable sorts of lines. A tour: an element becomes an entry, its key (core/ops/sort_key.h) beside its index in the
// line; entries are sorted, by comparison where the line is short and digit by digit where it is long; values are then
// taken from their indices. A stable order is unique, so results cannot depend on how. Threads share lines, never one
// line.
#include <vesta/core/ops/sort.h>

#include <algorithm>
#include <bit>
#include <utility>

#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/register.h>
#include <vesta/core/cpu/scratch.h>
#include <vesta/core/cpu/sort_kernels.h>
#include <vesta/core/cpu/tensor_memory.h>
#include <vesta/core/ops/destination.h>
#include <vesta/core/ops/scan.h>
#include <vesta/core/ops/sort_key.h>
#include <vesta/core/ops/ties.h>

namespace vesta::cpu {
namespace {

SkipKernel skips[kNumDTypes];  // by dtype, for each_before()
CandidatesKernel candidates[kNumDTypes];  // by dtype, for sort_best(); null where there is none

constexpr int64_t kSortGrain = 2048, kSelectGrain = 8192;  // elements a thread takes at a time: 40 and 20 us
constexpr int64_t kShort = 256;  // entries up to which they are compared

/// An element of a line: its key and its index.
template <class Key_, class Place_>
struct Entry {
  using Key = Key_;
  using Place = Place_;
  Key key;
  Place place;
};

/// Whether an entry comes before another in a stable sort: both numbers are compared as one where they fit into it,
/// without a branch on the keys (benchmarks/compare_torch.py, sort).
template <class E>
bool comes_before(const E& a, const E& b) {
  if constexpr (sizeof(E) <= 8) {
    const auto number = [](const E& e) { return uint64_t(e.key) << 32 | uint64_t(e.place); };
    return number(a) < number(b);
  } else {
    return a.key != b.key ? a.key < b.key : a.place < b.place;
  }
}

/// Sorts n entries by digits of up to 11 bits from the lowest, of the bits in which keys differ, between `a` and `b`;
/// returns the one that has the result. Both halves are distributed at a time, with counters of their own: one waits
/// for the counter that it has just written (benchmarks/compare_torch.py, sort: 1.4 times as long without halves).
template <class E>
E* sort_digits(E* a, E* b, int64_t n) {
  using Key = typename E::Key;
  using Count = typename E::Place;
  constexpr int kMost = 11;
  Key differ = 0;
  for (int64_t i = 1; i < n; ++i) differ |= a[i].key ^ a[0].key;
  if (differ == 0) return a;
  const int low = std::countr_zero(differ), bits = std::bit_width(differ) - low;
  const int passes = (bits + kMost - 1) / kMost, width = (bits + passes - 1) / passes;
  const unsigned mask = (1u << width) - 1;
  Count first[1 << kMost], second[1 << kMost];
  const int64_t half = n / 2;
  for (int shift = low; shift < low + bits; shift += width) {
    const auto digit = [&](const E& e) { return unsigned(e.key >> shift) & mask; };
    std::fill_n(first, mask + 1, 0), std::fill_n(second, mask + 1, 0);
    for (int64_t i = 0; i < half; ++i) ++first[digit(a[i])], ++second[digit(a[half + i])];
    if (n % 2 != 0) ++second[digit(a[n - 1])];
    Count before = 0;
    for (unsigned k = 0; k <= mask; ++k) {
      const Count in_first = std::exchange(first[k], before);
      before += in_first + std::exchange(second[k], before + in_first);
    }
    for (int64_t i = 0; i < half; ++i) {
      const E x = a[i], y = a[half + i];
      b[first[digit(x)]++] = x, b[second[digit(y)]++] = y;
    }
    if (n % 2 != 0) b[second[digit(a[n - 1])]] = a[n - 1];
    std::swap(a, b);
  }
  return a;
}

template <class E>
E* sort_entries(E* a, E* b, int64_t n) {
  if (n > kShort) return sort_digits(a, b, n);
  std::sort(a, a + n, [](const E& x, const E& y) { return comes_before(x, y); });
  return a;
}

template <class T, class Place>
void sort_lines(const ScanPlan& plan, bool descending, T* values, int64_t* places) {
  using E = Entry<SortKey<T>, Place>;
  const T* const x = elements<T>(plan.input);
  const int64_t n = plan.length, next = plan.inner;
  const auto flip = SortKey<T>(descending ? -1 : 0);
  parallel_for(plan.outer * plan.inner, std::max<int64_t>(1, kSortGrain / n), [&](int64_t begin, int64_t end) {
    ScratchArray<E> first(Scratch::operand_a, size_t(n)), second(Scratch::operand_b, size_t(n));
    for (int64_t line = begin; line < end; ++line) {
      const int64_t at = line / next * n * next + line % next;
      E* entries = first.data();
      for (int64_t i = 0; i < n; ++i) entries[i] = {SortKey<T>(sort_key(x[at + i * next]) ^ flip), Place(i)};
      entries = sort_entries(entries, second.data(), n);
      for (int64_t i = 0; i < n; ++i) {
        const auto place = int64_t(entries[i].place);
        values[at + i * next] = x[at + place * next], places[at + i * next] = place;
      }
    }
  });
}

TensorPair sort_kernel(const Tensor& input, MaybeBool, int64_t dim, bool descending) {
  Tensor values = result_preserving(input, input.dtype()), places = result_preserving(input, DType::int64);
  const ScanPlan plan = order_plan_into(values, input, dim, "sort");
  if (values.numel() == 0) return {values, places};
  visit<kReals | kBool>(input.dtype(), [&]<class T>() {
    T* const v = elements<T>(values);
    int64_t* const p = elements<int64_t>(places);
    if (plan.length <= int64_t(UINT32_MAX)) sort_lines<T, uint32_t>(plan, descending, v, p);
    else sort_lines<T, uint64_t>(plan, descending, v, p);
  });
  return {values, places};
}

constexpr int64_t kFewRanks = 64;  // up to which a heap is used

/// How elements are found that come before another of a dense line; not at all where the line is not (null).
template <class T>
struct Skip {
  const T* line;
  bool descending;
};

/// Calls f(i) for all of elements [i, n) that come before the entry `root`, which f may change, and for some others.
/// Where an element is followed by another that does, as in a line that gets better and better, more and more are
/// passed to f without a look ahead.
template <class T, class E, class F>
void each_before(int64_t i, int64_t n, const Skip<T>& skip, const E& root, F f) {
  constexpr int64_t kMost = 64;
  int64_t unseen = 0;  // elements that are passed on after one that was found
  while (i < n) {
    int64_t end = n;
    if (skip.line != nullptr) {
      const int64_t found = skips[int(dtype_of<T>)](skip.line, i, n, skip.line + root.place, skip.descending);
      unseen = found == i ? std::min(2 * unseen + 1, kMost) : 0;
      i = found;
      end = std::min(n, i + 1 + unseen);
    }
    for (; i < end; ++i) f(i);
  }
}

/// Makes entries of those of n keys, in their order, that may have the ranks [first, last): whose leading bits, of the
/// bits in which keys differ, are among theirs. Returns how many, and in `skipped` the rank of the lowest one. Without
/// them, a quickselect takes every key up several times (benchmarks/compare_torch.py, median: 3 times as long).
template <class E>
int64_t entries_near(const typename E::Key* keys, int64_t n, int64_t first, int64_t last, E* e, int64_t& skipped) {
  using Key = typename E::Key;
  constexpr int kMost = 11;
  Key differ = 0;
  for (int64_t i = 0; i < n; ++i) differ |= Key(keys[i] ^ keys[0]);
  const int bits = std::bit_width(differ), shift = std::max(0, bits - kMost);
  const unsigned mask = (1u << std::min(bits, kMost)) - 1;
  const auto digit = [&](int64_t i) { return unsigned(keys[i] >> shift) & mask; };
  uint32_t counts[2][1 << kMost];
  for (auto& of : counts) std::fill_n(of, mask + 1, 0);
  for (int64_t i = 0; i < n; ++i) ++counts[i % 2][digit(i)];
  const auto count = [&](unsigned d) { return int64_t(counts[0][d]) + counts[1][d]; };
  unsigned low = 0;
  skipped = 0;
  while (skipped + count(low) <= first) skipped += count(low++);
  unsigned high = low;
  for (int64_t seen = skipped + count(high); seen < last;) seen += count(++high);
  int64_t found = 0;
  for (int64_t i = 0; i < n; ++i) {
    e[found] = {keys[i], typename E::Place(i)};
    found += digit(i) - low <= high - low;
  }
  return found;
}

/// Writes the indices of ranks [first, first + count) of each line, by quickselect: the rest stays unsorted. Entries
/// are all different, so that the result is that of a stable sort.
template <class T>
void select_places(const ScanPlan& plan, int64_t first, int64_t count, bool largest, int64_t* places) {
  using Place = uint32_t;
  using E = Entry<SortKey<T>, Place>;
  constexpr int64_t kLeastCounted = 512;  // elements of a line whose digits are counted
  const T* const x = elements<T>(plan.input);
  const int64_t n = plan.length, next = plan.inner, last = first + count;
  const auto flip = SortKey<T>(largest ? -1 : 0);
  const auto before = [](const E& a, const E& b) { return comes_before(a, b); };
  const bool counted = n >= kLeastCounted;
  parallel_for(plan.outer * plan.inner, std::max<int64_t>(1, kSelectGrain / n), [&](int64_t begin, int64_t end) {
    ScratchArray<E> scratch(Scratch::operand_a, size_t(n));
    ScratchArray<SortKey<T>> keys(Scratch::operand_b, size_t(counted ? n : 0));
    E* const e = scratch.data();
    for (int64_t line = begin; line < end; ++line) {
      const int64_t at = line / next * n * next + line % next, to = line / next * count * next + line % next;
      const auto key = [&](int64_t i) { return SortKey<T>(sort_key(x[at + i * next]) ^ flip); };
      const auto entry = [&](int64_t i) { return E{key(i), Place(i)}; };
      int64_t skipped = 0;
      if (first == 0 && count <= kFewRanks &&
          count <= n / 16) {  // a heap of the best so far: most elements only pass by
        for (int64_t i = 0; i < count; ++i) e[i] = entry(i);
        std::make_heap(e, e + count, before);
        each_before(count, n, Skip<T>{next == 1 ? x + at : nullptr, largest}, *e, [&](int64_t i) {
          const E one = entry(i);
          if (one.key >= e->key) return;  // of equals the first stays
          std::pop_heap(e, e + count, before);
          e[count - 1] = one;
          std::push_heap(e, e + count, before);
        });
        std::sort_heap(e, e + count, before);
      } else {
        int64_t size = n;
        if (counted) {
          for (int64_t i = 0; i < n; ++i) keys.data()[i] = key(i);
          size = entries_near(keys.data(), n, first, last, e, skipped);
        } else {
          for (int64_t i = 0; i < n; ++i) e[i] = entry(i);
        }
        E *const from = e + first - skipped, *const until = e + last - skipped, *const all = e + size;
        if (from > e) std::nth_element(e, from, all, before);
        else if (count == 1) std::swap(*e, *std::min_element(e, all, before));
        if (count > 1) {
          if (until < all) std::nth_element(from, until, all, before);
          std::sort(from, until, before);
        }
      }
      for (int64_t i = 0; i < count; ++i) places[to + i * next] = int64_t(e[first - skipped + i].place);
    }
  });
}

Tensor places_by_rank_kernel(const Tensor& input, int64_t first, int64_t count, int64_t dim, bool largest) {
  const ScanPlan plan = order_plan(input, dim, "_places_by_rank");
  check_ranks(plan, first, count, "_places_by_rank");
  if (plan.length > int64_t(UINT32_MAX)) return ops::_places_by_rank.body()(input, first, count, dim, largest);
  Dims sizes(input.sizes());
  if (!sizes.empty()) sizes[size_t(wrap_dim(dim, input.dim(), "_places_by_rank"))] = count;
  Tensor places = empty_tensor(sizes, DType::int64);
  if (places.numel() == 0) return places;
  visit<kReals | kBool>(input.dtype(),
                        [&]<class T>() { select_places<T>(plan, first, count, largest, elements<int64_t>(places)); });
  return places;
}

// ---- Note [Which of equals] (core/ops/ties.h) ----

/// Puts the k best of n entries first, best first, where there is but one way to: none of the k + 1 best equals
/// another. Returns whether it did (benchmarks/compare_torch.py, topk: a third of the time of a heap).
template <class T, class E, class Make>
bool sort_best(E* e, int64_t k, int64_t n, const Skip<T>& skip, const Make& entry) {
  constexpr int64_t kLeast = 512;  // elements of a line
  const CandidatesKernel find = candidates[int(dtype_of<T>)];
  if (find == nullptr || skip.line == nullptr || k >= kMostBest || n < kLeast) return false;
  int64_t places[kMostCandidates];
  const int64_t found = find(skip.line, n, k + 1, skip.descending, places);
  if (found == 0) return false;
  for (int64_t i = 0; i < found; ++i) e[i] = entry(places[i]);
  std::sort(e, e + found, [](const E& a, const E& b) { return a.key < b.key; });
  return std::adjacent_find(e, e + k + 1, [](const E& a, const E& b) { return a.key == b.key; }) == e + k + 1;
}

/// Puts the k best of n entries first, best first, as std::partial_sort does; `entry(i)` makes the i-th.
template <class T, class E, class Make>
void partial_sort(E* e, int64_t k, int64_t n, const Skip<T>& skip, const Make& entry) {
  const auto before = [](const E& a, const E& b) { return a.key < b.key; };
  for (int64_t i = 0; i < k; ++i) e[i] = entry(i);
  std::make_heap(e, e + k, before);
  each_before(k, n, skip, *e, [&](int64_t i) {
    e[k] = entry(i);
    if (before(e[k], *e)) std::pop_heap(e, e + k + 1, before);  // it takes the root's place and sinks
  });
  std::sort_heap(e, e + k, before);
}

/// Puts the entry of rank k at index k: quickselect, the pivot the middle of three (Numerical Recipes, 8.5).
template <class E>
void quick_select(E* e, int64_t n, int64_t k) {
  const auto order = [&](int64_t i, int64_t j) {
    if (e[i].key > e[j].key) std::swap(e[i], e[j]);
  };
  int64_t low = 0, high = n - 1;
  while (low + 1 < high) {
    std::swap(e[low + (high - low) / 2], e[low + 1]);
    order(low + 1, high), order(low, high), order(low + 1, low);
    const auto pivot = e[low].key;
    int64_t i = low + 1, j = high;
    while (true) {
      do ++i;
      while (pivot > e[i].key);
      do --j;
      while (e[j].key > pivot);
      if (j < i) break;
      std::swap(e[i], e[j]);
    }
    std::swap(e[low], e[j]);
    if (j <= k) low = i;
    if (j >= k) high = j - 1;
  }
  if (low + 1 == high) order(low, high);
}

/// How elements of a line are put in order.
enum class Ties { sort, topk, topk_unsorted, kthvalue };
Ties ties_of(Text name) {
  constexpr std::pair<const char*, Ties> names[] = {
      {"sort", Ties::sort}, {"topk", Ties::topk}, {"topk_unsorted", Ties::topk_unsorted}, {"kthvalue", Ties::kthvalue}};
  for (const auto& [known, ties] : names) {
    if (name == known) return ties;
  }
  fail(Cause::value, "_places_with_ties: expected a way to choose of equals, got '", name, "' (ties).");
}

/// Puts the entries of ranks [first, first + count) at these indices.
template <class T, class E, class Make>
void select_entries(E* e, int64_t n, int64_t first, int64_t count, Ties ties, const Skip<T>& skip, const Make& entry) {
  const auto before = [](const E& a, const E& b) { return a.key < b.key; };
  const bool top = ties == Ties::topk || ties == Ties::topk_unsorted;
  if (top && count * 64 <= n) {
    if (!sort_best(e, count, n, skip, entry)) partial_sort(e, count, n, skip, entry);
    return;
  }
  for (int64_t i = 0; i < n; ++i) e[i] = entry(i);
  if (ties == Ties::sort) return std::sort(e, e + n, before);
  if (ties == Ties::kthvalue) return quick_select(e, n, first);
  std::nth_element(e, e + count - 1, e + n, before);
  if (ties == Ties::topk) std::sort(e, e + count - 1, before);
}

template <class T>
void select_places_with_ties(const ScanPlan& plan, int64_t first, int64_t count, bool largest, Ties ties,
                             int64_t* places) {
  using E = Entry<SortKey<T>, uint64_t>;
  const T* const x = elements<T>(plan.input);
  const int64_t n = plan.length, next = plan.inner;
  const auto flip = SortKey<T>(largest ? -1 : 0);
  parallel_for(plan.outer * plan.inner, std::max<int64_t>(1, kSelectGrain / n), [&](int64_t begin, int64_t end) {
    ScratchArray<E> scratch(Scratch::operand_a, size_t(n));
    E* const e = scratch.data();
    for (int64_t line = begin; line < end; ++line) {
      const int64_t at = line / next * n * next + line % next, to = line / next * count * next + line % next;
      const Skip<T> skip{next == 1 ? x + at : nullptr, largest};
      select_entries(e, n, first, count, ties, skip,
                     [&](int64_t i) { return E{SortKey<T>(sort_key(x[at + i * next]) ^ flip), uint64_t(i)}; });
      for (int64_t i = 0; i < count; ++i) places[to + i * next] = int64_t(e[first + i].place);
    }
  });
}

Tensor places_with_ties_kernel(const Tensor& input, int64_t first, int64_t count, int64_t dim, bool largest,
                               Text ties) {
  const ScanPlan plan = order_plan(input, dim, "_places_with_ties");
  const Ties way = ties_of(ties);
  check_ranks(plan, first, count, "_places_with_ties");
  Dims sizes(input.sizes());
  if (!sizes.empty()) sizes[size_t(wrap_dim(dim, input.dim(), "_places_with_ties"))] = count;
  Tensor places = empty_tensor(sizes, DType::int64);
  if (places.numel() == 0) return places;
  visit<kReals | kBool>(input.dtype(), [&]<class T>() {
    select_places_with_ties<T>(plan, first, count, largest, way, elements<int64_t>(places));
  });
  return places;
}

/// A longest run of equals among sorted entries, the first of several as long: one past its last, and its length. No
/// two NaNs, which have the largest key of `floats`, are equal: each is a run of its own.
struct Run {
  int64_t end = 0, length = 0;
};
template <bool floats, class E>
Run longest_run(const E* e, int64_t n) {
  using Key = decltype(E::key);
  const auto is_nan = [](Key key) { return floats && key == Key(~Key(0)); };
  Run best;
  for (int64_t i = 1, start = 0; i <= n; ++i) {
    if (i < n && e[i].key == e[start].key && !is_nan(e[i].key)) continue;
    if (i - start > best.length) best = {i, i - start};
    start = i;
  }
  return best;
}

/// Writes the index of each line's mode. Numbers are mostly all different: digits tell that in less time than the sort
/// whose choice among equals counts.
template <class T, class Place>
void find_modes(const ScanPlan& plan, int64_t* places) {
  using E = Entry<SortKey<T>, Place>;
  const T* const x = elements<T>(plan.input);
  const int64_t n = plan.length, next = plan.inner;
  const bool may_all_differ =  // of 2048 random floats all do in 7 of 8 lines
      n > kShort && (dtype_of<T> == DType::float64 || (dtype_of<T> == DType::float32 && n <= 2048));
  parallel_for(plan.outer * plan.inner, std::max<int64_t>(1, kSortGrain / n), [&](int64_t begin, int64_t end) {
    ScratchArray<E> first(Scratch::operand_a, size_t(n)), second(Scratch::operand_b, size_t(may_all_differ ? n : 0));
    E* const e = first.data();
    for (int64_t line = begin; line < end; ++line) {
      const int64_t at = line / next * n * next + line % next;
      const auto enter = [&] {
        for (int64_t i = 0; i < n; ++i) e[i] = {sort_key(x[at + i * next]), Place(i)};
      };
      enter();
      if (may_all_differ) {
        const E* const sorted = sort_digits(e, second.data(), n);
        places[line] = int64_t(sorted->place);
        if (longest_run<!std::is_integral_v<T>>(sorted, n).length == 1) continue;
        enter();
      }
      std::sort(e, e + n, [](const E& a, const E& b) { return a.key < b.key; });
      places[line] = int64_t(e[longest_run<!std::is_integral_v<T>>(e, n).end - 1].place);
    }
  });
}

Tensor mode_places_kernel(const Tensor& input, int64_t dim) {
  const ScanPlan plan = order_plan(input, dim, "mode");
  Dims sizes(input.sizes());
  if (!sizes.empty()) sizes[size_t(wrap_dim(dim, input.dim(), "mode"))] = 1;
  Tensor places = empty_tensor(sizes, DType::int64);
  if (places.numel() == 0) return places;
  visit<kReals | kBool>(input.dtype(), [&]<class T>() {
    int64_t* const p = elements<int64_t>(places);
    if (plan.length <= int64_t(UINT32_MAX)) find_modes<T, uint32_t>(plan, p);
    else find_modes<T, uint64_t>(plan, p);
  });
  return places;
}

/// Returns how many elements of an ascending line are < v, or <= v (right); NaN is the largest.
template <class T>
int64_t rank_in(const T* line, int64_t n, T v, bool right) {
  const auto key = sort_key(v);
  int64_t low = 0;
  while (n > 0) {
    const int64_t half = n / 2;
    const auto middle = sort_key(line[low + half]);
    const bool before = right ? middle <= key : middle < key;
    low = before ? low + half + 1 : low;
    n = before ? n - half - 1 : half;
  }
  return low;
}

Tensor searchsorted_kernel(const Tensor& lines, const Tensor& values, bool right) {
  Tensor r = empty_tensor(values.sizes(), DType::int64);
  const int64_t n = lines.size(-1), each = lines.dim() == 1 ? std::max<int64_t>(values.numel(), 1) : values.size(-1);
  visit<kReals | kBool>(values.dtype(), [&]<class T>() {
    const T *const line = elements<T>(lines), *const v = elements<T>(values);
    int64_t* const to = elements<int64_t>(r);
    parallel_for(values.numel(), kSelectGrain / 8, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = rank_in(line + i / each * n, n, v[i], right);
    });
  });
  return r;
}

}  // namespace

void register_sort() {
  VESTA_ON_ISA(register_sort_kernels, skips, candidates);
  ops::sort_stable.set_kernel(DeviceType::cpu, sort_kernel);
  ops::_places_by_rank.set_kernel(DeviceType::cpu, places_by_rank_kernel);
  ops::_places_with_ties.set_kernel(DeviceType::cpu, places_with_ties_kernel);
  ops::_mode_places.set_kernel(DeviceType::cpu, mode_places_kernel);
  ops::_searchsorted.set_kernel(DeviceType::cpu, searchsorted_kernel);
}

}  // namespace vesta::cpu
