#include "data/fingerprint.h"

#include <gtest/gtest.h>

#include <fstream>

#include "support/temporary_folder.h"

namespace w5xde {
namespace {

class FingerprintTest : public testing::Test {
 protected:
  std::string of_table(const std::string& table, const std::string& name = "a.csv") const {
    std::ofstream(folder_ / name) << table;
    const auto data =
        open_dataset("csv:" + (folder_ / name).string() + "?label=kind", Split::train, 1).value();
    return fingerprint_of(*data).value();
  }

  TemporaryFolder folder_;
};

TEST_F(FingerprintTest, a_value_a_label_a_row_and_a_word_each_show) {
  const std::string first = of_table("x,kind\n1,cat\n2,dog\n3,cat\n");
  EXPECT_EQ(first.size(), 16u);
  EXPECT_EQ(of_table("x,kind\n1,cat\n2,dog\n3,cat\n", "moved.csv"), first);
  for (const char* changed : {"x,kind\n1,cat\n2.5,dog\n3,cat\n", "x,kind\n1,cat\n2,dog\n3,dog\n",
                              "x,kind\n1,cat\n2,dog\n3,cat\n4,cat\n", "x,kind\n1,cat\n2,fox\n3,cat\n"})
    EXPECT_NE(of_table(changed), first) << changed;
}

// 40 MB, of which not all is read.
TEST_F(FingerprintTest, of_much_data_the_number_of_samples_and_what_moves_them_shows) {
  const auto of = [](const char* spec, std::uint64_t seed) {
    return fingerprint_of(*open_dataset(spec, Split::train, seed).value()).value();
  };
  const std::string first = of("random:1000,10,10000", 1);
  EXPECT_EQ(of("random:1000,10,10000", 1), first);
  EXPECT_NE(of("random:1000,10,10001", 1), first);
  EXPECT_NE(of("random:1000,10,10000", 2), first);
}

TEST_F(FingerprintTest, a_sample_that_cannot_be_read_is_its_error) {
  class Damaged final : public Dataset {
   public:
    std::uint64_t samples() const override { return 3; }
    std::span<const Field> inputs() const override { return {&field_, 1}; }
    const Field& targets() const override { return field_; }
    std::uint32_t classes() const override { return 0; }
    Status gather(std::span<const std::uint32_t>, std::span<const MutableBytes>,
                  MutableBytes) const override {
      return corrupt("1.png is damaged");
    }

   private:
    Field field_{.name = "inputs", .dtype = DType::f32, .shape = Shape{2}};
  };
  EXPECT_EQ(fingerprint_of(Damaged()).error().message, "1.png is damaged");
}

}  // namespace
}  // namespace w5xde
