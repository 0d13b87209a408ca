#include "support/patience.h"

namespace w5xde {

bool run_until(AsioLoop& loop, const std::function<bool()>& condition) {
  bool out_of_patience = false;
  const auto timer = loop.after(std::chrono::seconds(60), [&] { out_of_patience = true; });
  bool met = false;
  loop.run_until([&] { return (met = condition()) || out_of_patience; });
  loop.cancel(timer);
  return met;
}

}  // namespace w5xde
