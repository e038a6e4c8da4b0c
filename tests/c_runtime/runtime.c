/* Runs an exported model in the C++ runtime, without Python, as a TensorFlow
   model server does: LoadSavedModel, then Session::Run, without XLA.

     runtime --ops LIBRARY...
         writes the registry, an OpList, to the standard output.
     runtime EXPORT REQUESTS LIBRARY...
         runs each request once and prints a line of JSON for each.
     runtime --stress THREADS SECONDS EXPORT REQUESTS LIBRARY...
         also runs them in threads on one session, and compares the answers.

   LIBRARY are the op libraries of TensorFlow Text. The last line of the output
   has times and memory. */

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <time.h>
#include <unistd.h>

#include "requests.h"

static const double TOLERANCE = 1e-4; /* between numbers of two runs */

static TF_Session *session;
static Request *requests;
static int request_count;
static long peak; /* resident memory so far, in kilobytes */
static TF_Tensor *(*answers)[MAX_FETCHES];
static atomic_int stopping;
static atomic_long runs, errors, differences;

static double milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static long resident_kilobytes(void) {
  long total = 0, resident = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%ld %ld", &total, &resident) != 2)
    fail("cannot read /proc/self/statm");
  fclose(file);
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

/* The peak of resident memory since `forget_peak`. */
static long peak_kilobytes(void) {
  long peak = -1;
  char line[256];
  FILE *file = fopen("/proc/self/status", "r");
  while (file && peak < 0 && fgets(line, sizeof line, file))
    sscanf(line, "VmHWM: %ld", &peak);
  if (peak < 0) fail("cannot read VmHWM in /proc/self/status");
  fclose(file);
  return peak;
}

static void forget_peak(void) {
  FILE *file = fopen("/proc/self/clear_refs", "w");
  if (file == NULL || fputs("5", file) < 0 || fclose(file))
    fail("cannot write /proc/self/clear_refs");
}

static void run(const Request *request, TF_Tensor **found, TF_Status *status) {
  memset(found, 0, sizeof(TF_Tensor *) * MAX_FETCHES);
  TF_SessionRun(session, NULL, request->inputs, request->values,
                request->feeds, request->outputs, found, request->fetches,
                NULL, 0, NULL, status);
}

static int64_t elements(const TF_Tensor *tensor) {
  return TF_TensorElementCount(tensor);
}

static void print_hex(const char *bytes, size_t size) {
  for (size_t i = 0; i < size; i++) printf("%02x", (unsigned char)bytes[i]);
}

static void print_value(const TF_Tensor *tensor, int64_t i) {
  const void *data = TF_TensorData(tensor);
  switch (TF_TensorType(tensor)) {
    case TF_FLOAT: printf("%.9g", ((const float *)data)[i]); break;
    case TF_INT32: printf("%d", ((const int32_t *)data)[i]); break;
    case TF_BOOL: printf(((const unsigned char *)data)[i] ? "true" : "false"); break;
    case TF_STRING: {
      const TF_TString *text = (const TF_TString *)data + i;
      putchar('"');
      print_hex(TF_StringGetDataPointer(text), TF_StringGetSize(text));
      putchar('"');
      break;
    }
    default: fail("an output has the type %d", (int)TF_TensorType(tensor));
  }
}

static void print_tensor(const char *name, const TF_Tensor *tensor) {
  printf("\"%s\":{\"type\":%d,\"shape\":[", name, (int)TF_TensorType(tensor));
  for (int i = 0; i < TF_NumDims(tensor); i++)
    printf("%s%lld", i ? "," : "", (long long)TF_Dim(tensor, i));
  printf("],\"values\":[");
  for (int64_t i = 0; i < elements(tensor); i++) {
    if (i) putchar(',');
    print_value(tensor, i);
  }
  printf("]}");
}

static void print_answer(const Request *request, TF_Tensor **found,
                         TF_Status *status, double elapsed, long rest, long top) {
  const char *message = TF_Message(status);
  printf("{\"request\":\"%s\",\"milliseconds\":%.3f,"
         "\"rest_kilobytes\":%ld,\"peak_kilobytes\":%ld,"
         "\"code\":%d,\"message\":\"",
         request->label, elapsed, rest, top, (int)TF_GetCode(status));
  print_hex(message, strlen(message));
  printf("\",\"outputs\":{");
  for (int i = 0; i < request->fetches && found[i]; i++) {
    if (i) putchar(',');
    print_tensor(request->names[i], found[i]);
  }
  printf("}}\n");
  fflush(stdout);
}

static int same(const TF_Tensor *one, const TF_Tensor *other) {
  if (TF_NumDims(one) != TF_NumDims(other)) return 0;
  for (int i = 0; i < TF_NumDims(one); i++)
    if (TF_Dim(one, i) != TF_Dim(other, i)) return 0;
  const void *a = TF_TensorData(one), *b = TF_TensorData(other);
  if (TF_TensorType(one) == TF_FLOAT) {
    for (int64_t i = 0; i < elements(one); i++)
      if (!(fabs(((const float *)a)[i] - ((const float *)b)[i]) <= TOLERANCE))
        return 0;
    return 1;
  }
  if (TF_TensorType(one) != TF_STRING)
    return memcmp(a, b, TF_TensorByteSize(one)) == 0;
  for (int64_t i = 0; i < elements(one); i++) {
    const TF_TString *p = (const TF_TString *)a + i;
    const TF_TString *q = (const TF_TString *)b + i;
    size_t size = TF_StringGetSize(p);
    if (size != TF_StringGetSize(q) ||
        memcmp(TF_StringGetDataPointer(p), TF_StringGetDataPointer(q), size))
      return 0;
  }
  return 1;
}

/* Threads begin with different requests, so that these run at the same time. */
static void *work(void *number) {
  TF_Status *status = TF_NewStatus();
  TF_Tensor *found[MAX_FETCHES];
  for (long i = (long)number; !stopping; i++) {
    int place = (int)(i % request_count);
    run(&requests[place], found, status);
    runs++;
    int failed = TF_GetCode(status) != TF_OK;
    if (failed != (answers[place][0] == NULL)) errors++;
    for (int k = 0; !failed && k < requests[place].fetches; k++) {
      if (answers[place][k] && !same(answers[place][k], found[k]))
        differences++;
      TF_DeleteTensor(found[k]);
    }
  }
  TF_DeleteStatus(status);
  return NULL;
}

static void stress(long threads, int seconds) {
  pthread_t *started = calloc((size_t)threads, sizeof(pthread_t));
  for (long i = 0; i < threads; i++)
    if (pthread_create(&started[i], NULL, work, (void *)i))
      fail("cannot start thread %ld", i);
  printf("{\"resident_kilobytes\":[");
  for (int second = 0; second < seconds; second++) {
    sleep(1);
    printf("%s%ld", second ? "," : "", resident_kilobytes());
    fflush(stdout);
  }
  stopping = 1;
  for (long i = 0; i < threads; i++) pthread_join(started[i], NULL);
  free(started);
  printf("],\"runs\":%ld,\"errors\":%ld,\"differences\":%ld}\n", (long)runs,
         (long)errors, (long)differences);
}

static void check(TF_Status *status, const char *what) {
  if (TF_GetCode(status) != TF_OK) fail("%s: %s", what, TF_Message(status));
}

static void load_libraries(char **paths, TF_Status *status) {
  for (; *paths; paths++) {
    TF_LoadLibrary(*paths, status);
    check(status, *paths);
  }
}

/* The model server does this, too. The function is not in the C API. */
static void disable_xla(void) {
  void (*disable)(void);
  *(void **)&disable =
      dlsym(RTLD_DEFAULT, "_ZN10tensorflow21DisableXlaCompilationEv");
  if (disable == NULL) fail("this TensorFlow cannot switch XLA off");
  disable();
}

static void answer_all(TF_Status *status) {
  answers = calloc((size_t)request_count, sizeof(*answers));
  for (int i = 0; i < request_count; i++) {
    long rest = resident_kilobytes(), before = peak_kilobytes();
    forget_peak();
    double begin = milliseconds();
    run(&requests[i], answers[i], status);
    double elapsed = milliseconds() - begin;
    long during = peak_kilobytes();
    peak = MAX(peak, MAX(before, during));
    print_answer(&requests[i], answers[i], status, elapsed, rest, during);
  }
}

int main(int count, char **arguments) {
  TF_Status *status = TF_NewStatus();
  int threads = 0, seconds = 0;
  char **rest = arguments + 1;
  if (count > 1 && strcmp(rest[0], "--ops") == 0) {
    load_libraries(rest + 1, status);
    TF_Buffer *ops = TF_GetAllOpList();
    return fwrite(ops->data, 1, ops->length, stdout) != ops->length;
  }
  if (count > 3 && strcmp(rest[0], "--stress") == 0) {
    threads = atoi(rest[1]);
    seconds = atoi(rest[2]);
    rest += 3;
  }
  if (arguments + count - rest < 2)
    fail("usage: runtime [--stress THREADS SECONDS] EXPORT REQUESTS LIBRARY...");
  disable_xla();
  double begin = milliseconds();
  load_libraries(rest + 2, status);
  double libraries = milliseconds() - begin;
  const char *tag = "serve";
  TF_Graph *graph = TF_NewGraph();
  begin = milliseconds();
  session =
      TF_LoadSessionFromSavedModel(TF_NewSessionOptions(), NULL, rest[0], &tag,
                                   1, graph, NULL, status);
  check(status, rest[0]);
  double load = milliseconds() - begin;
  requests = read_requests(rest[1], graph, &request_count);
  answer_all(status);
  if (threads > 0) stress(threads, seconds);
  printf("{\"version\":\"%s\",\"libraries_milliseconds\":%.1f,"
         "\"load_milliseconds\":%.1f,\"peak_kilobytes\":%ld}\n",
         TF_Version(), libraries, load, MAX(peak, peak_kilobytes()));
  return 0;
}
