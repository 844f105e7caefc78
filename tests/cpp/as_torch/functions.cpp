// Functions, datasets and pickles as libtorch programs use them. Numbers are those of libtorch 2.15.
#include <torch/torch.h>

#include <fstream>
#include <iterator>

#include "check.h"

bool near(const torch::Tensor& a, const torch::Tensor& b) { return torch::allclose(a, b, 1e-4, 1e-5); }
torch::Tensor reals(const std::vector<double>& values) { return torch::tensor(values, torch::kFloat); }

void operators() {
  const torch::Tensor n = torch::arange(6), m = n > 2;
  CHECK(torch::equal(n % 3, torch::tensor({0, 1, 2, 0, 1, 2})) && (7 % (n + 1)).sum().item<int>() == 8);
  CHECK(torch::equal((m & (n < 5)).to(torch::kLong), torch::tensor({0, 0, 0, 1, 1, 0})));
  CHECK((~m).sum().item<int>() == 3 && (m | ~m).all().item<bool>() && !(m ^ m).any().item<bool>());
  CHECK((n & 1).sum().item<int>() == 3 && n[torch::Scalar(4)].item<int>() == 4);
  const std::optional<torch::Tensor> bias = torch::ones({2}), none;
  const torch::Tensor x = torch::ones({1, 3}), w = torch::ones({2, 3});
  CHECK(torch::linear(x, w, bias)[0][0].item<float>() == 4 && torch::linear(x, w, none)[0][0].item<float>() == 3);
  CHECK(x.sum(std::vector<int64_t>{0, 1}).item<float>() == 3 &&
        x.clamp(std::optional<torch::Scalar>(), 0.5).max().item<float>() == 0.5f);
  CHECK(torch::leaky_relu(-x, torch::Scalar(0.5))[0][0].item<float>() == -0.5f);
  const torch::Tensor image = torch::ones({1, 1, 3, 3}), kernel = torch::ones({1, 1, 2, 2});
  CHECK(torch::conv2d(image, kernel).sum().item<float>() == 16 && torch::conv2d(image, kernel, {}, 2).numel() == 1);
  CHECK(torch::conv2d(image, kernel, {}, 1, 1).size(2) == 4 &&
        torch::conv2d(image, kernel, {}, 1, "same").size(2) == 3);
  CHECK(torch::batch_norm(w, {}, {}, {}, {}, true, 0.1, 1e-5, false).numel() == 6);
  CHECK(torch::layer_norm(x, {3}, {}, {}, 1e-5, false).sum().item<float>() == 0);
  CHECK(torch::zeros_like(x, torch::kInt, torch::MemoryFormat::Contiguous).dtype() == torch::kInt);
  CHECK(torch::triu_indices(3, 3, 1, torch::kInt).size(1) == 3 && torch::count_nonzero(n).item<int>() == 5 &&
        n.count_nonzero().item<int>() == 5);
  CHECK(torch::equal(torch::combinations(torch::tensor({1, 2, 3})), torch::tensor({{1, 2}, {1, 3}, {2, 3}})));
  CHECK(torch::equal(torch::combinations(torch::tensor({1, 2}), 2, true), torch::tensor({{1, 1}, {1, 2}, {2, 2}})));
  CHECK(torch::combinations(torch::tensor({1, 2}), 3).sizes() == torch::IntArrayRef({0, 3}));
  CHECK(torch::result_type(n, 1.5) == torch::kFloat && torch::can_cast(torch::kInt, torch::kFloat) &&
        !torch::can_cast(torch::kFloat, torch::kInt));
  CHECK_TEXT((std::vector<int64_t>{1, 2, 3}), "1 2 3");
  CHECK(n.type() == torch::arange(2).type() && n.type().toString() == "CPULongType");
  CHECK(!torch::mps::is_available() && !torch::InferenceMode::is_enabled());
  {
    const torch::InferenceMode guard;
    CHECK(torch::InferenceMode::is_enabled() && torch::ones({1}).is_inference());
  }
  const auto bags =
      torch::embedding_bag(torch::ones({4, 2}), torch::tensor({0, 1, 2}), torch::tensor({0, 2}), false, 1);
  CHECK(std::get<0>(bags).sizes() == torch::IntArrayRef({2, 2}) &&
        torch::equal(std::get<2>(bags), torch::tensor({2, 1})));
  CHECK_RAISES(torch::embedding_bag(torch::ones({4, 2}), torch::tensor({0}), torch::tensor({0}), false, 5), "mode");
}

void spectra() {
  const torch::Tensor x = torch::sin(torch::arange(16, torch::kFloat)), window = torch::hann_window(8);
  const torch::Tensor spectrum = torch::stft(x, 8, 2, 8, window, true, "reflect", false, true, true);
  CHECK(spectrum.sizes() == torch::IntArrayRef({5, 9}) && spectrum.is_complex());
  CHECK(near(torch::istft(spectrum, 8, 2, 8, window), x) &&
        near(spectrum.istft(8, 2, 8, window, true, false, true, 20).slice(0, 0, 16), x));
  CHECK(x.stft(8, 4, 8, window, false, true, false).sizes() == torch::IntArrayRef({5, 3, 2}));
  CHECK_RAISES(torch::stft(x, 8), "return_complex");
  CHECK_RAISES(torch::stft(x, 8, 2, 8, torch::ones({3}), true, "reflect", false, true, true), "window");
  CHECK_RAISES(torch::stft(torch::Tensor(), 8), "defined");
  CHECK_RAISES(torch::istft(x, 8), "complex");
  CHECK(near(torch::kaiser_window(4, false, 2.0), reals({0.4387, 0.9243, 0.9243, 0.4387})));
  CHECK(near(torch::blackman_window(4, torch::kDouble).to(torch::kFloat), reals({0, 0.34, 1, 0.34})));
  CHECK(near(torch::hamming_window(4), reals({0.08, 0.54, 1, 0.54})) && torch::hann_window(0).numel() == 0);
  CHECK(torch::hann_window(5, torch::kHalf).dtype() == torch::kHalf);
  CHECK_RAISES(torch::hann_window(-1), "window_length");
  CHECK_RAISES(torch::kaiser_window(4, torch::kInt), "floating");
  CHECK(torch::fft::fftfreq(4, 0.5, torch::kDouble)[1].item<double>() == 0.5);
}

void mathematics() {
  const torch::Tensor x = reals({0.5, 1.5});
  CHECK(near(torch::special_entr(x), torch::special::entr(x)) &&
        near(torch::special_entr(x), reals({0.3466, -0.6082})));
  CHECK(near(torch::special_i0e(x), reals({0.6450, 0.3674})) &&
        near(torch::special_zeta(2.5, x), torch::special::zeta(2.5, x)));
  CHECK(near(torch::special_hermite_polynomial_h(x, 2), 4 * x * x - 2) &&
        near(torch::special_gammaln(x), torch::lgamma(x)));
  const torch::Tensor a = torch::tensor({{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}}),
                      square = torch::tensor({{2.0, 1.0}, {1.0, 3.0}});
  CHECK(near(torch::linalg_pinv(a).mm(a), torch::eye(2)) &&
        torch::linalg_matrix_rank(torch::ones({3, 3})).item<int>() == 1);
  CHECK(near(torch::linalg_pinv(torch::ones({2, 2})), torch::full({2, 2}, 0.25)));  // values of rounding count as 0
  CHECK(near(std::get<0>(torch::linalg_lstsq(a, a.mm(square))), square) &&
        near(torch::linalg_cond(torch::eye(2)), torch::tensor(1.0)));
  CHECK(torch::linalg_norm(a, 2, {}, false, torch::kDouble).dtype() == torch::kDouble);
  CHECK(near(torch::linalg_multi_dot({a, square, square}), a.mm(square).mm(square)) &&
        near(torch::chain_matmul({square}), square));
  CHECK(torch::linalg_tensorinv(torch::eye(6).reshape({2, 3, 6})).sizes() == torch::IntArrayRef({6, 2, 3}));
  CHECK(torch::linalg_tensorsolve(torch::eye(6).reshape({2, 3, 6}), torch::ones({2, 3})).numel() == 6);
  CHECK_RAISES(torch::linalg_lstsq(a, torch::ones({2})), "size(-2)");
  CHECK_RAISES(torch::linalg_multi_dot({a, a}), "cannot be multiplied");
  CHECK_RAISES(torch::linalg_pinv(torch::ones({2})), "at least 2");
}

void elements() {
  torch::Tensor x = torch::arange(6, torch::kFloat).view({2, 3});
  auto packed = x.packed_accessor32<float, 2>();
  packed[1][2] = 9;
  CHECK(x[1][2].item<float>() == 9 && packed.size(1) == 3 && packed.transpose(0, 1)[2][1] == 9);
  CHECK(x.packed_accessor64<float, 2>()[0].sizes() == torch::IntArrayRef({3}));
  CHECK_RAISES((x.packed_accessor64<float, 3>()), "expected 3 dims");
  CHECK_RAISES((x.packed_accessor64<int, 2>()), "expected");
  CHECK_RAISES(packed.size(2), "not within bounds");
  double sum = 0;
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "sum", [&] {
    for (int64_t i = 0; i < x.numel(); ++i) sum += double(x.data_ptr<scalar_t>()[i]);
  });
  CHECK(sum == 19 &&
        AT_DISPATCH_ALL_TYPES_AND2(torch::kHalf, torch::kBool, x.type(), "size", [] { return sizeof(scalar_t); }) == 4);
  CHECK_RAISES(AT_DISPATCH_INTEGRAL_TYPES(x.scalar_type(), "count", [] {}), "\"count\" not implemented for 'Float'");
  const torch::Tensor s = torch::sparse_coo_tensor(torch::tensor({{0, 1, 1}, {2, 0, 0}}), reals({3, 4, 5}), {2, 3});
  CHECK(s.is_sparse() && !s.is_coalesced() && s.sparse_dim() == 2 && s.to_dense()[1][0].item<float>() == 9);
  CHECK(s.coalesce().values().numel() == 2 && s.coalesce().indices().sizes() == torch::IntArrayRef({2, 2}));
  CHECK(torch::sparse_coo_tensor({2, 2}, torch::kFloat).to_dense().sum().item<float>() == 0);
  CHECK_RAISES(torch::sparse_coo_tensor(torch::tensor({{5}}), torch::ones({1}), {2}), "found index 5");
  CHECK_RAISES(x.sparse_dim(), "sparse");
}

struct Numbers : torch::data::datasets::StatefulDataset<Numbers, std::vector<int>> {
  torch::optional<std::vector<int>> get_batch(size_t size) override {
    const std::lock_guard lock(mutex);
    std::vector<int> batch;
    while (batch.size() < size && at < 7) batch.push_back(at++);
    return batch.empty() ? torch::nullopt : torch::make_optional(batch);
  }
  torch::optional<size_t> size() const override { return 7; }
  void reset() override { at = 0; }
  void save(torch::serialize::OutputArchive&) const override {}
  void load(torch::serialize::InputArchive&) override {}
  int at = 0;
  std::mutex mutex;
};

struct Reader : torch::data::datasets::ChunkDataReader<int> {
  using BatchType = std::vector<int>;
  std::vector<int> read_chunk(size_t i) override {
    if (i == 9) throw std::runtime_error("no such chunk");
    return std::vector<int>(i, int(i));
  }
  size_t chunk_count() override { return 5; }
  void reset() override {}
};

void datasets() {
  using torch::data::samplers::SequentialSampler;
  for (const size_t workers : {0, 2}) {
    const auto loader = torch::data::make_data_loader(torch::data::datasets::make_shared_dataset<Numbers>(),
                                                      torch::data::DataLoaderOptions(3).workers(workers));
    for (int epoch = 0; epoch < 2; ++epoch) {
      int sum = 0;
      for (const auto& batch : *loader) sum += std::accumulate(batch.begin(), batch.end(), 0);
      CHECK(sum == 21);
    }
  }
  using Chunks = torch::data::datasets::ChunkDataset<Reader, SequentialSampler, SequentialSampler>;
  const auto chunks = torch::data::datasets::make_shared_dataset<Chunks>(
      Reader(), SequentialSampler(5), SequentialSampler(0), torch::data::datasets::ChunkDatasetOptions(1, 4));
  const auto loader = torch::data::make_data_loader(chunks, torch::data::DataLoaderOptions(4));
  std::vector<std::vector<int>> batches;
  for (const auto& batch : *loader) batches.push_back(batch);
  CHECK(batches == std::vector<std::vector<int>>({{1, 2, 2, 3}, {3, 3, 4, 4}, {4, 4}}));
  CHECK_RAISES(torch::data::datasets::ChunkDatasetOptions(1, 4, 2), "cache_size");
  auto same = chunks;
  CHECK_RAISES(same->get_batch(3), "batch size");
}

struct Net : torch::nn::Module {
  torch::nn::Linear fc{register_module("fc", torch::nn::Linear(2, 3))};
  torch::Tensor calls = register_buffer("calls", torch::zeros({1}));
};

/// Reads what Python's torch.save wrote, and writes what it is to read.
void pickles(const std::string& folder) {
  auto net = std::make_shared<Net>();
  torch::load(net, folder + "/state.pt");
  CHECK(torch::equal(net->fc->weight.detach(), torch::arange(6, torch::kFloat).view({3, 2})) &&
        net->calls.item<float>() == 7);
  std::ifstream file(folder + "/mixed.pt", std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  const auto mixed = torch::pickle_load(bytes).toGenericDict();
  CHECK(mixed.at("name").toStringRef() == "net" && mixed.at("rate").toDouble() == 0.5 &&
        mixed.at("steps").toInt() == 1LL << 40);
  CHECK(mixed.at("sizes").toIntVector() == std::vector<int64_t>({1, 2}) && mixed.at("none").isNone() &&
        mixed.contains("half"));
  CHECK(torch::equal(mixed.at("half").toTensor(), torch::tensor({1.0, 2.0}, torch::kHalf)) && mixed.at("on").toBool());
  CHECK(torch::equal(mixed.at("turned").toTensor(), torch::arange(6).view({2, 3}).t()));
  CHECK(mixed.at("pair").toTuple()->elements()[1].toStringRef() == "b" && mixed.size() == 9);
  CHECK_RAISES(mixed.at("missing"), "key");

  c10::Dict<std::string, torch::Tensor> weights;
  weights.insert("w", torch::arange(6).view({2, 3}).t());
  weights.insert_or_assign("b", torch::ones({2}, torch::kBFloat16));
  std::vector<char> written = torch::pickle_save(weights);
  std::ofstream(folder + "/weights.pt", std::ios::binary).write(written.data(), std::streamsize(written.size()));
  CHECK(torch::equal(torch::pickle_load(written).toGenericDict().at("w").toTensor(), weights.at("w")));
  CHECK(torch::pickle_load(torch::pickle_save(std::vector<torch::IValue>{1, 2.5, "x", true, {}})).elements().size() ==
        5);
  // Whatever is damaged or cut off raises or is read, and nothing else happens.
  int refused = 0;
  for (size_t i = 0; i < written.size(); ++i) {
    for (const int change : {1, 128, -1}) {
      std::vector<char> damaged = written;
      if (change < 0) damaged.resize(i);
      else damaged[i] = char(damaged[i] ^ change);
      try {
        torch::pickle_load(damaged);
      } catch (const c10::Error&) {
        ++refused;
      }
    }
  }
  CHECK(refused > int(written.size()));
  CHECK_RAISES(torch::pickle_load({'x', 'y'}), "ZIP");
  const auto load = [&](const std::string& name) {
    std::ifstream hostile(folder + "/" + name, std::ios::binary);
    return torch::pickle_load({std::istreambuf_iterator<char>(hostile), {}});
  };
  CHECK_RAISES(load("deep.pt"), "too deep");
  CHECK_RAISES(load("left.pt"), "another type");
  CHECK_RAISES(load("itself.pt"), "holds itself");
  CHECK_RAISES(load("shared.pt"), "more values than its bytes");
  CHECK_RAISES(torch::pickle_save(torch::IValue(std::vector<torch::IValue>(1,
                                                                           [] {
                                                                             torch::IValue deep;
                                                                             for (int i = 0; i < 300; ++i)
                                                                               deep = std::vector<torch::IValue>{deep};
                                                                             return deep;
                                                                           }()))),
               "levels deep");
}

int main(int, char** argv) {
  operators();
  spectra();
  mathematics();
  elements();
  datasets();
  pickles(argv[1]);
  std::cout << "functions: all as expected\n";
}
