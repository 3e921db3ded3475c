// Small data and runs for the tests of the verbs that train.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "cli/run.h"
#include "io/file.h"
#include "support/temporary.h"

namespace pantala::tests {

// A folder with a CSV file of points that belong to three classes. Compiled plans are shared by the
// tests of a process, as they are by the runs of a user: most of the tests train the same model.
class TrainingTest : public testing::Test {
 protected:
  explicit TrainingTest(Place place = Place::usual) : folder_(place) {
    static const TemporaryFolder plans;
    ::setenv("XDG_CACHE_HOME", plans.file("cache").c_str(), 1);
    ::unsetenv("PANTALA_LOG");
    write_points(folder_.file("points.csv"), 150);
  }

  // The class is the largest of three of the columns: learnable, not trivial.
  static void write_points(const std::string& path, int items) {
    std::ofstream out(path);
    out << "width,height,depth,weight,kind\n";
    std::uint32_t state = 12345;
    const auto next = [&] {
      state = state * 1664525U + 1013904223U;
      return static_cast<int>(state >> 16) % 100;
    };
    for (int k = 0; k < items; ++k) {
      const int a = next(), b = next(), c = next(), d = next();
      const char* kind = a >= b && a >= c ? "wide" : b >= c ? "high" : "deep";
      out << a << ',' << b << ',' << c << ',' << d << ".5," << kind << '\n';
    }
  }

  // From here on plans are kept in the folder of the test; there are none yet.
  void forget_plans() const {
    std::filesystem::remove_all(file("cache"));
    ::setenv("XDG_CACHE_HOME", file("cache").c_str(), 1);
  }

  std::string file(const std::string& name) const { return folder_.file(name); }
  std::string points() const { return "csv:" + file("points.csv"); }
  // The arguments of a small run in the folder `out`, and more.
  std::vector<std::string> train(const std::string& out, std::vector<std::string> more = {}) const {
    std::vector<std::string> words = {"train",
                                      "--model",
                                      "mlp",
                                      "--data",
                                      points(),
                                      "--out",
                                      file(out),
                                      "--batch-size",
                                      "16",
                                      "--epochs",
                                      "4",
                                      "--lr",
                                      "0.01",
                                      "--threads",
                                      "1",
                                      "--set",
                                      "model.hidden=[12]"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::string bytes(const std::string& name) const { return io::read_file(file(name)); }
  bool exists(const std::string& name) const { return std::filesystem::exists(file(name)); }

 private:
  TemporaryFolder folder_;
};

}  // namespace pantala::tests
