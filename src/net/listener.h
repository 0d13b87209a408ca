#pragma once

#include <functional>
#include <memory>

#include "net/address.h"
#include "net/stream.h"
#include "w5xde/result.h"

namespace w5xde {

// Hands each new connection to its callback, until it is destroyed. TCP, or simulated.
// Loop thread only.
class Listener {
 public:
  using Accepted = std::function<void(std::unique_ptr<Stream>)>;

  virtual ~Listener();
  virtual const Address& address() const = 0;
};

// Makes a listener that hands connections to `accepted`, from the loop.
using Listen = std::function<Result<std::unique_ptr<Listener>>(Listener::Accepted accepted)>;

}  // namespace w5xde
