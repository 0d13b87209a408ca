#include "data/csv.h"

#include <gtest/gtest.h>

#include <fstream>
#include <vector>

#include "support/temporary_folder.h"

namespace w5xde {
namespace {

class CsvTest : public testing::Test {
 protected:
  Result<SharedDataset> open(const std::string& text, const std::string& options) const {
    std::ofstream(folder_ / "table.csv", std::ios::binary) << text;
    return open_csv((folder_ / "table.csv").string() + options);
  }
  std::string error_of(const std::string& text, const std::string& options) const {
    const auto opened = open(text, options);
    EXPECT_FALSE(opened.ok());
    return opened.ok() ? "" : opened.error().message;
  }

  template <class Target>
  struct Rows {
    std::vector<float> inputs;
    std::vector<Target> targets;
  };
  template <class Target>
  static Rows<Target> rows_of(const Dataset& data) {
    std::vector<std::uint32_t> numbers;
    for (std::uint32_t i = 0; i < data.samples(); ++i) numbers.push_back(i);
    Rows<Target> rows{std::vector<float>(data.samples() * data.inputs()[0].shape.elements()),
                      std::vector<Target>(data.samples())};
    const MutableBytes inputs = std::as_writable_bytes(std::span(rows.inputs));
    EXPECT_TRUE(data.gather(numbers, {&inputs, 1}, std::as_writable_bytes(std::span(rows.targets))).ok());
    return rows;
  }

  TemporaryFolder folder_;
};

TEST_F(CsvTest, numbers_are_one_input_each_and_categories_one_for_each_text) {
  const auto data = open("age,city,rent\n30,Rome,yes\n41.5,Bonn,no\n-2,Rome,yes\n", "?label=rent").value();
  EXPECT_EQ(data->inputs()[0].shape, Shape{3});
  EXPECT_EQ(data->classes(), 2u);
  const auto rows = rows_of<std::int64_t>(*data);
  EXPECT_EQ(rows.inputs, (std::vector<float>{30, 0, 1, 41.5, 1, 0, -2, 0, 1}));
  EXPECT_EQ(rows.targets, (std::vector<std::int64_t>{1, 0, 1}));
}

TEST_F(CsvTest, a_table_with_other_texts_is_not_alike) {
  const std::string whole = "age,city,rent\n30,Rome,yes\n41.5,Bonn,no\n-2,Rome,yes\n";
  const auto trained = open(whole, "?label=rent").value();
  EXPECT_EQ(trained->legend(),
            (std::vector<std::string>{"columns: age, city", "city: Bonn, Rome", "rent: no, yes"}));
  EXPECT_TRUE(check_alike(*trained, *open(whole, "?label=rent").value()).ok());
  const auto other = open("age,city,rent\n30,Rome,yes\n41.5,Zug,no\n", "?label=rent").value();
  EXPECT_NE(
      check_alike(*trained, *other).error().message.find("there 'city: Bonn, Rome', here 'city: Rome, Zug'"),
      std::string::npos);
}

TEST_F(CsvTest, a_table_whose_columns_stand_in_another_order_is_not_alike) {
  const auto trained = open("age,size,y\n30,2,0\n41,1,1\n", "?label=y").value();
  const auto other = open("size,age,y\n2,30,0\n1,41,1\n", "?label=y").value();
  EXPECT_NE(check_alike(*trained, *other)
                .error()
                .message.find("there 'columns: age, size', here 'columns: size, age'"),
            std::string::npos);
  const auto words = open("age,size,y\n30,2,no\n41,1,yes\n", "?label=y").value();
  EXPECT_NE(check_alike(*words, *trained).error().message.find("in training samples alone: 'y: no, yes'"),
            std::string::npos);
  EXPECT_FALSE(check_alike(*trained, *words).ok());
}

TEST_F(CsvTest, a_label_of_numbers_with_a_fraction_is_a_value) {
  const auto data = open("x,y\n1,0.5\n2,3\n", "?label=y").value();
  EXPECT_EQ(data->classes(), 0u);
  EXPECT_EQ(rows_of<float>(*data).targets, (std::vector<float>{0.5F, 3}));
}

TEST_F(CsvTest, whole_numbers_are_classes_unless_they_are_said_to_be_values) {
  EXPECT_EQ(open("x,y\n1,0\n2,2\n", "?label=y").value()->classes(), 3u);
  EXPECT_EQ(open("x,y\n1,0\n2,2\n", "?label=y&numbers=y").value()->classes(), 0u);
}

TEST_F(CsvTest, columns_are_categories_or_left_out_as_they_are_asked_for) {
  const auto data = open("id,zip,y\n7,20,0\n8,10,1\n", "?label=y&categories=zip&drop=id").value();
  EXPECT_EQ(rows_of<std::int64_t>(*data).inputs, (std::vector<float>{0, 1, 1, 0}));
}

TEST_F(CsvTest, quotes_hold_commas_quotes_and_ends_of_lines) {
  const auto data = open("\"the, name\",y\r\n\"a \"\"b\"\"\nc\",0\r\nplain,1\r\n", "?label=y").value();
  EXPECT_EQ(data->samples(), 2u);
  EXPECT_EQ(data->inputs()[0].shape, Shape{2});
  EXPECT_NE(error_of("t,x,y\n\"a\nb\",1,0\nc,oops,1\n", "?label=y").find("line 4, column 'x': 'oops'"),
            std::string::npos);
}

TEST_F(CsvTest, lines_may_end_with_a_carriage_return_alone) {
  const auto data = open("x,y\r1,0\r2,1\r", "?label=y").value();
  EXPECT_EQ(rows_of<std::int64_t>(*data).inputs, (std::vector<float>{1, 2}));
}

TEST_F(CsvTest, a_column_of_numbers_whose_first_value_is_missing_does_not_become_a_category) {
  for (const std::string missing : {"nan", "NA", "null"}) {
    const std::string table = "x,y\n" + missing + ",0\n" + missing + ",1\n2.5,1\n";
    EXPECT_NE(
        error_of(table, "?label=y").find("line 2, column 'x': '" + missing + "' is no number, and line 4"),
        std::string::npos);
    EXPECT_EQ(open(table, "?label=y&categories=x").value()->inputs()[0].shape, Shape{2});
  }
  EXPECT_EQ(open("x,y\nNA,0\nEU,1\n", "?label=y").value()->inputs()[0].shape, Shape{2}) << "North America";
}

TEST_F(CsvTest, a_table_that_would_take_too_much_memory_is_refused_with_its_widest_column) {
  std::string table = "name,size,y\n";
  for (int row = 0; row < 270'000; ++row) table += "n" + std::to_string(row % 4096) + ",s,0\n";
  const std::string error = error_of(table, "?label=y");
  EXPECT_NE(error.find("270000 rows of 4097 inputs, which take 5 GiB"), std::string::npos) << error;
  EXPECT_NE(error.find("'name' has the most texts, 4096"), std::string::npos) << error;
  EXPECT_NE(error.find("drop=name"), std::string::npos);
}

TEST_F(CsvTest, a_bad_value_is_named_by_line_and_column) {
  EXPECT_NE(error_of("x,y\n1,0\n\n2,1\nmany,0\n", "?label=y").find("line 5, column 'x': 'many' is no number"),
            std::string::npos);
  EXPECT_NE(error_of("x,y\n1,0\n,1\n", "?label=y").find("line 3, column 'x': an empty field"),
            std::string::npos);
  EXPECT_NE(error_of("x,y\n1,0\n1,2,3\n", "?label=y").find("line 3 has 3 fields"), std::string::npos);
  EXPECT_NE(error_of("x,y\n\"1,0\n", "?label=y").find("never closed"), std::string::npos);
  EXPECT_NE(error_of("x,y\n\"1\"2,0\n", "?label=y").find("behind its closing quote"), std::string::npos);
}

TEST_F(CsvTest, a_label_that_is_not_there_is_refused_with_the_columns_that_are) {
  EXPECT_NE(error_of("x,y\n1,0\n", "?label=z").find("no column 'z'"), std::string::npos);
  EXPECT_NE(error_of("x,y\n1,0\n", "").find("its columns are x, y"), std::string::npos);
  EXPECT_NE(error_of("x,y\n1,0\n", "?label=y&drop=y").find("cannot be dropped"), std::string::npos);
  EXPECT_NE(error_of("x,y\n1,0\n", "?lable=y").find("'lable=y' is not understood"), std::string::npos);
  EXPECT_NE(error_of("x,y\n", "?label=y").find("no samples"), std::string::npos);
  EXPECT_NE(error_of("", "?label=y").find("is empty"), std::string::npos);
  EXPECT_NE(error_of("y\n1\n", "?label=y").find("no column beside 'y'"), std::string::npos);
}

}  // namespace
}  // namespace w5xde
