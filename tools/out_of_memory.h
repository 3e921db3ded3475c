// Memory that could not be had. The command's operator new (main.cpp) notes how much it was, and
// what the process was doing; programs that have none of their own do not know the size.
#pragma once

#include <cstddef>
#include <string>

namespace pantala::tools {

// Takes no memory.
void note_refused_memory(std::size_t bytes) noexcept;
// What was noted last, as a message.
std::string refused_memory_text();
// The message and the exit code, at once. For where not even a little memory can be got: LLVM
// takes no exceptions, and what they leave of its state is not to be relied on.
[[noreturn]] void end_without_memory();

}  // namespace pantala::tools
