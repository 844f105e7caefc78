#include <vesta/cuda/nccl/operands.h>

#include <cstring>

#include <vesta/core/ops/copy.h>
#include <vesta/cuda/device.h>
#include <vesta/cuda/nccl/nccl_library.h>

namespace vesta::cuda::nccl {

void check_device(Collective what, const Tensor& t) {
  VESTA_CHECK(t.device().type() == DeviceType::cuda, device, name(what),
              ": expected a tensor on a CUDA device, got one on ", t.device(),
              ". NCCL does not transfer host memory: move the tensor, or make the group with 'cpu:gloo,cuda:nccl'.");
}

int device_of(Collective what, const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  const Device first = a.empty() ? b.at(0).device() : a[0].device();
  for (const std::vector<Tensor>* list : {&a, &b}) {
    for (const Tensor& t : *list) {
      VESTA_CHECK(t.device() == first, device, name(what), ": expected tensors on one device, got ", first, " and ",
                  t.device(), ".");
    }
  }
  return index_of(first);
}

namespace {

/// Returns NCCL's type of the numbers that a dtype is made of; -1 if it has none.
int number_type(DType d) {
  switch (d) {
    case DType::bool_:
    case DType::uint8: return uint8;
    case DType::int8: return int8;
    case DType::int32: return int32;
    case DType::int64: return int64;
    case DType::float16: return float16;
    case DType::bfloat16: return bfloat16;
    case DType::float32:
    case DType::complex64: return float32;
    case DType::float64:
    case DType::complex128: return float64;
    default: return -1;
  }
}

/// Returns NCCL's operator; -1 if it has none for the dtype. For bools, which are bytes 0 and 1, max is "or".
int operator_of(ReduceOp::Kind op, DType d) {
  const bool scales = is_float(d) || is_complex(d);
  switch (op) {
    case ReduceOp::sum: return d == DType::bool_ ? op_max : op_sum;
    case ReduceOp::avg: return scales ? op_avg : -1;
    case ReduceOp::premul_sum: return scales ? op_sum : -1;
    case ReduceOp::product: return is_complex(d) ? -1 : d == DType::bool_ ? op_min : op_prod;
    case ReduceOp::min: return is_complex(d) ? -1 : op_min;
    case ReduceOp::max: return is_complex(d) ? -1 : op_max;
    case ReduceOp::band: return d == DType::bool_ ? op_min : -1;
    case ReduceOp::bor: return d == DType::bool_ ? op_max : -1;
    default: return -1;
  }
}

}  // namespace

Reducer reducer(Collective what, ReduceOp op, DType dtype) {
  const int type = number_type(dtype), number = operator_of(op.kind, dtype);
  VESTA_CHECK(type >= 0, type, name(what), ": expected a dtype that NCCL reduces, got ", dtype,
              ". It has bool, uint8, int8, int32, int64, floating-point and complex numbers; convert the tensor.");
  VESTA_CHECK(number >= 0, type, name(what), ": expected an operator that NCCL has for ", dtype, ", got ReduceOp.",
              name(op), ". It has bitwise ones only for bool, no PRODUCT, MIN and MAX of complex numbers, and AVG and ",
              "PREMUL_SUM for floating-point and complex ones; the gloo backend has more.");
  return {DataType(type), is_complex(dtype) ? 2 : 1, RedOp(number), op.kind == ReduceOp::premul_sum, op.factor};
}

Operator::Operator(const Reducer& r, Comm comm) : op_(r.op) {
  if (!r.premultiplies) return;
  unsigned char scalar[8] = {};
  auto put = [&](auto v) { std::memcpy(scalar, &v, sizeof v); };
  switch (r.type) {
    case float16: put(Half(float(r.factor))); break;
    case bfloat16: put(BFloat16(float(r.factor))); break;
    case float32: put(float(r.factor)); break;
    default: put(r.factor); break;
  }
  check(functions().create_premul_sum(&op_, scalar, r.type, scalar_host_immediate, comm), "ncclRedOpCreatePreMulSum",
        comm);
  made_on_ = comm;
}

Operator::~Operator() {
  if (made_on_) functions().destroy_op(op_, made_on_);
}

void Operand::prepare() {
  if (memory.defined()) return;
  memory = reads ? contiguous_values(user) : empty_tensor(user.sizes(), user.dtype(), user.device());
}

void Operand::finish() const {
  if (writes && !user.is_same(memory)) copy_(user, memory);
}

namespace {
Operand operand(const Tensor& t, bool reads, bool writes) {
  Tensor plain = t.detach();
  return {plain, plain.is_contiguous() ? plain : Tensor(), reads, writes};
}
}  // namespace

Operand input_of(const Tensor& t) { return operand(t, true, false); }
Operand output_of(const Tensor& t) { return operand(t, false, true); }
Operand inout_of(const Tensor& t) { return operand(t, true, true); }

}  // namespace vesta::cuda::nccl
