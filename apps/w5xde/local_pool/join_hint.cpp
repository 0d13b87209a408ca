#include "local_pool/invitation.h"

namespace w5xde {

bool Invitation::due(bool somebody_is_in, Instant now) {
  if (somebody_is_in) {
    said_.reset();
    return false;
  }
  if (said_ && now - *said_ < kEvery) return false;
  said_ = now;
  return true;
}

}  // namespace w5xde
