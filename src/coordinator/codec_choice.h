#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "codec/gradient_policy.h"
#include "lease/ledger.h"
#include "payload/encoding.h"
#include "payload/form.h"
#include "run/run_config.h"

namespace w5xde {

// Which codecs a run's floats travel with: the lossy and the lossless one of each node's contributions, those
// of the parameters, and in how large parts. What the settings leave open (`auto`) is chosen from what the
// links carry and what the nodes compute. Loop thread only.
class CodecChoice {
 public:
  CodecChoice() = default;
  CodecChoice(const RunConfig& config, BlockShape shape);

  // What a sparse codec drops for now would miss the momentum that it had gathered in the optimizer: nodes
  // gather it there, and the optimizer does not once more (Deep Gradient Compression).
  static bool nodes_gather_momentum(const RunConfig& config);

  // What is known of a node just now; 0: not measured.
  struct Conditions {
    NodeId node = 0;
    double step_seconds = 0;         // that it computes in a step,
    double step_seconds_others = 0;  // and what others do
    double bytes_per_second_up = 0;
    double bytes_per_second_down = 0;
    bool takes_part = false;  // or will soon
  };
  void choose(const std::vector<Conditions>& nodes);
  bool automatic_up() const { return transport_.gradient_codec.automatic; }
  bool automatic_down() const { return transport_.parameter_codec.automatic; }
  void forget(NodeId node) { gradient_policies_.erase(node); }

  // Of this node's contributions.
  Encoding answer_form(NodeId node) const;
  // Whether what nodes of this machine are sent, and what this one sends, is as it may lie in shared memory:
  // exact, whatever happens.
  bool may_share_down() const {
    return transport_.parameter_codec == GradientChoice() && !transport_.generic();
  }
  bool may_share_up(NodeId node) const { return answer_form(node).form == Form::direct; }
  // Of what changes in the parameters; lossy.
  const GradientCodec& parameter_codec() const { return parameter_codec_; }
  // Lossless, of what nodes are sent; null: each node's link decides.
  const SectionCodec* codec_down() const { return codec_down_ ? &*codec_down_ : nullptr; }
  std::uint64_t part_floats() const { return part_floats_; }  // 0: all travels in one piece
  // Steps are taken part by part, while contributions still arrive.
  bool by_parts() const { return may_step_by_parts_ && parameter_codec_.by_chunks(); }
  // A node that was not sent the version before is sent far more than those that were.
  bool differences_down() const { return automatic_up() || transport_.parameter_codec != GradientChoice(); }

  // In words; `lossless` is what the node's own link has chosen.
  std::string describe_up(NodeId node, const std::string& lossless) const;
  std::string describe_down(const std::string& lossless) const;

 private:
  Encoding fixed_answer() const;
  void choose_down(const std::vector<Conditions>& nodes);
  std::string in_parts(std::uint64_t part_floats) const;
  const char* uncoded() const { return transport_.generic() ? "exact floats, one by one" : "exact floats"; }

  Transport transport_;
  BlockShape shape_;
  bool sparse_steps_ = false;  // what sparse contributions change in the parameters is sparse too
  bool may_step_by_parts_ = false;
  std::uint64_t part_floats_ = 0;
  std::optional<SectionCodec> codec_down_;
  Encoding answer_;  // where the settings say which
  GradientCodec parameter_codec_;
  // Where the choice is ours.
  std::map<NodeId, GradientPolicy> gradient_policies_;
  std::optional<GradientPolicy> parameter_policy_;
  double parameter_density_ = 0;
};

}  // namespace w5xde
