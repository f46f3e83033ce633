// Shifts the clock of the day of a process by the seconds that the file $SHIFT holds,
// which is read at each call. It is loaded by LD_PRELOAD.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

extern char **environ; // getenv may not work yet

static long shift(void) {
  for (char **e = environ; e && *e; e++) {
    if (strncmp(*e, "SHIFT=", 6) == 0) {
      char text[32] = {0};
      int file = syscall(SYS_openat, AT_FDCWD, *e + 6, O_RDONLY, 0);
      if (file < 0) return 0;
      syscall(SYS_read, file, text, sizeof text - 1);
      syscall(SYS_close, file);
      return atol(text);
    }
  }
  return 0;
}

int clock_gettime(clockid_t clock, struct timespec *t) {
  int result = syscall(SYS_clock_gettime, clock, t);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) t->tv_sec += shift();
  return result;
}

int gettimeofday(struct timeval *t, void *zone) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  t->tv_sec = now.tv_sec;
  t->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *t) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (t) *t = now.tv_sec;
  return now.tv_sec;
}
