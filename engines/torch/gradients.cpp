#include "gradients.h"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>

#include "blocks.h"
#include "w5xde/no_gradient.h"

namespace w5xde::torch_engine {

struct Gradients::Watched {
  Gradients& owner;
  at::Tensor tensor;
  std::uint64_t offset;
  // Autograd keeps a parameter's accumulator, and so its hooks, only while something else holds it.
  std::shared_ptr<torch::autograd::Node> accumulator;
  std::uintptr_t hook = 0;
  bool stored = false;
};

// Called behind a parameter's accumulator, which runs once a backward(): when the gradients of all places
// where the parameter is used are in.
class Gradients::Hook final : public torch::autograd::FunctionPostHook {
 public:
  explicit Hook(Watched& parameter) : parameter_(parameter) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list&) override {
    parameter_.owner.made(parameter_);
    return outputs;
  }

 private:
  Watched& parameter_;
};

Gradients::Gradients(std::span<const ModelTensor> parameters, std::shared_ptr<const BlockLayout> layout)
    : layout_(std::move(layout)) {
  const auto entries = layout_->entries();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const at::Tensor& tensor = parameters[i].tensor;
    auto& watched = *parameters_.emplace_back(
        new Watched{*this, tensor, entries[i].offset, torch::autograd::impl::grad_accumulator(tensor)});
    watched.hook = watched.accumulator->add_post_hook(std::make_unique<Hook>(watched));
  }
}

Gradients::~Gradients() {
  for (const auto& parameter : parameters_) parameter->accumulator->del_post_hook(parameter->hook);
}

void Gradients::take(const at::Tensor& loss, const at::Tensor& root, const Destination& into) {
  into_ = &into;
  torch::autograd::Engine::get_default_engine().execute({torch::autograd::impl::gradient_edge(loss)}, {root},
                                                        /*keep_graph=*/false, /*create_graph=*/false,
                                                        /*accumulate_grad=*/true);
  finish();
}

void Gradients::take_none(const Destination& into) {
  into_ = &into;
  finish();
}

void Gradients::made(Watched& parameter) {
  if (into_ == nullptr) return;  // forward() itself ran backward(): that is added to
  at::Tensor gradient = std::exchange(parameter.tensor.mutable_grad(), at::Tensor());
  if (!gradient.defined()) return;
  TORCH_CHECK(!parameter.stored, "backward() made a parameter's gradient twice");
  store(parameter, std::move(gradient));
  parameter.stored = true;
}

void Gradients::store(const Watched& parameter, at::Tensor gradient) {
  if (gradient.is_sparse()) gradient = gradient.to_dense();
  gradient = gradient.to(at::kCPU, at::kFloat).contiguous();
  if (gradient.numel() == 0) return;
  float* values = gradient.data_ptr<float>();
  mark_gradient(*values);
  store_sum({values, static_cast<std::size_t>(gradient.numel())}, parameter.offset, into_->addends,
            into_->contribution);
}

// Parameters that the loss does not depend on.
void Gradients::finish() {
  std::vector<float> none;
  for (const auto& parameter : parameters_) {
    if (std::exchange(parameter->stored, false)) continue;
    if (parameter->tensor.grad().defined()) {
      made(*parameter);
      parameter->stored = false;
      continue;
    }
    none.assign(static_cast<std::size_t>(parameter->tensor.numel()), kNoGradient);
    store_sum(none, parameter->offset, into_->addends, into_->contribution);
  }
  layout_->clear_padding(into_->contribution);
  into_ = nullptr;
}

void Gradients::discard() {
  into_ = nullptr;
  for (const auto& parameter : parameters_) {
    parameter->tensor.mutable_grad().reset();
    parameter->stored = false;
  }
}

}  // namespace w5xde::torch_engine
