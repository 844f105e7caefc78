# find_package(Torch) of a program written for libtorch: the target `torch` is Vesta with headers of libtorch's names.
find_package(vesta REQUIRED CONFIG NO_DEFAULT_PATH
  PATHS "${CMAKE_CURRENT_LIST_DIR}/.." "${CMAKE_CURRENT_LIST_DIR}/../vesta")
if(NOT TARGET torch)
  get_target_property(vesta_include vesta::vesta INTERFACE_INCLUDE_DIRECTORIES)
  set(TORCH_INCLUDE_DIRS)
  foreach(folder IN LISTS vesta_include)
    list(APPEND TORCH_INCLUDE_DIRS "${folder}/vesta/nn/as_torch")
  endforeach()
  add_library(torch INTERFACE IMPORTED GLOBAL)
  set_target_properties(torch PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${TORCH_INCLUDE_DIRS}"
    INTERFACE_LINK_LIBRARIES vesta::vesta
    INTERFACE_COMPILE_FEATURES cxx_std_20)
endif()
set(TORCH_FOUND TRUE)
set(TORCH_LIBRARIES torch)
set(TORCH_CXX_FLAGS "")
