// Every kind of error through Rust and back, and a panic, without torch.

#include <cstdio>
#include <string>

#include "forebay-bridge/src/lib.rs.h"
#include "forebay/error.h"

namespace {

int failures = 0;
int checks = 0;

void expect(bool holds, const std::string& what) {
  ++checks;
  if (holds) return;
  ++failures;
  std::printf("FAILED: %s\n", what.c_str());
}

template <class F>
std::string text_of(F&& f) {
  try {
    forebay::call(f);
  } catch (const forebay::Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace

int main() {
  using forebay::ErrorKind;
  const ErrorKind kinds[] = {
      ErrorKind::kInvalid,      ErrorKind::kRange,  ErrorKind::kType,     ErrorKind::kData,
      ErrorKind::kUnsupported,  ErrorKind::kIo,     ErrorKind::kNotFound, ErrorKind::kMemory,
      ErrorKind::kDeviceMemory, ErrorKind::kDevice, ErrorKind::kClosed,   ErrorKind::kInternal};
  int64_t number = 0;
  for (const ErrorKind kind : kinds) {
    const std::string text = text_of([&] { forebay::ffi::raise(number); });
    const std::string start{static_cast<char>(kind), ':'};
    expect(text.rfind(start + "raised on request", 0) == 0, "kind " + start + " came as " + text);
    ++number;
  }
  const std::string past = text_of([&] { forebay::ffi::raise(number); });
  expect(past.rfind("I:", 0) == 0, "there are as many kinds here as in Rust, got " + past);
  std::fprintf(stderr, "the panic that follows is wanted:\n");
  const std::string panic = text_of([] { forebay::ffi::panic(); });
  expect(panic.rfind("X:internal error: a panic on request", 0) == 0, "panic came as " + panic);
  std::printf("%d passed, %d failed\n", checks - failures, failures);
  return failures == 0 ? 0 : 1;
}
