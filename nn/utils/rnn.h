// Sequences of different lengths in one batch: padded to one length, or packed without padding. PyTorch's names.
//
//   auto packed = nn::utils::rnn::pack_sequence({tensor({1., 2., 3.}), tensor({4.})});
//   packed.data           // 1, 4, 2, 3: the first elements of all sequences, the second of those that have one, ...
//   packed.batch_sizes    // 2, 1, 1
#pragma once
#include <optional>
#include <string>
#include <vector>

#include <vesta/core/arguments.h>
#include <vesta/core/tensor.h>

namespace vesta::nn::utils::rnn {

/// A batch of sequences without padding, longest first: step t is the first batch_sizes[t] of them.
struct PackedSequence {
  Tensor data;  // [total, *], all elements, step by step
  Tensor batch_sizes;  // [T], int64, on the CPU
  Tensor sorted_indices, unsorted_indices;  // [N]: where each was, and where to find it; undefined: in this order
};

/// A padded batch [T, N, *] or [N, T, *], and the lengths [N].
struct PaddedSequence {
  Tensor data, lengths;
};

/// Packs padded sequences [T, N, *] ([N, T, *] if `batch_first`), leaving out what is behind the end of each. Gradients
/// flow back. `lengths` [N] are integers on the CPU, above 0; with `enforce_sorted` they must not grow, else the
/// sequences are sorted here. RuntimeError: a length does not fit.
VESTA_API PackedSequence pack_padded_sequence(const Tensor& input, const Tensor& lengths, bool batch_first = false,
                                              bool enforce_sorted = true);
/// Undoes pack_padded_sequence(), in the original order. `total_length` is T; none: the longest length.
VESTA_API PaddedSequence pad_packed_sequence(const PackedSequence& sequence, bool batch_first = false,
                                             double padding_value = 0, std::optional<int64_t> total_length = {});
/// Returns sequences [L, *] as one batch [T, N, *] ([N, T, *] if `batch_first`). `padding_side` is "right" or "left".
VESTA_API Tensor pad_sequence(const std::vector<Tensor>& sequences, bool batch_first = false, double padding_value = 0,
                              const std::string& padding_side = "right");
/// Undoes pad_sequence(): the first lengths[i] elements of each sequence i.
VESTA_API std::vector<Tensor> unpad_sequence(const Tensor& padded_sequences, const Tensor& lengths,
                                             bool batch_first = false);
/// Packs sequences [L, *].
VESTA_API PackedSequence pack_sequence(const std::vector<Tensor>& sequences, bool enforce_sorted = true);
/// Undoes pack_sequence().
VESTA_API std::vector<Tensor> unpack_sequence(const PackedSequence& packed_sequences);

}  // namespace vesta::nn::utils::rnn
