#include <vesta/multiprocessing/ddp/replicas.h>

#include <algorithm>
#include <cstring>
#include <sstream>

#include <vesta/autograd/grad_meta.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/factory.h>
#include <vesta/multiprocessing/ddp/bucket.h>

namespace vesta::ddp {
namespace {

/// Returns a one-line description of what must agree in a tensor.
std::string described(const std::string& name, const Tensor& t) {
  std::string form = text(name, " of shape ", t.sizes(), ", ", t.dtype());
  if (!t.is_contiguous()) form += text(", strides ", t.strides());
  if (!autograd::requires_grad(t)) form += ", no grad required";
  return form;
}

std::vector<std::string> lines_of(const std::string& joined) {
  std::vector<std::string> lines;
  std::istringstream in(joined);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// Returns every rank's text.
std::vector<std::string> exchange(ProcessGroup& group, const std::string& mine, Device device) {
  const int64_t ranks = group.size();
  Tensor length = empty_tensor(std::array{int64_t(1)}, DType::int64);
  length.data_ptr<int64_t>()[0] = int64_t(mine.size());
  Tensor lengths = empty_tensor(std::array{ranks}, DType::int64, device);
  group.all_gather_into(lengths, length.to(device))->wait();
  lengths = lengths.to(Device{});
  const int64_t* each = lengths.data_ptr<int64_t>();
  const int64_t longest = std::max<int64_t>(1, *std::max_element(each, each + ranks));
  Tensor padded = zeros({longest}, DType::uint8);
  std::memcpy(padded.data_ptr(), mine.data(), mine.size());
  Tensor all = empty_tensor(std::array{ranks * longest}, DType::uint8, device);
  group.all_gather_into(all, padded.to(device))->wait();
  all = all.to(Device{});
  std::vector<std::string> result;
  for (int64_t r = 0; r < ranks; ++r)
    result.emplace_back(static_cast<const char*>(all.data_ptr()) + r * longest, size_t(each[r]));
  return result;
}

}  // namespace

void verify_replicas(ProcessGroup& group, const NamedTensors& tensors, const std::string& kind, Device device) {
  CallSite here(text("DistributedDataParallel, comparing ", kind, "s"));
  std::string mine;
  for (const auto& [name, t] : tensors) mine += described(name, t) + "\n";
  const std::vector<std::string> all = exchange(group, mine, device);
  const std::vector<std::string> first = lines_of(all[0]);
  for (size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    const std::vector<std::string> other = lines_of(all[rank]);
    size_t i = 0;
    while (i < std::min(first.size(), other.size()) && first[i] == other[i]) ++i;
    auto at = [&](const std::vector<std::string>& lines) { return i < lines.size() ? lines[i] : "none"; };
    fail(Cause::runtime, "DistributedDataParallel: expected the same model on all ranks, but ", kind, " ", i, " is ",
         at(first), " on rank 0 and ", at(other), " on rank ", rank, " (they have ", first.size(), " and ",
         other.size(), " ", kind, "s). Build the model in the same way everywhere.");
  }
}

void broadcast_tensors(ProcessGroup& group, const std::vector<Tensor>& tensors, int source, int64_t bytes) {
  CallSite here("DistributedDataParallel, making replicas");
  NoGrad off;
  std::vector<WorkPtr> works;
  std::vector<DType> dtypes;  // each is sent on its own, in the order of the first tensor that has it
  for (const Tensor& t : tensors) {
    if (std::ranges::find(dtypes, t.dtype()) == dtypes.end()) dtypes.push_back(t.dtype());
  }
  for (DType dtype : dtypes) {
    std::vector<Tensor> batch;
    int64_t filled = 0;
    auto flush = [&] {
      if (!batch.empty()) works.push_back(group.broadcast(std::exchange(batch, {}), source));
      filled = 0;
    };
    for (const Tensor& t : tensors) {
      if (t.numel() == 0 || t.dtype() != dtype) continue;
      const int64_t size = t.numel() * t.element_size();
      if (filled + size > bytes) flush();
      batch.push_back(t.detach());
      filled += size;
    }
    flush();
  }
  for (const WorkPtr& work : works) work->synchronize();
}

void refresh_tensors(ProcessGroup& group, const std::vector<Tensor>& tensors, int source) {
  const bool sends = group.rank() == source;
  std::vector<Tensor> sent;
  NoGrad off;
  for (const Tensor& t : tensors) {
    if (!t.impl()->dense()) sent.push_back(contiguous(t));  // all ranks alike: shapes and strides were compared
    else if (sends || t.device().type() != DeviceType::cpu) sent.push_back(tensor_over(t, 0, t));
    else sent.push_back(empty_tensor_strided(t.sizes(), t.strides(), t.dtype(), t.device()));
  }
  broadcast_tensors(group, sent, source);
  for (size_t i = 0; i < tensors.size() && !sends; ++i) {
    const Tensor &t = tensors[i], &got = sent[i];
    if (got.data_ptr() == t.data_ptr()) continue;  // on a device: comparing would wait for it
    const size_t bytes = size_t(t.numel() * t.element_size());
    if (t.impl()->dense() && std::memcmp(t.data_ptr(), got.data_ptr(), bytes) == 0) continue;
    copy_into(t, got, "DistributedDataParallel");
  }
}

}  // namespace vesta::ddp
