#include <vesta/multiprocessing/process_group_by_device.h>

#include <vesta/multiprocessing/store.h>

namespace vesta {
namespace {

class GroupByDevice final : public ProcessGroup {
 public:
  struct Member {
    std::string device;
    ProcessGroupPtr group;
  };
  GroupByDevice(const std::string& backends, std::vector<Member> members, int rank, int size, const GroupOptions& o)
      : ProcessGroup(o.name, backends, rank, size, o.timeout), members_(std::move(members)) {
    if (!o.ranks.empty()) set_ranks(o.ranks);
  }

  WorkPtr all_reduce(std::vector<Tensor> tensors, ReduceOp op, const CallOptions& o) override {
    return of(tensors).all_reduce(std::move(tensors), op, timed(o));
  }
  WorkPtr broadcast(std::vector<Tensor> tensors, int root, const CallOptions& o) override {
    return of(tensors).broadcast(std::move(tensors), root, timed(o));
  }
  WorkPtr reduce(Tensor t, int root, ReduceOp op, const CallOptions& o) override {
    return of({t}).reduce(t, root, op, timed(o));
  }
  WorkPtr all_gather(std::vector<Tensor> outputs, Tensor input, const CallOptions& o) override {
    return of({input}).all_gather(std::move(outputs), input, timed(o));
  }
  WorkPtr all_gather_into(Tensor output, Tensor input, const CallOptions& o) override {
    return of({input}).all_gather_into(output, input, timed(o));
  }
  WorkPtr reduce_scatter(Tensor output, std::vector<Tensor> inputs, ReduceOp op, const CallOptions& o) override {
    return of({output}).reduce_scatter(output, std::move(inputs), op, timed(o));
  }
  WorkPtr reduce_scatter_tensor(Tensor output, Tensor input, ReduceOp op, const CallOptions& o) override {
    return of({output}).reduce_scatter_tensor(output, input, op, timed(o));
  }
  WorkPtr all_to_all(std::vector<Tensor> outputs, std::vector<Tensor> inputs, const CallOptions& o) override {
    return of(inputs).all_to_all(std::move(outputs), std::move(inputs), timed(o));
  }
  WorkPtr all_to_all_single(Tensor output, Tensor input, std::vector<int64_t> output_splits,
                            std::vector<int64_t> input_splits, const CallOptions& o) override {
    return of({input}).all_to_all_single(output, input, std::move(output_splits), std::move(input_splits), timed(o));
  }
  WorkPtr gather(std::vector<Tensor> outputs, Tensor input, int root, const CallOptions& o) override {
    return of({input}).gather(std::move(outputs), input, root, timed(o));
  }
  WorkPtr scatter(Tensor output, std::vector<Tensor> inputs, int root, const CallOptions& o) override {
    return of({output}).scatter(output, std::move(inputs), root, timed(o));
  }
  WorkPtr send(Tensor t, int to, int tag, const CallOptions& o) override { return of({t}).send(t, to, tag, timed(o)); }
  WorkPtr recv(Tensor t, int from, int tag, const CallOptions& o) override {
    return of({t}).recv(t, from, tag, timed(o));
  }
  WorkPtr barrier(const CallOptions& o) override { return members_[0].group->barrier(timed(o)); }
  void start_coalescing() override {
    for (Member& m : members_) m.group->start_coalescing();
  }
  WorkPtr end_coalescing() override {
    std::vector<WorkPtr> parts;
    for (Member& m : members_) parts.push_back(m.group->end_coalescing());
    return coalesced(std::move(parts));
  }
  void abort(const std::string& reason) override {
    for (Member& m : members_) m.group->abort(reason);
  }
  void shutdown() override {
    for (Member& m : members_) m.group->shutdown();
  }
  bool busy() const override {
    return std::any_of(members_.begin(), members_.end(), [](const Member& m) { return m.group->busy(); });
  }
  std::string report(uint64_t sequence) const override { return members_[0].group->report(sequence); }
  uint64_t sequence_number() const override {
    uint64_t n = 0;
    for (const Member& m : members_) n += m.group->sequence_number();
    return n;
  }

 private:
  ProcessGroup& of(const std::vector<Tensor>& tensors) {
    if (tensors.empty() || !tensors[0].defined()) return *members_[0].group;  // it reports what is wrong
    const std::string_view device = vesta::name(tensors[0].device().type());
    for (Member& m : members_) {
      if (m.device == device) return *m.group;
    }
    fail(Cause::device, "process group '", name(), "': expected a tensor on a device that has a backend in '",
         backend(), "', got one on ", tensors[0].device(), ".");
  }
  CallOptions timed(const CallOptions& o) const { return {timeout_of(o)}; }

  std::vector<Member> members_;
};

}  // namespace

ProcessGroupPtr new_group_by_device(const std::string& backends, StorePtr store, int rank, int size,
                                    const GroupOptions& options) {
  std::vector<GroupByDevice::Member> members;
  for (size_t at = 0; at < backends.size();) {
    const size_t end = std::min(backends.find(',', at), backends.size()), colon = backends.find(':', at);
    VESTA_CHECK(colon < end, value, "process group: expected device:backend pairs by commas, got '", backends,
                "' (backend).");
    const std::string device = backends.substr(at, colon - at), backend = backends.substr(colon + 1, end - colon - 1);
    at = end + 1;
    members.push_back(
        {device, new_process_group(backend, std::make_shared<PrefixStore>(device, store), rank, size, options)});
  }
  return std::make_shared<GroupByDevice>(backends, std::move(members), rank, size, options);
}

}  // namespace vesta
