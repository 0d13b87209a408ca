// Figures for people. One that is unknown or not finite is a dash.
#pragma once

#include <string>
#include <string_view>

namespace w5xde {

std::string count_text(double value);                      // "17,244"
std::string decimal_text(double value, int decimals = 2);  // "1.34"
std::string percent_text(double share, int decimals = 0);  // "42 %"
std::string size_text(double bytes);                       // "2.9 MB"
std::string rate_text(double bytes_per_second);            // "2.9 MB/s"
std::string clock_text(double seconds);                    // "1:07", "1:01:07"
std::string span_text(double seconds);                     // "12 s", "5 min", "3 h", "2 days"

// How many columns of a terminal this UTF-8 text takes.
std::size_t columns_of(std::string_view text);

}  // namespace w5xde
