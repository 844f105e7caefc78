// Stores of vesta._C._distributed: TCPStore, FileStore, HashStore, PrefixStore.
#include "distributed_bindings.h"

#include <pybind11/chrono.h>
#include <pybind11/stl.h>

#include <vesta/multiprocessing/store.h>

namespace vesta::python {
namespace {

namespace py = pybind11;
using NoGil = py::call_guard<WithoutGil>;

py::bytes bytes_of(const std::string& s) { return py::bytes(s); }

void add_store_base(py::module_& m) {
  py::class_<Store, StorePtr>(m, "Store", "Keys and values that processes share.")
      .def(
          "set", [](Store& s, const std::string& key, const std::string& value) { s.set(key, value); }, NoGil(),
          py::arg("key"), py::arg("value"), "Sets a value (str or bytes), over an old one.")
      .def(
          "get",
          [](Store& s, const std::string& key) {
            std::string value;
            {
              WithoutGil release;
              value = s.get(key);
            }
            return bytes_of(value);
          },
          py::arg("key"), "Returns a value as bytes, waiting until there is one.")
      .def("add", &Store::add, NoGil(), py::arg("key"), py::arg("amount"), "Adds to a number and returns the sum.")
      .def(
          "wait",
          [](Store& s, const Keys& keys, const std::optional<Milliseconds>& timeout) {
            s.wait(keys, timeout ? *timeout : s.timeout());
          },
          NoGil(), py::arg("keys"), py::arg("timeout") = py::none(), "Waits until all keys are there.")
      .def("check", &Store::check, NoGil(), py::arg("keys"), "Whether all keys are there.")
      .def(
          "compare_set",
          [](Store& s, const std::string& key, const std::string& expected, const std::string& desired) {
            std::string value;
            {
              WithoutGil release;
              value = s.compare_set(key, expected, desired);
            }
            return bytes_of(value);
          },
          py::arg("key"), py::arg("expected_value"), py::arg("desired_value"),
          "Sets a value where the old one is as expected; returns the value that holds then.")
      .def("delete_key", &Store::delete_key, NoGil(), py::arg("key"), "Removes a key; whether there was one.")
      .def("num_keys", &Store::num_keys, NoGil(), "Counts the keys.")
      .def("append", &Store::append, NoGil(), py::arg("key"), py::arg("value"), "Appends to a value.")
      .def(
          "multi_get",
          [](Store& s, const Keys& keys) {
            std::vector<std::string> values;
            {
              WithoutGil release;
              values = s.multi_get(keys);
            }
            py::list r;
            for (const std::string& v : values) r.append(bytes_of(v));
            return r;
          },
          py::arg("keys"), "Returns several values, waiting for each.")
      .def("multi_set", &Store::multi_set, NoGil(), py::arg("keys"), py::arg("values"), "Sets several values.")
      .def(
          "list_keys", [](Store& s) { return s.keys(); }, NoGil(), "Lists all keys.")
      .def(
          "has_extended_api", [](Store&) { return true; }, "Whether append, multi_get and multi_set are there.")
      .def("set_timeout", &Store::set_timeout, py::arg("timeout"), "Sets how long an operation may wait.")
      .def_property_readonly("timeout", &Store::timeout, "How long an operation may wait.");
}

TCPStoreOptions tcp_options(int port, std::optional<int> world_size, bool master, Milliseconds timeout, bool wait,
                            bool multi_tenant, std::optional<int> listen_fd) {
  TCPStoreOptions o;
  o.port = port;
  o.is_master = master;
  o.num_workers = world_size.value_or(-1);
  o.wait_for_workers = wait;
  o.timeout = timeout;
  o.multi_tenant = multi_tenant;
  o.listen_fd = listen_fd.value_or(-1);
  return o;
}

}  // namespace

void add_stores(py::module_& m) {
  add_store_base(m);
  const Milliseconds kFiveMinutes = std::chrono::minutes(5);
  py::class_<TCPStore, Store, std::shared_ptr<TCPStore>>(m, "TCPStore", "A store whose server the master runs.")
      .def(py::init([](const std::string& host, int port, std::optional<int> world_size, bool master,
                       Milliseconds timeout, bool wait, bool multi_tenant, std::optional<int> listen_fd, bool) {
             WithoutGil release;
             return std::make_shared<TCPStore>(
                 host, tcp_options(port, world_size, master, timeout, wait, multi_tenant, listen_fd));
           }),
           py::arg("host_name"), py::arg("port"), py::arg("world_size") = py::none(), py::arg("is_master") = false,
           py::arg("timeout") = kFiveMinutes, py::arg("wait_for_workers") = true, py::arg("multi_tenant") = false,
           py::arg("master_listen_fd") = py::none(), py::arg("use_libuv") = true)
      .def_property_readonly("host", &TCPStore::host)
      .def_property_readonly("port", &TCPStore::port)
      .def("__repr__",
           [](const TCPStore& s) { return text("TCPStore(host_name='", s.host(), "', port=", s.port(), ")"); });
  py::class_<FileStore, Store, std::shared_ptr<FileStore>>(m, "FileStore", "A store in a file that all can open.")
      .def(py::init<std::string, int>(), NoGil(), py::arg("file_name"), py::arg("world_size") = -1)
      .def_property_readonly("path", &FileStore::path);
  py::class_<HashStore, Store, std::shared_ptr<HashStore>>(m, "HashStore", "A store for the threads of one process.")
      .def(py::init<>());
  py::class_<PrefixStore, Store, std::shared_ptr<PrefixStore>>(m, "PrefixStore", "A store within a store.")
      .def(py::init<std::string, StorePtr>(), py::arg("prefix"), py::arg("store"))
      .def_property_readonly("underlying_store", &PrefixStore::underlying_store)
      .def_property_readonly("prefix", &PrefixStore::prefix);
}

}  // namespace vesta::python
