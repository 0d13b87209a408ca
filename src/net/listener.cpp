#include "net/listener.h"

namespace w5xde {

Listener::~Listener() = default;

}  // namespace w5xde
