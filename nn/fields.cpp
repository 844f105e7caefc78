#include <vesta/nn/fields.h>

#include <algorithm>

namespace vesta::nn {
namespace {

std::string tuple(IntSpan v) {
  std::string s;
  for (int64_t n : v) s += (s.empty() ? "" : ", ") + std::to_string(n);
  return "(" + s + (v.size() == 1 ? ",)" : ")");
}

template <class T>
detail::Shown listed(const std::vector<T>& v) {
  std::string all;
  for (const T& one : v) all += (all.empty() ? "" : ", ") + shown(one).brief;
  return v.size() == 1 ? all : "(" + all + ")";
}

}  // namespace

std::vector<std::string_view> split_names(std::string_view names) {
  std::vector<std::string_view> r;
  while (!names.empty()) {
    const size_t end = std::min(names.find(','), names.size());
    r.push_back(names.substr(0, end));
    names.remove_prefix(std::min(end + 2, names.size()));  // ", "
  }
  return r;
}

detail::Shown shown_ints(IntSpan v) {
  const bool equal = std::ranges::all_of(v, [&](int64_t n) { return n == v[0]; });
  return {equal ? std::to_string(v[0]) : tuple(v), tuple(v)};
}

detail::Shown shown(const Shape& v) { return tuple(v.v); }
detail::Shown shown(const PerDimension<int64_t>& v) { return listed(v.v); }
detail::Shown shown(const PerDimension<double>& v) { return listed(v.v); }

detail::Shown shown_maybe_ints(std::span<const MaybeInt> v) {
  const auto one = [](const MaybeInt& n) { return n ? std::to_string(*n) : "None"; };
  std::string all;
  for (const MaybeInt& n : v) all += (all.empty() ? "" : ", ") + one(n);
  all = "(" + all + (v.size() == 1 ? ",)" : ")");
  const bool equal = std::ranges::all_of(v, [&](const MaybeInt& n) { return n == v[0]; });
  return {equal ? one(v[0]) : all, all};
}

std::string detail::write_fields(std::string_view shown, std::string_view names, const std::vector<FieldText>& fields) {
  const std::vector<std::string_view> each = split_names(names);
  std::string out;
  if (shown.data() == nullptr) {
    for (size_t i = 0; i < each.size(); ++i) {
      out += (i ? ", " : "") + std::string(each[i]) + "=" + fields[i].value.full;
    }
    return out;
  }
  size_t section = 0;   // where the section in brackets began
  bool usual = true;    // whether all its fields have their defaults
  for (size_t at = 0; at < shown.size(); ++at) {
    if (shown[at] == '[') {
      section = out.size(), usual = true;
    } else if (shown[at] == ']') {
      if (usual) out.resize(section);
    } else if (shown[at] == '{') {
      const size_t end = shown.find('}', at);
      const bool full = shown[at + 1] == '*';
      const std::string_view name = shown.substr(at + 1 + full, end - at - 1 - full);
      const auto place = size_t(std::ranges::find(each, name) - each.begin());
      VESTA_CHECK(place < each.size(), runtime, "layer: its text names a field that is none, '", name, "'.");
      out += full ? fields[place].value.full : fields[place].value.brief;
      usual = usual && fields[place].is_default;
      at = end;
    } else {
      out += shown[at];
    }
  }
  return out.starts_with(", ") ? out.substr(2) : out;
}

}  // namespace vesta::nn
