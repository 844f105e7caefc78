// The op list, factories. See README.md.
#pragma once

// clang-format off
#define VESTA_OPS_FACTORY(OP)                                                                                          \
  OP(FUNCTION, Tensor, empty, (IntTuple size, Kw<MaybeDType> dtype = {}, MaybeDevice device = {}),                     \
     (size, dtype, device), out, factory, memory_format)                                                               \
  OP(FUNCTION, Tensor, full, (IntTuple size, Scalar fill_value, Kw<MaybeDType> dtype = {}, MaybeDevice device = {}),   \
     (size, fill_value, dtype, device), out, factory)                                                                  \
  OP(FUNCTION_AS, Tensor, arange, start_step,                                                                          \
     (Scalar start, Scalar end, Scalar step = 1, Kw<MaybeDType> dtype = {}, MaybeDevice device = {}),                  \
     (start, end, step, dtype, device), out, factory)                                                                  \
  OP(PYTHON_FORM, Tensor, arange, start,                                                                               \
     (Scalar start, Scalar end, Kw<MaybeDType> dtype = {}, MaybeDevice device = {}), (start, end, dtype, device),      \
     arange(start, end, 1, dtype, device), factory)                                                                    \
  OP(FORM, Tensor, arange, end, (Scalar end, Kw<MaybeDType> dtype = {}, MaybeDevice device = {}),                      \
     (end, dtype, device), arange(0, end, 1, dtype, device), out, factory)                                             \
  OP(FUNCTION, Tensor, linspace,                                                                                       \
     (Scalar start, Scalar end, int64_t steps, Kw<MaybeDType> dtype = {}, MaybeDevice device = {}),                    \
     (start, end, steps, dtype, device), out, factory)                                                                 \
  OP(FORM, Tensor, linspace, Tensor_Tensor,                                                                            \
     (const Tensor& start, const Tensor& end, int64_t steps, Kw<MaybeDType> dtype = {}, MaybeDevice device = {}),      \
     (start, end, steps, dtype, device), linspace(start.item(), end.item(), steps, dtype, device), out, factory)       \
  OP(FORM, Tensor, linspace, Tensor_Scalar,                                                                            \
     (const Tensor& start, Scalar end, int64_t steps, Kw<MaybeDType> dtype = {}, MaybeDevice device = {}),             \
     (start, end, steps, dtype, device), linspace(start.item(), end, steps, dtype, device), out, factory)              \
  OP(FORM, Tensor, linspace, Scalar_Tensor,                                                                            \
     (Scalar start, const Tensor& end, int64_t steps, Kw<MaybeDType> dtype = {}, MaybeDevice device = {}),             \
     (start, end, steps, dtype, device), linspace(start, end.item(), steps, dtype, device), out, factory)              \
  OP(FUNCTION, Tensor, logspace,                                                                                       \
     (Scalar start, Scalar end, int64_t steps, double base = 10.0, Kw<MaybeDType> dtype = {}, MaybeDevice device = {}),\
     (start, end, steps, base, dtype, device), composite, out, factory)                                                \
  OP(FORM, Tensor, logspace, Tensor_Tensor,                                                                            \
     (const Tensor& start, const Tensor& end, int64_t steps, double base = 10.0, Kw<MaybeDType> dtype = {},            \
      MaybeDevice device = {}), (start, end, steps, base, dtype, device),                                              \
     logspace(start.item(), end.item(), steps, base, dtype, device), out, factory)                                     \
  OP(FORM, Tensor, logspace, Tensor_Scalar,                                                                            \
     (const Tensor& start, Scalar end, int64_t steps, double base = 10.0, Kw<MaybeDType> dtype = {},                   \
      MaybeDevice device = {}), (start, end, steps, base, dtype, device),                                              \
     logspace(start.item(), end, steps, base, dtype, device), out, factory)                                            \
  OP(FORM, Tensor, logspace, Scalar_Tensor,                                                                            \
     (Scalar start, const Tensor& end, int64_t steps, double base = 10.0, Kw<MaybeDType> dtype = {},                   \
      MaybeDevice device = {}), (start, end, steps, base, dtype, device),                                              \
     logspace(start, end.item(), steps, base, dtype, device), out, factory)                                            \
  OP(FUNCTION, Tensor, scalar_tensor, (Scalar s, Kw<MaybeDType> dtype = {}, MaybeDevice device = {}),                  \
     (s, dtype, device), composite, factory)                                                                           \
  OP(FUNCTION, Tensor, empty_strided,                                                                                  \
     (IntTuple size, IntTuple stride, Kw<MaybeDType> dtype = {}, MaybeDevice device = {}),                             \
     (size, stride, dtype, device), composite, factory)                                                                \
  OP(FUNCTION_AS, Tensor, eye, m, (int64_t n, int64_t m, Kw<MaybeDType> dtype = {}, MaybeDevice device = {}),          \
     (n, m, dtype, device), out, factory)                                                                              \
  OP(FORM, Tensor, eye, n, (int64_t n, Kw<MaybeDType> dtype = {}, MaybeDevice device = {}), (n, dtype, device),        \
     eye(n, n, dtype, device), out, factory)                                                                           \
  OP(FUNCTION, Tensor, zeros, (IntTuple size, Kw<MaybeDType> dtype = {}, MaybeDevice device = {}),                     \
     (size, dtype, device), composite, out, factory)                                                                   \
  OP(FUNCTION, Tensor, ones, (IntTuple size, Kw<MaybeDType> dtype = {}, MaybeDevice device = {}),                      \
     (size, dtype, device), composite, out, factory)                                                                   \
  OP(METHOD, Tensor, empty_like, (Kw<MaybeDType> dtype = {}, MaybeDevice device = {}), (dtype, device), composite,     \
     factory, memory_format, no_method)                                                                                \
  OP(METHOD, Tensor, zeros_like, (Kw<MaybeDType> dtype = {}, MaybeDevice device = {}), (dtype, device), composite,     \
     factory, memory_format, no_method)                                                                                \
  OP(METHOD, Tensor, ones_like, (Kw<MaybeDType> dtype = {}, MaybeDevice device = {}), (dtype, device), composite,      \
     factory, memory_format, no_method)                                                                                \
  OP(METHOD, Tensor, full_like, (Scalar fill_value, Kw<MaybeDType> dtype = {}, MaybeDevice device = {}),               \
     (fill_value, dtype, device), composite, factory, memory_format, no_method)                                        \
  OP(METHOD, Tensor, new_empty, (IntTuple size, Kw<MaybeDType> dtype = {}, MaybeDevice device = {}),                   \
     (size, dtype, device), composite, factory, tensor_only)                                                           \
  OP(METHOD, Tensor, new_empty_strided,                                                                                \
     (IntTuple size, IntTuple stride, Kw<MaybeDType> dtype = {}, MaybeDevice device = {}),                             \
     (size, stride, dtype, device), composite, factory, tensor_only)                                                   \
  OP(METHOD, Tensor, new_zeros, (IntTuple size, Kw<MaybeDType> dtype = {}, MaybeDevice device = {}),                   \
     (size, dtype, device), composite, factory, tensor_only)                                                           \
  OP(METHOD, Tensor, new_ones, (IntTuple size, Kw<MaybeDType> dtype = {}, MaybeDevice device = {}),                    \
     (size, dtype, device), composite, factory, tensor_only)                                                           \
  OP(METHOD, Tensor, new_full, (IntTuple size, Scalar fill_value, Kw<MaybeDType> dtype = {}, MaybeDevice device = {}), \
     (size, fill_value, dtype, device), composite, factory, tensor_only)
