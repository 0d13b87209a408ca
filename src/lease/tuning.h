// Every constant that was tuned by measuring, with its unit and what measured it. The forecast uses the same.
#pragma once

namespace w5xde {

// Seconds. A lease that takes no longer in one lane is computed in one: waking other threads would cost more
// than it gains.
inline constexpr double kOneLaneSeconds = 0.002;

// What an exchange (a lease and its answer) costs the two processes at least, and each byte of it, through
// two sockets and two hashes: measured on loopback.
inline constexpr double kExchangeSeconds = 60e-6;
inline constexpr double kSecondsPerByte = 1.25e-9;

}  // namespace w5xde
