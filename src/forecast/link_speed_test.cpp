#include "forecast/link_speed.h"

#include <gtest/gtest.h>

#include <string>

namespace w5xde {
namespace {

TEST(LinkSpeedTest, a_rate_is_in_bits_or_bytes) {
  EXPECT_DOUBLE_EQ(parse_link_speed("100mbit").value().bytes_per_second, 12.5e6);
  EXPECT_DOUBLE_EQ(parse_link_speed("1gbit/s").value().bytes_per_second, 125e6);
  EXPECT_DOUBLE_EQ(parse_link_speed("56kbit").value().bytes_per_second, 7e3);
  EXPECT_DOUBLE_EQ(parse_link_speed("12MB/s").value().bytes_per_second, 12e6);
  EXPECT_DOUBLE_EQ(parse_link_speed("1.5GB/s").value().bytes_per_second, 1.5e9);
}

TEST(LinkSpeedTest, a_rate_is_written_as_people_write_it) {
  for (const char* text : {"20mbit", "20Mbit", "20Mbit/s", "20MBit/s", "20 Mbit/s", "20Mbps", "20mbps",
                           "20Mb/s", "20mb/s", "20000kbit", "20 mbits/s", "0.02gbit", "2.5MB/s", "2.5MBps",
                           "2.5mB/s", "2500kB/s", "20000000bit/s", " 20mbit "})
    EXPECT_DOUBLE_EQ(parse_link_speed(text).value().bytes_per_second, 2.5e6) << text;
  EXPECT_DOUBLE_EQ(parse_link_speed("1Gbps").value().bytes_per_second, 125e6);
  EXPECT_DOUBLE_EQ(parse_link_speed("100 Mbit/s, 40 ms").value().bytes_per_second, 12.5e6);
  EXPECT_DOUBLE_EQ(parse_link_speed("100 Mbit/s, 40 ms").value().round_trip_seconds, 0.04);
}

TEST(LinkSpeedTest, what_was_understood_is_said_in_one_way) {
  EXPECT_EQ(to_string(parse_link_speed("20Mbps,20ms").value()), "20 Mbit/s, round trip 20 ms");
  EXPECT_EQ(to_string(parse_link_speed("2MB/s,0.02s").value()), "16 Mbit/s, round trip 20 ms");
  EXPECT_EQ(to_string(parse_link_speed("1.5gbit").value()), "1.5 Gbit/s");
  EXPECT_EQ(to_string(parse_link_speed("56kbit,150us").value()), "56 kbit/s, round trip 0.15 ms");
  EXPECT_EQ(to_string(LinkSpeed()), "loopback");
}

TEST(LinkSpeedTest, a_delay_is_the_round_trip_and_none_where_none_is_said) {
  EXPECT_DOUBLE_EQ(parse_link_speed("100mbit,40ms").value().round_trip_seconds, 0.04);
  EXPECT_DOUBLE_EQ(parse_link_speed("100mbit,150us").value().round_trip_seconds, 150e-6);
  EXPECT_DOUBLE_EQ(parse_link_speed("100mbit,0.02s").value().round_trip_seconds, 0.02);
  EXPECT_DOUBLE_EQ(parse_link_speed("100mbit,0.5s").value().round_trip_seconds, 0.5);
  EXPECT_DOUBLE_EQ(parse_link_speed("100mbit").value().round_trip_seconds, 0);
}

TEST(LinkSpeedTest, loopback_has_no_rate) {
  EXPECT_TRUE(parse_link_speed("loopback").value().loopback());
  EXPECT_FALSE(parse_link_speed("100gbit").value().loopback());
}

TEST(LinkSpeedTest, what_is_no_link_is_refused_with_an_example) {
  for (const char* text : {"", "fast", "100", "100mbit,", "100mbit,40", "100mbit,40ms,1", "0mbit", "-1gbit",
                           "infgbit", "nanmbit", "100mbit,-1ms", "loopback,40ms", "100mb", "100MB", "100m",
                           "100 mbit mbit", "100bitbit/s"}) {
    const auto parsed = parse_link_speed(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.error().kind, ErrorKind::invalid);
    EXPECT_NE(parsed.error().message.find("100mbit,40ms"), std::string::npos);
  }
}

}  // namespace
}  // namespace w5xde
