# Copies the files and applies every ```diff block of the page to the copies.
foreach(file ${FILES})
  configure_file(${SOURCE}/${file} ${EXAMPLE}/${file} COPYONLY)
endforeach()
execute_process(COMMAND sed -n [[/^```diff$/,/^```$/{/^```/d;p}]] ${PAGE} OUTPUT_FILE ${EXAMPLE}/example.patch COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${PATCH} -p1 --fuzz=2 -i example.patch WORKING_DIRECTORY ${EXAMPLE} COMMAND_ERROR_IS_FATAL ANY)
