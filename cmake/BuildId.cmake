# The build id of the plan cache: plans made by other sources than these must not be used. It is the version and a
# hash of all files that can change what the compiler makes, taken when the project is built: those of the module `compiler` and of all
# that it depends on. The modules stand bottom up, so one walk from the top finds them (tests/tree/build_id_test.cpp holds that).
get_property(modules GLOBAL PROPERTY PANTALA_MODULES)
list(REVERSE modules)
set(build_id_modules compiler)
foreach(module ${modules})  # name|public headers|dependencies|face|uses
  string(REGEX MATCH "^([^|]*)[|][^|]*[|]([^|]*)[|][^|]*[|]([^|]*)$" _ "${module}")
  if(CMAKE_MATCH_1 IN_LIST build_id_modules)
    string(REPLACE " " ";" below "${CMAKE_MATCH_2} ${CMAKE_MATCH_3}")
    list(APPEND build_id_modules ${below})
  endif()
endforeach()
list(REMOVE_DUPLICATES build_id_modules)
set(build_id_sources)
foreach(module ${build_id_modules})
  file(GLOB_RECURSE files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${module}/*.cpp ${CMAKE_SOURCE_DIR}/src/${module}/*.h)
  list(APPEND build_id_sources ${files})
endforeach()
file(GLOB_RECURSE files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/include/pantala/*.h)
list(APPEND build_id_sources ${files})
list(SORT build_id_sources)
list(JOIN build_id_sources "\n" text)
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/build_id_sources.txt CONTENT "${text}\n")

add_custom_command(
  OUTPUT ${CMAKE_BINARY_DIR}/build_id.cpp
  COMMAND ${CMAKE_COMMAND} -D VERSION=${PROJECT_VERSION} -D LLVM=${LLVM_PACKAGE_VERSION}
          -D ROOT=${CMAKE_SOURCE_DIR} -D LIST=${CMAKE_BINARY_DIR}/build_id_sources.txt
          -D OUTPUT=${CMAKE_BINARY_DIR}/build_id.cpp -P ${CMAKE_SOURCE_DIR}/cmake/WriteBuildId.cmake
  DEPENDS ${build_id_sources} ${CMAKE_BINARY_DIR}/build_id_sources.txt ${CMAKE_SOURCE_DIR}/cmake/WriteBuildId.cmake
  COMMENT "Hashing the compiler's sources" VERBATIM)
target_sources(pantala_compiler PRIVATE ${CMAKE_BINARY_DIR}/build_id.cpp)
