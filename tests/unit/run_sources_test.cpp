// The table of sources: every row can be named, an unknown name is refused with the nearest one,
// and keys, rules and help follow from the rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pantala/error.h"
#include "pantala/run.h"
#include "run/run_data.h"
#include "run/sources/source.h"

namespace pantala::run {
namespace {

using testing::Contains;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

std::string refusal(const std::string& source) {
  try {
    named_source(source);
  } catch (const TypeError& error) { return error.what(); }
  return "";
}

TEST(Sources, every_row_is_found_by_its_name_and_opens_something) {
  ASSERT_GE(sources().size(), 7U);
  for (const Source& source : sources()) {
    const bool takes_path = !source.argument.empty();
    const NamedSource named = named_source(takes_path ? source.name + ":a:b" : source.name);
    EXPECT_EQ(&named.source, &source);
    EXPECT_EQ(named.path, takes_path ? "a:b" : "");
    EXPECT_NE(static_cast<bool>(source.open), source.tokens.has_value()) << source.name;
    EXPECT_THAT(source_rule(), HasSubstr(source.form()));
    EXPECT_THAT(source_help(), HasSubstr(source.help));
  }
}

TEST(Sources, keys_of_a_row_are_keys_of_the_config) {
  std::vector<std::string> names;
  for (const Key& key : config_keys()) names.push_back(key.name);
  std::size_t keys = 0;
  for (const Source& source : sources())
    for (const Key& key : source.keys) {
      EXPECT_THAT(names, Contains(key.name).Times(1));
      ++keys;
    }
  EXPECT_GE(keys, 5U);
}

TEST(Sources, an_unknown_kind_is_refused_with_the_nearest_name) {
  EXPECT_THAT(refusal("cvs:table.csv"), StartsWith("data.source must be fashion-mnist, idx:DIR, "));
  EXPECT_THAT(refusal("cvs:table.csv"), EndsWith("; did you mean 'csv'?"));
  EXPECT_THAT(refusal("fashion_mnist"), EndsWith("; did you mean 'fashion-mnist'?"));
  EXPECT_THAT(refusal("table.csv"), EndsWith("; did you mean 'csv:table.csv'?"));
  EXPECT_THAT(refusal("idx"), HasSubstr("got \"idx\""));
  EXPECT_THAT(refusal("csv:"), EndsWith("got \"csv:\""));
}

// Nothing stands in for a source that there is not, however the config was made.
TEST(Sources, a_config_with_an_unknown_kind_opens_nothing) {
  RunConfig config;
  config.data.source = "imagse:photos";
  const auto message = [&](auto&& open) -> std::string {
    try {
      open();
    } catch (const TypeError& error) { return error.what(); }
    return "";
  };
  EXPECT_THAT(message([&] { open_run_data(config); }), EndsWith("; did you mean 'images'?"));
  EXPECT_THAT(message([&] { open_for_model(config.data.source, config, {}); }),
              EndsWith("; did you mean 'images'?"));
  EXPECT_THAT(message([&] { open_items_for_model(config.data.source, config, {}); }),
              EndsWith("; did you mean 'images'?"));
  EXPECT_THAT(message([&] { run_training(config); }),
              StartsWith("the config: data.source must be "));
}

}  // namespace
}  // namespace pantala::run
