#include <vesta/multiprocessing/collective_checks.h>

#include <algorithm>

namespace vesta {

void CollectiveChecks::tensor(const Tensor& t, bool written) const {
  VESTA_CHECK(t.defined(), type, name(what_), ": expected a tensor, got None.");
  device_(what_, t);
  VESTA_CHECK(!written || !t.impl()->storage()->read_only(), runtime, name(what_),
              ": expected writable memory, got a tensor with read-only memory.");
  if (written) t.impl()->bump(name(what_));
}

void CollectiveChecks::same_type(const Tensor& a, const Tensor& b) const {
  VESTA_CHECK(a.dtype() == b.dtype(), type, name(what_), ": expected tensors of one dtype, got ", a.dtype(), " and ",
              b.dtype(), ".");
}

void CollectiveChecks::together(const std::vector<Tensor>& tensors, bool written) const {
  VESTA_CHECK(!tensors.empty(), value, name(what_), ": expected at least one tensor, got none (tensors).");
  for (const Tensor& t : tensors) {
    tensor(t, written);
    same_type(t, tensors[0]);
  }
}

void CollectiveChecks::list(const std::vector<Tensor>& list, const Tensor& model, bool written) const {
  VESTA_CHECK(int(list.size()) == size_, value, name(what_), ": expected a tensor for each of ", size_, " ranks, got ",
              list.size(), " (tensor list).");
  for (const Tensor& t : list) {
    tensor(t, written);
    same_type(t, model);
    VESTA_CHECK(std::ranges::equal(t.sizes(), model.sizes()), value, name(what_),
                ": expected tensors of the same size, got ", t.sizes(), " and ", model.sizes(), " (tensor list).");
  }
}

void CollectiveChecks::list_of_root(const std::vector<Tensor>& given, const Tensor& model, bool written, int root,
                                    const char* role, const char* argument) const {
  if (rank_ == root) return list(given, model, written);
  VESTA_CHECK(given.empty(), value, name(what_), ": expected no list on a rank that is not the ", role, ", got one (",
              argument, ").");
}

void CollectiveChecks::gathered(const Tensor& output, const Tensor& input) const {
  tensor(input, false);
  tensor(output, true);
  same_type(output, input);
  VESTA_CHECK(output.numel() == input.numel() * size_, value, name(what_), ": expected an output of ",
              input.numel() * size_, " elements (", size_, " inputs), got ", output.numel(), " (output_tensor).");
}

void CollectiveChecks::scattered(const Tensor& output, const Tensor& input) const {
  tensor(output, true);
  tensor(input, false);
  same_type(output, input);
  VESTA_CHECK(input.numel() == output.numel() * size_, value, name(what_), ": expected an input of ",
              output.numel() * size_, " elements (", size_, " outputs), got ", input.numel(), " (input).");
}

void CollectiveChecks::lists(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs) const {
  VESTA_CHECK(int(inputs.size()) == size_ && int(outputs.size()) == size_, value, name(what_),
              ": expected a tensor for each of ", size_, " ranks, got ", outputs.size(), " and ", inputs.size(),
              " (output_tensor_list, input_tensor_list).");
  for (size_t r = 0; r < inputs.size(); ++r) {
    tensor(inputs[r], false);
    tensor(outputs[r], true);
    same_type(inputs[r], inputs[0]);
    same_type(outputs[r], inputs[0]);
  }
}

void CollectiveChecks::rank(int r, const char* argument) const {
  VESTA_CHECK(r >= 0 && r < size_, value, name(what_), ": expected a rank of the group, 0 to ", size_ - 1, ", got ", r,
              " (", argument, ").");
}

std::vector<size_t> CollectiveChecks::row_bytes(const Tensor& t, std::vector<int64_t> splits,
                                                const char* argument) const {
  VESTA_CHECK(t.dim() > 0, value, name(what_), ": expected a tensor with rows, got a 0-d one (", argument, ").");
  const int64_t rows = t.size(0), each = rows ? t.numel() * t.element_size() / rows : 0;
  if (splits.empty()) {
    VESTA_CHECK(rows % size_ == 0, value, name(what_), ": expected rows that ", size_, " ranks can share, got ", rows,
                " (", argument, "). Give the splits.");
    splits.assign(size_t(size_), rows / size_);
  }
  int64_t sum = 0;
  std::vector<size_t> bytes;
  for (int64_t n : splits) {
    VESTA_CHECK(n >= 0, value, name(what_), ": expected lengths, got ", n, " (", argument, " split sizes).");
    sum += n;
    bytes.push_back(size_t(n * each));
  }
  VESTA_CHECK(int(splits.size()) == size_ && sum == rows, value, name(what_), ": expected ", size_,
              " splits that add up to ", rows, " rows, got ", IntSpan(splits), " (", argument, " split sizes).");
  return bytes;
}

void CollectiveChecks::to_itself(size_t sent, size_t expected) const {
  VESTA_CHECK(sent == expected, value, name(what_), ": expected ", sent, " bytes from this rank to itself, got ",
              expected, ".");
}

}  // namespace vesta
