#include "commands/command.h"

#include <gtest/gtest.h>

#include <sstream>

#include "settings.h"

namespace w5xde {
namespace {

std::string help_of_settings() {
  CLI::App app("Trains.");
  app.formatter(std::make_shared<HelpFormatter>());
  Given given;
  add_settings(app, given);
  return app.help();
}

TEST(HelpTest, fits_a_terminal_of_80_columns) {
  std::istringstream help(help_of_settings());
  for (std::string line; std::getline(help, line);) {
    const auto columns =
        std::ranges::count_if(line, [](char c) { return (static_cast<unsigned char>(c) & 0xc0u) != 0x80u; });
    EXPECT_LE(columns, 80) << line;
  }
}

TEST(HelpTest, headings_go_from_what_most_people_use_to_what_few_do) {
  const std::string help = help_of_settings();
  std::size_t last = 0;
  for (const char* heading : {kMainGroup, kTrainingGroup, kPoolGroup, kRecordingGroup, kHistoryGroup}) {
    const std::size_t at = help.find("\n" + std::string(heading) + ":\n");
    ASSERT_NE(at, std::string::npos) << heading << "\n" << help;
    EXPECT_GT(at, last) << heading;
    last = at;
  }
  EXPECT_LT(help.find("--model"), help.find("--momentum"));
  EXPECT_LT(help.find("--momentum"), help.find("--gradient-codec"));
  EXPECT_GT(help.find("--socket-buffer"), last);
  EXPECT_NE(help.find("--batch [32]"), std::string::npos) << help;
}

TEST(HelpTest, what_is_given_is_collected_by_name) {
  CLI::App app;
  Given given;
  add_settings(app, given);
  app.parse("--batch 7 --learning-rate 0.5");
  EXPECT_EQ(given, (Given{{"batch", "7"}, {"learning-rate", "0.5"}}));
}

}  // namespace
}  // namespace w5xde
