// torch's CUDA memory and streams, as the core sees them.
#pragma once

#include <torch/csrc/stable/device.h>
#include <torch/csrc/stable/tensor.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "forebay/device.h"

namespace forebay::torch_ext {

// Allocates with torch's caching allocator on cuda:`index`; null if index is negative.
std::unique_ptr<DeviceAllocator> device_allocator(int64_t index);

// The same for an op's argument: null for the CPU; CUDA without a number is the current device.
std::unique_ptr<DeviceAllocator> device_allocator(
    const std::optional<torch::stable::Device>& device);

// A tensor as the core sees it.
std::unique_ptr<DeviceTensor> device_tensor(const torch::stable::Tensor& tensor);

// The tensor in what an allocator of this file made.
torch::stable::Tensor tensor_of(const DeviceTensor& tensor);

}  // namespace forebay::torch_ext
