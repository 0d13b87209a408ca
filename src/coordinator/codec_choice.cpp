#include "coordinator/codec_choice.h"

#include <fmt/format.h>

#include <algorithm>

namespace w5xde {

namespace {

// Of contributions, where the choice of a sparse codec is ours.
constexpr double kAutomaticDensity = 0.005;
// Of a step, before one is measured.
constexpr double kComputingGuessed = 0.1;

bool is_lossy(const GradientCodec& codec) {
  return codec.kind != GradientKind::none;
}

}  // namespace

bool CodecChoice::nodes_gather_momentum(const RunConfig& config) {
  const OptimizerOptions& optimizer = config.optimizer;
  return config.transport.gradient_codec.codec.kind == GradientKind::topk &&
         optimizer.kind == OptimizerOptions::Kind::sgd && optimizer.momentum > 0 && !optimizer.nesterov;
}

CodecChoice::CodecChoice(const RunConfig& config, BlockShape shape)
    : transport_(config.transport), shape_(std::move(shape)) {
  const OptimizerOptions& optimizer = config.optimizer;
  sparse_steps_ = optimizer.kind == OptimizerOptions::Kind::sgd && optimizer.momentum == 0 &&
                  optimizer.weight_decay == 0 && automatic_up();
  part_floats_ = w5xde::part_floats(shape_.floats, transport_.part_bytes);
  may_step_by_parts_ = config.steps_by_parts() && part_floats_ > 0;
  if (!transport_.codec.automatic) codec_down_ = {.lossless = transport_.codec.codec};
  parameter_codec_ = transport_.parameter_codec.codec;
  answer_ = fixed_answer();
}

Encoding CodecChoice::fixed_answer() const {
  Encoding form;
  form.gradient = transport_.gradient_codec.codec;
  form.form = is_lossy(form.gradient) ? Form::gradient : transport_.generic() ? Form::generic : Form::direct;
  const LosslessChoice lossless = transport_.codec_up(shape_.floats * sizeof(float));
  form.lossless.reset();
  if (!lossless.automatic) form.lossless = {.lossless = lossless.codec};
  return form;
}

Encoding CodecChoice::answer_form(NodeId node) const {
  Encoding form = answer_;
  if (const auto policy = gradient_policies_.find(node); policy != gradient_policies_.end()) {
    form.gradient = policy->second.codec();
    if (is_lossy(form.gradient)) form.form = Form::gradient;
  }
  const bool whole_chunks = form.gradient.by_chunks() && part_floats_ % kGradientChunk == 0;
  if (by_parts() && (form.form == Form::direct || whole_chunks)) form.part_floats = part_floats_;
  return form;
}

void CodecChoice::choose(const std::vector<Conditions>& nodes) {
  if (automatic_up()) {
    for (const Conditions& node : nodes) {
      // One that has sent nothing yet: as others, over a link that is the same both ways.
      const double rate =
          node.bytes_per_second_up > 0 ? node.bytes_per_second_up : node.bytes_per_second_down;
      const double computing = node.step_seconds > 0          ? node.step_seconds
                               : node.step_seconds_others > 0 ? node.step_seconds_others
                                                              : kComputingGuessed;
      GradientPolicy& policy =
          gradient_policies_.try_emplace(node.node, *shape_.parameters, kAutomaticDensity).first->second;
      (void)policy.choose({rate, computing});
    }
  }
  if (automatic_down()) choose_down(nodes);
}

void CodecChoice::choose_down(const std::vector<Conditions>& nodes) {
  double slowest = 0, longest = 0;
  for (const Conditions& node : nodes) {
    longest = std::max(longest, node.step_seconds);
    const double rate = node.bytes_per_second_down;
    if (rate > 0 && node.takes_part) slowest = slowest == 0 ? rate : std::min(slowest, rate);
  }
  // What sparse contributions change is all sent, if the optimizer does not spread it.
  const double density =
      sparse_steps_ ? std::min(1.0, 1.25 * kAutomaticDensity * static_cast<double>(nodes.size())) : 0;
  if (!parameter_policy_ || density != parameter_density_) {
    parameter_policy_.emplace(*shape_.parameters, density);
    parameter_density_ = density;
  }
  parameter_codec_ = parameter_policy_->choose({slowest, longest > 0 ? longest : kComputingGuessed});
}

std::string CodecChoice::in_parts(std::uint64_t part_floats) const {
  return part_floats == 0 ? "" : fmt::format(", {} parts", (shape_.floats + part_floats - 1) / part_floats);
}

std::string CodecChoice::describe_up(NodeId node, const std::string& lossless) const {
  const auto policy = gradient_policies_.find(node);
  const std::string gradients = policy != gradient_policies_.end() ? policy->second.describe()
                                : answer_.form == Form::gradient   ? to_string(answer_.gradient)
                                                                   : uncoded();
  return fmt::format("{}, {}{}", gradients, lossless, in_parts(answer_form(node).part_floats));
}

std::string CodecChoice::describe_down(const std::string& lossless) const {
  const std::string changes = parameter_policy_            ? parameter_policy_->describe()
                              : is_lossy(parameter_codec_) ? to_string(parameter_codec_)
                                                           : uncoded();
  const bool raw = codec_down_ && codec_down_->lossless.kind == LosslessKind::none;
  const std::string chosen = raw ? "uncompressed" : codec_down_ ? to_string(codec_down_->lossless) : lossless;
  return fmt::format("{}, {}{}", changes, chosen, in_parts(by_parts() ? part_floats_ : 0));
}

}  // namespace w5xde
