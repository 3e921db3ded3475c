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

# pantala_join(TARGET): compiles the files of each folder of a test together, a few at a time, because reading the same headers and making the
# same code of templates again takes most of the time of a build. Where names of a folder's files clash, each file has a namespace of its own
# around the unnamed one, like pantala::tests::train_test. The presets `dev` and `tsan` compile every file alone, which shows that each includes
# what it needs. What is shipped is never joined: a name of one file's unnamed namespace would silently stand before a header's name in all files
# behind it.
option(PANTALA_JOIN_SOURCES "Compile several files of a test's folder as one" ON)
set(PANTALA_JOINED_FILES 8)
function(pantala_join target)
  if(NOT PANTALA_JOIN_SOURCES)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # It takes a joined file for a header, in which a type of an unnamed namespace would be another one for each reader.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
  foreach(source ${sources})
    get_filename_component(folder ${source} DIRECTORY)
    get_filename_component(name ${folder} NAME)
    if(NOT source MATCHES "\\.cpp$")
      continue()
    endif()
    string(MAKE_C_IDENTIFIER ${folder} group)
    math(EXPR part "${members_${group}}+0")
    math(EXPR members_${group} "${part} + 1")
    math(EXPR part "${part} / ${PANTALA_JOINED_FILES}")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${name}_${part})
  endforeach()
endfunction()
