// The op list, linear algebra: decompositions and solutions. See README.md.
#pragma once

// clang-format off
#define VESTA_OPS_LINALG(OP)                                                                                           \
  OP(IN, linalg, TensorPair, qr, (const Tensor& A, Text mode = "reduced"), (A, mode), out, fields("Q", "R"))           \
  OP(IN, linalg, Tensor, solve_triangular,                                                                             \
     (const Tensor& A, const Tensor& B, Kw<bool> upper, bool left = true, bool unitriangular = false),                 \
     (A, B, upper, left, unitriangular), out)
