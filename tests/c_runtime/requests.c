#include "requests.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
  exit(2);
}

static char *word(char **rest) {
  char *found = strsep(rest, " \n");
  if (found == NULL || *found == '\0') fail("a line of the requests ends early");
  return found;
}

static TF_Output output_of(TF_Graph *graph, char **rest) {
  const char *name = word(rest);
  TF_Output output = {TF_GraphOperationByName(graph, name), atoi(word(rest))};
  if (output.oper == NULL) fail("the graph has no operation %s", name);
  return output;
}

static int digit(char character) {
  const char *digits = "0123456789abcdef";
  const char *found = character ? strchr(digits, character) : NULL;
  if (found == NULL) fail("a string of the requests is not hexadecimal");
  return (int)(found - digits);
}

/* Turns hexadecimal digits into bytes, in place; returns how many. */
static size_t unhex(char *text) {
  if (strcmp(text, "-") == 0) return 0;
  size_t size = strlen(text) / 2;
  for (size_t i = 0; i < size; i++)
    text[i] = (char)(digit(text[2 * i]) * 16 + digit(text[2 * i + 1]));
  return size;
}

static TF_Tensor *string_tensor(char *rest, int is_scalar) {
  int64_t count = 0;
  for (char *at = rest; at && *at; at++)
    if (*at == ' ' || *at == '\n') count++;
  TF_Tensor *tensor = TF_AllocateTensor(TF_STRING, &count, is_scalar ? 0 : 1,
                                        (size_t)count * sizeof(TF_TString));
  TF_TString *strings = TF_TensorData(tensor);
  for (int64_t i = 0; i < count; i++) {
    char *text = word(&rest);
    size_t size = unhex(text);
    TF_StringInit(&strings[i]);
    TF_StringCopy(&strings[i], text, size);
  }
  return tensor;
}

static TF_Tensor *value_of(char *rest) {
  const char *kind = word(&rest);
  if (strcmp(kind, "numbers") == 0) {
    int64_t count = atoi(word(&rest));
    size_t size = (size_t)count * sizeof(float);
    TF_Tensor *tensor = TF_AllocateTensor(TF_FLOAT, &count, 1, size);
    memset(TF_TensorData(tensor), 0, size);
    return tensor;
  }
  return string_tensor(rest, strcmp(kind, "scalar") == 0);
}

static void add_line(Request *request, TF_Graph *graph, char *line) {
  const char *kind = word(&line);
  if (strcmp(kind, "feed") == 0 && request->feeds < MAX_FEEDS) {
    request->inputs[request->feeds] = output_of(graph, &line);
    request->values[request->feeds++] = value_of(line);
  } else if (strcmp(kind, "fetch") == 0 && request->fetches < MAX_FETCHES) {
    request->names[request->fetches] = strdup(word(&line));
    request->outputs[request->fetches++] = output_of(graph, &line);
  } else {
    fail("a line of the requests is malformed: %s", kind);
  }
}

Request *read_requests(const char *path, TF_Graph *graph, int *count) {
  FILE *file = fopen(path, "r");
  if (file == NULL) fail("cannot read %s", path);
  Request *requests = NULL, *open = NULL;
  char *line = NULL;
  size_t room = 0;
  *count = 0;
  while (getline(&line, &room, file) > 0) {
    if (open == NULL) {
      char *rest = line;
      if (strcmp(word(&rest), "request")) fail("no request begins: %s", line);
      requests = realloc(requests, (size_t)(*count + 1) * sizeof(Request));
      open = &requests[(*count)++];
      memset(open, 0, sizeof(Request));
      open->label = strdup(word(&rest));
    } else if (strcmp(line, "end\n") == 0) {
      open = NULL;
    } else {
      add_line(open, graph, line);
    }
  }
  free(line);
  fclose(file);
  return requests;
}
