#include "charts/svg.h"

#include <gtest/gtest.h>

namespace w5xde {
namespace {

TEST(EscapeTest, what_has_a_meaning_in_html_loses_it) {
  EXPECT_EQ(escape(R"(<a href="x">&'</a>)"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;&lt;/a&gt;");
  EXPECT_EQ(escape("Größe 2M"), "Größe 2M");
}

}  // namespace
}  // namespace w5xde
