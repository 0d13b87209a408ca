#include "commands/help.h"

#include <gtest/gtest.h>

#include <sstream>

#include "commands/command.h"
#include "settings.h"

namespace w5xde {
namespace {

class HelpTest : public testing::Test {
 protected:
  // As the program prints it for this command line.
  std::string help(const std::string& command_line) {
    const auto program = make_program(code_);
    try {
      program->parse(command_line);
    } catch (const CLI::ParseError& asked) {
      std::ostringstream out;
      EXPECT_EQ(program->exit(asked, out, out), 0) << command_line;
      return out.str();
    }
    ADD_FAILURE() << command_line << " asks for no help";
    return {};
  }
  std::vector<std::string> commands() {
    const auto program = make_program(code_);
    std::vector<std::string> names = {""};
    for (const CLI::App* command : program->get_subcommands({})) {
      names.push_back(command->get_name());
      for (const CLI::App* child : command->get_subcommands({}))
        names.push_back(command->get_name() + ' ' + child->get_name());
    }
    return names;
  }

  ExitCode code_ = kSuccess;
};

std::size_t columns(const std::string& line) {
  const auto begins = [](char c) { return (static_cast<unsigned char>(c) & 0xc0u) != 0x80u; };
  return static_cast<std::size_t>(std::ranges::count_if(line, begins));
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST_F(HelpTest, every_help_fits_a_terminal_of_80_columns_and_begins_with_an_example) {
  for (const std::string& command : commands()) {
    for (const char* flag : {" --help", " --help-all"}) {
      const std::string text = help(command + flag);
      EXPECT_TRUE(text.starts_with("$ ")) << command << flag << '\n' << text;
      for (const std::string& line : lines_of(text)) EXPECT_LE(columns(line), 80u) << command << ": " << line;
    }
  }
}

TEST_F(HelpTest, help_has_what_most_people_set_and_says_how_to_see_the_rest) {
  const auto lines = lines_of(help("train --help"));
  const std::string text = help("train --help"), all = help("train --help-all");
  EXPECT_EQ(lines[0], "$ w5xde train --model mlp:10,20,10 --data synthetic --nodes 10 --seconds 30");
  EXPECT_EQ(lines[1], "");
  EXPECT_EQ(lines[2], "Train on this machine: a coordinator and nodes.");
  for (const char* flag : {"--model", "--learning-rate,--lr [0.01]", "--nodes", "--listen", "--insecure"}) {
    EXPECT_NE(text.find(flag), std::string::npos) << flag << '\n' << text;
    EXPECT_NE(all.find(flag), std::string::npos) << flag;
  }
  auto settings =
      std::ranges::count_if(lines_of(all), [](const std::string& line) { return line.starts_with("  --"); });
  settings -= 1;  // --help-all itself; --help has a short name too
  EXPECT_EQ(lines.back(), "--help-all shows all " + std::to_string(settings) + " settings");
  for (const char* flag : {"--momentum", "--gradient-codec", "--socket-buffer", "--keep "}) {
    EXPECT_EQ(text.find(flag), std::string::npos) << flag;
    EXPECT_NE(all.find(flag), std::string::npos) << flag;
  }
  EXPECT_LT(3 * text.size(), 2 * all.size());
}

TEST_F(HelpTest, where_there_is_little_to_say_both_helps_are_the_same) {
  for (const char* command : {"", "join", "status", "inspect", "eval", "export", "compare", "completion"}) {
    const std::string text = help(std::string(command) + " --help");
    EXPECT_EQ(text, help(std::string(command) + " --help-all")) << command;
    EXPECT_EQ(text.find("--help-all shows"), std::string::npos) << command;
  }
}

TEST_F(HelpTest, headings_go_from_what_most_people_use_to_what_few_do) {
  const std::string text = help("train --help-all");
  std::size_t last = 0;
  for (const char* heading : {kMainGroup, kTrainingGroup, kPoolGroup, kRecordingGroup, kHistoryGroup}) {
    const std::size_t at = text.find("\n" + std::string(heading) + ":\n");
    ASSERT_NE(at, std::string::npos) << heading << "\n" << text;
    EXPECT_GT(at, last) << heading;
    last = at;
  }
  EXPECT_LT(text.find("--model"), text.find("--momentum"));
  EXPECT_LT(text.find("--momentum"), text.find("--gradient-codec"));
  EXPECT_GT(text.find("--socket-buffer"), last);
  EXPECT_NE(text.find("--batch [32]"), std::string::npos) << text;
}

TEST_F(HelpTest, what_is_given_is_collected_by_name) {
  CLI::App app;
  Given given;
  add_settings(app, given);
  app.parse("--batch 7 --lr 0.5");
  EXPECT_EQ(given, (Given{{"batch", "7"}, {"learning-rate", "0.5"}}));
}

TEST_F(HelpTest, a_command_s_first_example_is_what_its_help_begins_with) {
  const auto program = make_program(code_);
  EXPECT_EQ(example_of(*program->get_subcommand("eval")), "w5xde eval runs/a --data idx:fashion-mnist");
}

}  // namespace
}  // namespace w5xde
