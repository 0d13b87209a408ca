#pragma once

#include <string>

namespace w5xde {

// The processor's own name for itself: equal bits are promised between equal ones only.
std::string processor_name();

}  // namespace w5xde
