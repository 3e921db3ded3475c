# Headers that nearly every file reads are read once. They are no substitute for #include: the preset `tsan` builds without them, and
# public headers are compiled alone (tests/install).
set(PANTALA_COMMON_HEADERS <algorithm> <array> <cmath> <cstdint> <filesystem> <functional> <map> <memory> <optional> <span> <string> <string_view>
                           <utility> <variant> <vector> <fmt/format.h>)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  add_compile_options(-fpch-preprocess)  # lets ccache see them
endif()

# pantala_precompile(NAME headers...): a target whose headers others share: pantala_precompiled(TARGET NAME). Both must be compiled alike.
function(pantala_precompile name)
  file(WRITE ${CMAKE_BINARY_DIR}/precompiled/${name}.cpp "")
  add_library(${name} OBJECT ${CMAKE_BINARY_DIR}/precompiled/${name}.cpp)
  target_precompile_headers(${name} PRIVATE ${ARGN})
  target_link_libraries(${name} PRIVATE fmt::fmt)
endfunction()

function(pantala_precompiled target name)
  target_precompile_headers(${target} REUSE_FROM ${name})
endfunction()
