#pragma once

#include <vector>

namespace w5xde {

// How fast a link takes bytes, from the kernel's estimates, each of which is of a moment and may be far
// off.
//
//   the link's      an estimate while there was always more to send
//   the sender's    one while there was not: the link takes at least as much
//
// The middle one of the last few counts. A sender's estimate is worth something only while it is the highest
// known. Pure.
class RateMedian {
 public:
  RateMedian();

  // The same estimate again, because nothing was sent since, counts once.
  void add(double bytes_per_second, bool sender_limited);

  // 0 while not known.
  double bytes_per_second() const;
  // Whether most of the estimates are the link's: it carries that much and no more.
  bool limited_by_link() const;

 private:
  struct Estimate {
    double bytes_per_second = 0;
    bool sender_limited = false;

    bool operator==(const Estimate&) const = default;
  };

  std::vector<Estimate> kept_;  // the oldest first
  Estimate last_;
};

}  // namespace w5xde
