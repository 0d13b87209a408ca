// Two connected streams of every kind, for the contract suite and for tests of what stands on streams.
#pragma once

#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "net/stream.h"

namespace w5xde {

// A world with two connected streams in it and a loop that runs them.
class StreamPair {
 public:
  virtual ~StreamPair() = default;

  // Runs the loop until the condition holds; false when it still does not after a generous time.
  virtual bool run_until(const std::function<bool()>& condition) = 0;
  virtual Loop& loop() = 0;

  std::unique_ptr<Stream> near;
  std::unique_ptr<Stream> far;
};

struct StreamKind {
  std::string name;  // "tcp", "memory", "tls_over_tcp", "tls_over_memory"
  std::function<std::unique_ptr<StreamPair>()> make;
};

const std::vector<StreamKind>& all_stream_kinds();

// How a test that runs on this kind is named in reports.
void PrintTo(const StreamKind& kind,
             std::ostream* out);  // NOLINT(readability-identifier-naming): gtest's name

}  // namespace w5xde
