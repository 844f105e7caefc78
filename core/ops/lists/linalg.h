// The op list, linear algebra: decompositions and solutions. See README.md.
#pragma once

// clang-format off
#define VESTA_OPS_LINALG(OP)                                                                                           \
  OP(IN, linalg, TensorPair, qr, (const Tensor& A, Text mode = "reduced"), (A, mode), out, fields("Q", "R"))           \
  OP(IN, linalg, Tensor, solve_triangular,                                                                             \
     (const Tensor& input, const Tensor& B, Kw<bool> upper, bool left = true, bool unitriangular = false),             \
     (input, B, upper, left, unitriangular), out)
