// What the tests of data sets write to disk.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "data/dataset.h"

namespace w5xde {

std::string gzip_of(std::string_view raw);

void write_file(const std::filesystem::path& path, std::string_view contents);

// An IDX file of type u8.
std::string idx_file(std::initializer_list<std::uint32_t> dims, std::string_view elements);

// A .npy file of version 1.0 with this text as header, padded as NumPy does.
std::string npy_file(std::string_view header, std::string_view elements);
// The header as NumPy writes it; `shape` as in Python: "(3,)".
std::string npy_header(std::string_view dtype, std::string_view shape);

template <class T>
std::string memory_of(const std::vector<T>& values) {
  return std::string(text_of(std::as_bytes(std::span(values))));
}

// What gather gives for these numbers: all of one input after the other, and targets.
struct Gathered {
  std::string inputs;
  std::string targets;
  Status status;
};
Gathered gather_from(const Dataset& data, const std::vector<std::uint32_t>& numbers);

// The whole message of a refusal, or "accepted".
template <class Attempt>
std::string refusal_of(const Attempt& attempt) {
  return attempt.ok() ? "accepted" : attempt.error().to_string();
}

// EXPECT_TRUE(says(refusal, "part of it")), which prints both where it fails.
testing::AssertionResult says(std::string_view refusal, std::string_view expected);

}  // namespace w5xde
