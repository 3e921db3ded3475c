// What `pantala predict` writes of its items: text for people, CSV or JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "run/core/data_facts.h"

namespace pantala::tools {

struct LineOptions {
  bool json = false, csv = false;
  std::int64_t top_k = 1;      // classes of an item, the most likely ones
  bool probabilities = false;  // of all classes
  bool truth = false;          // the label, where it is known
  bool inputs = false;         // the fields of a table
  bool files = false;          // items have files
};

// What a prediction is of, and what is known of it besides.
struct Item {
  std::int64_t number = 0;
  std::string file = {};                      // of an image
  std::optional<std::int64_t> position = {};  // of an item whose positions have a class each
  std::vector<std::string> truth = {};        // a class, or a number per target; "": not known
  std::vector<std::string> inputs = {};
};

class PredictionLines {
 public:
  // `inputs` are the names of the fields. TypeError for options that the model has nothing for.
  PredictionLines(const run::DataFacts& facts, LineOptions options,
                  std::vector<std::string> inputs);

  std::string header() const;  // of CSV; "" otherwise
  // The lines of one item, from the outputs of the model.
  std::string lines(Item item, std::span<const float> outputs) const;

 private:
  struct Guess;
  std::vector<Guess> guesses(std::span<const double> probabilities) const;
  std::string class_line(const Item& item, std::span<const float> logits) const;
  std::string number_line(const Item& item, std::span<const float> numbers) const;
  std::string class_name(std::int64_t klass) const;  // "" if it has none

  const run::DataFacts& facts_;
  LineOptions options_;
  std::vector<std::string> inputs_;
};

}  // namespace pantala::tools
