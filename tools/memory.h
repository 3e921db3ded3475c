// What is known of memory that could not be had. The command's operator new (main.cpp) notes it;
// programs that have none of their own do not know the size.
#pragma once

#include <cstddef>
#include <string>

namespace pantala::tools {

// Takes no memory.
void note_refused_memory(std::size_t bytes) noexcept;
// What was noted last, as a message.
std::string refused_memory_text();

}  // namespace pantala::tools
