// The plug-in for one MPI: its functions as the table of distributed/mpi_plugin.h. Built once for
// each MPI that is found (CMakeLists.txt beside this file).
// The C++ functions of MPI 2 are not wanted, nor their library.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "distributed/mpi_plugin.h"

namespace {

const char* library() {
  static char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  text[std::strcspn(text, ",\n")] = '\0';
  return text;
}

int start() {
  int provided = 0;
  if (const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided))
    return code;
  if (provided < MPI_THREAD_SERIALIZED) return MPI_ERR_OTHER;
  return MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

int rank() {
  int number = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &number);
  return number;
}

int size() {
  int number = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &number);
  return number;
}

void host(char* into, int bytes) {
  char name[MPI_MAX_PROCESSOR_NAME + 1] = "";
  int length = 0;
  MPI_Get_processor_name(name, &length);
  const int count = std::min(length, bytes - 1);
  std::memcpy(into, name, static_cast<std::size_t>(count));
  into[count] = '\0';
}

template <class Begin>
int begin_request(void** request, const Begin& begin) {
  auto* made = new (std::nothrow) MPI_Request;
  if (made == nullptr) return MPI_ERR_NO_MEM;
  const int code = begin(made);
  if (code != MPI_SUCCESS) {
    delete made;
    made = nullptr;
  }
  *request = made;
  return code;
}

int send(int to, int tag, const void* bytes, int count, void** request) {
  return begin_request(request, [&](MPI_Request* made) {
    return MPI_Isend(bytes, count, MPI_BYTE, to, tag, MPI_COMM_WORLD, made);
  });
}

int receive(int from, int tag, void* bytes, int count, void** request) {
  return begin_request(request, [&](MPI_Request* made) {
    return MPI_Irecv(bytes, count, MPI_BYTE, from, tag, MPI_COMM_WORLD, made);
  });
}

int test(void* request, int* is_done) {
  auto* const known = static_cast<MPI_Request*>(request);
  const int code = MPI_Test(known, is_done, MPI_STATUS_IGNORE);
  if (*is_done != 0) delete known;
  return code;
}

int find(int tag, int* is_there, int* from, int* count) {
  MPI_Status status;
  const int code = MPI_Iprobe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, is_there, &status);
  if (code != MPI_SUCCESS || *is_there == 0) return code;
  *from = status.MPI_SOURCE;
  return MPI_Get_count(&status, MPI_BYTE, count);
}

void error_text(int code, char* into, int bytes) {
  char text[MPI_MAX_ERROR_STRING + 1] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  const int count = std::min(length, bytes - 1);
  std::memcpy(into, text, static_cast<std::size_t>(count));
  into[count] = '\0';
}

void abort(int code) { MPI_Abort(MPI_COMM_WORLD, code); }

int stop() { return MPI_Finalize(); }

}  // namespace

extern "C" __attribute__((visibility("default"))) const PantalaMpi* pantala_mpi(void) {
  static const PantalaMpi table = {
      .version = kPantalaMpiVersion,
      .library = library,
      .start = start,
      .rank = rank,
      .size = size,
      .host = host,
      .send = send,
      .receive = receive,
      .test = test,
      .find = find,
      .error_text = error_text,
      .abort = abort,
      .stop = stop,
  };
  return &table;
}
