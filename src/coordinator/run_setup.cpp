#include "coordinator/run_setup.h"

#include "coordinator/codec_choice.h"

namespace w5xde {

Round::Options round_options(const RunConfig& config, const CheckpointInfo& from,
                             const LeaseSamples& samples) {
  return {.mode = config.mode,
          .slots = config.step_slots(),
          .slots_total = config.slots_total(samples.sampler().slots_per_epoch()),
          .first_step = from.step,
          .first_slot = from.data_cursor(),
          .slots_ahead = from.slots_ahead,
          .grain = lease_grain(config.transport.gradient_codec.codec, config.step_slots()),
          .steps_total = config.steps,
          .lease_slots_max = samples.slots_max(Work::train),
          .halves = config.growth.grows(),
          .fastest = config.transport.who_works == WhoWorks::fastest,
          .lanes = config.threads == 1};
}

bool shares_memory(const RunConfig& config, const CheckpointFile& from, std::uint64_t shared_bytes_min) {
  std::uint64_t bytes = 0;
  for (const char* group : {"parameters", "buffers"}) {
    if (const auto layout = from.layout_of(group)) bytes += layout->floats() * sizeof(float);
  }
  return config.transport.shared_memory == MemorySharing::automatic && !config.transport.generic() &&
         bytes >= shared_bytes_min && bytes <= Limits{}.payload_bytes_max;
}

std::string what_lets_it_go_on(const RunConfig& config, const CheckpointInfo& at, const Dataset& data,
                               bool evaluates) {
  if (evaluates && !at.evaluation_loss) return {};
  const Sampler sampler({.samples = data.samples(), .batch = config.batch, .seed = config.seed});
  const std::uint64_t slots = config.slots_total(sampler.slots_per_epoch());
  if ((slots > 0 && at.data_cursor() >= slots) || (config.steps > 0 && at.step >= config.steps) ||
      (config.seconds > 0 && at.seconds >= config.seconds))
    return "a larger --epochs, --steps or --seconds";
  if (config.patience > 0 && at.evaluations_since_lowest >= config.patience) return "a larger --patience";
  // What nodes were shown by a lossy codec decides nothing.
  if (config.transport.parameter_codec != GradientChoice()) return {};
  if (config.target_accuracy > 0 && at.evaluation_accuracy >= config.target_accuracy)
    return "a higher --target-accuracy";
  if (config.target_loss != 0 && at.evaluation_loss <= config.target_loss) return "a lower --target-loss";
  return {};
}

Evaluations::Options evaluation_options(const RunConfig& config, const RunMaterial& material,
                                        const LeaseSamples& samples, const RunFolder& folder) {
  // The best checkpoint stays that until an evaluation is better than its own.
  const CheckpointInfo& from = material.checkpoint.info();
  Evaluations::Options options{.target_accuracy = config.target_accuracy,
                               .target_loss = config.target_loss,
                               .patience = config.patience,
                               .lowest_loss = from.lowest_loss,
                               .since_lowest = from.evaluations_since_lowest};
  if (from.evaluation_loss) options.counted_version = from.version;
  if (const auto best = CheckpointFile::open(folder.best_checkpoint(), folder.disk()); best.ok())
    options.best_loss = best->info().evaluation_loss;
  options.slots = samples.evaluation_slots();
  // A model with a loss of its own gives no outputs that could be compared with classes.
  options.classifies = material.evaluation && material.evaluation->classes() > 0 && material.loss != "own";
  options.sequences = options.classifies && is_sequence(material.evaluation->targets());
  return options;
}

Offer make_offer(const std::string& run, const RunConfig& config, const RunMaterial& material,
                 std::uint64_t model_fingerprint) {
  const Transport& transport = config.transport;
  const auto inputs = material.data->inputs();
  Offer offer{.run = run,
              .model = config.model,
              .loss = material.loss,
              .inputs = {inputs.begin(), inputs.end()},
              .targets = material.data->targets(),
              .classes = material.data->classes(),
              .ignore_index = config.ignore_index,
              .preparation = config.preparation,
              .threads = config.threads,
              .compute = config.compute,
              .model_fingerprint = model_fingerprint,
              .newest_parameters = config.mode == Mode::async,
              .momentum = CodecChoice::nodes_gather_momentum(config) ? config.optimizer.momentum : 0,
              .socket_buffer = transport.socket_buffer,
              .keep_alive = transport.keep_alive,
              .quick_ack = transport.quick_ack,
              .receive_chunk = transport.receive_chunk,
              .combined_send = transport.combined_send};
  if (material.model_file) {
    offer.model_hash = material.model_hash;
    offer.model_bytes = material.model_file->bytes().size();
  }
  return offer;
}

}  // namespace w5xde
