# The architectures that the kernels are compiled for, in the form of CMAKE_CUDA_ARCHITECTURES.
#
#   vesta_cuda_architectures(TO NVCC WHEEL)
#
# For a wheel: code for every architecture that users have and this nvcc knows, and PTX of the newest, which the driver
# compiles for those that come later. For a developer: the one of this machine's first GPU, else 90 (H100, H200).
set(vesta_wheel_architectures 80 86 89 90 100 120)

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
