# cmake --install: public headers, the shared library, the command with its manual page, and the files with which CMake
# (find_package(pantala)) and pkg-config find them. Nothing that is installed knows its place: the prefix can be moved.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/pantala)
set(generated ${CMAKE_BINARY_DIR}/install)

# LLVM may stand where the loader does not look.
set_target_properties(pantala pantala_library PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
install(TARGETS pantala)
install(TARGETS pantala_library EXPORT pantala)
install(DIRECTORY include/pantala DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN *.h)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

# The command writes its own manual page, from the descriptions that --help prints.
add_custom_command(
  OUTPUT ${generated}/pantala.1
  COMMAND ${CMAKE_COMMAND} -E make_directory ${generated}
  COMMAND $<TARGET_FILE:pantala> --man > ${generated}/pantala.1
  DEPENDS pantala
  COMMENT "Writing the manual page" VERBATIM)
add_custom_target(pantala_manual ALL DEPENDS ${generated}/pantala.1)
# What `make build` makes and `cmake --install` takes: neither tests nor examples.
add_custom_target(pantala_shipped DEPENDS pantala pantala_library pantala_manual pantala_mpi_plugins)
install(FILES ${generated}/pantala.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)

install(EXPORT pantala NAMESPACE pantala:: FILE pantalaTargets.cmake DESTINATION ${package_dir})
configure_package_config_file(cmake/pantalaConfig.cmake.in ${generated}/pantalaConfig.cmake INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may change everything.
write_basic_package_version_file(${generated}/pantalaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${generated}/pantalaConfig.cmake ${generated}/pantalaConfigVersion.cmake DESTINATION ${package_dir})

set(pkgconfig_dir ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH includedir_of_pkgconfig ${pkgconfig_dir} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
configure_file(cmake/pantala.pc.in ${generated}/pantala.pc @ONLY)
install(FILES ${generated}/pantala.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
