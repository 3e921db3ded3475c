// copy_weights FROM TO MAX_SHARD_BYTES: reads weights and writes them again, in parts if the last
// number is not 0.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <string>

#include "pantala/weights.h"

int main(int argc, char** argv) {
  if (argc != 4) {
    fmt::print(stderr, "usage: copy_weights FROM TO MAX_SHARD_BYTES\n");
    return 2;
  }
  try {
    pantala::Weights::open(argv[1]).save(argv[2], {.max_shard_bytes = std::stoull(argv[3])});
  } catch (const std::exception& error) {
    fmt::print(stderr, "copy_weights: {}\n", error.what());
    return 1;
  }
  return 0;
}
