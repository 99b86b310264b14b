// How errors of the core leave for torch.
#pragma once

#include <stdexcept>
#include <utility>

#include "forebay/error.h"

namespace forebay::torch_ext {

// Runs an op's body. Errors leave as std::runtime_error with the kind's letter kept: what torch
// makes of other C++ exceptions differs between 2.11 and 2.15.
template <class F>
auto op(F&& f) -> decltype(std::forward<F>(f)()) {
  try {
    return forebay::call(std::forward<F>(f));
  } catch (const forebay::Error& error) {
    throw std::runtime_error(error.what());
  }
}

// An argument that an op cannot take.
[[noreturn]] inline void reject(const std::string& message) {
  throw forebay::Error("T:" + message);
}

}  // namespace forebay::torch_ext
