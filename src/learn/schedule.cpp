#include "learn/schedule.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>

#include "base/errors.h"

namespace w5xde {

namespace {

template <class T>
bool read_number(std::string_view text, T& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

Error not_a_schedule(std::string_view text) {
  return invalid(
      "'{}' is not a schedule; use constant, step:EVERY,GAMMA or cosine, and add +warmup:STEPS to any", text);
}

}  // namespace

double Schedule::factor(std::uint64_t step) const {
  double factor = 1;
  if (step < warmup_steps) {
    const double part = static_cast<double>(step) / static_cast<double>(warmup_steps);
    factor = warmup_factor + (1 - warmup_factor) * part;
  }
  const std::uint64_t drops = step_every == 0 ? 0 : step / step_every;
  switch (course) {
    case Course::constant:
      return factor;
    case Course::step:
      return factor * std::pow(gamma, static_cast<double>(drops));
    case Course::cosine:
      break;
  }
  const double part = static_cast<double>(std::min(step, total_steps)) / static_cast<double>(total_steps);
  return factor * (minimum_factor + (1 - minimum_factor) * (1 + std::cos(std::numbers::pi * part)) / 2);
}

Status Schedule::check() const {
  if (course == Course::step && step_every == 0)
    return invalid("a step schedule needs a number of steps above 0");
  if (course == Course::step && !(gamma > 0)) return invalid("a step schedule needs a gamma above 0");
  if (course == Course::cosine && total_steps == 0)
    return invalid("a cosine schedule needs the number of steps of the run");
  return {};
}

Result<Schedule> parse_schedule(std::string_view text, std::uint64_t total_steps) {
  Schedule schedule;
  schedule.total_steps = total_steps;
  std::string_view course = text.substr(0, text.find('+'));
  if (course.size() != text.size()) {
    std::string_view warmup = text.substr(course.size() + 1);
    if (!warmup.starts_with("warmup:") || !read_number(warmup.substr(7), schedule.warmup_steps)) {
      return not_a_schedule(text);
    }
  }
  if (course == "cosine") {
    schedule.course = Schedule::Course::cosine;
  } else if (course.starts_with("step:")) {
    const std::string_view numbers = course.substr(5);
    const std::size_t comma = numbers.find(',');
    schedule.course = Schedule::Course::step;
    if (comma == std::string_view::npos || !read_number(numbers.substr(0, comma), schedule.step_every) ||
        !read_number(numbers.substr(comma + 1), schedule.gamma)) {
      return not_a_schedule(text);
    }
  } else if (course != "constant") {
    return not_a_schedule(text);
  }
  W5XDE_CHECK(schedule.check());
  return schedule;
}

std::string to_string(const Schedule& schedule) {
  std::string text = "constant";
  if (schedule.course == Schedule::Course::cosine) text = "cosine";
  if (schedule.course == Schedule::Course::step)
    text = fmt::format("step:{},{}", schedule.step_every, schedule.gamma);
  if (schedule.warmup_steps != 0) text += fmt::format("+warmup:{}", schedule.warmup_steps);
  return text;
}

}  // namespace w5xde
