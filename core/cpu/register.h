// Enters the CPU into core: its backend, and its kernels topic by topic. Called once, by vesta::initialize().
#pragma once

namespace vesta::cpu {

void register_backend();
void register_pointwise();

}  // namespace vesta::cpu
