// DistributedDataParallel for programs in C++: the class of vesta.nn.parallel, as a wrapper of a model.
//
//   auto group = new_process_group("gloo", store, rank, size);
//   auto net = std::make_shared<Net>();                        // built in the same way on all ranks
//   ddp::DistributedDataParallel<Net> model(net, group);
//   optim::SGD optimizer(net->parameters(), {.lr = 0.1});
//   for (auto& [x, y] : my_part_of_the_data) {
//     optimizer.zero_grad();
//     cross_entropy(model(x), y).backward();                   // gradients are averages when it returns
//     optimizer.step();
//   }
//
// A template, so that this folder does not depend on vesta::nn: Model has named_parameters(), buffers(), state_dict()
// and is called with its inputs, as every nn::Module is.
#pragma once
#include <tuple>
#include <utility>

#include <vesta/multiprocessing/ddp/join.h>
#include <vesta/multiprocessing/ddp/reducer.h>
#include <vesta/multiprocessing/ddp/replicas.h>

namespace vesta::ddp {

/// The options of DistributedDataParallel: the arguments of the Python class.
struct DistributedDataParallelOptions {
  bool broadcast_buffers = true;  // rank 0's buffers are sent to all ranks before each forward
  bool init_sync = true;  // compare the ranks' parameters, and start with those of rank 0
  double bucket_cap_mb = 0;  // 0: 25 MiB, the first bucket 1 MiB
  bool find_unused_parameters = false;
  bool static_graph = false;
};

/// Collects the tensors in a forward's result.
inline void collect_tensors(const Tensor& t, std::vector<Tensor>& into) { into.push_back(t); }
inline void collect_tensors(const std::vector<Tensor>& list, std::vector<Tensor>& into) {
  into.insert(into.end(), list.begin(), list.end());
}
template <class... T>
void collect_tensors(const std::tuple<T...>& parts, std::vector<Tensor>& into) {
  std::apply([&](const auto&... part) { (collect_tensors(part, into), ...); }, parts);
}

template <class Model>
class DistributedDataParallel {
 public:
  using Options = DistributedDataParallelOptions;

  /// Makes the ranks' models replicas of rank 0's. Errors, on all ranks: parameters that differ in name, shape or
  /// order; no parameter that requires grad.
  DistributedDataParallel(std::shared_ptr<Model> module, ProcessGroupPtr group, const Options& options = {})
      : module_(std::move(module)), group_(std::move(group)), options_(options) {
    NamedTensors named = module_->named_parameters();
    std::vector<Tensor> all, trained;
    std::vector<std::string> names;
    for (const auto& [name, p] : named) {
      all.push_back(p);
      if (p.requires_grad()) trained.push_back(p), names.push_back(name);
    }
    if (!all.empty()) device_ = all[0].device();
    if (options_.init_sync) {
      verify_replicas(*group_, named, "parameter", all.empty() ? Device{} : all[0].device());
      if (options_.broadcast_buffers) {
        for (const Tensor& buffer : module_->buffers()) all.push_back(buffer);
      }
      broadcast_tensors(*group_, all, 0);
    }
    ReducerOptions reducing;
    if (options_.bucket_cap_mb > 0) {
      reducing.first_bucket_bytes = reducing.bucket_bytes = int64_t(options_.bucket_cap_mb * (1 << 20));
      reducing.taper = false;
    }
    reducing.find_unused_parameters = options_.find_unused_parameters;
    reducing.static_graph = options_.static_graph;
    reducer_ = Reducer::make(std::move(trained), std::move(names), group_, reducing);
  }

  /// Calls the model; backward from its result averages the gradients.
  template <class... Inputs>
  auto operator()(Inputs&&... inputs) {
    const bool recording = GradMode::enabled(), sync = recording && require_backward_grad_sync_;
    if (joining_) say_that_there_is_input();
    if (recording) reducer_->prepare_for_forward();
    if (will_sync_buffers()) {
      refresh_tensors(*group_, module_->buffers(), joining_ ? last_rank_that(*group_, true, device_) : 0);
    }
    if (joining_) sum_over_ranks(*group_, sync, device_);
    auto output = (*module_)(std::forward<Inputs>(inputs)...);
    if (recording) {
      std::vector<Tensor> tensors;
      if (sync && options_.find_unused_parameters && !options_.static_graph) collect_tensors(output, tensors);
      reducer_->prepare_for_backward(tensors, sync);
    }
    require_forward_param_sync_ = sync;
    return output;
  }

  /// A guard that leaves gradients local while it lives: they add up until the first forward and backward after it.
  class NoSync {
   public:
    explicit NoSync(DistributedDataParallel& ddp)
        : ddp_(ddp), before_(std::exchange(ddp.require_backward_grad_sync_, false)) {}
    ~NoSync() { ddp_.require_backward_grad_sync_ = before_; }
    NoSync(const NoSync&) = delete;

   private:
    DistributedDataParallel& ddp_;
    bool before_;
  };
  NoSync no_sync() { return NoSync(*this); }

  /// A scope in which ranks may have different numbers of inputs. Make it before the loop and call `finish` after it,
  /// on every rank. A rank that is done mirrors the others' communication until they are done too; all end with the
  /// model of the last rank.
  ///
  ///   auto join = model.join();
  ///   for (auto& batch : mine) { ... }
  ///   join.finish();
  class Join {
   public:
    Join(DistributedDataParallel& ddp, bool divide_by_initial_world_size) : ddp_(ddp) {
      ddp_.joining_ = true;
      ddp_.divide_by_initial_world_size_ = divide_by_initial_world_size;
    }
    ~Join() { ddp_.joining_ = false; }
    Join(const Join&) = delete;
    void finish() {
      bool last = true;
      for (; sum_over_ranks(*ddp_.group_, 0, ddp_.device_) > 0; last = false) ddp_.mirror_iteration();
      ddp_.joining_ = false;
      const int source = last_rank_that(*ddp_.group_, last, ddp_.device_);
      std::vector<Tensor> all = ddp_.module_->parameters();
      if (ddp_.options_.broadcast_buffers) {
        for (const Tensor& buffer : ddp_.module_->buffers()) all.push_back(buffer);
      }
      broadcast_tensors(*ddp_.group_, all, source);
    }

   private:
    DistributedDataParallel& ddp_;
  };
  /// Returns a Join. `divide_by_initial_world_size`: gradients are divided by the number of all ranks, not of those
  /// still at work.
  Join join(bool divide_by_initial_world_size = true) { return Join(*this, divide_by_initial_world_size); }

  /// Registers a hook that replaces the averaging of each bucket. Call it once, before the first backward.
  void register_comm_hook(std::shared_ptr<CommHook> hook) { reducer_->register_comm_hook(std::move(hook)); }

  const std::shared_ptr<Model>& module() const { return module_; }
  std::vector<Tensor> parameters() const { return module_->parameters(); }
  /// Returns the model's state under the names of the Python class: "module.fc.weight".
  auto state_dict() const { return module_->state_dict("module."); }
  Reducer& reducer() { return *reducer_; }

 private:
  bool will_sync_buffers() const {
    return options_.broadcast_buffers && require_forward_param_sync_ && !module_->buffers().empty();
  }
  void say_that_there_is_input() {
    const Tensor count = ones({1}, DType::float32, device_);
    reducer_->set_forward_work(group_->all_reduce({count}), divide_by_initial_world_size_ ? Tensor() : count);
  }
  /// Sends what an iteration of a rank with inputs sends.
  void mirror_iteration() {
    reducer_->prepare_for_forward();
    if (will_sync_buffers()) {
      refresh_tensors(*group_, module_->buffers(), last_rank_that(*group_, false, device_));
    }
    require_forward_param_sync_ = sum_over_ranks(*group_, 0, device_) != 0;
    if (require_forward_param_sync_) reducer_->shadow_round();
  }

  std::shared_ptr<Model> module_;
  ProcessGroupPtr group_;
  Options options_;
  Device device_;
  bool joining_ = false, divide_by_initial_world_size_ = true;
  std::shared_ptr<Reducer> reducer_;
  bool require_backward_grad_sync_ = true, require_forward_param_sync_ = true;
};

}  // namespace vesta::ddp
