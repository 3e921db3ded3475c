# Installs and moves the prefix: what is used from now on stands where nobody installed it.
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE ${WORK})
execute_process(COMMAND ${CMAKE_COMMAND} -E env --unset=DESTDIR ${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/first OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
# Copied and removed: some file systems refuse to rename folders.
file(COPY ${WORK}/first/ DESTINATION ${PREFIX})
file(REMOVE_RECURSE ${WORK}/first)

file(GLOB_RECURSE files RELATIVE ${PREFIX} ${PREFIX}/*)
foreach(expected bin/pantala include/pantala/pantala.h include/pantala/ops/conv.h share/man/man1/pantala.1 share/doc/pantala/LICENSE)
  if(NOT expected IN_LIST files)
    message(FATAL_ERROR "${expected} was not installed; these were: ${files}")
  endif()
endforeach()

# No text and no library may name a place of this machine. A place is named where an absolute path begins with it: a checkout in /data
# must not be found in "pantala/data/dataset.h".
foreach(file ${files})
  if(file MATCHES "\\.(h|cmake|pc|1|so[.0-9]*)$")
    foreach(place ${WORK} ${BUILD} ${SOURCE})
      string(REGEX REPLACE "([][+.*()^$?|\\])" "\\\\\\1" pattern "${place}")
      file(STRINGS ${PREFIX}/${file} named LIMIT_COUNT 1 REGEX "(^|[^A-Za-z0-9_.>}/-])${pattern}($|[^A-Za-z0-9_.-])")
      if(named)
        message(FATAL_ERROR "${file} names ${place}: ${named}")
      endif()
    endforeach()
  endif()
endforeach()
