#include <vesta/multiprocessing/fingerprint.h>

#include <vesta/multiprocessing/wire.h>

namespace vesta {
namespace {

/// Mixes a number into a hash (the finaliser of SplitMix64).
uint64_t mix(uint64_t h, uint64_t v) {
  h += v + 0x9e3779b97f4a7c15u;
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
  return h ^ (h >> 31);
}

constexpr size_t kLongestSite = 160;  // bytes of a call site that are sent; of a longer one, its end
constexpr size_t kMostDims = 16;
constexpr size_t kFixedBytes = 4 + 4 + 4 + 8 + 8 + 2;  // of what is compared, without the dims

}  // namespace

Fingerprint Fingerprint::of(const std::vector<Tensor>& tensors, int root) {
  Fingerprint f;
  f.root = root;
  for (const Tensor& t : tensors) f.add(t.sizes(), t.dtype());
  return f;
}

Fingerprint Fingerprint::of(const std::vector<Tensor>& tensors, ReduceOp op, int root) {
  Fingerprint f = of(tensors, root);
  f.reduces = true;
  f.op = op.kind;
  return f;
}

void Fingerprint::add(IntSpan sizes, DType d) {
  if (!has_tensor) {
    dtype = d;
    shape.assign(sizes.begin(), sizes.end());
    has_tensor = true;
  }
  ++tensors;
  int64_t n = 1;
  shapes = mix(mix(shapes, uint64_t(d)), sizes.size());
  for (int64_t s : sizes) n *= s, shapes = mix(shapes, uint64_t(s));
  numel += n;
}

bool Fingerprint::same(const Fingerprint& o) const {
  return what == o.what && root == o.root && reduces == o.reduces && (!reduces || op == o.op) && tensors == o.tensors &&
         shapes == o.shapes;
}

uint32_t Fingerprint::tag(uint64_t sequence) const {
  uint64_t h = mix(mix(sequence, uint64_t(what)), uint64_t(uint32_t(root)));
  h = mix(mix(h, reduces ? uint64_t(op) + 1 : 0), mix(shapes, tensors));
  return uint32_t(h ^ (h >> 32));
}

std::string Fingerprint::describe() const {
  std::string inside;
  auto part = [&](const std::string& s) { inside += (inside.empty() ? "" : ", ") + s; };
  if (reduces) part(vesta::name(ReduceOp(op)));
  if (root >= 0) part((what == Collective::reduce || what == Collective::gather ? "dst=" : "src=") + text(root));
  if (tensors == 1) part(text(dtype, " ", IntSpan(shape)));
  if (tensors > 1) part(text(tensors, " tensors of ", numel, " elements, the first ", dtype, " ", IntSpan(shape)));
  return text(vesta::name(what), "(", inside, ")", site.empty() ? "" : " at ", site);
}

std::string Fingerprint::encode() const {
  wire::Writer w;
  const size_t dims = std::min(shape.size(), kMostDims);
  const std::string_view end =
      std::string_view(site).substr(site.size() > kLongestSite ? site.size() - kLongestSite : 0);
  w.reserve(64 + 8 * dims + end.size());
  w.put(uint16_t(kFixedBytes + 8 * dims)).put(uint8_t(end.size()));
  w.put(uint8_t(what)).put(uint8_t(op)).put(uint8_t(reduces)).put(uint8_t(dtype)).put(root).put(tensors);
  w.put(numel).put(shapes).put(uint8_t(has_tensor)).put(uint8_t(dims));
  for (size_t i = 0; i < dims; ++i) w.put(shape[i]);
  w.raw(end);
  return w.take();
}

bool Fingerprint::same_bytes(std::string_view encoded, std::string_view came, std::string_view& rest) {
  const size_t compared = 2 + wire::Reader(encoded).get<uint16_t>() + 1;
  if (came.size() < compared || std::memcmp(encoded.data(), came.data(), 2) != 0 ||
      std::memcmp(encoded.data() + 3, came.data() + 3, compared - 3) != 0) {
    return false;
  }
  const size_t site = uint8_t(came[2]);
  if (came.size() < compared + site) return false;
  rest = came.substr(compared + site);
  return true;
}

Fingerprint Fingerprint::decode(std::string_view bytes, std::string_view& rest) {
  wire::Reader r(bytes);
  Fingerprint f;
  r.get<uint16_t>();
  const size_t site = r.get<uint8_t>();
  f.what = Collective(r.get<uint8_t>());
  f.op = ReduceOp::Kind(r.get<uint8_t>());
  f.reduces = r.get<uint8_t>();
  f.dtype = DType(r.get<uint8_t>());
  f.root = r.get<int32_t>();
  f.tensors = r.get<uint32_t>();
  f.numel = r.get<int64_t>();
  f.shapes = r.get<uint64_t>();
  f.has_tensor = r.get<uint8_t>();
  const size_t dims = r.get<uint8_t>();
  for (size_t i = 0; i < dims; ++i) f.shape.push_back(r.get<int64_t>());
  f.site = r.raw(site);
  rest = r.rest();
  return f;
}

}  // namespace vesta
