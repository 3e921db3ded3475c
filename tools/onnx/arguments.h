// NAME=VALUE arguments of the verbs that take ONNX models.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "io/host_array.h"
#include "pantala/literal.h"

namespace pantala::tools {

// NAME=FILE.npy each, read. TypeError for an argument of another form or a name that comes twice.
std::map<std::string, io::HostArray> named_arrays(const std::string& option,
                                                  const std::vector<std::string>& arguments);
// NAME=N each, N from 0.
std::map<std::string, std::int64_t> named_sizes(const std::string& option,
                                                const std::vector<std::string>& arguments);

Literal literal_of(const io::HostArray& array);

}  // namespace pantala::tools
