#include "local_pool/join_hint.h"

namespace w5xde {

bool JoinHint::due(bool somebody_is_in, Instant now) {
  if (somebody_is_in) {
    said_.reset();
    return false;
  }
  if (said_ && now - *said_ < kEvery) return false;
  said_ = now;
  return true;
}

}  // namespace w5xde
