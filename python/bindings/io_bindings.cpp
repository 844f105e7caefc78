// Files of tensors.
#include <vesta/core/io/safetensors.h>

#include "factories.h"
#include "hand.h"

namespace vesta::python {
namespace {

std::string path_of(const Table& t, int i, PyObject* o) {
  PyObject* bytes = nullptr;
  if (!PyUnicode_FSConverter(o, &bytes)) {
    if (PyErr_ExceptionMatches(PyExc_ValueError)) throw_current();  // a null character
    PyErr_Clear();
    wrong_type(t, i, "str or os.PathLike", o);
  }
  Ref owner(bytes);
  return std::string(PyBytes_AS_STRING(bytes), size_t(PyBytes_GET_SIZE(bytes)));
}

std::string text_of(const Table& t, int i, PyObject* o, const char* what) {
  if (!PyUnicode_Check(o)) {
    type_error("%s(): argument '%s' must have str as %s, not %s", t.op, t.params[size_t(i)].name.c_str(), what,
               Py_TYPE(o)->tp_name);
  }
  return std::string(to_text(t, i, o));
}

struct Load {
  static constexpr char name[] = "_load_safetensors", params[] = "(object filename)",
                        doc[] = "Reads a file: (dict of tensors, dict of metadata).";
  static PyObject* run(const Table& t, Bound& b) {
    std::string path = path_of(t, 0, b.slot[0]);
    io::Metadata metadata;
    auto read = [&] {
      WithoutGil open;
      return io::load_safetensors(path, &metadata);
    };
    io::NamedTensors tensors = read();
    Ref dict(checked(PyDict_New())), notes(checked(PyDict_New()));
    auto put = [](PyObject* to, const std::string& key, Ref value) {
      Ref k(checked(PyUnicode_FromStringAndSize(key.data(), Py_ssize_t(key.size()))));
      checked(PyDict_SetItem(to, k.get(), value.get()));
    };
    for (auto& [key, tensor] : tensors) put(dict.get(), key, Ref(checked(wrap(std::move(tensor)))));
    for (auto& [key, value] : metadata) {
      put(notes.get(), key, Ref(checked(PyUnicode_FromStringAndSize(value.data(), Py_ssize_t(value.size())))));
    }
    return PyTuple_Pack(2, dict.get(), notes.get());
  }
};

struct Save {
  static constexpr char name[] = "_save_safetensors", params[] = "(object tensors, object filename, object metadata)",
                        doc[] = "Writes a dict of tensors, atomically.";
  static PyObject* run(const Table& t, Bound& b) {
    if (!PyDict_Check(b.slot[0])) wrong_type(t, 0, "dict", b.slot[0]);
    std::string path = path_of(t, 1, b.slot[1]);
    io::NamedTensors tensors;
    io::Metadata metadata;
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(b.slot[0], &at, &key, &value);) {
      std::string name = text_of(t, 0, key, "keys");
      if (!is_tensor(value)) {
        type_error("save_file(): argument 'tensors' must have Tensors as values, not %s (%s)", Py_TYPE(value)->tp_name,
                   name.c_str());
      }
      tensors.emplace_back(std::move(name), unwrap(value));
    }
    if (b.slot[2] != Py_None) {
      if (!PyDict_Check(b.slot[2])) wrong_type(t, 2, "dict", b.slot[2]);
      for (Py_ssize_t at = 0; PyDict_Next(b.slot[2], &at, &key, &value);) {
        metadata.emplace_back(text_of(t, 2, key, "keys"), text_of(t, 2, value, "values"));
      }
    }
    {
      WithoutGil open;
      io::save_safetensors(tensors, path, metadata);
    }
    Py_RETURN_NONE;
  }
};

}  // namespace

bool add_io(PyObject* module) { return add_functions<Load, Save>(module); }

}  // namespace vesta::python
