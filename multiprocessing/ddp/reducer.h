// Reducer: averages the gradients of a model over a process group while backward goes on. A tour of a step:
//
// clang-format off
//   prepare_for_forward    checks that the last backward was finished; after the first one, orders the buckets anew in
//                          the order in which gradients became ready
//   prepare_for_backward   notes that the coming backward is to be averaged, and which parameters it cannot reach
//   (backward)             a hook per parameter: its gradient lies in its bucket; a full bucket is sent, in the order
//                          of buckets, and backward goes on
//   finish                 when the last bucket is on its way, at the end of backward: waits for all of them
// clang-format on
//
// Note [Rounds]
// A round averages every gradient once. It begins with the first gradient of a backward and ends when all buckets are
// sent. It may take several backwards, each reaching some parameters, as it may in PyTorch; a new forward before its
// end is an error that names the parameters that got no gradient. With find_unused_parameters a round ends with its
// backward: what got no gradient counts as unused; the parameters that no path from the forward's outputs reaches are
// known at the beginning, so their buckets need not wait. One more small all_reduce then finds the parameters that no
// rank used; their grad stays as it was. A backward without a new forward (a graph that was retained, or the second of
// two forwards) is a round of its own that ends with it: PyTorch adds such gradients without averaging them, and the
// replicas diverge.
#pragma once
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <vesta/autograd/hooks.h>
#include <vesta/multiprocessing/ddp/bucket.h>
#include <vesta/multiprocessing/ddp/comm_hook.h>

namespace vesta::ddp {

/// PyTorch's sizes: the first ready gradients are sent early, in a small bucket.
constexpr int64_t kFirstBucketBytes = int64_t(1) << 20;
constexpr int64_t kBucketBytes = int64_t(25) << 20;

/// Returns limits for buckets of `total` bytes in all: `first`, then `most`, and towards the end no more than a
/// quarter of the rest, down to `first`. So only one small bucket is sent after backward has ended, not a rest of any
/// size (benchmarks/cpp/ddp_overlap.cpp).
VESTA_API std::vector<int64_t> tapered_limits(int64_t total, int64_t first, int64_t most);

/// The options of a reducer.
struct ReducerOptions {
  int64_t first_bucket_bytes = kFirstBucketBytes;
  int64_t bucket_bytes = kBucketBytes;
  /// True if buckets become smaller towards the end, once their order is known.
  bool taper = true;
  /// If not empty: the limits of the buckets one by one, instead of those above; the last applies to the rest.
  std::vector<int64_t> bucket_limits = {};
  /// True if some parameters may get no gradient in some backward.
  bool find_unused_parameters = false;
  /// True if every backward is like the first: a parameter may get several gradients in it, or none.
  bool static_graph = false;
  /// True if buckets without a used parameter are not sent; they must be the same on all ranks.
  bool skip_unused_buckets = false;
};

/// The measurements of a reducer; seconds are those of the last round.
struct ReducerStats {
  int64_t rounds = 0;             // that were finished
  double backward_seconds = 0;    // from the first gradient to the end
  double exposed_seconds = 0;     // of these, waiting for communication when backward had nothing left to do
  double total_exposed_seconds = 0;
  bool rebuilt = false;
  bool unused_changed = false;    // the set of unused parameters was not the same in all rounds
  std::vector<int64_t> bucket_bytes;
};

class VESTA_API Reducer : public std::enable_shared_from_this<Reducer> {
 public:
  /// Makes a reducer and hooks it to the parameters (leaves that require grad, each once, the same on all ranks).
  /// `names` are for errors.
  static std::shared_ptr<Reducer> make(std::vector<Tensor> parameters, std::vector<std::string> names,
                                       ProcessGroupPtr group, const ReducerOptions& options = {});
  /// Removes the hooks; gradients stay as they are.
  ~Reducer();

  /// Begins a forward whose backward may be averaged. Once the order is known it makes the new buckets, for which all
  /// ranks must call it; returns whether it did. Raises if the last round was not finished, naming parameters.
  bool prepare_for_forward();
  /// Ends a forward. `sync`: its backward is averaged (not within no_sync). `outputs` are the tensors that the forward
  /// returned, where backward begins; they are used only with find_unused_parameters.
  void prepare_for_backward(const std::vector<Tensor>& outputs, bool sync);

  /// Replaces the averaging. Call it once, before the first backward.
  void register_comm_hook(std::shared_ptr<CommHook> hook);
  /// Makes the next round wait for `work` at its beginning and divide by `count`, which it fills: the number of ranks
  /// that still have inputs. With an undefined count the divisor is the group's size.
  void set_forward_work(WorkPtr work, Tensor count);

  /// Takes part in the other ranks' round without gradients of its own, for a rank that has run out of inputs.
  void shadow_round();

  const std::vector<Tensor>& parameters() const { return parameters_; }
  const std::vector<std::string>& names() const { return names_; }
  const ProcessGroupPtr& group() const { return group_; }
  ReducerStats stats() const;

 private:
  class GradientHook;
  class Place;
  struct Slot;
  struct Send;

  Reducer(std::vector<Tensor> parameters, std::vector<std::string> names, ProcessGroupPtr group,
          const ReducerOptions& options);
  void hook_parameters();
  void make_buckets(const BucketPlan& plan);

  void on_gradient(size_t i);
  void begin_round();
  void end_of_backward();
  void mark_ready(size_t i);
  void gather(size_t i);
  void send_ready_buckets();
  void send(size_t b);
  void send_used_map();
  void finish();
  void receive(size_t b);
  void receive_used_map();
  void set_divisor();
  void settle(size_t i, bool used_nowhere);
  void abandon_round();
  void reset_round();

  bool rebuilds() const { return options_.static_graph || !options_.find_unused_parameters; }
  bool counting() const { return options_.static_graph && !counted_; }
  bool sends_used_map() const;
  std::vector<int64_t> limits() const;
  bool may_skip(size_t b) const;
  void search(const std::vector<Tensor>& outputs);
  void check_finished();
  std::vector<size_t> agreed_order();
  [[noreturn]] void fail_ready_twice(size_t i) const;
  std::string names_of(const std::vector<size_t>& indices) const;

  mutable std::recursive_mutex mutex_;  // a communication hook may call the reducer
  const std::vector<Tensor> parameters_;
  const std::vector<std::string> names_;
  const ProcessGroupPtr group_;
  const ReducerOptions options_;
  std::vector<Slot> slots_;  // of each parameter
  std::vector<Bucket> buckets_;
  std::vector<Send> sends_;  // of each bucket
  std::shared_ptr<CommHook> comm_hook_;
  WorkPtr forward_work_;
  Tensor forward_count_;

  bool sync_ = false;  // the next backward is averaged
  bool forward_seen_ = false;  // a forward with sync came since the last round ended
  bool round_ = false;
  bool ends_with_backward_ = false;  // see Note [Rounds]
  bool searched_ = false;  // Slot::reachable is known
  bool counted_ = false;  // of a static graph: Slot::count is known
  bool rebuilt_ = false;
  double divide_by_ = 1;
  size_t next_bucket_ = 0;
  uint64_t tick_ = 0;
  Tensor used_map_;
  bool map_received_ = false;  // in this round: Slot::used_nowhere is current
  WorkPtr used_work_;
  std::vector<bool> unused_before_;
  std::chrono::steady_clock::time_point began_;
  ReducerStats stats_;
};

}  // namespace vesta::ddp
