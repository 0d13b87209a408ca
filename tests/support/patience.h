#pragma once

#include <functional>

#include "net/asio_loop.h"

namespace w5xde {

// Runs the loop until the condition holds, looking at it after every task; false when it still does not after
// a minute, in which all that a test waits for happens, however slow the machine and the sanitizer.
bool run_until(AsioLoop& loop, const std::function<bool()>& condition);

}  // namespace w5xde
