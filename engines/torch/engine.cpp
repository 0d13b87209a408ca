// The plug-in: an Engine on libtorch.
#include "w5xde/engine.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <malloc.h>
#include <torch/version.h>

#include <algorithm>
#include <array>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>

#include "autocast.h"
#include "base/bytes.h"
#include "blocks.h"
#include "drawing.h"
#include "gradients.h"
#include "learn/engine_library.h"
#include "loss.h"
#include "model.h"
#include "samples.h"

namespace w5xde::torch_engine {

namespace {

// Runs what calls into torch: nothing is thrown past it.
template <class Function>
auto without_exceptions(std::string_view what, const Function& function) -> decltype(function()) {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    return Error{ErrorKind::system, fmt::format("{}: out of memory", what)};
  } catch (const std::exception& thrown) {
    return invalid(fmt::format("{}: {}", what, with_trace(thrown)));
  } catch (...) {
    return invalid(fmt::format("{}: torch failed without saying why", what));
  }
}

Result<BlockLayout::Entry> entry_of(const ModelTensor& named) {
  W5XDE_TRY(const Shape shape, Shape::make({named.tensor.sizes().data(), named.tensor.sizes().size()}));
  return BlockLayout::Entry{named.name, shape, 0};
}

Result<std::shared_ptr<const BlockLayout>> layout_of(const std::vector<ModelTensor>& tensors) {
  std::vector<BlockLayout::Entry> entries;
  for (const ModelTensor& named : tensors) {
    W5XDE_TRY(entries.emplace_back(), entry_of(named));
  }
  return BlockLayout::make(std::move(entries), kFloatsMax);
}

class TorchEngine : public Engine {
 public:
  static Result<std::unique_ptr<Engine>> make(const ModelOptions& options, const std::filesystem::path& file);

  std::string name() const override { return fmt::format("torch {} {}", TORCH_VERSION, device_.str()); }
  const ModelDescription& description() const override { return description_; }
  bool uses_cores() const override { return device_.is_cpu(); }
  Status initialise(std::uint64_t seed, std::span<float> state) override;
  Result<Sums> compute(std::span<const float> state, const Slot& slot, Addends addends,
                       std::span<float> contribution) override;
  Result<Evaluation> evaluate(std::span<const float> state, const SlotSamples& samples) override;
  Result<Outputs> predict(std::span<const float> state, const SampleInputs& inputs) override;
  Status save_model(std::span<const float> state, const std::filesystem::path& file,
                    std::span<const std::string> frozen) override;

 private:
  TorchEngine(const ModelOptions& options, std::filesystem::path file, at::Device device, MadeModel made,
              ModelDescription description);
  // Of the model's own memory: every state brings the values.
  void release_parameters();

  // What is not safe before a process forks, once.
  void start();
  Status check_floats(std::size_t floats) const;
  // Makes the parameters look at `state`, and the buffers equal to it.
  void bind(std::span<const float> state);
  void set_training(bool training);

  // `outputs` is empty where the model has a loss of its own. The slot's loss is this times the factor.
  Result<at::Tensor> loss_of(at::Tensor& outputs);
  // The same; `invalid` for a model that was seen to change what nobody tracks. Looks the first times only.
  Result<at::Tensor> watched_loss_of(at::Tensor& outputs, unsigned& times_to_look);
  // Of a slot in training, with this seed for what it draws.
  Result<at::Tensor> training_loss(std::span<const float> state, std::uint64_t seed);
  Result<at::Tensor> evaluation_loss(std::span<const float> state, at::Tensor& outputs);
  // What to bind while it is looked whether the model writes it.
  std::span<const float> watched(std::span<const float> state, unsigned times_to_look);
  const at::Tensor& root_gradient(double scale);
  Result<Sums> compute_slot(std::span<const float> state, const Slot& slot, const Destination& into);
  Status store_buffer_changes(std::span<const float> state, const Destination& into);

  ModelOptions options_;
  std::filesystem::path file_;  // a TorchScript model, or a model's frozen parameters
  bool scripted_;
  at::Device device_;
  LossFunction loss_;
  std::unique_ptr<Model> model_;
  ModelDescription description_;
  Gradients gradients_;
  SampleTensors samples_;
  at::Tensor root_gradient_;
  std::optional<bool> training_;
  bool started_ = false;
  Draws draws_;             // in training, as the model says or as it was seen
  Draws evaluation_draws_;  // a model that draws in training may not draw here
  // A node's first slot is a warm-up with zeros; the second has real samples.
  unsigned training_to_watch_ = 2, evaluations_to_watch_ = 2;
  AlignedBuffer copy_;            // of the state, during a slot that is watched
  std::optional<Error> refused_;  // for good: what forward() left behind is still there

  // The parameters as views of one state. Nodes alternate between two states: the views are made once.
  struct Views {
    const float* state = nullptr;
    std::vector<at::Tensor> tensors;
  };
  std::array<Views, 4> views_;
  std::size_t oldest_views_ = 0;
  const float* bound_ = nullptr;
};

Result<at::Device> choose_device(const std::string& name) {
  if (name == "cpu") return at::Device(at::kCPU);
  if (name != "auto" && name != "cuda" && name != "mps") {
    return invalid(fmt::format("there is no device '{}'; there are auto, cpu, cuda and mps", name));
  }
  if (name != "mps" && at::hasCUDA()) return at::Device(at::kCUDA, 0);
  if (name != "cuda" && at::hasMPS()) return at::Device(at::kMPS);
  if (name == "auto") return at::Device(at::kCPU);
  return invalid(fmt::format("device {} is not available here; type --device cpu or --device auto", name));
}

// Before any sample is seen: what the data says of its ids.
Status check_vocabulary(const ModelOptions& options, const Model& model) {
  if (model.vocabulary() == 0) return {};
  for (const SampleField& input : options.inputs) {
    if (input.kind() != SampleField::Kind::whole || input.ids <= model.vocabulary()) continue;
    return invalid(
        fmt::format("'{}' has ids up to {}, and '{}' takes 0 to {}; give the model a larger vocabulary",
                    input.name, input.ids - 1, options.model, model.vocabulary() - 1));
  }
  return {};
}

Result<std::unique_ptr<Engine>> TorchEngine::make(const ModelOptions& asked,
                                                  const std::filesystem::path& file) {
  return without_exceptions("making the model", [&]() -> Result<std::unique_ptr<Engine>> {
    // Not options.threads: a thread that starts here would be missing in the processes that are forked later.
    at::set_num_threads(1);
    ModelOptions options = asked;
    W5XDE_TRY(const at::Device device, choose_device(options.device));
    W5XDE_CHECK(check_compute(options.compute, device));
    if (options.inputs.empty() || options.inputs.size() > kInputsMax)
      return invalid(fmt::format("samples with {} inputs; 1 to {}", options.inputs.size(), kInputsMax));
    W5XDE_TRY(MadeModel made, make_model(options, file, device));
    W5XDE_CHECK(check_vocabulary(options, *made.model));
    ModelDescription description{.loss = options.loss};
    W5XDE_TRY(description.parameters, layout_of(made.model->parameters()));
    W5XDE_TRY(description.buffers, layout_of(made.model->buffers()));
    std::unique_ptr<TorchEngine> engine(
        new TorchEngine(options, file, device, std::move(made), std::move(description)));
    engine->release_parameters();
    return std::unique_ptr<Engine>(std::move(engine));
  });
}

TorchEngine::TorchEngine(const ModelOptions& options, std::filesystem::path file, at::Device device,
                         MadeModel made, ModelDescription description)
    : options_(options),
      file_(std::move(file)),
      scripted_(made.scripted),
      device_(device),
      loss_(options),
      model_(std::move(made.model)),
      description_(std::move(description)),
      gradients_(model_->parameters(), description_.parameters),
      samples_(options, *model_, device),
      root_gradient_(at::ones({}, at::TensorOptions().device(device))),
      // Only the generator of CPUs can be watched.
      draws_(model_->draws() == Draws::unknown && !device.is_cpu() ? Draws::always : model_->draws()),
      evaluation_draws_(!scripted_                                  ? Draws::never
                        : draws_ == Draws::never || device.is_cpu() ? Draws::unknown
                                                                    : Draws::always) {}

void TorchEngine::start() {
  const auto threads = static_cast<int>(std::max(1U, options_.threads));
  // OpenMP keeps this number for each thread by itself, and any thread may compute.
  thread_local int threads_here = 0;
  if (std::exchange(threads_here, threads) != threads) at::set_num_threads(threads);
  if (started_) return;
  started_ = true;
  // libtorch leaves OpenBLAS as it finds it, and EngineLibrary::load told it to start with one thread.
  if (void* set = dlsym(RTLD_DEFAULT, "openblas_set_num_threads"))
    reinterpret_cast<void (*)(int)>(set)(threads);
  // Each slot makes tensors as large as the gradient and drops them. From mapped memory every one of their
  // pages would be faulted in anew, slot after slot.
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  static std::once_flag interop;  // libtorch takes this once a process
  std::call_once(interop, [] {
    try {
      at::set_num_interop_threads(1);
    } catch (const std::exception&) {  // the program that we are loaded into has chosen already
    }
  });
  // One thread on a CPU has no choice of order to begin with.
  if (options_.threads > 1 || !device_.is_cpu()) at::globalContext().setDeterministicAlgorithms(true, true);
}

void TorchEngine::release_parameters() {
  if (!device_.is_cpu()) return;
  // The shape stays.
  for (const auto& named : model_->parameters())
    named.tensor.set_data(at::empty({}, at::kFloat).expand(named.tensor.sizes()));
  if (description_.floats() * sizeof(float) >= kLargeModelBytes) malloc_trim(0);
}

Status TorchEngine::check_floats(std::size_t floats) const {
  if (floats == description_.floats()) return {};
  return invalid(fmt::format("a block of {} floats for a model of {}", floats, description_.floats()));
}

Status TorchEngine::initialise(std::uint64_t seed, std::span<float> state) {
  return without_exceptions("initialising the model", [&]() -> Status {
    W5XDE_CHECK(check_floats(state.size()));
    // As it is, so that torch.manual_seed(seed) and the same layers give the same model.
    at::manual_seed(seed);
    ModelOptions options = options_;
    W5XDE_TRY(const MadeModel made, make_model(options, file_, at::kCPU));
    std::ranges::fill(state, 0.0F);
    const auto copy = [](const std::vector<ModelTensor>& tensors, const BlockLayout& layout, float* block) {
      for (std::size_t i = 0; i < tensors.size(); ++i)
        copy_out(tensors[i].tensor.detach(), block + layout.entries()[i].offset);
    };
    copy(made.model->parameters(), *description_.parameters, state.data());
    copy(made.model->buffers(), *description_.buffers, state.data() + description_.parameters->floats());
    return Status();
  });
}

void TorchEngine::bind(std::span<const float> state) {
  const auto& parameters = model_->parameters();
  const auto entries = description_.parameters->entries();
  if (!device_.is_cpu()) {
    for (std::size_t i = 0; i < entries.size(); ++i) {
      copy_in(state.data() + entries[i].offset, parameters[i].tensor.detach());
    }
  } else if (bound_ != state.data()) {
    auto views = std::ranges::find(views_, state.data(), &Views::state);
    if (views == views_.end()) {
      views = views_.begin() + static_cast<std::ptrdiff_t>(oldest_views_);
      oldest_views_ = (oldest_views_ + 1) % views_.size();
      views->state = state.data();
      views->tensors.clear();
      for (std::size_t i = 0; i < entries.size(); ++i) {
        views->tensors.push_back(view_of(state.data() + entries[i].offset, parameters[i].tensor));
      }
    }
    for (std::size_t i = 0; i < entries.size(); ++i) parameters[i].tensor.set_data(views->tensors[i]);
    bound_ = state.data();
  }
  if (model_->buffers().empty()) return;
  model_->bind_buffers();
  const float* block = state.data() + description_.parameters->floats();
  const auto buffers = description_.buffers->entries();
  for (std::size_t i = 0; i < buffers.size(); ++i)
    copy_in(block + buffers[i].offset, model_->buffers()[i].tensor);
}

void TorchEngine::set_training(bool training) {
  if (training_ == training) return;
  model_->train(training);
  training_ = training;
}

Result<at::Tensor> TorchEngine::loss_of(at::Tensor& outputs) {
  const at::Tensor& targets = samples_.targets();
  {
    const Autocast autocast(options_.compute, device_);
    outputs =
        loss_.is_own() ? model_->own_loss(samples_.inputs(), targets) : model_->forward(samples_.inputs());
  }
  if (options_.compute != DType::f32) outputs = outputs.to(at::kFloat);
  W5XDE_CHECK(loss_.check(outputs.sizes(), targets.sizes()));
  return loss_.tensor(outputs, targets);
}

Result<at::Tensor> TorchEngine::watched_loss_of(at::Tensor& outputs, unsigned& times_to_look) {
  if (refused_) return *refused_;
  if (times_to_look == 0) return loss_of(outputs);
  const Model::Fingerprints before = model_->must_not_change();
  W5XDE_TRY(at::Tensor loss, loss_of(outputs));
  const Model::Fingerprints after = model_->must_not_change();
  std::vector<std::string> changed;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i] != after[i]) changed.push_back(fmt::format("'{}'", before[i].first));
  }
  --times_to_look;
  if (changed.empty()) return loss;
  refused_ = invalid(fmt::format(
      "the model's forward changes {}, which does not travel with the model: results would depend on "
      "who computed what. Keep it in a float32 buffer (self.register_buffer), which does travel, or "
      "do not change it in forward; parameters are for the optimizer to change",
      fmt::join(changed, ", ")));
  return *refused_;
}

// A scalar of ones, were it not for the scale.
const at::Tensor& TorchEngine::root_gradient(double scale) {
  if (device_.is_cpu()) {
    *root_gradient_.data_ptr<float>() = static_cast<float>(scale);
  } else {
    root_gradient_.fill_(scale);
  }
  return root_gradient_;
}

Status TorchEngine::store_buffer_changes(std::span<const float> state, const Destination& into) {
  const std::uint64_t first = description_.parameters->floats();
  const auto entries = description_.buffers->entries();
  const auto samples = static_cast<float>(samples_.count());
  std::vector<float> change;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::uint64_t count = entries[i].shape.elements();
    change.assign(count, 0.0F);
    if (samples > 0) {
      const at::Tensor after = model_->buffer_now(i);
      if (static_cast<std::uint64_t>(after.numel()) != count) {
        return invalid(
            fmt::format("buffer '{}' changed its shape to {}", entries[i].name, c10::str(after.sizes())));
      }
      copy_out(after.detach(), change.data());
      const float* before = state.data() + first + entries[i].offset;
      // What stays may be infinite, as a mask of attention is: it has not changed by NaN.
      for (std::uint64_t k = 0; k < count; ++k)
        change[k] = change[k] == before[k] ? 0.0F : samples * (change[k] - before[k]);
    }
    store_sum(change, first + entries[i].offset, into.addends, into.contribution);
  }
  description_.buffers->clear_padding(into.contribution.subspan(first));
  return {};
}

Result<at::Tensor> TorchEngine::training_loss(std::span<const float> state, std::uint64_t seed) {
  bind(watched(state, training_to_watch_));
  at::Tensor outputs;
  {
    const Drawing drawing(draws_, seed, device_);
    W5XDE_TRY(at::Tensor loss, watched_loss_of(outputs, training_to_watch_));
    if (!drawing.surprised()) return loss;
  }
  draws_ = Draws::always;
  gradients_.discard();  // of a forward() that runs backward() itself
  return training_loss(state, seed);
}

// A model that draws here too draws the same for the same slot, whoever evaluates it.
Result<at::Tensor> TorchEngine::evaluation_loss(std::span<const float> state, at::Tensor& outputs) {
  constexpr std::uint64_t kSeed = 0;
  bind(watched(state, evaluations_to_watch_));
  {
    const Drawing drawing(evaluation_draws_, kSeed, device_);
    W5XDE_TRY(at::Tensor loss, watched_loss_of(outputs, evaluations_to_watch_));
    if (!drawing.surprised()) return loss;
  }
  evaluation_draws_ = Draws::always;
  return evaluation_loss(state, outputs);
}

// The memory of a state may be somebody else's and not to be written. A model of unknown code that writes its
// parameters is refused when that is seen: until then it gets a copy.
std::span<const float> TorchEngine::watched(std::span<const float> state, unsigned times_to_look) {
  if (!scripted_ || !device_.is_cpu()) return state;
  if (times_to_look == 0) return state;
  const MutableBytes copy = copy_.take(state.size_bytes());
  std::ranges::copy(std::as_bytes(state), copy.begin());
  return {reinterpret_cast<const float*>(copy.data()), state.size()};
}

Result<Sums> TorchEngine::compute_slot(std::span<const float> state, const Slot& slot,
                                       const Destination& into) {
  W5XDE_CHECK(samples_.load(slot.samples));
  if (samples_.count() == 0) {
    gradients_.take_none(into);
    W5XDE_CHECK(store_buffer_changes(state, into));
    return Sums{};
  }
  set_training(true);
  const at::AutoGradMode recording(true);
  W5XDE_TRY(const at::Tensor loss, training_loss(state, slot.seed));
  if (!loss.requires_grad()) return invalid("the loss does not depend on any trainable parameter");
  const double scale = loss_.factor(samples_.targets());
  gradients_.take(loss, root_gradient(scale), into);
  W5XDE_CHECK(store_buffer_changes(state, into));
  return Sums{.loss = loss.item<double>() * scale, .samples = static_cast<std::uint64_t>(samples_.count())};
}

Result<Sums> TorchEngine::compute(std::span<const float> state, const Slot& slot, Addends addends,
                                  std::span<float> contribution) {
  auto computed = without_exceptions("computing a slot", [&]() -> Result<Sums> {
    start();
    W5XDE_CHECK(check_floats(state.size()));
    W5XDE_CHECK(check_floats(contribution.size()));
    return compute_slot(state, slot, {addends, contribution});
  });
  if (!computed.ok()) gradients_.discard();
  copy_ = {};  // a node that only stands by has computed a slot too, to warm up
  return computed;
}

Result<Evaluation> TorchEngine::evaluate(std::span<const float> state, const SlotSamples& samples) {
  auto evaluated = without_exceptions("evaluating", [&]() -> Result<Evaluation> {
    start();
    W5XDE_CHECK(check_floats(state.size()));
    W5XDE_CHECK(samples_.load(samples));
    if (samples_.count() == 0) return Evaluation{};
    set_training(false);
    const at::NoGradGuard forward_only;
    at::Tensor outputs;
    W5XDE_TRY(const at::Tensor loss, evaluation_loss(state, outputs));
    Evaluation evaluation{.loss_sum = loss.item<double>() * loss_.factor(samples_.targets()),
                          .samples = static_cast<std::uint64_t>(samples_.count())};
    loss_.count(outputs, samples_.targets(), evaluation);
    return evaluation;
  });
  copy_ = {};
  return evaluated;
}

Result<Outputs> TorchEngine::predict(std::span<const float> state, const SampleInputs& inputs) {
  return without_exceptions("computing outputs", [&]() -> Result<Outputs> {
    start();
    if (loss_.is_own()) return invalid("the model's forward gives its loss, and no outputs");
    if (refused_) return *refused_;
    W5XDE_CHECK(check_floats(state.size()));
    W5XDE_CHECK(samples_.load_inputs(inputs));
    bind(state);
    set_training(false);
    const at::NoGradGuard forward_only;
    const Autocast autocast(options_.compute, device_);
    const at::Tensor given = model_->forward(samples_.inputs()).to(at::kCPU, at::kFloat).contiguous();
    W5XDE_TRY(const Shape shape, Shape::make({given.sizes().data(), given.sizes().size()}));
    if (shape.rank() == 0 || shape[0] != samples_.count())
      return invalid(fmt::format("the model gives {} for {} samples", shape.to_string(), samples_.count()));
    const float* values = given.data_ptr<float>();
    return Outputs{shape, {values, values + given.numel()}};
  });
}

Status TorchEngine::save_model(std::span<const float> state, const std::filesystem::path& file,
                               std::span<const std::string> frozen) {
  return without_exceptions("saving the model", [&]() -> Status {
    if (!scripted_) {
      return invalid(fmt::format("'{}' is built in: no file holds it; export its weights: FILE.safetensors",
                                 options_.model));
    }
    start();
    W5XDE_CHECK(check_floats(state.size()));
    bind(state);
    set_training(false);
    const auto set_frozen = [&](bool is_frozen) {
      for (const auto& named : model_->parameters()) {
        if (std::ranges::find(frozen, named.name) != frozen.end()) named.tensor.requires_grad_(!is_frozen);
      }
    };
    set_frozen(true);
    model_->save(file);
    set_frozen(false);
    return {};
  });
}

}  // namespace

}  // namespace w5xde::torch_engine

W5XDE_EXPORT_ENGINE(w5xde::torch_engine::TorchEngine::make)
