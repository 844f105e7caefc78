// The binary interface of cuBLASLt, as far as we use it: numbers and functions by their published names.
#pragma once
#include <cstddef>
#include <cstdint>

namespace vesta::cuda::cublas_lt {

using Handle = void*;
using MatmulDesc = void*;
using Layout = void*;
using Preference = void*;
using Status = int;  // 0: success

enum Compute : int { compute_32f = 68, compute_64f = 70, compute_32f_fast_tf32 = 77 };
enum DataType : int { r_32f = 0, r_64f = 1, r_16f = 2, c_32f = 4, c_64f = 5, r_16bf = 14 };
enum Operation : int { op_n = 0, op_t = 1 };
enum DescAttribute : int {
  desc_transa = 3,
  desc_transb = 4,
  desc_epilogue = 7,
  desc_bias_pointer = 8,
  desc_aux_pointer = 11,
  desc_aux_ld = 12,
  desc_bias_data_type = 26,
};
enum LayoutAttribute : int { layout_batch_count = 5, layout_strided_batch_offset = 6, layout_batch_mode = 8 };
enum BatchMode : uint32_t { batch_strided = 0, batch_pointer_array = 1 };
enum PreferenceAttribute : int {
  pref_max_workspace_bytes = 1,
  pref_min_alignment_a = 5,
  pref_min_alignment_b = 6,
  pref_min_alignment_c = 7,
  pref_min_alignment_d = 8,
};
enum EpilogueValue : int {
  epilogue_default = 1,
  epilogue_relu = 2,
  epilogue_bias = 4,
  epilogue_relu_bias = 6,
  epilogue_relu_aux = 130,
  epilogue_relu_aux_bias = 134,
  epilogue_relu_backward = 136,
  epilogue_gelu = 32,
  epilogue_gelu_bias = 36,
  epilogue_gelu_aux = 160,
  epilogue_gelu_aux_bias = 164,
  epilogue_gelu_backward = 192,
  epilogue_bias_gradient_b = 512,
};

struct Algo {
  uint64_t data[8];
};
struct HeuristicResult {
  Algo algo;
  size_t workspace;
  Status state;
  float waves;
  int reserved[4];
};

/// The functions of the library.
struct Functions {
  size_t (*version)();
  Status (*create)(Handle*);
  Status (*desc_create)(MatmulDesc*, int compute, int scale_type);
  Status (*desc_destroy)(MatmulDesc);
  Status (*desc_set)(MatmulDesc, int attribute, const void*, size_t);
  Status (*layout_create)(Layout*, int type, uint64_t rows, uint64_t cols, int64_t ld);
  Status (*layout_destroy)(Layout);
  Status (*layout_set)(Layout, int attribute, const void*, size_t);
  Status (*preference_create)(Preference*);
  Status (*preference_destroy)(Preference);
  Status (*preference_set)(Preference, int attribute, const void*, size_t);
  Status (*heuristic)(Handle, MatmulDesc, Layout a, Layout b, Layout c, Layout d, Preference, int wanted,
                      HeuristicResult*, int* found);
  Status (*matmul)(Handle, MatmulDesc, const void* alpha, const void* a, Layout, const void* b, Layout,
                   const void* beta, const void* c, Layout, void* d, Layout, const Algo*, void* workspace, size_t,
                   void* stream);
};

}  // namespace vesta::cuda::cublas_lt
