// Sparse tensors by dense ops on their indices and values, for every device.
//
// Two ops record gradients here, _sparse_coo (of values) and _sparse_values (of a sparse tensor). What is made of them
// and of dense ops needs no rule. Functions in the slot Layer::sparse run below the tape: there the op's own rule
// holds.
#include <vesta/core/ops/sparse.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include <vesta/core/ops/activation.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/compare.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/define.h>
#include <vesta/core/ops/docs/sparse.h>
#include <vesta/core/ops/explog.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/kernel_checks.h>
#include <vesta/core/ops/matmul.h>
#include <vesta/core/ops/numbers.h>
#include <vesta/core/ops/promotion.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/resample.h>
#include <vesta/core/ops/register.h>
#include <vesta/core/ops/select.h>
#include <vesta/core/ops/shape.h>
#include <vesta/core/ops/sort.h>
#include <vesta/core/ops/special.h>
#include <vesta/core/ops/trigonometric.h>
#include <vesta/core/ops/view.h>

namespace vesta {

VESTA_DEFINE_OPS(VESTA_OPS_SPARSE)

namespace {

/// The elements of a product are gathered in pieces of about so many.
constexpr int64_t kPiece = int64_t(1) << 22;

/// Returns the number of positions in the sparse dimensions.
int64_t places_of(IntSpan sizes, int64_t sparse_dims) {
  return numel_of(sizes.first(size_t(sparse_dims)), "sparse tensor");
}

/// Returns the first sizes, of the sparse dimensions.
IntTuple sparse_sizes(IntSpan sizes, int64_t sparse_dims) { return sizes.first(size_t(sparse_dims)); }

/// Returns the number of each position of `indices` [s, nnz] in row-major order of the first s sizes: [nnz].
Tensor numbers_of(const Tensor& indices, IntSpan sizes) {
  return _sparse_numbers(indices, sparse_sizes(sizes, indices.size(0)));
}

/// Returns `t` with its first `count` dimensions as one.
Tensor joined(const Tensor& t, int64_t count) {
  Dims sizes{places_of(t.sizes(), count)};
  for (int64_t n : t.sizes().subspan(size_t(count))) sizes.push_back(n);
  return reshape(t, IntList(sizes));
}

void check_same_sizes(const Tensor& a, const Tensor& b, const char* op) {
  VESTA_CHECK(std::ranges::equal(a.sizes(), b.sizes()), runtime, op, ": expected sparse tensors of equal sizes, got ",
              a.sizes(), " and ", b.sizes(), ".");
}

/// Adds alpha times a sparse tensor to a dense one of its sizes, in place.
void add_elements(const Tensor& to, const Tensor& sparse, double alpha, const char* op) {
  const SparseParts& p = sparse_parts(sparse, op);
  const Tensor values = p.values.dtype() == to.dtype() ? p.values : p.values.to(to.dtype());
  Tensor flat = to.is_contiguous() ? to : clone(to, "contiguous_format");
  index_add_(joined(flat, sparse_dims(p)), 0, numbers_of(p.indices, to.sizes()), values, alpha);
  if (!flat.is_same(to)) copy_(to, flat);
}

bool is_compressed(const SparseParts& p) { return p.layout != SparseLayout::coo; }

/// Returns a sparse tensor each of whose positions occurs once.
Tensor coalesced(const Tensor& t, const char* op) {
  const SparseParts& p = sparse_parts(t, op);
  return p.coalesced || is_compressed(p) ? t : coalesce(t);
}

/// Returns a sparse tensor with the positions of `like` and other values.
Tensor with_values(const Tensor& like, const Tensor& values) {
  return make_sparse_like(*like.impl()->sparse_parts, values, like.sizes());
}

/// Raises for a compressed matrix, which has no coordinates.
void check_coordinates(const SparseParts& p, const char* op) {
  VESTA_CHECK(!is_compressed(p), runtime, op, ": expected sparse coordinate tensor layout but got ",
              p.layout == SparseLayout::csr ? "SparseCsr" : "SparseCsc", ". Convert it with .to_sparse().");
}

/// Delivers the result of a pointwise call on sparse operands.
Tensor deliver(const Tensor& result, const Out& out, const char* op) {
  if (out.kind == Out::fresh) return result;
  const Tensor& to = *out.tensor;
  VESTA_CHECK(out.kind == Out::inplace && to.is_sparse() == result.is_sparse(), not_implemented, op,
              ": expected a result of the operand's layout, which can be written in place; use ", op,
              "() without out.");
  VESTA_CHECK(result.dtype() == to.dtype(), runtime, op, ": result type ", result.dtype(),
              " can't be cast to the desired output type ", to.dtype(), ".");
  if (!result.is_sparse()) return copy_(to, result);
  set_sparse_parts(to, *result.impl()->sparse_parts, op);
  return to;
}

// ---- functions of Layer::sparse ----

Tensor sum_of(const Tensor& a, const Tensor& b, double alpha, const Out& out, const char* op) {
  check_same_sizes(a, b, op);
  const DType joint = promote(a.dtype(), b.dtype());
  if (!b.is_sparse()) {  // sparse + dense
    VESTA_CHECK(out.kind == Out::fresh, runtime, op,
                ": a sparse tensor cannot hold the sum with a dense one in place.");
    Tensor r = alpha == 1 ? clone(b).to(joint) : mul(b, wrapped(alpha)).to(joint);
    add_elements(r, a, 1, op);
    return r;
  }
  if (!a.is_sparse()) {
    const bool inplace = out.kind == Out::inplace;
    VESTA_CHECK(out.kind != Out::given, not_implemented, op, ": out= takes no sparse operands.");
    VESTA_CHECK(!inplace || joint == a.dtype(), runtime, op, ": result type ", joint,
                " can't be cast to the desired output type ", a.dtype(), ".");
    Tensor r = inplace ? a : a.dtype() == joint ? clone(a) : a.to(joint);
    add_elements(r, b, alpha, op);
    return r;
  }
  const SparseParts &p = sparse_parts(a, op), &q = sparse_parts(b, op);
  VESTA_CHECK(sparse_dims(p) == sparse_dims(q), runtime, op, ": expected operands with as many sparse dimensions, got ",
              sparse_dims(p), " and ", sparse_dims(q), ".");
  Tensor other = q.values.to(joint);
  if (alpha != 1) other = mul(other, wrapped(alpha)).to(joint);
  const Tensor sum = make_sparse(cat({p.indices, q.indices}, 1), cat({p.values.to(joint), other}, 0), a.sizes(), false);
  if (p.layout == q.layout && is_compressed(p)) {
    return deliver(_compress(coalesce(sum), p.layout == SparseLayout::csr), out, op);
  }
  return deliver(p.coalesced && q.coalesced ? coalesce(sum) : sum, out, op);
}
Tensor add_sparse(const Tensor& a, const Tensor& b, double alpha, Out out) { return sum_of(a, b, alpha, out, "add"); }
Tensor sub_sparse(const Tensor& a, const Tensor& b, double alpha, Out out) {
  VESTA_CHECK(!is_bool(a.dtype()) && !is_bool(b.dtype()), type,
              "sub: Subtraction with bool tensors is not supported. Use the ^ or logical_xor() operator instead.");
  return sum_of(a, b, -alpha, out, "sub");
}

/// Applies a pointwise op to the elements of a sparse operand and of another: a number, a dense or a sparse tensor.
/// `commutes`: either operand may be the sparse one.
template <auto& op>
Tensor elementwise(const Tensor& a, const Tensor& b, bool commutes, Out out) {
  const char* name = op.name;
  VESTA_CHECK(commutes || !b.is_sparse(), not_implemented, name,
              ": expected a dense divisor, got a sparse one. Convert it with .to_dense().");
  if (!a.is_sparse()) return deliver(elementwise<op>(b, a, commutes, {}), out, name);
  if (!b.is_sparse() && b.dim() == 0) {
    const SparseParts& p = sparse_parts(a, name);
    return deliver(with_values(a, op(p.values, b, Out{})), out, name);
  }
  check_same_sizes(a, b, name);
  const Tensor left = coalesced(a, name);
  const SparseParts& p = sparse_parts(left, name);
  const Tensor others = elements_at(b.is_sparse() ? to_dense(b) : b, p.indices);
  return deliver(with_values(left, op(p.values, others, Out{})), out, name);
}
Tensor mul_sparse(const Tensor& a, const Tensor& b, Out out) { return elementwise<ops::mul>(a, b, true, out); }
Tensor div_sparse(const Tensor& a, const Tensor& b, Out out) { return elementwise<ops::div>(a, b, false, out); }

Tensor pow_sparse(const Tensor& a, const Tensor& b, Out out) {
  VESTA_CHECK(a.is_sparse() && !b.is_sparse() && b.dim() == 0, not_implemented,
              "pow: expected a sparse tensor and a number.");
  VESTA_CHECK(b.item<double>() > 0, runtime, "pow: expected an exponent > 0 of a sparse tensor, got ", b.item<double>(),
              ".");
  const Tensor base = coalesced(a, "pow");
  return deliver(with_values(base, ops::pow(sparse_parts(base, "pow").values, b, Out{})), out, "pow");
}

/// Applies a function with f(0) = 0 to the elements.
template <auto& op>
Tensor unary(const Tensor& t, Out out) {
  const Tensor whole = coalesced(t, op.name);
  return deliver(with_values(whole, op(sparse_parts(whole, op.name).values, Out{})), out, op.name);
}
template <auto&... unary_ops>
void set_unary() {
  (unary_ops.set_layer(Layer::sparse, &unary<unary_ops>), ...);
}

Tensor permute_sparse(const Tensor& t, IntList dims) {
  const SparseParts& p = sparse_parts(t, "permute");
  const size_t s = size_t(sparse_dims(p));
  VESTA_CHECK(int64_t(dims.size()) == t.dim(), runtime, "permute: expected ", t.dim(), " dimensions, got ",
              IntSpan(dims), ".");
  Dims sizes, dense{0};
  TensorVector rows;
  std::vector<bool> seen(size_t(t.dim()));
  for (size_t i = 0; i < dims.size(); ++i) {
    const auto from = size_t(wrap_dim(dims[i], t.dim(), "permute"));
    VESTA_CHECK(!seen[from], runtime, "permute: duplicate dims are not allowed, got ", IntSpan(dims), ".");
    VESTA_CHECK((i < s) == (from < s), runtime, "permute: cannot exchange sparse with dense dimensions, got ",
                IntSpan(dims), " for ", s, " sparse ones.");
    seen[from] = true;
    sizes.push_back(t.size(int64_t(from)));
    if (i < s) rows.push_back(select(p.indices, 0, int64_t(from)));
    else dense.push_back(int64_t(from - s) + 1);
  }
  const bool in_order = std::is_sorted(dims.begin(), dims.begin() + int64_t(s));
  const Tensor indices = rows.empty() ? p.indices : stack(rows, 0);
  if (is_compressed(p)) {  // rows become columns
    const SparseLayout turned = p.layout == SparseLayout::csr ? SparseLayout::csc : SparseLayout::csr;
    return make_compressed(in_order ? p.layout : turned, p.compressed, p.plain, indices,
                           permute(p.values, IntList(dense)), sizes);
  }
  return make_sparse(indices, permute(p.values, IntList(dense)), sizes, p.coalesced && in_order);
}
Tensor transpose_sparse(const Tensor& t, int64_t dim0, int64_t dim1) {
  if (t.dim() == 0) return t.detach();
  Dims order(size_t(t.dim()));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[size_t(wrap_dim(dim0, t.dim(), "transpose"))], order[size_t(wrap_dim(dim1, t.dim(), "transpose"))]);
  return permute_sparse(t, IntList(order));
}

/// Returns the stored elements with these numbers, as a tensor of other sizes. `rows`: their indices in it.
Tensor elements(const SparseParts& p, const Tensor& numbers, const TensorVector& rows, const Dims& sizes,
                bool is_coalesced) {
  return make_sparse(stack(rows, 0), index_select(p.values, 0, numbers), sizes, is_coalesced);
}

Tensor unsqueeze_sparse(const Tensor& t, int64_t dim) {
  const SparseParts& p = sparse_parts(t, "unsqueeze");
  const int64_t d = wrap_dim(dim, t.dim() + 1, "unsqueeze"), s = sparse_dims(p);
  Dims sizes(t.sizes());
  sizes.insert(size_t(d), 1);
  if (d > s) return make_sparse(p.indices, unsqueeze(p.values, d - s + 1), sizes, p.coalesced);
  const Tensor blank = zeros({{1, nnz(p)}}, DType::int64, t.device());
  const Tensor indices = cat({narrow(p.indices, 0, 0, d), blank, narrow(p.indices, 0, d, s - d)}, 0);
  return make_sparse(indices, p.values, sizes, p.coalesced);
}

/// Selects a slice. Where no sparse dimension is left it is dense.
Tensor select_sparse(const Tensor& t, int64_t dim, int64_t index) {
  const SparseParts& p = sparse_parts(t, "select");
  const int64_t d = wrap_dim(dim, t.dim(), "select"), s = sparse_dims(p), size = t.size(d);
  VESTA_CHECK(index >= -size && index < size, index, "select: index ", index, " out of range for tensor of size ",
              t.sizes(), " at dimension ", d, ".");
  const int64_t at = index < 0 ? index + size : index;
  Dims sizes(t.sizes());
  sizes.erase(size_t(d));
  if (d >= s) return make_sparse(p.indices, select(p.values, d - s + 1, at), sizes, p.coalesced);
  const Tensor numbers = reshape(nonzero(eq(select(p.indices, 0, d), wrapped(at))), {-1});
  if (s == 1) return sum(index_select(p.values, 0, numbers), MaybeDims(0)).to(t.dtype());
  TensorVector rows;
  for (int64_t i = 0; i < s; ++i) {
    if (i != d) rows.push_back(index_select(select(p.indices, 0, i), 0, numbers));
  }
  return elements(p, numbers, rows, sizes, p.coalesced);
}

Tensor index_select_sparse(const Tensor& t, int64_t dim, const Tensor& index) {
  const SparseParts& p = sparse_parts(t, "index_select");
  const int64_t d = check_index_vector(t, dim, index, "index_select"), s = sparse_dims(p);
  const Tensor given = reshape(index_as_int64(index, "index_select", "index"), {-1});
  const Tensor places = where(lt(given, wrapped(int64_t(0))), add(given, wrapped(t.size(d))), given);
  Dims sizes(t.sizes());
  sizes[size_t(d)] = places.numel();
  if (d >= s) return make_sparse(p.indices, index_select(p.values, d - s + 1, places), sizes, p.coalesced);
  const Tensor valid = logical_and(ge(places, wrapped(int64_t(0))), lt(places, wrapped(t.size(d))));
  VESTA_CHECK(all(valid).item<bool>(), index, "index_select: index out of range in self.");
  // The elements by their index along the dimension: those of position j are neighbours, from first[j] on.
  const auto [along, order] = sort(select(p.indices, 0, d), MaybeBool(true), 0);
  const Tensor first = _searchsorted(along, places, false);
  const Tensor ends = cumsum(sub(_searchsorted(along, places, true), first), 0);  // in the result
  const int64_t total = places.numel() ? select(ends, 0, -1).item<int64_t>() : 0;
  const Tensor at = arange(0, total, 1, DType::int64, t.device());
  const Tensor place = _searchsorted(ends, at, true);  // of each element of the result
  const Tensor before = index_select(cat({zeros(1, DType::int64, t.device()), ends}, 0), 0, place);
  const Tensor numbers = index_select(order, 0, add(index_select(first, 0, place), sub(at, before)));
  TensorVector rows;
  for (int64_t i = 0; i < s; ++i) rows.push_back(i == d ? place : index_select(select(p.indices, 0, i), 0, numbers));
  return elements(p, numbers, rows, sizes, false);
}

Tensor cat_sparse(TensorList tensors, int64_t dim) {
  DType joint = tensors[0].dtype();
  for (const Tensor& t : tensors) {
    VESTA_CHECK(t.is_sparse(), runtime, "cat: expected all tensors sparse or none, got a dense one among them.");
    joint = promote(joint, t.dtype());
  }
  const Tensor& head = tensors[0];
  const int64_t s = sparse_dims(sparse_parts(head, "cat")), d = wrap_dim(dim, head.dim(), "cat");
  Dims sizes(head.sizes());
  sizes[size_t(d)] = 0;
  for (const Tensor& t : tensors) {
    bool fits = t.dim() == head.dim() && sparse_dims(sparse_parts(t, "cat")) == s;
    for (int64_t i = 0; fits && i < t.dim(); ++i) fits = i == d || t.size(i) == head.size(i);
    VESTA_CHECK(fits, runtime, "cat: expected sparse tensors of equal sizes but in dimension ", d, ", with ", s,
                " sparse dimensions, got ", head.sizes(), " and ", t.sizes(), ".");
    sizes[size_t(d)] += t.size(d);
  }
  TensorVector indices, values;
  int64_t from = 0;
  for (const Tensor& t : tensors) {
    const SparseParts& p = *t.impl()->sparse_parts;
    Tensor where = p.indices, value = p.values.to(joint);
    if (d < s) {
      const Tensor moved = add(narrow(where, 0, d, 1), wrapped(from));
      where = cat({narrow(where, 0, 0, d), moved, narrow(where, 0, d + 1, s - d - 1)}, 0);
    } else {  // zeros beside what the others have
      std::vector<int64_t> pad(size_t(2 * (t.dim() - d)), 0);
      pad[pad.size() - 2] = from, pad[pad.size() - 1] = sizes[size_t(d)] - from - t.size(d);
      value = constant_pad_nd(value, IntList(pad), 0);
    }
    indices.push_back(where), values.push_back(value);
    from += t.size(d);
  }
  return make_sparse(cat(indices, 1), cat(values, 0), sizes, false);
}

/// Returns where each of n rows begins among the sorted row numbers, and the last one ends.
Tensor row_ends(const Tensor& rows, int64_t n) {
  return _searchsorted(rows, arange(0, n + 1, 1, DType::int64, rows.device()), false);
}

/// Returns whether numbers of n rows are in order, as those of coalesced elements are unless they were written since.
/// On a device they are not looked at.
bool are_in_order(const Tensor& rows, int64_t n) {
  if (rows.device().type() != DeviceType::cpu || rows.numel() == 0) return true;
  const Tensor numbers = contiguous(rows);
  const auto* first = reinterpret_cast<const int64_t*>(numbers.impl()->data());
  const auto* end = first + numbers.numel();
  return *first >= 0 && end[-1] < n && std::is_sorted(first, end);
}

/// Multiplies a sparse matrix [n, m] by a dense one [m, k].
Tensor times_dense(const Tensor& a, const Tensor& b, const char* op) {
  const SparseParts& p = sparse_parts(a, op);
  VESTA_CHECK(a.dtype() == b.dtype(), runtime, op, ": expected m1 and m2 to have the same dtype, but got: ", a.dtype(),
              " != ", b.dtype());
  const Tensor rows = select(p.indices, 0, 0), columns = select(p.indices, 0, 1);
  const bool by_rows = p.layout == SparseLayout::csr;
  if (p.coalesced && p.values.dim() == 1 && (by_rows || are_in_order(rows, a.size(0)))) {
    return _csr_product(by_rows ? p.compressed : row_ends(rows, a.size(0)), by_rows ? p.plain : columns, p.values, b);
  }
  Tensor r = zeros({{a.size(0), b.size(1)}}, a.dtype(), a.device());
  const int64_t step = std::max<int64_t>(1, kPiece / std::max<int64_t>(1, b.size(1)));
  for (int64_t from = 0; from < nnz(p); from += step) {
    const int64_t count = std::min(step, nnz(p) - from);
    const Tensor factors = unsqueeze(narrow(p.values, 0, from, count), 1);
    const Tensor terms = mul(factors, index_select(b, 0, narrow(columns, 0, from, count)));
    index_add_(r, 0, narrow(rows, 0, from, count), terms, 1);
  }
  return r;
}

Tensor matmul_sparse(const Tensor& a, const Tensor& b) {
  for (const Tensor* t : {&a, &b}) {
    VESTA_CHECK(t->dim() == 2 || (!t->is_sparse() && t->dim() == 1), not_implemented,
                "matmul: expected matrices beside sparse ones, got tensors of ", a.dim(), " and ", b.dim(),
                " dimensions.");
    VESTA_CHECK(!t->is_sparse() || sparse_dims(sparse_parts(*t, "matmul")) == 2, not_implemented,
                "matmul: expected a sparse matrix with 2 sparse dimensions, got ",
                t->is_sparse() ? sparse_dims(sparse_parts(*t, "matmul")) : 0, ".");
  }
  const int64_t inner = a.size(-1), other = b.size(b.dim() == 1 ? 0 : -2);
  VESTA_CHECK(inner == other, runtime, "mat1 and mat2 shapes cannot be multiplied (", a.sizes(), " and ", b.sizes(),
              ")");
  if (a.is_sparse() && b.is_sparse()) {
    const Tensor r = to_sparse(times_dense(a, to_dense(b), "matmul"));
    return is_compressed(*a.impl()->sparse_parts) ? _compress(r, true) : r;
  }
  if (!a.is_sparse()) {  // (B^T A^T)^T
    const Tensor left = a.dim() == 1 ? unsqueeze(a, 0) : a;
    const Tensor r = transpose(times_dense(transpose(b, 0, 1), transpose(left, 0, 1), "matmul"), 0, 1);
    return a.dim() == 1 ? _squeeze(r, MaybeDims(0)) : clone(r, "contiguous_format");
  }
  const Tensor r = times_dense(a, b.dim() == 1 ? unsqueeze(b, 1) : b, "matmul");
  return b.dim() == 1 ? _squeeze(r, MaybeDims(1)) : r;
}

Tensor sum_sparse(const Tensor& t, const MaybeDims& dim, bool keepdim, MaybeDType dtype) {
  const SparseParts& p = sparse_parts(t, "sum");
  if (!dim || (*dim).empty() || t.dim() == 0) return sum(p.values, {}, false, dtype);
  VESTA_CHECK(!keepdim, not_implemented, "sum: keepdim is not available for sparse tensors.");
  const DType wide = dtype ? *dtype : is_differentiable(t.dtype()) ? t.dtype() : DType::int64;
  return _sparse_sum(t.to(wide), *dim);
}

Tensor clone_sparse(const Tensor& t, Text) {
  const SparseParts& p = sparse_parts(t, "clone");
  if (!is_compressed(p)) return make_sparse(clone(p.indices), clone(p.values), t.sizes(), p.coalesced);
  return make_compressed(p.layout, clone(p.compressed), clone(p.plain), p.indices, clone(p.values), t.sizes());
}
/// Returns a copy of a sparse tensor's parts, in another dtype or on another device.
Tensor parts_on(const SparseParts& p, MaybeDType dtype, MaybeDevice device, IntSpan sizes, bool non_blocking = false) {
  const Tensor indices = _to_copy(p.indices, {}, device), values = _to_copy(p.values, dtype, device, non_blocking);
  if (!is_compressed(p)) return make_sparse(indices, values, sizes, p.coalesced);
  return make_compressed(p.layout, _to_copy(p.compressed, {}, device), _to_copy(p.plain, {}, device), indices, values,
                         sizes);
}
Tensor convert_sparse(const Tensor& t, MaybeDType dtype, MaybeDevice device, bool non_blocking) {
  const SparseParts& p = sparse_parts(t, "to");
  return parts_on(p, dtype, device, t.sizes(), non_blocking);
}
Tensor copy_sparse(const Tensor& to, const Tensor& from, bool) {
  VESTA_CHECK(to.is_sparse() && from.is_sparse(), runtime,
              "copy_: copy between dense and sparse tensors is not supported; use to_dense() or to_sparse().");
  check_same_sizes(to, from, "copy_");
  const Tensor copy = parts_on(*from.impl()->sparse_parts, to.dtype(), to.device(), to.sizes());
  set_sparse_parts(to, *copy.impl()->sparse_parts, "copy_");
  return to;
}
Tensor zero_sparse(const Tensor& t) {
  const SparseParts& p = sparse_parts(t, "zero_");
  const Tensor none = with_no_elements(p, p.values.dtype(), p.values.device(), t.sizes());
  set_sparse_parts(t, *none.impl()->sparse_parts, "zero_");
  return t;
}

// ---- kernels ----

Tensor make_kernel(const Tensor& indices, const Tensor& values, IntList size, bool is_coalesced) {
  VESTA_CHECK(indices.dim() == 2 && indices.dtype() == DType::int64, runtime,
              "sparse_coo_tensor: indices must be an int64 matrix, got ", indices.dtype(), " ", indices.sizes(), ".");
  const int64_t s = indices.size(0);
  VESTA_CHECK(s <= int64_t(size.size()) && values.dim() == int64_t(size.size()) - s + 1, runtime,
              "sparse_coo_tensor: number of dimensions must be sparse_dim (", s, ") + dense_dim (", values.dim() - 1,
              "), but got ", size.size());
  Dims wanted{indices.size(1)};
  for (int64_t n : IntSpan(size).subspan(size_t(s))) wanted.push_back(n);
  VESTA_CHECK(std::ranges::equal(values.sizes(), wanted), runtime,
              "sparse_coo_tensor: values has incorrect size, "
              "expected ",
              IntSpan(wanted), ", got ", values.sizes());
  places_of(size, s);
  return make_sparse(indices.detach(), values.detach(), size, is_coalesced);
}
/// Returns the row (or column) numbers of elements that are compressed by rows (or columns). Checks the indices.
Tensor expanded_indices(const Tensor& compressed, const Tensor& plain, int64_t lines, int64_t length, const char* op) {
  const auto is_index = [](DType d) { return d == DType::int32 || d == DType::int64; };
  VESTA_CHECK(compressed.dim() == 1 && plain.dim() == 1, not_implemented, op,
              ": expected the indices of one matrix, two vectors, got ", compressed.sizes(), " and ", plain.sizes(),
              ".");
  VESTA_CHECK(is_index(compressed.dtype()) && compressed.dtype() == plain.dtype(), runtime, op,
              ": expected compressed and plain indices of int32 or of int64, got ", compressed.dtype(), " and ",
              plain.dtype(), ".");
  VESTA_CHECK(compressed.numel() == lines + 1, runtime, op, ": expected ", lines + 1, " compressed indices, got ",
              compressed.numel(), ".");
  const Tensor ends = compressed.to(DType::int64), number = plain.to(DType::int64);
  const int64_t n = plain.numel();
  Tensor line = sub(_searchsorted(ends, arange(0, n, 1, DType::int64, ends.device()), true), 1);
  if (!has_values(ends)) return line;
  const Tensor counts = sub(narrow(ends, 0, 1, lines), narrow(ends, 0, 0, lines));
  const bool bounds = select(ends, 0, 0).item<int64_t>() == 0 && select(ends, 0, -1).item<int64_t>() == n &&
                      all(ge(counts, 0)).item<bool>();
  VESTA_CHECK(bounds, runtime, op, ": expected compressed indices that rise from 0 to the number of elements, ", n,
              ", got others.");
  if (n == 0) return line;
  VESTA_CHECK(all(logical_and(ge(number, 0), lt(number, wrapped(length)))).item<bool>(), runtime, op,
              ": expected plain indices from 0 to ", length - 1, ", got others.");
  const auto but_last = [&](const Tensor& t) { return narrow(t, 0, 0, n - 1); };
  const auto but_first = [&](const Tensor& t) { return narrow(t, 0, 1, n - 1); };
  const Tensor rises = logical_or(lt(but_last(number), but_first(number)), lt(but_last(line), but_first(line)));
  VESTA_CHECK(all(rises).item<bool>(), runtime, op,
              ": expected plain indices that are distinct and rise along each row or column, got others.");
  return line;
}

Tensor compressed_kernel(const Tensor& compressed, const Tensor& plain, const Tensor& values, IntList size,
                         bool by_rows) {
  const char* op = by_rows ? "sparse_csr_tensor" : "sparse_csc_tensor";
  VESTA_CHECK(size.size() >= 2 && int64_t(size.size()) == values.dim() + 1, runtime, op, ": expected ",
              values.dim() + 1, " sizes, of a matrix and of a value, got ", size.size(), " (size).");
  Dims wanted{plain.numel()};
  for (int64_t n : IntSpan(size).subspan(2)) wanted.push_back(n);
  VESTA_CHECK(std::ranges::equal(values.sizes(), wanted), runtime, op, ": expected values of sizes ", IntSpan(wanted),
              ", got ", values.sizes(), ".");
  for (int64_t n : size) VESTA_CHECK(n >= 0, runtime, op, ": expected sizes >= 0, got ", IntSpan(size), " (size).");
  NoGrad off;
  const Tensor line = expanded_indices(compressed, plain, size[by_rows ? 0 : 1], size[by_rows ? 1 : 0], op);
  const Tensor number = plain.to(DType::int64);
  const Tensor indices = by_rows ? stack({line, number}, 0) : stack({number, line}, 0);
  return make_compressed(by_rows ? SparseLayout::csr : SparseLayout::csc, compressed.detach(), plain.detach(), indices,
                         values.detach(), size);
}

Tensor compressed_part(const Tensor& t, bool by_rows, bool plain) {
  constexpr const char* kNames[2][2] = {{"ccol_indices", "row_indices"}, {"crow_indices", "col_indices"}};
  const char* op = kNames[by_rows][plain];
  const SparseParts& p = sparse_parts(t, op);
  VESTA_CHECK(p.layout == (by_rows ? SparseLayout::csr : SparseLayout::csc), runtime, op, ": expected sparse ",
              by_rows ? "row" : "column", " compressed tensor layout, got another.");
  return (plain ? p.plain : p.compressed).detach();
}

Tensor no_parts(const Tensor& input) { return sparse_parts(input, "values").values; }
Tensor values_of(const Tensor& t) { return sparse_parts(t, "values").values.detach(); }
// Aliases: a view in place of what is returned must not change the parts.
Tensor stored_values(const Tensor& t) {
  check_coordinates(sparse_parts(t, "_values"), "_values");
  return sparse_parts(t, "_values").values.detach();
}
Tensor stored_indices(const Tensor& t) {
  check_coordinates(sparse_parts(t, "_indices"), "_indices");
  return sparse_parts(t, "_indices").indices.detach();
}

}  // namespace

void check_places(const Tensor& indices, IntSpan sizes, const char* op) {
  VESTA_CHECK(indices.dim() == 2 && indices.dtype() == DType::int64 && size_t(indices.size(0)) == sizes.size(), value,
              op, ": expected an int64 matrix with a row for each of ", sizes.size(), " sizes, got ", indices.dtype(),
              " ", indices.sizes(), " (indices).");
}

void check_runs(const Tensor& values, const Tensor& order, const Tensor& starts) {
  VESTA_CHECK(values.dim() > 0 && order.dim() == 1 && starts.dim() == 1 && starts.numel() > 0 &&
                  order.dtype() == DType::int64 && starts.dtype() == DType::int64,
              value, "_sum_runs: expected values [n, *], int64 order [n] and starts [at least 1], got ", values.sizes(),
              ", ", order.dtype(), " ", order.sizes(), " and ", starts.dtype(), " ", starts.sizes(), ".");
}

Tensor elements_at(const Tensor& t, const Tensor& indices) {
  return index_select(joined(t, indices.size(0)), 0, numbers_of(indices, t.sizes()));
}

Tensor sparse_like(const SparseParts& p, const Tensor& values, IntSpan sizes) {
  if (!is_compressed(p)) return _sparse_coo(p.indices, values, IntList(sizes), p.coalesced);
  return _sparse_compressed(p.compressed, p.plain, values, IntList(sizes), p.layout == SparseLayout::csr);
}

Tensor with_no_elements(const SparseParts& p, DType dtype, Device device, IntSpan sizes) {
  Dims of_values(p.values.sizes());
  of_values[0] = 0;
  const Tensor values = zeros(of_values, dtype, device);
  const Tensor indices = zeros({{p.indices.size(0), 0}}, DType::int64, device);
  if (!is_compressed(p)) return make_sparse(indices, values, sizes, true);
  return make_compressed(p.layout, zeros(p.compressed.numel(), p.compressed.dtype(), device),
                         zeros(0, p.plain.dtype(), device), indices, values, sizes);
}

Tensor first_of_place(const SparseParts& p, IntSpan sizes, DType dtype) {
  const auto [places, order, starts] = _sparse_order(p.indices, sparse_sizes(sizes, sparse_dims(p)));
  Dims shape(size_t(p.values.dim()), 1);
  shape[0] = nnz(p);
  const Tensor r = zeros(nnz(p), dtype, p.indices.device());
  index_fill_(r, 0, index_select(order, 0, narrow(starts, 0, 0, places.size(1))), wrapped(int64_t(1)));
  return reshape(r, IntList(shape));
}

Tensor _sparse_numbers_composite(const Tensor& indices, IntTuple size) {
  check_places(indices, size, "_sparse_numbers");
  Tensor number = zeros(indices.size(1), DType::int64, indices.device());
  for (int64_t d = 0; d < indices.size(0); ++d) {
    number = add(mul(number, wrapped(size[size_t(d)])), select(indices, 0, d));
  }
  return number;
}

Tensor _sparse_places_composite(const Tensor& numbers, IntTuple size) {
  TensorVector rows(size.size());
  Tensor rest = numbers;
  for (size_t d = size.size(); d-- > 0;) {
    const Tensor n = wrapped(std::max<int64_t>(1, size[d]));  // there are no numbers if it is 0
    rows[d] = remainder(rest, n);
    rest = floor_divide(rest, n);
  }
  if (rows.empty()) return zeros({{0, numbers.size(0)}}, DType::int64, numbers.device());
  return stack(rows, 0);
}

TensorTriple _sparse_order_composite(const Tensor& indices, IntTuple size) {
  const auto [numbers, order] = sort(_sparse_numbers(indices, size), MaybeBool(true), 0);
  const int64_t n = numbers.size(0), head = std::min<int64_t>(1, n);
  const Tensor changes = ne(narrow(numbers, 0, head, n - head), narrow(numbers, 0, 0, n - head));
  const Tensor first = cat({ones(head, DType::bool_, numbers.device()), changes}, 0);
  const Tensor starts = reshape(nonzero(first), {-1});
  const Tensor end = full({1}, n, DType::int64, numbers.device());
  return {_sparse_places(index_select(numbers, 0, starts), size), order, cat({starts, end}, 0)};
}

Tensor _sum_runs_composite(const Tensor& values, const Tensor& order, const Tensor& starts) {
  check_runs(values, order, starts);
  const int64_t count = starts.size(0) - 1;
  const Tensor lengths = sub(narrow(starts, 0, 1, count), narrow(starts, 0, 0, count));
  const Tensor group = repeat_interleave(lengths, MaybeInt(order.numel()));
  Dims sizes(values.sizes());
  sizes[0] = count;
  return index_add(zeros(sizes, values.dtype(), values.device()), 0, group, index_select(values, 0, order), 1);
}

Tensor _unique_indices_composite(const Tensor& t) {
  check_coordinates(sparse_parts(t, "indices"), "indices");
  VESTA_CHECK(sparse_parts(t, "indices").coalesced, runtime,
              "indices: Cannot get indices on an uncoalesced tensor, please call .coalesce() first");
  return _indices(t).detach();
}
Tensor _unique_values_composite(const Tensor& t) {
  VESTA_CHECK(sparse_parts(t, "values").coalesced || is_compressed(sparse_parts(t, "values")), runtime,
              "values: Cannot get values on an uncoalesced tensor, please call .coalesce() first");
  return _sparse_values(t);
}

Tensor coalesce_composite(const Tensor& t) {
  const SparseParts& p = sparse_parts(t, "coalesce");
  check_coordinates(p, "coalesce");
  if (p.coalesced) return t;
  const auto [places, order, starts] = _sparse_order(p.indices, sparse_sizes(t.sizes(), sparse_dims(p)));
  return _sparse_coo(places, _sum_runs(_sparse_values(t), order, starts), IntList(t.sizes()), true);
}

Tensor to_dense_composite(const Tensor& t, MaybeDType dtype, MaybeBool) {
  if (!t.is_sparse()) return dtype ? t.to(*dtype) : t;
  const SparseParts& p = *t.impl()->sparse_parts;
  const Tensor values = dtype ? _sparse_values(t).to(*dtype) : _sparse_values(t);
  const Tensor blank = zeros(t.sizes(), values.dtype(), t.device());
  const Tensor flat = joined(blank, sparse_dims(p));
  return reshape(index_add(flat, 0, numbers_of(p.indices, t.sizes()), values, 1), IntList(t.sizes()));
}

Tensor to_sparse_composite(const Tensor& t, MaybeInt sparse_dim) {
  if (t.is_sparse()) {
    const SparseParts& p = *t.impl()->sparse_parts;
    if (!is_compressed(p)) return t;
    Tensor r = _sparse_coo(p.indices, _sparse_values(t), IntList(t.sizes()), p.coalesced);
    return p.coalesced ? r : coalesce(r);
  }
  const int64_t s = sparse_dim.value_or(t.dim());
  VESTA_CHECK(s >= 0 && s <= t.dim() && (s > 0 || t.dim() == 0), runtime,
              "to_sparse: expected a number of sparse dimensions from 1 to ", t.dim(), ", got ", s, ".");
  if (t.dim() == 0) return _sparse_coo(zeros({{0, 1}}, DType::int64, t.device()), unsqueeze(t, 0), {}, true);
  const Tensor flat = joined(t, s);
  Tensor filled = ne(flat.detach(), wrapped(int64_t(0)));
  if (filled.dim() > 1) filled = any(reshape(filled, {filled.size(0), -1}), 1);
  const Tensor numbers = reshape(nonzero(filled), {-1});
  return _sparse_coo(_sparse_places(numbers, sparse_sizes(t.sizes(), s)), index_select(flat, 0, numbers),
                     IntList(t.sizes()), true);
}

Tensor sparse_mask_composite(const Tensor& t, const Tensor& mask) {
  const SparseParts& p = sparse_parts(mask, "sparse_mask");
  check_same_sizes(t, mask, "sparse_mask");
  return sparse_like(p, elements_at(to_dense(t), p.indices), t.sizes());
}

Tensor _compress_composite(const Tensor& t, bool by_rows) {
  const char* op = by_rows ? "to_sparse_csr" : "to_sparse_csc";
  const SparseLayout layout = by_rows ? SparseLayout::csr : SparseLayout::csc;
  if (t.is_sparse() && sparse_parts(t, op).layout == layout) return t;
  VESTA_CHECK(t.dim() >= 2, runtime, op, ": expected a matrix, got ", t.sizes(), " (input).");
  const Tensor whole = coalesce(to_sparse(t, t.is_sparse() ? MaybeInt() : MaybeInt(2)));
  const SparseParts& p = sparse_parts(whole, op);
  VESTA_CHECK(sparse_dims(p) == 2, not_implemented, op, ": expected a sparse tensor with 2 sparse dimensions, got ",
              sparse_dims(p), " (input).");
  Tensor values = _sparse_values(whole), line = select(p.indices, 0, by_rows ? 0 : 1),
         plain = select(p.indices, 0, by_rows ? 1 : 0);
  if (!by_rows) {
    const auto [sorted, order] = sort(line, MaybeBool(true), 0);
    values = index_select(values, 0, order), plain = index_select(plain, 0, order), line = sorted;
  }
  const Tensor ends = row_ends(line, t.size(by_rows ? 0 : 1));
  return _sparse_compressed(ends, clone(plain, "contiguous_format"), values, IntList(t.sizes()), by_rows);
}

Tensor _csr_product_composite(const Tensor& crow, const Tensor& col, const Tensor& values, const Tensor& dense) {
  const Tensor ends = crow.to(DType::int64), columns = col.to(DType::int64);
  const int64_t n = crow.numel() - 1, total = columns.numel();
  const Tensor rows = sub(_searchsorted(ends, arange(0, total, 1, DType::int64, ends.device()), true), 1);
  Tensor r = zeros({{n, dense.size(1)}}, values.dtype(), values.device());
  const int64_t step = std::max<int64_t>(1, kPiece / std::max<int64_t>(1, dense.size(1)));
  for (int64_t from = 0; from < total; from += step) {
    const int64_t count = std::min(step, total - from);
    const Tensor factors = unsqueeze(narrow(values, 0, from, count), 1);
    const Tensor terms = mul(factors, index_select(dense, 0, narrow(columns, 0, from, count)));
    index_add_(r, 0, narrow(rows, 0, from, count), terms, 1);
  }
  return r;
}

Tensor _sparse_sum_composite(const Tensor& t, IntList dim) {
  const SparseParts& p = sparse_parts(t, "sum");
  const int64_t s = sparse_dims(p);
  std::vector<bool> summed(size_t(t.dim()));
  VESTA_CHECK(t.dim() > 0, index, "sum: expected a sparse tensor of at least 1 dimension, got a 0-d one.");
  for (int64_t d : dim) {
    const auto at = size_t(wrap_dim(d, t.dim(), "sum"));
    VESTA_CHECK(!summed[at], runtime, "sum: dim ", at, " appears multiple times in the list of dims");
    summed[at] = true;
  }
  Dims sizes, dense;
  TensorVector rows;
  for (int64_t d = 0; d < t.dim(); ++d) {
    if (summed[size_t(d)]) {
      if (d >= s) dense.push_back(d - s + 1);
      continue;
    }
    sizes.push_back(t.size(d));
    if (d < s) rows.push_back(select(p.indices, 0, d));
  }
  Tensor values = _sparse_values(t);
  if (!dense.empty()) values = sum(values, MaybeDims(dense));
  if (rows.empty()) return sum(values, MaybeDims(0));
  const Tensor result = _sparse_coo(stack(rows, 0), values, IntList(sizes), false);
  return coalesce(result);
}

Tensor linear_sparse(const Tensor& input, const Tensor& weight, MaybeTensor bias) {
  VESTA_CHECK(weight.dim() == 2, runtime, "linear: expected a sparse or dense matrix, got ", weight.sizes(),
              " (weight).");
  VESTA_CHECK(!bias.defined() || !input.is_sparse() || !weight.is_sparse(), not_implemented,
              "linear: expected input or weight to be dense where there is a bias, got two sparse tensors.");
  if (!input.is_sparse() && input.dim() != 2) {
    VESTA_CHECK(input.dim() > 0, runtime, "linear: expected an input of one dimension at least, got a number.");
    Dims sizes(input.sizes());
    const Dims rows{input.numel() / std::max<int64_t>(1, sizes.back()), sizes.back()};
    sizes.back() = weight.size(0);
    return reshape(linear_sparse(reshape(input, IntList(rows)), weight, bias), IntList(sizes));
  }
  const Tensor product = matmul(input, transpose(weight, 0, 1));
  return bias.defined() ? add(product, *bias) : product;
}

void register_sparse_ops() {
  ops::_sparse_coo.set_kernel(&make_kernel);
  ops::_sparse_compressed.set_kernel(&compressed_kernel);
  ops::_compressed_part.set_kernel(&compressed_part);
  ops::_compressed_part.set_layer(Layer::sparse, &compressed_part);
  ops::_sparse_values.set_kernel(&no_parts);
  ops::_values.set_kernel(&no_parts);
  ops::_indices.set_kernel(&no_parts);
  ops::_sparse_values.set_layer(Layer::sparse, &values_of);
  ops::_values.set_layer(Layer::sparse, &stored_values);
  ops::_indices.set_layer(Layer::sparse, &stored_indices);

  ops::add.set_layer(Layer::sparse, &add_sparse);
  ops::sub.set_layer(Layer::sparse, &sub_sparse);
  ops::mul.set_layer(Layer::sparse, &mul_sparse);
  ops::div.set_layer(Layer::sparse, &div_sparse);
  ops::pow.set_layer(Layer::sparse, &pow_sparse);
  set_unary<ops::neg, ops::abs, ops::sqrt, ops::square, ops::sign, ops::sin, ops::tan, ops::asin, ops::atan, ops::sinh,
            ops::tanh, ops::asinh, ops::atanh, ops::expm1, ops::log1p, ops::relu, ops::floor, ops::ceil, ops::trunc,
            ops::frac, ops::sgn, ops::conj_physical, ops::erf, ops::erfinv, ops::deg2rad, ops::rad2deg>();
  ops::permute.set_layer(Layer::sparse, &permute_sparse);
  ops::transpose.set_layer(Layer::sparse, &transpose_sparse);
  ops::unsqueeze.set_layer(Layer::sparse, &unsqueeze_sparse);
  ops::select.set_layer(Layer::sparse, &select_sparse);
  ops::index_select.set_layer(Layer::sparse, &index_select_sparse);
  ops::cat.set_layer(Layer::sparse, &cat_sparse);
  ops::linear.set_layer(Layer::sparse, &linear_sparse);
  ops::matmul.set_layer(Layer::sparse, &matmul_sparse);
  ops::sum_dim.set_layer(Layer::sparse, &sum_sparse);
  ops::clone.set_layer(Layer::sparse, &clone_sparse);
  ops::_to_copy.set_layer(Layer::sparse, &convert_sparse);
  ops::copy_.set_layer(Layer::sparse, &copy_sparse);
  ops::zero_.set_layer(Layer::sparse, &zero_sparse);
}

}  // namespace vesta
