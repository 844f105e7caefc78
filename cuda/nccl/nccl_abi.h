// The binary interface of NCCL 2, as far as we use it: numbers and functions by their published names.
#pragma once
#include <climits>
#include <cstddef>
#include <cstdint>

namespace vesta::cuda::nccl {

using Comm = void*;
using Stream = void*;

enum Result : int {
  success = 0,
  unhandled_cuda_error = 1,
  system_error = 2,
  internal_error = 3,
  invalid_argument = 4,
  invalid_usage = 5,
  remote_error = 6,
  in_progress = 7,
};
enum DataType : int {
  int8 = 0,
  uint8 = 1,
  int32 = 2,
  uint32 = 3,
  int64 = 4,
  uint64 = 5,
  float16 = 6,
  float32 = 7,
  float64 = 8,
  bfloat16 = 9,
};
/// NCCL's operators. Numbers from num_ops on are created operators.
enum RedOp : int { op_sum = 0, op_prod = 1, op_max = 2, op_min = 3, op_avg = 4, num_ops = 5 };
enum Residence : int { scalar_device = 0, scalar_host_immediate = 1 };

struct UniqueId {
  char internal[128];
};

inline constexpr int kUndefined = INT_MIN;

/// ncclConfig_t as of 2.17; newer libraries take it by its size and version.
struct Config {
  size_t size = sizeof(Config);
  unsigned int magic = 0xcafebeef;
  unsigned int version = 21700;
  int blocking = kUndefined;
  int cga_cluster_size = kUndefined;
  int min_ctas = kUndefined;
  int max_ctas = kUndefined;
  const char* net_name = nullptr;
  int split_share = kUndefined;
};

/// The functions of the library.
struct Functions {
  Result (*version)(int*);
  const char* (*error_string)(Result);
  const char* (*last_error)(Comm);
  Result (*unique_id)(UniqueId*);
  Result (*comm_init)(Comm*, int size, UniqueId, int rank, Config*);
  Result (*comm_async_error)(Comm, Result*);
  Result (*comm_finalize)(Comm);
  Result (*comm_destroy)(Comm);
  Result (*comm_abort)(Comm);
  Result (*group_start)();
  Result (*group_end)();
  Result (*all_reduce)(const void* from, void* to, size_t count, DataType, RedOp, Comm, Stream);
  Result (*broadcast)(const void* from, void* to, size_t count, DataType, int root, Comm, Stream);
  Result (*reduce)(const void* from, void* to, size_t count, DataType, RedOp, int root, Comm, Stream);
  Result (*all_gather)(const void* from, void* to, size_t count_each, DataType, Comm, Stream);
  Result (*reduce_scatter)(const void* from, void* to, size_t count_each, DataType, RedOp, Comm, Stream);
  Result (*send)(const void* from, size_t count, DataType, int peer, Comm, Stream);
  Result (*recv)(void* to, size_t count, DataType, int peer, Comm, Stream);
  Result (*create_premul_sum)(RedOp*, void* scalar, DataType, Residence, Comm);
  Result (*destroy_op)(RedOp, Comm);
};

}  // namespace vesta::cuda::nccl
