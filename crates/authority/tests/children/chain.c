/* chain FILE HOW PAUSE_US MOST: a process forks, ends, and its child does the same. Counts the steps in FILE. Ends by itself
   after MOST steps or LIFE seconds, whichever comes first.
   HOW: "group" stays in its process group, "once" begins a session, "each" begins one at every step, "bare" does so without
   an environment, "hidden" keeps others from looking into it besides, "thread" ends its first thread and lets another one fork. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define LIFE 20

static volatile long *count;
static long most, pause_us;
static time_t until;
static int each, hidden;

static void *step(void *unused) {
    for (;;) {
        if (++*count > most || time(0) > until) _exit(0);
        if (each) setsid();
        if (hidden) prctl(PR_SET_DUMPABLE, 0);
        if (pause_us) usleep(pause_us);
        if (fork()) _exit(0);
    }
    return unused;
}

int main(int argc, char **argv) {
    if (argc < 5) return 2;
    const char *how = argv[2];
    int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *count)) return 3;
    count = mmap(0, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (count == MAP_FAILED) return 3;
    pause_us = atol(argv[3]), most = atol(argv[4]), until = time(0) + LIFE;
    if (!strcmp(how, "bare") && environ[0]) {
        /* Once more, with nothing in it. */
        char *none[] = {0};
        execve(argv[0], argv, none);
        return 4;
    }
    each = !strcmp(how, "each") || !strcmp(how, "bare") || !strcmp(how, "hidden");
    hidden = !strcmp(how, "hidden");
    if (fork()) {
        while (*count < 3) usleep(100);
        return 0;
    }
    if (!strcmp(how, "once")) setsid();
    close(0), close(1), close(2);
    if (!strcmp(how, "thread")) {
        pthread_t other;
        setsid();
        pthread_create(&other, 0, step, 0);
        pthread_exit(0);
    }
    step(0);
}
