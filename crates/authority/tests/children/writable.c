/* Tries every way of writing at each path of a list and prints the paths where one went well. What it makes it removes. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static int gone(long result, const char *made, int dir) {
    if (result < 0) return 0;
    if (dir) rmdir(made); else unlink(made);
    return 1;
}

static int opens(const char *path, int flags) {
    int fd = open(path, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
    if (fd < 0) return 0;
    close(fd);
    return 1;
}

/* Creating in a directory, by each kind of name, and moving something there. */
static int into(const char *dir) {
    char made[4200], own[4200];
    int any = 0;
    snprintf(made, sizeof made, "%s/.yoi-writable-%d", dir, getpid());
    any |= gone(open(made, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600), made, 0);
    any |= gone(mkdir(made, 0700), made, 1);
    any |= gone(symlink("x", made), made, 0);
    any |= gone(mkfifo(made, 0600), made, 0);
    any |= gone(mknod(made, S_IFSOCK | 0600, 0), made, 0);
    any |= opens(dir, O_TMPFILE | O_RDWR);
    snprintf(own, sizeof own, "%s/own", getenv("TMPDIR"));
    int fd = open(own, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (fd >= 0) close(fd);
    any |= gone(link(own, made), made, 0);
    any |= gone(rename(own, made), made, 0);
    return any;
}

long writable(const char *list) {
    static char path[8192];
    FILE *file = fopen(list, "r");
    size_t len = 0;
    if (!file) return -1;
    for (int c; (c = fgetc(file)) != EOF;) {
        if (len < sizeof path - 1) path[len++] = (char)c;
        if (c) continue;
        len = 0;
        struct stat at;
        if (stat(path, &at)) continue;
        int can = S_ISDIR(at.st_mode) ? into(path) : opens(path, O_WRONLY) | opens(path, O_RDWR);
        if (S_ISREG(at.st_mode)) can |= truncate(path, at.st_size) == 0;
        if (can) printf("%s\n", path);
    }
    return 0;
}

/* Directories in each other below the temporary directory; each tenth has a file and a closed directory beside, and some
   their owner cannot empty. Each is put around those that are there: where one is made deep down, Landlock looks at all
   above it. */
long nested(const char *dir, long levels) {
    if (chdir(dir)) return -1;
    for (long level = 0; level < levels; level++) {
        if (mkdir("n", 0700)) return -1;
        if (level % 10 == 0) {
            int fd = open("n/file", O_CREAT | O_WRONLY | O_CLOEXEC, 0400);
            if (fd < 0 || close(fd) || mkdir("n/closed", 0000)) return -1;
        }
        if ((level && rename("d", "n/d")) || rename("n", "d")) return -1;
    }
    for (long level = 0; level < levels; level++) {
        if (chdir("d") || (level % 1000 == 999 && chmod(".", 0500))) return -1;
    }
    return 0;
}
