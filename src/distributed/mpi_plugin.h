// What stands between Pantala and an MPI: a table of C functions, given by a shared library that is
// opened at run time (plugins/mpi). So the command and the library need no MPI, and one build
// serves every MPI that there is a plug-in for.
//
// Functions are called by one thread at a time, not always the same one. They return 0 or a code of
// the MPI's, for error_text().
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

enum { kPantalaMpiVersion = 1 };

struct PantalaMpi {
  int version;
  // The MPI, "Open MPI v4.1.4"; valid as long as the plug-in is loaded.
  const char* (*library)(void);
  int (*start)(void);
  int (*rank)(void);
  int (*size)(void);
  void (*host)(char* into, int bytes);
  // The bytes must stay until test() says that it is done; then the request is gone.
  int (*send)(int to, int tag, const void* bytes, int count, void** request);
  int (*receive)(int from, int tag, void* bytes, int count, void** request);
  int (*test)(void* request, int* is_done);
  // The next message with this tag, from anybody: whether there is one.
  int (*find)(int tag, int* is_there, int* from, int* count);
  void (*error_text)(int code, char* into, int bytes);
  // Ends all ranks by way of the launcher.
  void (*abort)(int code);
  // All ranks together.
  int (*stop)(void);
};

// The one symbol of a plug-in.
typedef const struct PantalaMpi* (*PantalaMpiEntry)(void);
const struct PantalaMpi* pantala_mpi(void);

#ifdef __cplusplus
}
#endif
