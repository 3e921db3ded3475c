// The temporary files of io::write_file(), by their names: which file one is of, and which process
// writes it.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace pantala::io {

// ".NAME.PROCESS-NUMBER.tmp", of this process.
std::string temporary_name(std::string_view name, unsigned number);

// Removes those in the folder that nobody will rename any more: their process is gone, or they are
// older than a day and the number of the process is another's by now. `is_ours` says of the file
// that one is of whether it is a matter of the caller's. One that cannot be removed stays.
void remove_stale_temporaries(const std::filesystem::path& folder,
                              const std::function<bool(std::string_view name)>& is_ours);

}  // namespace pantala::io
