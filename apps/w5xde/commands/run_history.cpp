#include "commands/run_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/errors.h"
#include "charts/line_chart.h"
#include "record/run_folder.h"

namespace w5xde {

namespace {

constexpr std::size_t kAllRows = 1'000'000'000;
// From this many rows on, the mean of neighbours is drawn over them.
constexpr std::size_t kSmoothedFrom = 100;

using Points = std::vector<std::pair<double, double>>;

Points losses(const RunHistory& run) {
  Points points;
  for (const auto& row : run.steps) points.emplace_back(row.step, row.loss);
  return points;
}

// Each the mean of about a fiftieth of all, itself in the middle.
Points smoothed(const Points& points) {
  const std::size_t reach = points.size() / 100;
  Points means;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::size_t around = std::min({reach, i, points.size() - 1 - i});
    double sum = 0;
    for (std::size_t j = i - around; j <= i + around; ++j) sum += points[j].second;
    means.emplace_back(points[i].first, sum / static_cast<double>(2 * around + 1));
  }
  return means;
}

std::string number(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "";
}

std::string csv_text(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string csv_line(const std::string& run, const RunDatabase::StepRow* step,
                     const RunDatabase::EvaluationRow* evaluation) {
  const std::string of_step =
      step ? fmt::format("{},{},{},{},{}", number(step->seconds), number(step->loss),
                         number(step->learning_rate), number(step->batches_per_second), step->nodes)
           : ",,,,";
  const std::string of_evaluation =
      evaluation ? number(evaluation->loss) + "," + number(evaluation->accuracy) : ",";
  return fmt::format("{},{},{},{}\n", csv_text(run), step ? step->step : evaluation->step, of_step,
                     of_evaluation);
}

}  // namespace

Result<RunHistory> read_history(const std::string& run) {
  RunHistory history{.name = run};
  W5XDE_TRY(const RunFolder folder, RunFolder::look(run));
  if (const auto database = RunDatabase::look(folder.database()); database.ok()) {
    history.steps = database->steps(kAllRows);
    history.evaluations = database->evaluations();
  }
  if (history.steps.empty())
    return invalid("{} has no step yet that could be drawn; train it first: w5xde train {}", run, run);
  return history;
}

std::string to_svg(const std::vector<RunHistory>& runs) {
  Panel loss{.y_label = "loss"}, accuracy{.y_label = "evaluation accuracy", .share = true};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunHistory& run = runs[i];
    // With one run, its colours tell training from evaluation.
    const bool alone = runs.size() == 1;
    const std::string prefix = alone ? "" : run.name + ": ";
    const std::size_t evaluation_colour = alone ? 1 : i;
    Points points = losses(run);
    if (points.size() >= kSmoothedFrom) {
      loss.lines.push_back({.colour = i, .style = Line::Style::faint, .points = points});
      points = smoothed(points);
    }
    loss.lines.push_back({.name = prefix + "training loss", .colour = i, .points = std::move(points)});
    Line evaluations{
        .name = prefix + "evaluation loss", .colour = evaluation_colour, .style = Line::Style::dotted};
    Line accuracies{.colour = evaluation_colour, .style = Line::Style::dotted};
    for (const auto& row : run.evaluations) {
      evaluations.points.emplace_back(row.step, row.loss);
      if (std::isfinite(row.accuracy)) accuracies.points.emplace_back(row.step, row.accuracy);
    }
    if (!evaluations.points.empty()) loss.lines.push_back(std::move(evaluations));
    if (!accuracies.points.empty()) accuracy.lines.push_back(std::move(accuracies));
  }
  std::vector<Panel> panels = {std::move(loss)};
  if (!accuracy.lines.empty()) panels.push_back(std::move(accuracy));
  return line_chart(runs.size() == 1 ? runs.front().name : "w5xde", "step", panels);
}

std::string to_csv(const std::vector<RunHistory>& runs) {
  std::string text =
      "run,step,seconds,training_loss,learning_rate,batches_per_second,nodes,evaluation_loss,"
      "evaluation_accuracy\n";
  for (const RunHistory& run : runs) {
    auto evaluation = run.evaluations.begin();
    for (const auto& step : run.steps) {
      for (; evaluation != run.evaluations.end() && evaluation->step < step.step; ++evaluation)
        text += csv_line(run.name, nullptr, &*evaluation);
      const bool both = evaluation != run.evaluations.end() && evaluation->step == step.step;
      text += csv_line(run.name, &step, both ? &*evaluation : nullptr);
      if (both) ++evaluation;
    }
    for (; evaluation != run.evaluations.end(); ++evaluation)
      text += csv_line(run.name, nullptr, &*evaluation);
  }
  return text;
}

}  // namespace w5xde
