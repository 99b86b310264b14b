// Errors of the core in C++: one class that keeps kind and text untouched.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "rust/cxx.h"

namespace forebay {

// Mirrors core's ErrorKind by letter; tests/cpp/error_roundtrip.cpp runs over all of them.
enum class ErrorKind : char {
  kInvalid = 'V',
  kRange = 'I',
  kType = 'T',
  kData = 'D',
  kUnsupported = 'N',
  kIo = 'F',
  kNotFound = 'P',
  kMemory = 'M',
  kDeviceMemory = 'O',
  kDevice = 'G',
  kClosed = 'C',
  kInternal = 'X',
};

class Error : public std::runtime_error {
 public:
  // `text` is "V:message", as the bridge gives it.
  explicit Error(const std::string& text) : std::runtime_error(text) {}

  ErrorKind kind() const { return static_cast<ErrorKind>(what()[0]); }
  std::string message() const { return std::string(what()).substr(2); }
};

// Calls into the core; what comes back as rust::Error leaves as forebay::Error.
template <class F>
auto call(F&& f) -> decltype(std::forward<F>(f)()) {
  try {
    return std::forward<F>(f)();
  } catch (const rust::Error& error) {
    throw Error(error.what());
  }
}

}  // namespace forebay
