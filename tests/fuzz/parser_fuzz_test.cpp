// The parser and the shape rules behind it under damage: texts of graphs that cover every op are
// changed at random. A text may be refused with a TypeError or a ParseError; anything else (a
// crash, an InternalError, undefined behaviour under the sanitizers) is a bug.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cctype>
#include <set>

#include "ir/graph_data.h"
#include "ops/table.h"
#include "pantala/error.h"
#include "pantala/text.h"
#include "support/gradcheck.h"
#include "support/random_graph.h"

namespace pantala::tests::parser_fuzz_test {
namespace {

constexpr int kTrials = 20000;

constexpr std::string_view kExtremes[] = {"9223372036854775807",
                                          "-9223372036854775808",
                                          "9223372036854775808",
                                          "4611686018427387904",
                                          "1152921504606846976",
                                          "-1152921504606846976",
                                          "4294967296",
                                          "2147483648",
                                          "1e999",
                                          "-1e308",
                                          "5e-324",
                                          "0",
                                          "-0",
                                          "-1",
                                          "1",
                                          "2",
                                          "inf",
                                          "-inf",
                                          "nan",
                                          "0.5",
                                          "[]",
                                          "[9223372036854775807,-9223372036854775808]",
                                          "true"};
constexpr std::string_view kFragments[] = {"{",
                                           "}",
                                           "(",
                                           ")",
                                           "[",
                                           "]",
                                           ",",
                                           "=",
                                           ":",
                                           "%",
                                           "%0",
                                           "%1:1",
                                           "\"",
                                           "\\",
                                           "#",
                                           "\n",
                                           "graph",
                                           "output",
                                           "update",
                                           "f32[2,2]",
                                           "bool",
                                           "-",
                                           std::string_view("\0", 1),
                                           "\xff"};

// One sample's op as a text of its own; sugar is written by name, so that its rule is read from the
// text too.
std::string text_of(const ir::OpDef& op, const ir::Sample& sample) {
  std::string text = "graph {\n", arguments, attributes, results;
  Graph g;
  std::vector<Tensor> inputs;
  for (std::size_t k = 0; k < sample.inputs.size(); ++k) {
    const ir::SampleInput& in = sample.inputs[k];
    inputs.push_back(g.input(fmt::format("x{}", k), in.shape, in.dtype));
    text += fmt::format("  %{} = input {{name=\"x{}\", dtype={}, shape={}}}\n", k, k,
                        dtype_name(in.dtype), in.shape.str());
    arguments += fmt::format("{}%{}", k == 0 ? "" : ", ", k);
  }
  for (std::size_t k = 0; k < sample.attrs.size(); ++k)
    attributes +=
        fmt::format("{}{}={}", k == 0 ? "" : ", ", op.attrs[k].name, ir::to_text(sample.attrs[k]));
  // A third of the texts state their types; the others let changed shapes through to the rule.
  if (sample.inputs.size() % 3 == 2)
    for (const Tensor& t : g.data()->append(op, inputs, sample.attrs, {}))
      results += fmt::format("{}{}", results.empty() ? " : " : ", ", t.type().str());
  return text + fmt::format("  %y = {}({}) {{{}}}{}\n  output \"y\" = %y\n}}\n", op.name, arguments,
                            attributes, results);
}

std::vector<std::string> corpus() {
  std::vector<std::string> texts;
  for (const ir::OpDef* op : sampled_ops())
    for (const ir::Sample& sample : op->samples()) texts.push_back(text_of(*op, sample));
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    texts.push_back(to_text(random_graph(seed, {.steps = 5, .differentiable = false}).graph));
  texts.push_back(
      "graph {\n  %0 = parameter {name=\"w\", dtype=f32, shape=[2,3], "
      "init=truncated_normal(0,1,-2,2)}\n  %1 = state {name=\"s\", dtype=i64, shape=[2], "
      "init=data(i64[2] [1,-2])}\n"
      "  %2 = scalar {name=\"lr\", value=0.1}\n  %3 = data {values=f32[2] [0.5,nan]}\n  %4 = "
      "constant {value=-0, dtype=bf16, shape=[]}\n  update %0 = %0\n  update %1 = %1\n}\n");
  return texts;
}

class Mutator {
 public:
  Mutator(Random& random, const std::vector<std::string>& texts) : random_(random), texts_(texts) {}

  std::string run(std::string text) {
    for (std::int64_t times = 1 + random_.below(4); times > 0; --times) once(text);
    return text;
  }

 private:
  std::size_t place(const std::string& text) {
    return static_cast<std::size_t>(random_.below(std::ssize(text) + 1));
  }

  // The bounds of the token (or the gap between tokens) at a random place.
  std::pair<std::size_t, std::size_t> token(const std::string& text) {
    const auto is_word = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-' ||
             c == '%';
    };
    std::size_t begin = place(text), end = begin;
    while (begin > 0 && is_word(text[begin - 1])) --begin;
    while (end < text.size() && is_word(text[end])) ++end;
    return {begin, end};
  }

  // The bounds of a number: its digits, sign and fraction.
  std::pair<std::size_t, std::size_t> number(const std::string& text) {
    const std::size_t begin = text.find_first_of("0123456789", place(text));
    if (begin == std::string::npos) return token(text);
    const std::size_t end = std::min(text.find_first_not_of("0123456789.e-", begin), text.size());
    return {begin > 0 && text[begin - 1] == '-' ? begin - 1 : begin, end};
  }

  void once(std::string& text) {
    switch (random_.below(9)) {
      case 0:  // flip a bit
        if (!text.empty())
          text[place(text) % text.size()] ^= static_cast<char>(1 << random_.below(8));
        break;
      case 1:
        text.insert(place(text), random_.pick(kFragments));
        break;
      case 2: {  // exchange two tokens
        const auto [a, b] = token(text);
        const std::string first = text.substr(a, b - a);
        text.erase(a, b - a);
        const auto [c, d] = token(text);
        const std::string second = text.substr(c, d - c);
        text.replace(c, d - c, first);
        text.insert(std::min(a, text.size()), second);
        break;
      }
      case 3: {  // delete
        const std::size_t at = place(text);
        text.erase(at, static_cast<std::size_t>(random_.below(20)));
        break;
      }
      case 4: {  // repeat
        const std::size_t at = place(text);
        text.insert(at, text.substr(at, static_cast<std::size_t>(random_.below(60))));
        break;
      }
      case 5: {  // splice the head of one text to the tail of another
        const std::string& other = random_.pick(texts_);
        text = text.substr(0, place(text)) + other.substr(place(other));
        break;
      }
      default: {  // a number becomes an extreme, or another one of the text
        const auto [a, b] = number(text);
        const auto [c, d] = number(text);
        text.replace(
            a, b - a,
            random_.chance(0.7) ? std::string(random_.pick(kExtremes)) : text.substr(c, d - c));
      }
    }
  }

  Random& random_;
  const std::vector<std::string>& texts_;
};

TEST(ParserFuzz, the_corpus_itself_is_valid_and_holds_every_op) {
  std::set<std::string> missing;
  for (const ir::OpDef* op : ops::table().all()) missing.insert(op->name);
  for (const std::string& text : corpus()) {
    EXPECT_NO_THROW(parse_graph(text)) << text;
    std::erase_if(missing, [&](const std::string& name) {
      return text.find("= " + name + "(") != std::string::npos ||
             text.find("= " + name + " {") != std::string::npos;
    });
  }
  for (const std::string& name : missing) ADD_FAILURE() << name << " is in no text";
}

TEST(ParserFuzz, damaged_texts_are_refused_or_valid) {
  const std::vector<std::string> texts = corpus();
  int accepted = 0, failures = 0;
  for (std::uint64_t seed = 0; seed < kTrials && failures < 20; ++seed) {
    Random random(seed);
    const std::string text = Mutator(random, texts).run(texts[seed % texts.size()]);
    try {
      const Graph graph = parse_graph(text, "fuzz");
      verify(graph);
      const std::string printed = to_text(graph);
      if (to_text(parse_graph(printed, "again")) != printed)
        throw InternalError("the text does not survive a round trip");
      ++accepted;
    } catch (const TypeError&) {
    } catch (const ParseError&) {
    } catch (const std::exception& error) {
      ++failures;
      ADD_FAILURE() << "seed " << seed << ": " << error.what() << "\n" << text;
    }
  }
  EXPECT_GT(accepted, kTrials / 50) << "the changes are too coarse to reach the rules";
  EXPECT_LT(accepted, kTrials) << "nothing was refused";
}

}  // namespace
}  // namespace pantala::tests::parser_fuzz_test
