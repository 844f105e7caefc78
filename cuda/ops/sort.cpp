// Sorting: lines that fit into a tile are sorted there, several to a block. Longer ones are sorted all together, by
// value and then by line; both sorts are stable (kernels/radix_sort.h). The first few elements of a line are found
// without a sort of the rest (kernels/ranks.cu).
#include <vesta/core/ops/sort.h>

#include <bit>

#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/destination.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/scan.h>
#include <vesta/core/ops/shape.h>
#include <vesta/core/ops/view.h>
#include <vesta/cuda/fault.h>
#include <vesta/cuda/kernels/ranks.h>
#include <vesta/cuda/kernels/search.h>
#include <vesta/cuda/kernels/sort.h>
#include <vesta/cuda/ops/operands.h>
#include <vesta/cuda/ops/sort_keys.h>
#include <vesta/cuda/register.h>

namespace vesta::cuda {
namespace {

constexpr int64_t kNarrow = int64_t(1) << 31;  // element numbers below it use 32 bits on the device

void sort_long_lines(const LineSort& l, Device device) {
  const int64_t lines = l.outer * l.inner, n = lines * l.length;
  const bool wide = itemsize(l.dtype) == 8 || n >= kNarrow;
  Keys values(n, int(8 * itemsize(l.dtype)), wide, device);
  if (lines == 1 && n < kNarrow) return run_sort_line(l, values.launch());
  run_value_keys(l, values.input(), wide);
  values.sort();
  Keys by_line(n, int(std::bit_width(uint64_t(lines - 1))), wide, device);
  run_line_keys(l, values.order(), by_line.input(), wide);
  by_line.sort();
  run_sort_results(l, values.order(), by_line.order(), wide);
}

TensorPair sort_kernel(const Tensor& input, MaybeBool, int64_t dim, bool descending) {
  OperandDevice device(input);
  const Tensor values = result_preserving(input, input.dtype()), places = result_preserving(input, DType::int64);
  const ScanPlan plan = order_plan_into(values, input, dim, "sort");
  if (values.numel() == 0) return {values, places};
  LineSort l;
  l.dtype = input.dtype(), l.stream = device.stream();
  l.outer = plan.outer, l.length = plan.length, l.inner = plan.inner, l.descending = descending;
  l.in = plan.input.data_ptr(), l.values = values.data_ptr(), l.places = places.data_ptr<int64_t>();
  if (l.length <= kSortTile) run_sort_lines(l);
  else sort_long_lines(l, input.device());
  return {values, places};
}

/// Cuts lines that are too few for a GPU into pieces; each has at least `count` elements, and many more of them than
/// of results.
void cut_lines(RanksLaunch& l) {
  constexpr int64_t kBlocks = 1024, kPiece = 16384;
  l.piece = l.length, l.pieces = 1;
  int64_t pieces = std::min(l.length / std::max(kPiece, 32 * int64_t(l.count)), kBlocks / l.lines);
  for (; pieces > 1; --pieces) {
    const int64_t piece = (l.length + pieces - 1) / pieces;
    if (l.length - (pieces - 1) * piece < int64_t(l.count)) continue;
    l.piece = piece, l.pieces = pieces;
    return;
  }
}

/// Writes the indices of the first elements of all lines.
void first_places(const ScanPlan& plan, int64_t count, bool largest, StreamHandle stream, const Tensor& places) {
  const Tensor& x = plan.input;
  Tensor lines = x;
  if (plan.inner > 1) {  // each line in one piece
    lines = empty_tensor({{plan.outer, plan.inner, plan.length}}, x.dtype(), x.device());
    copy_values(lines,
                alias(x, lines.sizes(), {{plan.length * plan.inner, 1, plan.inner}}, x.storage_offset(), "topk"));
  }
  RanksLaunch l;
  l.dtype = x.dtype(), l.stream = stream, l.in = lines.data_ptr();
  l.lines = plan.outer * plan.inner, l.length = plan.length;
  l.count = unsigned(count), l.largest = largest;
  cut_lines(l);
  Tensor chosen;
  if (l.pieces > 1) {
    chosen = empty_tensor({{l.lines, l.pieces, count}}, DType::int64, x.device());
    l.places = chosen.data_ptr<int64_t>();
    run_ranks(l);
    l.chosen = l.places, l.piece = l.pieces * count, l.pieces = 1;
  }
  l.inner = plan.inner, l.places = places.data_ptr<int64_t>();
  run_ranks(l);
}

/// Returns ranks [first, first + count) of ordered indices.
Tensor ranks_of(const Tensor& places, int64_t first, int64_t count, int64_t d) {
  if (places.dim() == 0 || places.sizes()[size_t(d)] == count) return places;
  Dims sizes(places.sizes());
  sizes[size_t(d)] = count;
  Tensor r = empty_tensor(sizes, DType::int64, places.device());
  if (r.numel() == 0) return r;
  copy_values(r, alias(places, sizes, places.strides(), first * places.strides()[size_t(d)], "_places_by_rank"));
  return r;
}

Tensor places_by_rank(const Tensor& input, int64_t first, int64_t count, int64_t dim, bool largest) {
  OperandDevice device(input);
  const ScanPlan plan = order_plan(input, dim, "_places_by_rank");
  check_ranks(plan, first, count, "_places_by_rank");
  const int64_t last = first + count, d = wrap_dim(dim, input.dim(), "_places_by_rank");
  // Several short lines share a block that sorts them; a long one that is wanted whole is sorted by all blocks.
  const bool short_lines = plan.length <= kSortTile && (plan.length <= 256 || last * 4 > plan.length);
  if (last < 1 || last > kMostRanks || plan.length >= kNarrow || short_lines || input.numel() == 0) {
    return ranks_of(std::get<1>(sort_kernel(input, {}, dim, largest)), first, count, d);
  }
  Dims sizes(input.sizes());
  if (!sizes.empty()) sizes[size_t(d)] = last;
  Tensor places = empty_tensor(sizes, DType::int64, input.device());
  first_places(plan, last, largest, device.stream(), places);
  return ranks_of(places, first, count, d);
}

Tensor searchsorted_kernel(const Tensor& lines, const Tensor& values, bool right) {
  check_one_device("searchsorted", {&lines, &values});
  OperandDevice device(values);
  Tensor places = empty_tensor(values.sizes(), DType::int64, values.device());
  if (places.numel() == 0) return places;
  SearchLaunch l;
  l.stream = device.stream(), l.dtype = values.dtype(), l.right = right;
  l.lines = lines.data_ptr(), l.values = values.data_ptr(), l.places = places.data_ptr<int64_t>();
  l.n = lines.size(-1), l.count = values.numel();
  l.each = lines.dim() == 1 ? l.count : values.size(-1);
  search(l);
  return places;
}

/// Waits for the device only to learn the size of the result.
Tensor repeat_interleave_kernel(const Tensor& repeats, MaybeInt output_size) {
  check_repeats(repeats);
  const OperandDevice device(repeats);
  RepeatLaunch l;
  l.n = repeats.numel(), l.narrow = repeats.dtype() == DType::int32, l.stream = device.stream();
  l.fault = fault_of(device.index()), l.negative = "repeat_interleave: repeats can not be negative.";
  l.other_total =
      "repeat_interleave: allocated size does not match required size: expected repeats that add up to "
      "output_size.";
  Tensor ends;
  if (l.n) ends = ops::cumsum.kernel(repeats, 0, DType::int64), l.ends = ends.data_ptr<int64_t>();
  if (!output_size && l.n) {
    run_repeats(l);
    output_size = ops::select.kernel(ends, 0, l.n - 1).item<int64_t>();
  }
  l.total = output_size.value_or(0);
  VESTA_CHECK(l.total >= 0 && (l.n || l.total == 0), runtime,
              "repeat_interleave: allocated size does not match "
              "required size: expected a sum of ",
              l.n, " repeats, got ", l.total, " (output_size).");
  Tensor places = result_tensor(Dims{l.total}, l.narrow ? DType::int32 : DType::int64, repeats.device());
  l.places = places.data_ptr();
  if (l.n) run_repeats(l);
  return places;
}

}  // namespace

void register_sort() {
  ops::sort_stable.set_kernel(DeviceType::cuda, sort_kernel);
  ops::_places_by_rank.set_kernel(DeviceType::cuda, places_by_rank);
  ops::_searchsorted.set_kernel(DeviceType::cuda, searchsorted_kernel);
  ops::repeat_interleave_Tensor.set_kernel(DeviceType::cuda, repeat_interleave_kernel);
}

}  // namespace vesta::cuda
