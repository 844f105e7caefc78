// Transforms: functions of batches, of examples and of tensors, which datasets apply by map().
#pragma once
#include <torch/data/example.h>
#include <torch/functions.h>

#include <functional>
#include <vector>

namespace torch::data::transforms {

/// A function of a whole batch.
template <class InputBatch, class OutputBatch>
class BatchTransform {
 public:
  using InputBatchType = InputBatch;
  using OutputBatchType = OutputBatch;
  virtual ~BatchTransform() = default;
  virtual OutputBatch apply_batch(InputBatch input_batch) = 0;
};

/// A function of each example of a batch.
template <class Input, class Output>
class Transform : public BatchTransform<std::vector<Input>, std::vector<Output>> {
 public:
  using InputType = Input;
  using OutputType = Output;
  virtual Output apply(Input input) = 0;
  std::vector<Output> apply_batch(std::vector<Input> batch) override {
    std::vector<Output> results;
    results.reserve(batch.size());
    for (Input& each : batch) results.push_back(apply(std::move(each)));
    return results;
  }
};

/// A function that makes one batch of many examples.
template <class T, class BatchType = std::vector<T>>
using Collation = BatchTransform<BatchType, T>;

template <class Input, class Output = Input>
class BatchLambda : public BatchTransform<Input, Output> {
 public:
  using FunctionType = std::function<Output(Input)>;
  explicit BatchLambda(FunctionType function) : function_(std::move(function)) {}
  Output apply_batch(Input batch) override { return function_(std::move(batch)); }

 private:
  FunctionType function_;
};
template <class T, class BatchType = std::vector<T>>
using Collate = BatchLambda<BatchType, T>;

template <class Input, class Output = Input>
class Lambda : public Transform<Input, Output> {
 public:
  using FunctionType = std::function<Output(Input)>;
  explicit Lambda(FunctionType function) : function_(std::move(function)) {}
  Output apply(Input input) override { return function_(std::move(input)); }

 private:
  FunctionType function_;
};

/// A function of the data of an example; the target stays.
template <class Target = Tensor>
class TensorTransform : public Transform<Example<Tensor, Target>, Example<Tensor, Target>> {
 public:
  using E = Example<Tensor, Target>;
  virtual Tensor operator()(Tensor input) = 0;
  E apply(E input) override {
    input.data = (*this)(std::move(input.data));
    return input;
  }
};
template <class Target = Tensor>
class TensorLambda : public TensorTransform<Target> {
 public:
  using FunctionType = std::function<Tensor(Tensor)>;
  explicit TensorLambda(FunctionType function) : function_(std::move(function)) {}
  Tensor operator()(Tensor input) override { return function_(std::move(input)); }

 private:
  FunctionType function_;
};

/// (image - mean) / stddev: one number, or one per channel of an image [C, H, W].
template <class Target = Tensor>
struct Normalize : public TensorTransform<Target> {
  Normalize(ArrayRef<double> mean_, ArrayRef<double> stddev_)
      : mean(torch::tensor(mean_, kFloat32).unsqueeze(1).unsqueeze(2)),
        stddev(torch::tensor(stddev_, kFloat32).unsqueeze(1).unsqueeze(2)) {}
  Tensor operator()(Tensor input) override { return input.sub(mean).div(stddev); }
  Tensor mean, stddev;
};

/// Stacks data and targets of examples.
template <class T = Example<>>
struct Stack;
template <>
struct Stack<Example<>> : public Collation<Example<>> {
  Example<> apply_batch(std::vector<Example<>> examples) override {
    std::vector<Tensor> data, targets;
    for (Example<>& e : examples) {
      data.push_back(std::move(e.data));
      targets.push_back(std::move(e.target));
    }
    return {torch::stack(data), torch::stack(targets)};
  }
};
template <>
struct Stack<TensorExample> : public Collation<TensorExample> {
  TensorExample apply_batch(std::vector<TensorExample> examples) override {
    std::vector<Tensor> data;
    for (TensorExample& e : examples) data.push_back(std::move(e.data));
    return torch::stack(data);
  }
};

}  // namespace torch::data::transforms
