// Linear algebra: decompositions and solutions, and checks of their operands that all devices share.
#pragma once
#include <string>

#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/linalg.h>

namespace vesta {

VESTA_DECLARE_TOPIC(VESTA_OPS_LINALG)

/// Raises unless `t` holds matrices of a dtype that LAPACK has.
VESTA_API void check_matrices(const Tensor& t, const char* op, const char* argument);

/// The requested parts of a QR decomposition.
enum class QrMode : uint8_t { reduced, complete, r };
/// Reads linalg.qr's mode. Error(value) for any other string.
VESTA_API QrMode qr_mode(Text mode);

/// The shape of a QR decomposition of matrices [rows, columns]: rank is the smaller of both; Q
/// [*, rows, q_columns] (none in mode r), R [*, r_rows, columns].
struct QrShape {
  QrMode mode;
  Dims batch;
  int64_t count, rows, columns, rank, q_columns, r_rows;  // count: of matrices
};
/// Checks linalg.qr's operand. Error(runtime): less than 2 dimensions; Error(not_implemented): a dtype without LAPACK.
VESTA_API QrShape qr_shape(const Tensor& A, Text mode);

/// The shape of triangular systems: `count` matrices A [order, order] and as many B [rows, columns].
struct TriangularShape {
  Dims batch;
  int64_t count, order, rows, columns;
};
/// Checks linalg.solve_triangular's operands and broadcasts their batches.
VESTA_API TriangularShape triangular_shape(const Tensor& A, const Tensor& B, bool left);

/// Matrices [rows, columns], `count` of them, and the smaller of both sizes.
struct MatrixShape {
  Dims batch;
  int64_t count, rows, columns, rank;
};
/// Checks the operand of a decomposition. Error(runtime): no matrices, or (square) not of equal sizes.
VESTA_API MatrixShape matrix_shape(const Tensor& A, const char* op, const char* argument, bool square);

/// Checks linalg.ldl_solve's operands: LD [*, n, n], pivots [*, n] of integers, B [*, n, k]. Returns the shape of the
/// solution, with the batches of LD and B broadcast. Error(runtime): sizes or dtypes that do not fit.
VESTA_API MatrixShape ldl_solution(const Tensor& LD, const Tensor& pivots, const Tensor& B);

/// Makes uninitialised matrices [batch, rows, columns] whose columns are dense: LAPACK's order.
VESTA_API Tensor empty_by_columns(IntSpan batch, int64_t rows, int64_t columns, const Tensor& like);

/// Sets folders, with ':' in between, in which OpenBLAS is searched before the system's LAPACK: those of the libraries
/// of SciPy and NumPy.
VESTA_API void set_lapack_folder(std::string folder);
VESTA_API std::string lapack_folder();

}  // namespace vesta
