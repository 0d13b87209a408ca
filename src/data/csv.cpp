#include "data/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/ranges.h>

#include "base/errors.h"
#include "base/file.h"
#include "base/limits.h"

namespace w5xde {

namespace {

// More inputs than this are a column of names taken for a category.
constexpr std::uint64_t kInputNumbersMax = 1 << 16;
constexpr std::uint64_t kCategoriesMax = 4096;
// Of all inputs, which are in memory.
constexpr std::uint64_t kTableBytesMax = 4 * kGiB;
constexpr std::uint64_t kRowsBetweenTold = 1024;

struct Place {
  std::string file;
  std::string label;
  std::set<std::string, std::less<>> categories, numbers, drop;
};

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

Result<Place> parse_place(std::string_view text) {
  const std::size_t question = text.find('?');
  Place place;
  place.file = text.substr(0, question);
  if (question == std::string_view::npos) return place;
  for (const std::string& option : split(text.substr(question + 1), '&')) {
    const std::size_t equals = option.find('=');
    const std::string name = option.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : option.substr(equals + 1);
    std::set<std::string, std::less<>>* columns = name == "categories" ? &place.categories
                                                  : name == "numbers"  ? &place.numbers
                                                  : name == "drop"     ? &place.drop
                                                                       : nullptr;
    if (name == "label") {
      place.label = value;
    } else if (columns != nullptr) {
      for (std::string& column : split(value, ',')) columns->insert(std::move(column));
    } else {
      return invalid("'{}' is not understood; there are label=, categories=, numbers= and drop=", option);
    }
  }
  return place;
}

// Reads fields one after the other. Quoted ones may hold commas and ends of lines.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {
    if (rest_.starts_with("\xef\xbb\xbf")) rest_.remove_prefix(3);  // what some programs put before UTF-8
  }

  bool at_end() const { return rest_.empty(); }
  std::uint64_t bytes_left() const { return rest_.size(); }
  std::uint64_t line() const { return line_; }  // of the row that was read last

  // The fields of the next row.
  Result<std::vector<std::string>> row() {
    line_ = next_line_;
    std::vector<std::string> fields;
    do {
      W5XDE_TRY(fields.emplace_back(), field());
    } while (take(','));
    const bool ended = take('\r');  // some programs end lines with it alone
    if (!take('\n') && !ended && !rest_.empty())
      return invalid("line {}: a field goes on behind its closing quote; quotes inside a field are doubled",
                     line_);
    ++next_line_;
    return fields;
  }

 private:
  bool take(char wanted) {
    if (rest_.empty() || rest_.front() != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }

  Result<std::string> field() {
    if (!take('"')) {
      const std::string_view plain = rest_.substr(0, rest_.find_first_of(",\r\n"));
      rest_.remove_prefix(plain.size());
      const std::size_t begin = plain.find_first_not_of(" \t");
      if (begin == std::string_view::npos) return std::string();
      return std::string(plain.substr(begin, plain.find_last_not_of(" \t") - begin + 1));
    }
    std::string quoted;
    while (true) {
      const std::size_t end = rest_.find('"');
      if (end == std::string_view::npos) return invalid("line {}: a quote is opened and never closed", line_);
      quoted += rest_.substr(0, end);
      next_line_ += static_cast<std::uint64_t>(std::ranges::count(rest_.substr(0, end), '\n'));
      rest_.remove_prefix(end + 1);
      if (!take('"')) return quoted;
      quoted += '"';
    }
  }

  std::string_view rest_;
  std::uint64_t line_ = 0, next_line_ = 1;
};

std::optional<double> number_in(std::string_view text) {
  double number = 0;
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number)) return std::nullopt;
  return number;
}

// What programs write where there is no value.
bool means_no_value(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
  constexpr std::string_view kNoValue[] = {"nan",  "-nan", "na",   "n/a", "null",
                                           "none", "inf",  "-inf", "?",   "-"};
  return std::ranges::find(kNoValue, text) != std::end(kNoValue);
}

// One column, row by row: a number, or the number of its text among the texts met so far.
struct Column {
  std::string name;
  bool dropped = false;
  std::optional<bool> is_category;  // known with the first row
  std::uint64_t unknown_line =
      0;  // whose text, the first, made it a category, and says that there is no value
  std::string unknown;
  std::vector<double> values;
  std::map<std::string, std::size_t, std::less<>> texts;

  // The texts' numbers in their sorted order.
  void sort_texts() {
    std::vector<double> order(texts.size());
    double next = 0;
    for (const auto& [text, number] : texts) order[number] = next++;
    for (double& value : values) value = order[static_cast<std::size_t>(value)];
  }
  std::uint64_t width() const { return *is_category ? texts.size() : 1; }
};

Status take_value(Column& column, std::string text, std::uint64_t line) {
  const auto number = number_in(text);
  if (!column.is_category) {
    column.is_category = !number && !text.empty();
    if (*column.is_category && means_no_value(text)) {
      column.unknown_line = line;
      column.unknown = text;
    }
  }
  if (*column.is_category && number && column.unknown_line > 0) {
    return invalid(
        "line {}, column '{}': '{}' is no number, and line {} has one; mend it, or say categories={} or "
        "drop={}",
        column.unknown_line, column.name, column.unknown, line, column.name, column.name);
  }
  if (!*column.is_category) {
    if (!number) {
      return invalid(
          "line {}, column '{}': {} is no number, and the column has numbers; mend it, or say "
          "categories={} or drop={}",
          line, column.name, text.empty() ? "an empty field" : "'" + text + "'", column.name, column.name);
    }
    column.values.push_back(*number);
    return {};
  }
  const auto [entry, is_new] = column.texts.emplace(std::move(text), column.texts.size());
  if (is_new && column.texts.size() > kCategoriesMax)
    return invalid("line {}, column '{}': more than {} different texts are no category; say drop={}", line,
                   column.name, kCategoriesMax, column.name);
  column.values.push_back(static_cast<double>(entry->second));
  return {};
}

Result<std::vector<Column>> columns_of(const std::vector<std::string>& names, const Place& place) {
  const std::string known = fmt::format("{}", fmt::join(names, ", "));
  const auto check = [&](const std::string& name) -> Status {
    if (std::ranges::count(names, name) == 1) return {};
    return invalid("there is {} column '{}' in {}; its columns are {}",
                   std::ranges::count(names, name) == 0 ? "no" : "more than one", name, place.file, known);
  };
  if (place.label.empty())
    return invalid("say which column is to be predicted: csv:{}?label=COLUMN; its columns are {}", place.file,
                   known);
  W5XDE_CHECK(check(place.label));
  for (const auto* mentioned : {&place.categories, &place.numbers, &place.drop}) {
    for (const std::string& name : *mentioned) W5XDE_CHECK(check(name));
  }
  std::vector<Column> columns;
  for (const std::string& name : names) {
    Column column;
    column.name = name;
    column.dropped = place.drop.contains(name);
    if (place.categories.contains(name)) column.is_category = true;
    if (place.numbers.contains(name)) column.is_category = false;
    columns.push_back(std::move(column));
  }
  return columns;
}

Result<std::vector<Column>> read_columns(std::string_view text, const Place& place,
                                         const TellProgress& progress) {
  Reader reader(text);
  if (reader.at_end()) return invalid("{} is empty; its first line names the columns", place.file);
  W5XDE_TRY(const auto names, reader.row());
  W5XDE_TRY(auto columns, columns_of(names, place));
  for (std::uint64_t rows = 0; !reader.at_end(); ++rows) {
    if (rows % kRowsBetweenTold == 0) tell(progress, text.size() - reader.bytes_left(), text.size());
    W5XDE_TRY(auto fields, reader.row());
    if (fields.size() == 1 && fields[0].empty()) continue;  // an empty line
    if (fields.size() != columns.size())
      return invalid("line {} has {} fields, and the first line names {} columns", reader.line(),
                     fields.size(), columns.size());
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (!columns[i].dropped) W5XDE_CHECK(take_value(columns[i], std::move(fields[i]), reader.line()));
    }
  }
  std::erase_if(columns, [](const Column& column) { return column.dropped; });
  if (columns.empty() || columns[0].values.empty())
    return invalid("{} has no samples: only column names", place.file);
  for (Column& column : columns) {
    if (*column.is_category) column.sort_texts();
  }
  return columns;
}

template <class T>
Array array_of(std::string name, std::vector<T> values, DType dtype, const Shape& shape) {
  auto owner = std::make_shared<const std::vector<T>>(std::move(values));
  const TensorView view(std::as_bytes(std::span(*owner)), dtype, shape);
  return {std::move(name), view, std::move(owner)};
}

Error too_large(const std::vector<Column>& columns, const Place& place, std::uint64_t rows,
                std::uint64_t width) {
  const auto width_of = [&](const Column& column) { return column.name == place.label ? 0 : column.width(); };
  const Column& widest = *std::ranges::max_element(columns, {}, width_of);
  return invalid(
      "{} has {} rows of {} inputs, which take {} GiB of memory; {} GiB is the most. Column '{}' has the "
      "most "
      "texts, {}, each of which is an input: leave it out with drop={}, or write it with fewer texts",
      place.file, rows, width, rows * width * sizeof(float) / kGiB + 1, kTableBytesMax / kGiB, widest.name,
      width_of(widest), widest.name);
}

Result<Array> inputs_of(const std::vector<Column>& columns, const Place& place) {
  std::uint64_t width = 0;
  for (const Column& column : columns) width += column.name == place.label ? 0 : column.width();
  if (width == 0) return invalid("{} has no column beside '{}'", place.file, place.label);
  if (width > kInputNumbersMax)
    return invalid("the columns are {} inputs; {} is the most. Leave out columns of names with drop=", width,
                   kInputNumbersMax);
  const std::size_t rows = columns[0].values.size();
  if (rows * width > kTableBytesMax / sizeof(float)) return too_large(columns, place, rows, width);
  std::vector<float> inputs(rows * width);
  std::size_t first = 0;
  for (const Column& column : columns) {
    if (column.name == place.label) continue;
    for (std::size_t row = 0; row < rows; ++row) {
      float* to = inputs.data() + row * width + first;
      if (*column.is_category) {
        to[static_cast<std::size_t>(column.values[row])] = 1;
      } else {
        *to = static_cast<float>(column.values[row]);
      }
    }
    first += column.width();
  }
  return array_of(place.file, std::move(inputs), DType::f32,
                  {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(width)});
}

Array targets_of(const Column& label, const Place& place) {
  const Shape shape{static_cast<std::int64_t>(label.values.size())};
  const std::string name = fmt::format("column '{}' of {}", label.name, place.file);
  const auto is_class = [](double value) {
    return value >= 0 && value < kClassesMax && value == std::floor(value);
  };
  const bool classes = *label.is_category ||
                       (!place.numbers.contains(label.name) && std::ranges::all_of(label.values, is_class));
  if (classes)
    return array_of(name, std::vector<std::int64_t>(label.values.begin(), label.values.end()), DType::i64,
                    shape);
  std::vector<float> values;
  for (const double value : label.values) values.push_back(static_cast<float>(value));
  return array_of(name, std::move(values), DType::f32, shape);
}

// The columns that are inputs, in their order. Then "kind: flat, house, villa" for each category, in the
// order in which its texts are numbered, or stand side by side as inputs.
std::vector<std::string> legend_of(const std::vector<Column>& columns, const Place& place) {
  std::vector<std::string> names;
  for (const Column& column : columns) {
    if (column.name != place.label) names.push_back(column.name);
  }
  std::vector<std::string> lines = {fmt::format("columns: {}", fmt::join(names, ", "))};
  for (const Column& column : columns) {
    if (!*column.is_category) continue;
    std::vector<std::string> texts;
    for (const auto& [text, number] : column.texts) texts.push_back(text);
    lines.push_back(fmt::format("{}: {}", column.name, fmt::join(texts, ", ")));
  }
  return lines;
}

// Arrays, and what their numbers stand for.
class Table final : public Dataset {
 public:
  Table(SharedDataset arrays, std::vector<std::string> legend)
      : arrays_(std::move(arrays)), legend_(std::move(legend)) {}

  std::uint64_t samples() const override { return arrays_->samples(); }
  std::span<const Field> inputs() const override { return arrays_->inputs(); }
  const Field& targets() const override { return arrays_->targets(); }
  std::uint32_t classes() const override { return arrays_->classes(); }
  std::vector<std::string> legend() const override { return legend_; }
  Status gather(std::span<const std::uint32_t> numbers, std::span<const MutableBytes> inputs,
                MutableBytes targets) const override {
    return arrays_->gather(numbers, inputs, targets);
  }

 private:
  SharedDataset arrays_;
  std::vector<std::string> legend_;
};

}  // namespace

Result<SharedDataset> open_csv(std::string_view place, const TellProgress& progress) {
  W5XDE_TRY(const Place parsed, parse_place(place));
  W5XDE_TRY(const MappedFile file, MappedFile::open(parsed.file));
  W5XDE_TRY(const auto columns, read_columns(text_of(file.bytes()), parsed, progress));
  W5XDE_TRY(Array inputs, inputs_of(columns, parsed));
  const auto label = std::ranges::find(columns, parsed.label, &Column::name);
  if (label == columns.end()) return invalid("column '{}' is the label, and cannot be dropped", parsed.label);
  Array targets = targets_of(*label, parsed);
  std::vector<Array> all;
  all.push_back(std::move(inputs));
  W5XDE_TRY(SharedDataset arrays, make_array_dataset(std::move(all), std::move(targets)));
  return SharedDataset(std::make_shared<Table>(std::move(arrays), legend_of(columns, parsed)));
}

}  // namespace w5xde
