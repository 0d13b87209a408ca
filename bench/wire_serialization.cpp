// Direct serialization (a descriptor, then the tensor's own bytes) against generic (MessagePack, number by
// number).
#include <fmt/format.h>

#include <cstring>
#include <vector>

#include "base/random.h"
#include "wire/frame_reader.h"
#include "wire/frame_writer.h"
#include "wire/generic_tensors.h"
#include "wire/messages.h"
#include "wire_groups.h"

namespace w5xde::bench {

namespace {

struct NamedShape {
  std::string name;
  Shape shape;
};

// Tensors of a gradient, with numbers in them that look like one.
struct Gradient {
  explicit Gradient(const std::vector<NamedShape>& shapes) {
    Random random(3);
    for (const auto& [name, shape] : shapes) {
      auto& memory = values.emplace_back(shape.elements());
      for (float& value : memory) value = static_cast<float>(random.unit() - 0.5) * 1e-3f;
      tensors.push_back({name, TensorView(std::as_bytes(std::span(memory)), DType::f32, shape, true)});
    }
  }
  std::vector<std::vector<float>> values;
  std::vector<GenericTensor> tensors;
};

class Landing final : public FrameSink {
 public:
  Result<MutableBytes> place(const FrameHeader& header, Bytes head) override {
    W5XDE_TRY(message, decode_tensors(head, limits));
    return memory.take(header.payload_bytes);
  }
  Status received(const FrameHeader&, Bytes, MutableBytes) override { return {}; }

  Limits limits;
  Tensors message;
  AlignedBuffer memory;
};

// To a frame, through a copy that stands for the socket, and back to tensors in memory; checksums on.
class DirectPath {
 public:
  void run(const Gradient& gradient) {
    Tensors message;
    views_.clear();
    for (const auto& [name, tensor] : gradient.tensors) {
      message.tensors.push_back(TensorDescriptor::of(tensor, name));
      views_.push_back(tensor);
    }
    head_.clear();
    encode(message, head_);
    if (!writer_.push({.type = FrameType::tensors, .head = head_, .payload = views_}).ok()) std::abort();
    for (auto pieces = writer_.stage(); !pieces.empty(); pieces = writer_.stage()) {
      const auto space = reader_.space();
      const std::size_t count = std::min(pieces[0].iov_len, space[0].iov_len);
      std::memcpy(space[0].iov_base, pieces[0].iov_base, count);
      writer_.consume(count);
      if (!reader_.advance(count).ok()) std::abort();
    }
  }

 private:
  Landing landing_;
  FrameReader reader_{Limits(), landing_};
  FrameWriter writer_{Limits()};
  Head head_;
  std::vector<TensorView> views_;
};

void generic_path(const Gradient& gradient, std::vector<std::byte>& encoded) {
  encoded.clear();
  encode_generic_tensors(gradient.tensors, encoded);
  if (!decode_generic_tensors(encoded, Limits()).ok()) std::abort();
}

void compare(const std::string& name, const Gradient& gradient, int repeats, int rounds, Report& report) {
  DirectPath direct;
  std::vector<std::byte> encoded;
  const auto microseconds = [&](const std::function<void()>& once) {
    return seconds_for([&] {
             for (int i = 0; i < repeats; ++i) once();
           }) /
           repeats * 1e6;
  };
  report.add("direct against generic, " + name, "us",
             interleave(
                 rounds, [&] { return microseconds([&] { direct.run(gradient); }); },
                 [&] { return microseconds([&] { generic_path(gradient, encoded); }); }));
}

// The head alone, for a tensor of that many elements: the part of direct serialization that is not a copy.
double head_nanoseconds(std::int64_t elements) {
  constexpr int kRepeats = 200'000;
  Head head;
  const Tensors message{{{DType::f32, Shape{elements}, true, "weight"}}};
  std::uint64_t seen = 0;
  const double seconds = seconds_for([&] {
    for (int i = 0; i < kRepeats; ++i) {
      head.clear();
      encode(message, head);
      seen += decode_tensors(head, Limits())->tensors[0].byte_count();
    }
  });
  return seen == 0 ? 0 : seconds / kRepeats * 1e9;
}

}  // namespace

void bench_serialization(int rounds, Report& report) {
  report.heading("serialize, copy, deserialize: direct against generic");
  const Gradient original({{"0.weight", Shape{20, 10}},
                           {"0.bias", Shape{20}},
                           {"2.weight", Shape{10, 20}},
                           {"2.bias", Shape{10}}});
  compare("the original's gradient (4 tensors, 430 floats)", original, 2000, rounds, report);
  const Gradient large({{"weight", Shape{25'000'000}}});
  compare("25 M floats", large, 1, 5, report);
  report.add("direct head of 25 M floats against one of 430", "ns",
             interleave(
                 rounds, [] { return head_nanoseconds(25'000'000); }, [] { return head_nanoseconds(430); }));
}

}  // namespace w5xde::bench
