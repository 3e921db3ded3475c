# pantala::pantala, the library of a user's program: one shared library made of all modules.
#
# Why shared: it names the libraries that it needs itself, so that a program links -lpantala and neither needs nor sees the headers and
# packages of LLVM, fmt, spdlog, zlib and OpenSSL; and it shows only Pantala's own names (library.map), so that a program may use another fmt or
# JSON beside it. A static archive would leave all of that to the program's link. The command and the tests link the modules instead,
# because they use what stands behind the public headers.
include(GNUInstallDirs)
get_property(modules GLOBAL PROPERTY PANTALA_MODULE_TARGETS)
get_property(externals GLOBAL PROPERTY PANTALA_EXTERNAL_LIBRARIES)
list(REMOVE_DUPLICATES externals)

add_library(pantala_library SHARED)
add_library(pantala::pantala ALIAS pantala_library)
foreach(module ${modules})
  target_sources(pantala_library PRIVATE $<TARGET_OBJECTS:${module}>)
endforeach()
target_include_directories(pantala_library INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(pantala_library INTERFACE cxx_std_20)
target_link_libraries(pantala_library PRIVATE ${externals})
target_link_options(pantala_library PRIVATE -Wl,--no-undefined -Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/library.map)
# Before 1.0 every minor version is an ABI of its own.
set_target_properties(pantala_library PROPERTIES
  OUTPUT_NAME pantala EXPORT_NAME pantala LINKER_LANGUAGE CXX
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
  LINK_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/library.map)
