/* Requests to a session, read from a file of lines:

     request LABEL
     feed OPERATION INDEX vector|scalar STRING...     strings as hexadecimal
     feed OPERATION INDEX numbers COUNT               float32 [COUNT] of zeros
     fetch NAME OPERATION INDEX
     end

   An empty string is written as "-". Lines have any length. */

#ifndef REQUESTS_H
#define REQUESTS_H

#include "tensorflow/c/c_api.h"

enum { MAX_FEEDS = 4, MAX_FETCHES = 16 };

typedef struct {
  char *label;
  int feeds, fetches;
  TF_Output inputs[MAX_FEEDS], outputs[MAX_FETCHES];
  TF_Tensor *values[MAX_FEEDS];
  char *names[MAX_FETCHES];
} Request;

/* Reads all requests of a file; ends the program if one is malformed. */
Request *read_requests(const char *path, TF_Graph *graph, int *count);

/* Ends the program with a message, written as by printf, and code 2. */
__attribute__((noreturn, format(printf, 1, 2))) void fail(const char *format,
                                                          ...);

#endif
