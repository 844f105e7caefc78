#include <vesta/nn/utils/rnn.h>

#include <algorithm>

#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/from_data.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/sort.h>
#include <vesta/core/ops/view.h>

namespace vesta::nn::utils::rnn {
namespace {

std::vector<int64_t> numbers_of(const Tensor& t) {
  const Tensor host = contiguous(t.to(DType::int64));
  return {host.data_ptr<int64_t>(), host.data_ptr<int64_t>() + host.numel()};
}

/// Calls f(first step, end, sequences) for each run of steps that as many sequences have.
template <class F>
void for_each_run(const std::vector<int64_t>& batch_sizes, F f) {
  for (size_t first = 0, step = 1; step <= batch_sizes.size(); ++step) {
    if (step < batch_sizes.size() && batch_sizes[step] == batch_sizes[first]) continue;
    f(int64_t(first), int64_t(step), batch_sizes[first]);
    first = step;
  }
}

/// The sizes of a piece of a batch, `rest` being those of one element.
Dims with_rest(std::initializer_list<int64_t> first, IntSpan rest) {
  Dims r;
  for (int64_t n : first) r.push_back(n);
  for (int64_t n : rest) r.push_back(n);
  return r;
}

void check_count(int64_t batch, int64_t lengths) {
  VESTA_CHECK(lengths == batch, runtime,
              "pack_padded_sequence: Expected `len(lengths)` to be equal to batch_size, but ", "got ", lengths,
              " (batch_size=", batch, ")");
}

void check_lengths(const Tensor& input, const std::vector<int64_t>& lengths) {
  const char* op = "pack_padded_sequence";
  VESTA_CHECK(!lengths.empty(), runtime, op, ": Cannot pack empty tensors.");
  VESTA_CHECK(std::ranges::min(lengths) > 0, runtime, op,
              ": Length of all samples has to be greater than 0, but found ", "an element in 'lengths' that is <= 0");
  VESTA_CHECK(std::ranges::is_sorted(lengths, std::ranges::greater()), runtime, op,
              ": `lengths` array must be sorted in decreasing order when `enforce_sorted` is true.");
  VESTA_CHECK(lengths[0] <= input.size(0), runtime, op, ": expected lengths of at most ", input.size(0), ", got ",
              lengths[0], " (lengths).");
}

}  // namespace

PackedSequence pack_padded_sequence(const Tensor& input, const Tensor& lengths, bool batch_first, bool enforce_sorted) {
  const char* op = "pack_padded_sequence";
  VESTA_CHECK(input.defined() && input.dim() >= 2, runtime, op, ": expected an input [T, N, *] (input).");
  VESTA_CHECK(lengths.defined() && lengths.dim() == 1 && is_integral(lengths.dtype()) &&
                  lengths.device().type() == DeviceType::cpu,
              runtime, op, ": 'lengths' argument should be a 1D CPU int64 tensor");
  check_count(input.size(batch_first ? 0 : 1), lengths.numel());
  PackedSequence packed;
  Tensor batch = input, sizes = lengths;
  if (!enforce_sorted) {
    auto [ordered, order] = sort(lengths, true, 0, true);
    sizes = ordered;
    packed.sorted_indices = order.to(input.device());
    packed.unsorted_indices = argsort(packed.sorted_indices);
    batch = index_select(input, batch_first ? 0 : 1, packed.sorted_indices);
  }
  if (batch_first) batch = transpose(batch, 0, 1);
  const std::vector<int64_t> counts = numbers_of(sizes);
  check_lengths(batch, counts);
  std::vector<int64_t> batch_sizes;
  for (int64_t step = 0; step < counts[0]; ++step) {
    batch_sizes.push_back(std::ranges::count_if(counts, [&](int64_t length) { return length > step; }));
  }
  std::vector<Tensor> pieces;
  for_each_run(batch_sizes, [&](int64_t first, int64_t end, int64_t count) {
    const Tensor piece = narrow(narrow(batch, 0, first, end - first), 1, 0, count);
    pieces.push_back(reshape(piece, with_rest({(end - first) * count}, batch.sizes().subspan(2))));
  });
  packed.data = cat(pieces);
  packed.batch_sizes = tensor(batch_sizes);
  return packed;
}

PaddedSequence pad_packed_sequence(const PackedSequence& sequence, bool batch_first, double padding_value,
                                   std::optional<int64_t> total_length) {
  const Tensor& data = sequence.data;
  VESTA_CHECK(data.defined() && data.dim() >= 1 && sequence.batch_sizes.defined() && sequence.batch_sizes.numel() > 0,
              value, "pad_packed_sequence: expected a packed sequence with steps (sequence).");
  const std::vector<int64_t> batch_sizes = numbers_of(sequence.batch_sizes);
  const int64_t longest = int64_t(batch_sizes.size()), batch = batch_sizes[0];
  VESTA_CHECK(total_length.value_or(longest) >= longest, value, "pad_packed_sequence: Expected total_length to be at ",
              "least the length of the longest sequence in input, but got total_length=", *total_length,
              " and max sequence length being ", longest);
  const IntSpan rest = data.sizes().subspan(1);
  const auto padding = [&](int64_t steps, int64_t count) {
    return full(with_rest({steps, count}, rest), padding_value, data.dtype(), data.device());
  };
  std::vector<Tensor> pieces;
  int64_t place = 0;
  for_each_run(batch_sizes, [&](int64_t first, int64_t end, int64_t count) {
    const int64_t steps = end - first;
    Tensor piece = reshape(narrow(data, 0, place, steps * count), with_rest({steps, count}, rest));
    place += steps * count;
    if (count < batch) piece = cat({piece, padding(steps, batch - count)}, 1);
    pieces.push_back(piece);
  });
  if (total_length.value_or(longest) > longest) pieces.push_back(padding(*total_length - longest, batch));
  Tensor padded = cat(pieces);
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < batch; ++i) {
    lengths.push_back(std::ranges::count_if(batch_sizes, [&](int64_t size) { return size > i; }));
  }
  PaddedSequence result{batch_first ? transpose(padded, 0, 1) : padded, tensor(lengths)};
  if (sequence.unsorted_indices.defined()) {
    result.data = index_select(result.data, batch_first ? 0 : 1, sequence.unsorted_indices);
    result.lengths = index_select(result.lengths, 0, sequence.unsorted_indices.to(Device()));
  }
  return result;
}

Tensor pad_sequence(const std::vector<Tensor>& sequences, bool batch_first, double padding_value,
                    const std::string& padding_side) {
  VESTA_CHECK(padding_side == "left" || padding_side == "right", runtime,
              "pad_sequence: Expected padding_side to be one of left or right, but got ", padding_side, ".");
  VESTA_CHECK(!sequences.empty(), runtime, "pad_sequence: received an empty list of sequences");
  int64_t longest = 0;
  for (const Tensor& s : sequences) {
    VESTA_CHECK(s.defined() && s.dim() >= 1, runtime, "pad_sequence: expected sequences [L, *] (sequences).");
    VESTA_CHECK(std::ranges::equal(s.sizes().subspan(1), sequences[0].sizes().subspan(1)), runtime,
                "pad_sequence: expected sequences of the same sizes but the first, got ", s.sizes(), " and ",
                sequences[0].sizes(), " (sequences).");
    longest = std::max(longest, s.size(0));
  }
  std::vector<Tensor> padded;
  for (const Tensor& s : sequences) {
    if (s.size(0) == longest) {
      padded.push_back(s);
      continue;
    }
    const Tensor fill =
        full(with_rest({longest - s.size(0)}, s.sizes().subspan(1)), padding_value, s.dtype(), s.device());
    padded.push_back(padding_side == "right" ? cat({s, fill}) : cat({fill, s}));
  }
  return stack(padded, batch_first ? 0 : 1);
}

std::vector<Tensor> unpad_sequence(const Tensor& padded_sequences, const Tensor& lengths, bool batch_first) {
  VESTA_CHECK(padded_sequences.defined() && padded_sequences.dim() >= 2 && lengths.defined() && lengths.dim() == 1 &&
                  is_integral(lengths.dtype()),
              value, "unpad_sequence: expected padded sequences of 2 or more dimensions and a length for each.");
  const std::vector<int64_t> counts = numbers_of(lengths.to(Device()));
  const Tensor batch = batch_first ? padded_sequences : transpose(padded_sequences, 0, 1);
  VESTA_CHECK(int64_t(counts.size()) == batch.size(0), value, "unpad_sequence: expected ", batch.size(0),
              " lengths, got ", counts.size(), " (lengths).");
  std::vector<Tensor> result;
  for (size_t i = 0; i < counts.size(); ++i) result.push_back(narrow(select(batch, 0, int64_t(i)), 0, 0, counts[i]));
  return result;
}

PackedSequence pack_sequence(const std::vector<Tensor>& sequences, bool enforce_sorted) {
  const Tensor padded = pad_sequence(sequences);
  std::vector<int64_t> lengths;
  lengths.reserve(sequences.size());
  for (const Tensor& s : sequences) lengths.push_back(s.size(0));
  return pack_padded_sequence(padded, tensor(lengths), false, enforce_sorted);
}

std::vector<Tensor> unpack_sequence(const PackedSequence& packed_sequences) {
  const PaddedSequence padded = pad_packed_sequence(packed_sequences, true);
  return unpad_sequence(padded.data, padded.lengths, true);
}

}  // namespace vesta::nn::utils::rnn
