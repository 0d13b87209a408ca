// Nodes that lie. Each is an honest node whose words are changed on their way out, so that everything else
// about it is right.
#pragma once

#include <memory>
#include <string_view>

#include "net/stream.h"

namespace w5xde {

enum class Hostility {
  none,
  voids,         // answers every lease with nothing
  not_finite,    // answers with NaN
  wrong_block,   // answers for other slots than it was given
  wrong_step,    // says that its answers are of another step
  replays,       // says everything twice
  replays_late,  // says its last answer in place of the next
  too_long,      // answers with more numbers than the model has
  silent,        // answers no lease
  never_reads,   // reads nothing once it is in
  count_,
};
std::string_view name_of(Hostility kind);

// A stream to give to an honest node.
std::unique_ptr<Stream> make_hostile(std::unique_ptr<Stream> stream, Hostility kind);

}  // namespace w5xde
