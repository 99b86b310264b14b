// Memory of a GPU that whoever embeds the core lends to it: torch's, so that torch's rules about
// streams hold for what comes out.
#pragma once

#include <cstdint>
#include <memory>

#include "rust/cxx.h"

namespace forebay {

namespace ffi {
enum class DType : std::uint8_t;
}

// A tensor on a device, whose memory lives as long as this.
class DeviceTensor {
 public:
  virtual ~DeviceTensor() = default;
  virtual std::uint64_t address() const = 0;
};

// Allocates on one device, for the calling thread's current stream.
class DeviceAllocator {
 public:
  virtual ~DeviceAllocator() = default;

  // The device's number, as torch counts.
  virtual std::uint32_t index() const = 0;

  // Null when there is no memory left.
  virtual std::unique_ptr<DeviceTensor> allocate(ffi::DType dtype,
                                                 rust::Slice<const std::int64_t> sizes,
                                                 rust::Slice<const std::int64_t> strides) const = 0;

  // The calling thread's current stream, a CUstream; 0 is the legacy default stream.
  virtual std::uint64_t current_stream() const = 0;
};

}  // namespace forebay
