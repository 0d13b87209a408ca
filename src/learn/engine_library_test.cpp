#include "learn/engine_library.h"

#include <gtest/gtest.h>

#include "support/temporary_folder.h"

namespace w5xde {
namespace {

TEST(EngineLibraryTest, a_file_that_is_not_there_is_named) {
  const auto library = EngineLibrary::load("/nowhere/engine.so", 1);
  ASSERT_FALSE(library.ok());
  EXPECT_EQ(library.error().kind, ErrorKind::invalid);
  EXPECT_TRUE(library.error().message.starts_with("cannot load the engine /nowhere/engine.so: "))
      << library.error().message;
}

TEST(EngineLibraryTest, a_library_that_is_no_engine_is_refused) {
  const auto library = EngineLibrary::load("libm.so.6", 1);
  ASSERT_FALSE(library.ok());
  EXPECT_EQ(library.error().to_string(), "incompatible: libm.so.6 is no engine of WIIIIIDE");
}

TEST(EngineLibraryTest, an_engine_of_another_interface_is_refused_with_both_numbers) {
  const auto library = EngineLibrary::load(W5XDE_OLD_ENGINE, 1);
  ASSERT_FALSE(library.ok());
  EXPECT_EQ(library.error().kind, ErrorKind::incompatible);
  const std::string reason = "speaks interface 4711, this program " + std::to_string(kEngineInterface) +
                             "; build both from one tree";
  EXPECT_NE(library.error().message.find(reason), std::string::npos) << library.error().message;
}

TEST(ModelDescriptionTest, its_fingerprint_tells_parameters_and_buffers_apart) {
  const auto one = BlockLayout::make({{"a", {3}}}, 100).value();
  const auto other = BlockLayout::make({{"b", {3}}}, 100).value();
  const auto none = BlockLayout::make({}, 100).value();
  const auto fingerprint = [](const auto& parameters, const auto& buffers) {
    return fingerprint_of(ModelDescription{parameters, buffers});
  };
  EXPECT_EQ(fingerprint(one, other), fingerprint(BlockLayout::make({{"a", {3}}}, 100).value(), other));
  EXPECT_NE(fingerprint(one, other), fingerprint(other, one));
  EXPECT_NE(fingerprint(one, none), fingerprint(none, one));
  EXPECT_NE(fingerprint(one, one), fingerprint(other, other));
  EXPECT_EQ((ModelDescription{one, other}.floats()), 32u) << "padding counts";
}

}  // namespace
}  // namespace w5xde
