#include "base/printable.h"

#include <gtest/gtest.h>

namespace w5xde {
namespace {

TEST(Printable, leaves_ordinary_text_alone_in_any_language) {
  for (const std::string text : {"", "node-1", "C:\\models\\a.pt", "Gerät 7 — 日本語 🙂"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, escapes_what_a_terminal_would_obey) {
  EXPECT_EQ(printable("a\x1b[2Jb"), "a\\x1b[2Jb");
  EXPECT_EQ(printable("line\nline\ttab\r"), "line\\nline\\ttab\\x0d");
  EXPECT_EQ(printable(std::string("\0\x7f", 2)), "\\x00\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\u009b31m");
  EXPECT_EQ(printable("\u202egnp.exe"), "\\u202egnp.exe");
}

TEST(Printable, escapes_bytes_that_are_no_utf_8) {
  EXPECT_EQ(printable("\xff"), "\\xff");
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf") << "longer than need be";
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "past the last character";
  EXPECT_EQ(printable("a\xe2\x82"), "a\\xe2\\x82") << "cut off";
}

TEST(Printable, cuts_long_text_between_characters_and_says_so) {
  EXPECT_EQ(printable(std::string(256, 'x')), std::string(256, 'x'));
  EXPECT_EQ(printable(std::string(257, 'x')), std::string(253, 'x') + "…");
  EXPECT_EQ(printable("ääää", 8), "ääää");
  EXPECT_EQ(printable("äääää", 8), "ää…");
  EXPECT_EQ(printable("aaa\x1b\x1b\x1b", 8), "aaa…");
  EXPECT_LE(printable(std::string(1000, '\x01')).size(), kPrintableBytesMax);
  EXPECT_EQ(printable("abc", 2), "");
}

TEST(Printable, changes_nothing_the_second_time) {
  for (const std::string& text :
       {std::string("a\x1b\xff\n"), std::string(300, 'y'), std::string(300, '\x02')})
    EXPECT_EQ(printable(printable(text)), printable(text));
}

}  // namespace
}  // namespace w5xde
