# Writes the source file that defines compiler/build_id.h; run by the build, see BuildId.cmake.
file(STRINGS ${LIST} sources)
set(text "")
foreach(source ${sources})
  file(SHA256 ${source} hash)
  file(RELATIVE_PATH name ${ROOT} ${source})
  string(APPEND text "${name} ${hash}\n")
endforeach()
string(SHA256 id "${text}")
file(WRITE ${OUTPUT} "#include \"compiler/build_id.h\"

namespace pantala::compiler {
std::string_view build_id() { return \"${VERSION} ${id}\"; }
std::string_view llvm_version() { return \"${LLVM}\"; }
}  // namespace pantala::compiler
")
