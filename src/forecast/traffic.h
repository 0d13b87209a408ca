#pragma once

#include "forecast/prediction.h"

namespace w5xde {

// What travels in a situation, and what codecs take for it. Bytes are those on the wire.
struct Traffic {
  GradientCodec gradient_codec;   // none where the choice is the coordinator's, which is what it begins with
  GradientCodec parameter_codec;  // the same

  double whole_version = 0;
  double parameters = 0;    // a version, to a node that has the one before
  double contribution = 0;  // one, of however many slots
  double lease = 0;         // one, without its samples
  double slot = 0;          // its samples in a lease: themselves, or the numbers of those that a node keeps
  double kept_bytes = 0;    // of samples, at one node
  // Parts of equal size that make a contribution or a version: one is stepped and on its way down while the
  // next comes up. 1: they travel in one piece.
  double parts = 1;

  double parameters_encode_seconds = 0, parameters_decode_seconds = 0;      // coordinator, node
  double contribution_encode_seconds = 0, contribution_decode_seconds = 0;  // node, coordinator
  double slot_encode_seconds = 0, slot_decode_seconds = 0;                  // coordinator, node
};

Traffic traffic_of(const Situation& situation);

// What serializing and compressing take on this machine, as part of what is taken for granted above:
// measured, in some milliseconds.
double measured_codec_pace();

}  // namespace w5xde
