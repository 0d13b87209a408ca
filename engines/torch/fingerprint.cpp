#include "fingerprint.h"

#include <ATen/ATen.h>

#include <string>

#include "base/bytes.h"
#include "base/hash.h"

namespace w5xde::torch_engine {

namespace {

// An object may hold itself.
constexpr int kDepthMax = 32;

class Feeder {
 public:
  explicit Feeder(Hash64& hash) : hash_(hash) {}

  void feed(const c10::IValue& value, int depth = 0) {
    if (value.isModule() || depth > kDepthMax) return;
    feed_text(value.tagKind());
    if (value.isTensor()) return feed_tensor(value.toTensor());
    if (value.isInt()) return feed_number(value.toInt());
    if (value.isDouble()) return feed_number(value.toDouble());
    if (value.isBool()) return feed_number(value.toBool());
    if (value.isComplexDouble()) return feed_number(value.toComplexDouble());
    if (value.isString()) return feed_text(value.toStringRef());
    if (value.isDevice()) return feed_text(value.toDevice().str());
    if (value.isList()) return feed_all(value.toListRef(), depth);
    if (value.isTuple()) return feed_all(value.toTupleRef().elements(), depth);
    if (value.isObject()) return feed_all(value.toObjectRef().slots(), depth);
    if (!value.isGenericDict()) return;
    feed_number(value.toGenericDict().size());
    for (const auto& entry : value.toGenericDict()) {
      feed(entry.key(), depth + 1);
      feed(entry.value(), depth + 1);
    }
  }

 private:
  template <class Values>
  void feed_all(const Values& values, int depth) {
    feed_number(values.size());
    for (const c10::IValue& value : values) feed(value, depth + 1);
  }
  template <class Number>
  void feed_number(Number number) {
    hash_.update({reinterpret_cast<const std::byte*>(&number), sizeof(number)});
  }
  void feed_text(const std::string& text) {
    feed_number(text.size());
    hash_.update(bytes_of(text));
  }
  void feed_tensor(const at::Tensor& tensor) {
    if (!tensor.defined()) return;
    feed_text(at::toString(tensor.scalar_type()));
    feed_number(tensor.dim());
    for (const std::int64_t size : tensor.sizes()) feed_number(size);
    at::Tensor values = tensor.detach();
    if (values.layout() != at::kStrided) values = values.to_dense();
    values = values.cpu().contiguous();
    hash_.update({static_cast<const std::byte*>(values.data_ptr()), values.nbytes()});
  }

  Hash64& hash_;
};

}  // namespace

std::uint64_t fingerprint(const c10::IValue& value) {
  Hash64 hash;
  Feeder(hash).feed(value);
  return hash.digest();
}

}  // namespace w5xde::torch_engine
