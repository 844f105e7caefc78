// Modules, their containers and functions.
#pragma once
#include <torch/nn/any.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/containers.h>
#include <torch/nn/functional.h>
#include <torch/nn/init.h>
#include <torch/nn/module.h>
#include <torch/nn/modules.h>
#include <torch/nn/options.h>
#include <torch/nn/parallel/data_parallel.h>
#include <torch/nn/pimpl.h>
#include <torch/nn/utils.h>
