# The architectures that the kernels are compiled for, in the form of CMAKE_CUDA_ARCHITECTURES.
#
#   vesta_cuda_architectures(TO NVCC WHEEL)   chooses them
#   vesta_check_cuda_architectures(LIST)      refuses those that the kernels cannot be compiled for
#   vesta_without_nvcc(WHEEL)                 tells that there is no nvcc; refuses to make a wheel of CUDA without it
#
# For a wheel: code for every architecture that users have and this nvcc knows, and PTX of the newest, which the driver
# compiles for those that come later. For a developer: the one of this machine's first GPU, else 90 (H100, H200).
set(vesta_wheel_architectures 80 86 89 90 100 120)
set(vesta_least_architecture 80)  # bfloat16, cp.async and mma.sync of TF32; cuda/device.cpp says the same

function(vesta_check_cuda_architectures)
  foreach(architecture IN LISTS ARGN)
    if(architecture MATCHES "^([0-9]+)" AND CMAKE_MATCH_1 LESS vesta_least_architecture)
      message(FATAL_ERROR "CUDA: the kernels need compute capability 8.0 or later (Ampere, 2020); they cannot be "
        "compiled for ${architecture}. Name the architecture of another GPU, as in -DCMAKE_CUDA_ARCHITECTURES=90, or "
        "build without nvcc, for the CPU alone: -DCMAKE_CUDA_COMPILER=NOTFOUND.")
    endif()
  endforeach()
endfunction()

function(vesta_without_nvcc wheel)
  if(wheel STREQUAL "cuda")
    message(FATAL_ERROR "CUDA: no nvcc was found, without which a wheel of the CUDA backend has no kernels. Install "
      "the CUDA toolkit, or name its compiler: CUDACXX=/usr/local/cuda/bin/nvcc.")
  endif()
  message(STATUS "CUDA: no nvcc; libvesta_cuda.so is left out")
endfunction()

function(vesta_cuda_architectures to nvcc wheel)
  if(NOT wheel)
    execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader,nounits
      OUTPUT_VARIABLE found ERROR_QUIET RESULT_VARIABLE failed)
    if(NOT failed AND found MATCHES "^([0-9]+)\\.([0-9])")
      set(${to} ${CMAKE_MATCH_1}${CMAKE_MATCH_2} PARENT_SCOPE)
    else()
      set(${to} 90 PARENT_SCOPE)
    endif()
    return()
  endif()
  execute_process(COMMAND ${nvcc} --list-gpu-arch OUTPUT_VARIABLE known RESULT_VARIABLE failed)
  set(chosen)
  foreach(architecture IN LISTS vesta_wheel_architectures)
    if(known MATCHES "compute_${architecture}[ \n]")
      list(APPEND chosen ${architecture}-real)
    endif()
  endforeach()
  if(failed OR NOT chosen)
    message(FATAL_ERROR "CUDA: ${nvcc} --list-gpu-arch named none of ${vesta_wheel_architectures}.")
  endif()
  list(POP_BACK chosen newest)
  string(REPLACE -real "" newest ${newest})
  set(${to} ${chosen} ${newest} PARENT_SCOPE)
endfunction()
