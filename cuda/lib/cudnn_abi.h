// The binary interface of cuDNN 9's graphs, as far as we use it: numbers and functions by their published names.
#pragma once
#include <cstddef>
#include <cstdint>

namespace vesta::cuda::cudnn {

using Handle = void*;
using RawDescriptor = void*;
using Status = int;  // 0: success

enum Kind : int {
  pointwise = 0,
  convolution = 1,
  engine = 2,
  engine_config = 3,
  engine_heuristic = 4,
  execution_plan = 5,
  operation_forward = 10,
  operation_weight_gradient = 11,
  operation_input_gradient = 12,
  operation_pointwise = 13,
  operation_graph = 15,
  variant_pack = 16,
  tensor = 17,
  matmul = 18,
  operation_matmul = 19,
  reduction = 21,
  operation_reduction = 22,
  operation_reshape = 31,
  device_properties = 38,
};
enum Type : int {
  type_handle = 0,
  type_data_type = 1,
  type_boolean = 2,
  type_int64 = 3,
  type_float = 4,
  type_double = 5,
  type_void_ptr = 6,
  type_convolution_mode = 7,
  type_heuristic_mode = 8,
  type_nan = 10,
  type_numerical_note = 11,
  type_pointwise_mode = 14,
  type_descriptor = 15,
  type_reduction_operator = 18,
  type_char = 24,
};
enum Attribute : int {
  pointwise_mode = 0,
  pointwise_compute_type = 1,
  pointwise_nan = 2,
  pointwise_axis = 9,
  convolution_compute_type = 100,
  convolution_mode = 101,
  convolution_dilations = 102,
  convolution_strides = 103,
  convolution_post_paddings = 104,
  convolution_pre_paddings = 105,
  convolution_spatial_dims = 106,
  heuristic_mode = 200,
  heuristic_graph = 201,
  heuristic_results = 202,
  heuristic_device = 204,
  config_engine = 300,
  plan_handle = 400,
  plan_config = 401,
  plan_workspace = 402,
  plan_device = 407,
  forward_alpha = 700,
  forward_beta = 701,
  forward_convolution = 702,
  forward_w = 703,
  forward_x = 704,
  forward_y = 705,
  input_gradient_alpha = 706,
  input_gradient_beta = 707,
  input_gradient_convolution = 708,
  input_gradient_w = 709,
  input_gradient_dx = 710,
  input_gradient_dy = 711,
  weight_gradient_alpha = 712,
  weight_gradient_beta = 713,
  weight_gradient_convolution = 714,
  weight_gradient_dw = 715,
  weight_gradient_x = 716,
  weight_gradient_dy = 717,
  operation_pointwise_what = 750,
  operation_pointwise_x = 751,
  operation_pointwise_b = 752,
  operation_pointwise_y = 753,
  operation_pointwise_t = 758,
  graph_handle = 800,
  graph_operations = 801,
  tensor_alignment = 900,
  tensor_data_type = 901,
  tensor_dimensions = 902,
  tensor_strides = 903,
  tensor_id = 906,
  tensor_is_virtual = 907,
  tensor_is_by_value = 908,
  pack_ids = 1000,
  pack_pointers = 1001,
  pack_workspace = 1003,
  engine_numerical_note = 1303,
  matmul_compute_type = 1500,
  operation_matmul_a = 1520,
  operation_matmul_b = 1521,
  operation_matmul_c = 1522,
  operation_matmul_what = 1523,
  reduction_operator = 1600,
  reduction_compute_type = 1601,
  operation_reduction_x = 1610,
  operation_reduction_y = 1611,
  operation_reduction_what = 1612,
  operation_reshape_x = 2200,
  operation_reshape_y = 2201,
  device_json = 2702,
};
enum Note : int {
  note_tensor_core = 0,
  note_down_convert = 1,
  note_reduced_reduction = 2,
  note_nondeterministic = 4,
  note_winograd = 5,
  note_winograd_4x4 = 6,
  note_winograd_6x6 = 7,
  note_winograd_13x13 = 8,
  note_strict_nan = 9,
  note_count = 10,
};
enum Heuristic : int { heuristic_fallback = 2, heuristic_a = 3 };
enum Data : int {
  data_float = 0,
  data_double = 1,
  data_half = 2,
  data_int32 = 4,
  data_bfloat16 = 9,
  data_boolean = 11,
};
enum Pointwise : int {
  pointwise_add = 0,
  pointwise_multiply = 1,
  pointwise_divide = 6,
  pointwise_subtract = 9,
  pointwise_exp = 13,
  pointwise_log = 15,
  pointwise_relu = 100,
  pointwise_at_least = 303,
  pointwise_index = 501,
  pointwise_select = 601,
};
enum Reduction : int { reduction_add = 0, reduction_max = 3 };
constexpr int kCrossCorrelation = 1;
constexpr int kKeepsNan = 1;  // of relu

/// The functions of the library.
struct Functions {
  size_t (*version)();
  Status (*create)(Handle*);
  Status (*set_stream)(Handle, void* stream);
  const char* (*error_text)(Status);
  void (*last_error)(char* to, size_t size);
  Status (*create_descriptor)(int kind, RawDescriptor*);
  Status (*destroy_descriptor)(RawDescriptor);
  Status (*finalize)(RawDescriptor);
  Status (*set)(RawDescriptor, int attribute, int type, int64_t count, const void*);
  Status (*get)(RawDescriptor, int attribute, int type, int64_t wanted, int64_t* count, void*);
  Status (*execute)(Handle, RawDescriptor plan, RawDescriptor pack);
};

}  // namespace vesta::cuda::cudnn
