// Models from TorchScript files.
#include <fmt/format.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/script.h>

#include <algorithm>
#include <map>
#include <utility>

#include "fingerprint.h"
#include "loss.h"
#include "model.h"

namespace w5xde::torch_engine {

namespace {

// A place in a module that holds a tensor.
struct Slot {
  c10::intrusive_ptr<c10::ivalue::Object> object;
  std::size_t number;

  at::Tensor tensor() const { return object->getSlot(number).toTensor(); }
  void set(const at::Tensor& tensor) const { object->setSlot(number, tensor); }
};

bool same_memory(const at::Tensor& a, const at::Tensor& b) {
  return a.is_same(b) || (a.numel() > 0 && a.data_ptr() == b.data_ptr() && a.sizes() == b.sizes() &&
                          a.strides() == b.strides() && a.scalar_type() == b.scalar_type());
}

class Scripted : public Model {
 public:
  explicit Scripted(torch::jit::Module module)
      : module_(std::move(module)), forward_(module_.get_method("forward")) {}

  // Finds what training changes.
  Status collect();
  // Whether forward() cannot be called without targets.
  bool needs_targets() const { return arguments_required() == 2; }
  // Whether forward() takes as many tensors as the loss needs.
  Status check_arguments(const ModelOptions& options) const;
  // Tries samples as they are and, for images, with a channel in front; remembers what the model takes.
  Status choose_sample_dims(const ModelOptions& options, at::Device device);

  at::Tensor forward(const at::Tensor& inputs) override { return run({inputs}); }
  at::Tensor own_loss(const at::Tensor& inputs, const at::Tensor& targets) override {
    return run({inputs, targets});
  }
  void train(bool training) override { module_.train(training); }
  bool draws() const override { return true; }  // nobody knows
  at::Tensor buffer_now(std::size_t i) const override { return buffer_slots_[i].tensor(); }
  void bind_buffers() override;
  Fingerprints must_not_change() const override;

 private:
  std::size_t arguments_required() const;
  Status collect_parameter(const std::string& name, const Slot& slot);
  void collect_buffer(const std::string& name, const Slot& slot);
  at::Tensor run(std::vector<c10::IValue> arguments);
  std::string try_dims(const std::vector<std::int64_t>& dims, const ModelOptions& options, at::Device device);

  torch::jit::Module module_;
  torch::jit::Method forward_;
  std::vector<ModelTensor> all_parameters_;  // the frozen ones too
  std::vector<Slot> buffer_slots_;
  std::map<std::string, Slot> untracked_;  // by name: all attributes but modules and buffers()
};

at::Tensor Scripted::run(std::vector<c10::IValue> arguments) {
  // The optimising executor watches the first calls and runs other code afterwards: the bits of a
  // contribution would depend on what was computed before it.
  const torch::jit::GraphOptimizerEnabledGuard as_written(false);
  const c10::IValue result = forward_(std::move(arguments));
  TORCH_CHECK(result.isTensor(), "the model's forward gives ", result.tagKind(),
              " where a tensor is expected");
  return result.toTensor();
}

Status Scripted::collect() {
  std::map<std::string, Slot> places;
  for (const auto& [path, module] : module_.named_modules()) {
    const auto object = module._ivalue();
    const auto type = object->type();
    for (std::size_t i = 0; i < type->numAttributes(); ++i) {
      const std::string& name = type->getAttributeName(i);
      if (type->getAttribute(i)->is_module()) continue;
      places.insert({path.empty() ? name : path + "." + name, {object, i}});
      // train() sets this one.
      if (name != "training") untracked_.insert({path.empty() ? name : path + "." + name, {object, i}});
    }
  }
  for (const auto& [name, tensor] : module_.named_parameters()) {
    if (tensor.defined()) W5XDE_CHECK(collect_parameter(name, places.at(name)));
  }
  for (const auto& [name, tensor] : module_.named_buffers()) {
    if (tensor.defined()) collect_buffer(name, places.at(name));
  }
  if (parameters_.empty()) return invalid("the model has no trainable parameter");
  return {};
}

Status Scripted::collect_parameter(const std::string& name, const Slot& slot) {
  const at::Tensor tensor = slot.tensor();
  for (const auto& known : all_parameters_) {
    if (!same_memory(known.tensor, tensor)) continue;
    // Tied: one tensor must stand in both places, whether or not the file kept it so.
    slot.set(known.tensor);
    return {};
  }
  all_parameters_.push_back({name, tensor});
  if (!tensor.requires_grad()) return {};
  if (tensor.scalar_type() != at::kFloat) {
    return incompatible(fmt::format("parameter '{}' is {}; call model.float() before scripting", name,
                                    at::toString(tensor.scalar_type())));
  }
  parameters_.push_back({name, tensor});
  return {};
}

void Scripted::collect_buffer(const std::string& name, const Slot& slot) {
  const at::Tensor tensor = slot.tensor();
  const bool counter = tensor.scalar_type() == at::kLong && tensor.dim() == 0;
  if (tensor.scalar_type() != at::kFloat && !counter) return;
  untracked_.erase(name);
  for (const auto& known : buffers_) {
    if (!same_memory(known.tensor, tensor)) continue;
    slot.set(known.tensor);
    return;
  }
  buffers_.push_back({name, tensor.detach().contiguous()});
  buffer_slots_.push_back(slot);
}

void Scripted::bind_buffers() {
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (!buffer_slots_[i].tensor().is_same(buffers_[i].tensor)) buffer_slots_[i].set(buffers_[i].tensor);
  }
}

Model::Fingerprints Scripted::must_not_change() const {
  Fingerprints fingerprints;
  for (const auto& [name, slot] : untracked_)
    fingerprints.emplace_back(name, fingerprint(slot.object->getSlot(slot.number)));
  return fingerprints;
}

// Without `self`.
std::size_t Scripted::arguments_required() const {
  const auto& arguments = forward_.function().getSchema().arguments();
  return static_cast<std::size_t>(std::ranges::count_if(
             arguments, [](const auto& argument) { return !argument.default_value(); })) -
         1;
}

Status Scripted::check_arguments(const ModelOptions& options) const {
  const auto& arguments = forward_.function().getSchema().arguments();
  const std::size_t wanted = options.loss == "own" ? 2 : 1;
  const std::size_t self = 1;
  if (arguments.size() >= wanted + self && arguments_required() <= wanted) return {};
  if (wanted == 2) {
    return invalid(
        fmt::format("loss 'own' needs a model whose forward(inputs, targets) gives the loss; forward of {} "
                    "takes {} arguments",
                    options.model, arguments.size() - self));
  }
  return invalid(
      fmt::format("forward of {} takes {} arguments where forward(inputs) is called; for a model that "
                  "computes its loss from (inputs, targets) type --loss own",
                  options.model, arguments.size() - self));
}

std::string Scripted::try_dims(const std::vector<std::int64_t>& dims, const ModelOptions& options,
                               at::Device device) {
  try {
    const at::NoGradGuard forward_only;
    std::vector<std::int64_t> batch = {2};
    batch.insert(batch.end(), dims.begin(), dims.end());
    const at::Tensor outputs = forward(at::zeros(batch, at::TensorOptions().device(device)));
    const bool classifies = options.loss == "cross-entropy";
    if (classifies && outputs.sizes() != at::IntArrayRef({2, std::int64_t{options.classes}})) {
      return fmt::format("two samples give {} where cross-entropy over {} classes needs [2, {}]",
                         c10::str(outputs.sizes()), options.classes, options.classes);
    }
    return {};
  } catch (const std::exception& thrown) {
    return first_line(thrown);
  }
}

Status Scripted::choose_sample_dims(const ModelOptions& options, at::Device device) {
  const auto dims = options.sample_shape.dims();
  sample_dims_.assign(dims.begin(), dims.end());
  // What targets look like is not known here, so a model with a loss of its own cannot be tried.
  if (options.loss == "own") return {};
  train(false);
  std::string refused = try_dims(sample_dims_, options, device);
  if (!refused.empty() && dims.size() == 2) {
    sample_dims_.insert(sample_dims_.begin(), 1);
    if (!try_dims(sample_dims_, options, device).empty())
      sample_dims_.erase(sample_dims_.begin());
    else
      refused.clear();
  }
  if (refused.empty()) return {};
  return invalid(fmt::format("{} does not take samples of {}: {}", options.model,
                             options.sample_shape.to_string(), refused));
}

}  // namespace

std::string first_line(const std::exception& thrown) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&thrown);
  std::string text = torch_error != nullptr ? torch_error->what_without_backtrace() : thrown.what();
  // The interpreter tells where it was first, and what went wrong last.
  while (text.ends_with('\n')) text.pop_back();
  if (text.starts_with("The following operation failed in the TorchScript interpreter")) {
    return text.substr(text.rfind('\n') + 1);
  }
  return text.substr(0, text.find('\n'));
}

Result<std::unique_ptr<Model>> load_scripted(ModelOptions& options, const std::filesystem::path& file,
                                             at::Device device) {
  std::unique_ptr<Scripted> model;
  // `file` is a copy; its owner knows it as options.model.
  try {
    auto module = torch::jit::load(file.string(), device);
    if (!module.find_method("forward")) return invalid(fmt::format("{} has no forward()", options.model));
    model = std::make_unique<Scripted>(std::move(module));
  } catch (const std::exception& thrown) {
    return invalid(
        fmt::format("{} is no TorchScript file that this engine reads, and what torch.save writes is none "
                    "either; make one with torch.jit.script(model).save(\"net.pt\") ({})",
                    options.model, first_line(thrown)));
  }
  W5XDE_CHECK(model->collect());
  if (options.loss == "auto") options.loss = model->needs_targets() ? "own" : usual_loss(options.classes);
  W5XDE_CHECK(model->check_arguments(options));
  W5XDE_CHECK(model->choose_sample_dims(options, device));
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace w5xde::torch_engine
