// Models from TorchScript files.
#include "model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/script.h>

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "autocast.h"
#include "fingerprint.h"
#include "loss.h"

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
  bool needs_targets(std::size_t inputs) const { return arguments_required() == inputs + 1; }
  // Decides which tensor is which argument: the argument of its name, or the first that is left.
  Status place_arguments(const ModelOptions& options);
  // Tries samples as they are and, for images, with a channel in front; remembers what the model takes.
  Status choose_input_dims(const ModelOptions& options, at::Device device);

  at::Tensor forward(Inputs inputs) override { return run(inputs, nullptr); }
  at::Tensor own_loss(Inputs inputs, const at::Tensor& targets) override { return run(inputs, &targets); }
  void train(bool training) override { module_.train(training); }
  Draws draws() const override { return Draws::unknown; }
  at::Tensor buffer_now(std::size_t i) const override { return buffer_slots_[i].tensor(); }
  void bind_buffers() override;
  void save(const std::filesystem::path& file) const override { module_.save(file.string()); }
  Fingerprints must_not_change() const override;

 private:
  // Of forward(), `self` first.
  const std::vector<c10::Argument>& schema() const { return forward_.function().getSchema().arguments(); }
  std::size_t arguments_required() const;
  Status collect_parameter(const std::string& name, const Slot& slot);
  void collect_buffer(const std::string& name, const Slot& slot);
  at::Tensor run(Inputs inputs, const at::Tensor* targets);
  std::string try_dims(const ModelOptions& options, at::Device device);

  torch::jit::Module module_;
  torch::jit::Method forward_;
  // What each argument of forward() is, but `self`, up to the last that is given: the number of a tensor
  // (the inputs, then the targets), or none where it has its default.
  std::vector<std::optional<std::size_t>> arguments_;
  std::vector<ModelTensor> all_parameters_;  // the frozen ones too
  std::vector<Slot> buffer_slots_;
  std::map<std::string, Slot> untracked_;  // by name: all attributes but modules and buffers()
};

at::Tensor Scripted::run(Inputs inputs, const at::Tensor* targets) {
  // The optimising executor watches the first calls and runs other code afterwards: the bits of a
  // contribution would depend on what was computed before it.
  const torch::jit::GraphOptimizerEnabledGuard as_written(false);
  std::vector<c10::IValue> given;
  given.reserve(arguments_.size());
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    const auto& tensor = arguments_[i];
    if (!tensor) {
      given.push_back(*schema()[i + 1].default_value());
    } else {
      given.emplace_back(*tensor < inputs.size() ? inputs[*tensor] : *targets);
    }
  }
  const c10::IValue result = forward_(std::move(given));
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
  return static_cast<std::size_t>(std::ranges::count_if(
             schema(), [](const auto& argument) { return !argument.default_value(); })) -
         1;
}

Status Scripted::place_arguments(const ModelOptions& options) {
  std::vector<std::string> tensors;
  for (const SampleField& input : options.inputs) tensors.push_back(input.name);
  if (options.loss == "own") tensors.push_back(options.targets.name);
  const auto arguments = std::span(schema()).subspan(1);
  arguments_.assign(arguments.size(), std::nullopt);
  std::vector<std::size_t> others;  // tensors that are no argument's name
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto named =
        std::ranges::find_if(arguments, [&](const auto& argument) { return argument.name() == tensors[i]; });
    if (named == arguments.end()) {
      others.push_back(i);
    } else {
      arguments_[static_cast<std::size_t>(named - arguments.begin())] = i;
    }
  }
  auto next = others.begin();
  for (auto& argument : arguments_) {
    if (!argument && next != others.end()) argument = *next++;
  }
  bool all_given = next == others.end();
  for (std::size_t i = 0; i < arguments.size(); ++i)
    all_given = all_given && (arguments_[i] || arguments[i].default_value());
  while (!arguments_.empty() && !arguments_.back()) arguments_.pop_back();
  if (all_given) return {};
  const std::string call = fmt::format("forward({})", fmt::join(tensors, ", "));
  if (options.loss == "own") {
    return invalid(
        fmt::format("loss 'own' needs a model whose {} gives the loss; forward of {} takes {} arguments",
                    call, options.model, arguments.size()));
  }
  return invalid(fmt::format(
      "forward of {} takes {} arguments where {} is called; for a model that computes its loss from "
      "inputs and targets type --loss own",
      options.model, arguments.size(), call));
}

// With two samples: numbers and flags are zeros, ids the largest that the data has.
std::string Scripted::try_dims(const ModelOptions& options, at::Device device) {
  try {
    const at::NoGradGuard forward_only;
    const Autocast autocast(options.compute, device);
    const auto zeros = [&](Dims dims, SampleField::Kind kind) {
      dims.insert(dims.begin(), 2);
      const at::ScalarType type = kind == SampleField::Kind::whole  ? at::kLong
                                  : kind == SampleField::Kind::flag ? at::kBool
                                                                    : at::kFloat;
      return at::zeros(dims, at::TensorOptions().device(device).dtype(type));
    };
    std::vector<at::Tensor> inputs;
    for (std::size_t i = 0; i < options.inputs.size(); ++i) {
      const SampleField& field = options.inputs[i];
      inputs.push_back(zeros(input_dims_[i], field.kind()));
      if (field.kind() == SampleField::Kind::whole && field.ids > 0)
        inputs.back().fill_(static_cast<std::int64_t>(field.ids - 1));
    }
    const auto dims = options.targets.shape.dims();
    const at::Tensor targets =
        zeros({dims.begin(), dims.end()},
              options.classes > 0 ? SampleField::Kind::whole : SampleField::Kind::number);
    const at::Tensor outputs = options.loss == "own" ? own_loss(inputs, targets) : forward(inputs);
    const Status fits = LossFunction(options).check(outputs.sizes(), targets.sizes());
    return fits.ok() ? "" : fits.error().message;
  } catch (const std::exception& thrown) {
    return with_trace(thrown);
  }
}

Status Scripted::choose_input_dims(const ModelOptions& options, at::Device device) {
  std::string samples;
  for (const SampleField& input : options.inputs) {
    const auto dims = input.shape.dims();
    input_dims_.emplace_back(dims.begin(), dims.end());
    samples += fmt::format("{}'{}' of {}{}", samples.empty() ? "" : ", ", input.name, input.shape.to_string(),
                           input.ids > 0 ? fmt::format(" with ids up to {}", input.ids - 1) : "");
  }
  train(false);
  const std::string refused = try_dims(options, device);
  if (refused.empty()) return {};
  if (options.inputs.size() == 1 && options.inputs[0].kind() == SampleField::Kind::number &&
      options.inputs[0].shape.rank() == 2) {
    input_dims_[0].insert(input_dims_[0].begin(), 1);
    if (try_dims(options, device).empty()) return {};
  }
  return invalid(fmt::format("{} does not take samples of {}: {}", options.model, samples, refused));
}

}  // namespace

namespace {

std::string text_of(const std::exception& thrown) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&thrown);
  std::string text = torch_error != nullptr ? torch_error->what_without_backtrace() : thrown.what();
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace

std::string first_line(const std::exception& thrown) {
  const std::string text = text_of(thrown);
  // The interpreter tells where it was first, and what went wrong last.
  if (text.starts_with("The following operation failed in the TorchScript interpreter")) {
    return text.substr(text.rfind('\n') + 1);
  }
  return text.substr(0, text.find('\n'));
}

std::string with_trace(const std::exception& thrown) {
  constexpr std::size_t kTraceBytesMax = 16 * 1024;  // of a model that calls itself
  const std::string text = text_of(thrown);
  // A file has the code as it was saved, and as its author wrote it.
  auto begin = text.find("Traceback of TorchScript, original code");
  if (begin == std::string::npos) begin = text.find("Traceback of TorchScript");
  const auto end = text.rfind('\n');
  if (begin == std::string::npos || end < begin) return first_line(thrown);
  return first_line(thrown) + "\n" + text.substr(begin, std::min(end - begin, kTraceBytesMax));
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
  if (options.loss == "auto")
    options.loss = model->needs_targets(options.inputs.size()) ? "own" : usual_loss(options.classes);
  W5XDE_CHECK(model->place_arguments(options));
  W5XDE_CHECK(model->choose_input_dims(options, device));
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace w5xde::torch_engine
