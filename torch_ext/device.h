// torch's CUDA memory and streams, as the core sees them.
#pragma once

#include <torch/csrc/stable/tensor.h>

#include <cstdint>
#include <memory>

#include "forebay/device.h"

namespace forebay::torch_ext {

// Allocates with torch's caching allocator on cuda:`index`; null if index is negative.
std::unique_ptr<DeviceAllocator> device_allocator(int64_t index);

// The tensor in what an allocator of this file made.
torch::stable::Tensor tensor_of(const DeviceTensor& tensor);

}  // namespace forebay::torch_ext
