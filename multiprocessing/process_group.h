// ProcessGroup: processes that work together on tensors. Every process makes the same calls in the same order.
//
// All operations are asynchronous: they return a Work, run in the order they were given, and keep their tensors alive
// until they are done. Do not write inputs or read outputs before `Work::wait`. A group made by new_process_group
// checks that all ranks call the same thing (Note [The check that rides along] in fingerprint.h), and tells every rank
// about one that died, left or is silent.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include <vesta/multiprocessing/distributed_error.h>
#include <vesta/multiprocessing/work.h>

namespace vesta {

class Store;

/// The operations of a process group.
enum class Collective : uint8_t {
  all_reduce,
  broadcast,
  reduce,
  all_gather,
  all_gather_into,
  reduce_scatter,
  reduce_scatter_tensor,
  all_to_all,
  all_to_all_single,
  gather,
  scatter,
  barrier,
  send,
  recv
};
/// Returns the operation's name, such as `all_reduce`.
VESTA_API const char* name(Collective c);

/// The operator that combines values. For bools, sum and max are "or", product and min are "and"; avg is for
/// floating-point and complex types; complex numbers have no min and max; the bit operators are for integers and
/// bools.
struct ReduceOp {
  enum Kind : uint8_t { sum, avg, product, min, max, band, bor, bxor, premul_sum };
  Kind kind = sum;
  double factor = 1;  // for premul_sum: every value is multiplied by its rank's factor first
  constexpr ReduceOp(Kind k = sum, double f = 1) : kind(k), factor(f) {}
  friend bool operator==(ReduceOp, ReduceOp) = default;
};
/// Returns PyTorch's name of the operator, such as `SUM`.
VESTA_API const char* name(ReduceOp op);

/// The call site of a collective, for messages: a scope on the calling thread. The Python layer sets file and line; a
/// C++ caller gives its own string (`CallSite here("bucket 3 (layer1.weight, ...)")`).
class VESTA_API CallSite {
 public:
  explicit CallSite(std::string where);
  ~CallSite();
  CallSite(const CallSite&) = delete;
  /// Returns the current scope's string; empty outside of any scope.
  static const std::string& current();

 private:
  std::string where_;
  CallSite* below_;
};

/// The options of one call, besides its tensors.
struct CallOptions {
  Milliseconds timeout{0};  // 0: the group's
};

/// A group of processes, each with a rank from 0 to size - 1. Roots, sources and destinations are ranks of the group.
class VESTA_API ProcessGroup {
 public:
  ProcessGroup(std::string name, std::string backend, int rank, int size, Milliseconds timeout);
  virtual ~ProcessGroup() = default;
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  const std::string& name() const { return name_; }
  const std::string& backend() const { return backend_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  Milliseconds timeout() const { return timeout_; }
  void set_timeout(Milliseconds timeout) { timeout_ = timeout; }

  /// Combines each tensor of the list with those of the other ranks, in place, as one operation.
  virtual WorkPtr all_reduce(std::vector<Tensor> tensors, ReduceOp op = {}, const CallOptions& options = {});
  /// Copies the root's tensors to all ranks, as one operation.
  virtual WorkPtr broadcast(std::vector<Tensor> tensors, int root, const CallOptions& options = {});
  /// Combines the tensors of all ranks into the root's; the others' tensors are unchanged.
  virtual WorkPtr reduce(Tensor tensor, int root, ReduceOp op = {}, const CallOptions& options = {});
  /// Fills outputs[i] with rank i's input; all have the same shape and dtype.
  virtual WorkPtr all_gather(std::vector<Tensor> outputs, Tensor input, const CallOptions& options = {});
  /// Fills one tensor of size() times the input's elements with the inputs in rank order.
  virtual WorkPtr all_gather_into(Tensor output, Tensor input, const CallOptions& options = {});
  /// Combines inputs[i] of all ranks into rank i's output.
  virtual WorkPtr reduce_scatter(Tensor output, std::vector<Tensor> inputs, ReduceOp op = {},
                                 const CallOptions& options = {});
  /// Does the same with one input of size() times the output's elements.
  virtual WorkPtr reduce_scatter_tensor(Tensor output, Tensor input, ReduceOp op = {}, const CallOptions& options = {});
  /// Sends inputs[i] to rank i and fills outputs[i] from rank i; the sizes of each pair must agree.
  virtual WorkPtr all_to_all(std::vector<Tensor> outputs, std::vector<Tensor> inputs, const CallOptions& options = {});
  /// Does the same with the rows of one input and one output; empty splits mean equal parts.
  virtual WorkPtr all_to_all_single(Tensor output, Tensor input, std::vector<int64_t> output_splits = {},
                                    std::vector<int64_t> input_splits = {}, const CallOptions& options = {});
  /// Fills the root's outputs[i] with rank i's input; other ranks give no outputs.
  virtual WorkPtr gather(std::vector<Tensor> outputs, Tensor input, int root, const CallOptions& options = {});
  /// Fills rank i's output with the root's inputs[i]; other ranks give no inputs.
  virtual WorkPtr scatter(Tensor output, std::vector<Tensor> inputs, int root, const CallOptions& options = {});
  /// Sends to one rank; messages of the same pair and tag arrive in order.
  virtual WorkPtr send(Tensor tensor, int destination, int tag = 0, const CallOptions& options = {});
  /// Receives from one rank, or from any if `source` is -1 (Work::source_rank tells from which).
  virtual WorkPtr recv(Tensor tensor, int source, int tag = 0, const CallOptions& options = {});
  /// Starts a barrier, which ends on each rank when all have begun it.
  virtual WorkPtr barrier(const CallOptions& options = {});

  /// Collects the calls that follow on this thread, until end_coalescing returns one Work for all of them.
  virtual void start_coalescing();
  virtual WorkPtr end_coalescing();

  /// Ends all operations with an error that gives the reason, here and on the other ranks; the group cannot be used
  /// afterwards.
  virtual void abort(const std::string& reason);
  /// Waits for the operations given so far and leaves the group. Never waits for ranks that do not come.
  virtual void shutdown();
  /// Returns whether operations are under way.
  virtual bool busy() const { return false; }
  /// Returns which ranks have not reached operation `sequence`, with what is known about each; empty if all have.
  virtual std::string report(uint64_t sequence) const;
  /// Returns the number of operations given to the group so far (messages between two ranks are not counted).
  virtual uint64_t sequence_number() const;
  /// Returns the global ranks of the members in order of their rank in the group; 0 .. size-1 unless set.
  const std::vector<int>& ranks() const { return ranks_; }
  void set_ranks(std::vector<int> ranks) { ranks_ = std::move(ranks); }

 protected:
  /// Returns a Work, and adds it to the list of start_coalescing if one is open on this thread.
  WorkPtr collected(WorkPtr work);
  Milliseconds timeout_of(const CallOptions& options) const;
  [[noreturn]] void refuse(Collective what) const;

 private:
  std::string name_, backend_;
  int rank_, size_;
  Milliseconds timeout_;
  std::vector<int> ranks_;
};

using ProcessGroupPtr = std::shared_ptr<ProcessGroup>;

/// The options of a new group.
struct GroupOptions {
  std::string name = "default";  // the same on all ranks; part of the keys in the store
  Milliseconds timeout = std::chrono::minutes(30);
  std::vector<int> ranks;  // global ranks, for messages
};

/// Makes a group with the given backend ("gloo", or one that was registered; "cpu:gloo,cuda:nccl": one by device). All
/// ranks call it with the same name and a store that they share; a name can be used once per store. DistributedError
/// names the ranks that do not come.
VESTA_API ProcessGroupPtr new_process_group(const std::string& backend, std::shared_ptr<Store> store, int rank,
                                            int size, const GroupOptions& options = {});

/// A function that makes groups of one backend.
using GroupFactory = ProcessGroupPtr (*)(std::shared_ptr<Store> store, int rank, int size, const GroupOptions&);
/// A function that returns whether a registered backend can be used here; if not, `why_not` receives the reason.
using BackendProbe = bool (*)(std::string* why_not);
/// Registers a backend; called by each plug-in, those of devices included. Without a probe it can always be used.
VESTA_API void register_backend(const std::string& backend, GroupFactory factory, BackendProbe probe = nullptr);
/// Returns whether a backend is available; loads its plug-in. `why_not` receives the loader's message.
VESTA_API bool has_group_backend(const std::string& backend, std::string* why_not = nullptr);

}  // namespace vesta
