/* Tries one thing and prints "ok" or the errno it failed with. Run by sandbox.rs inside and outside of a sandbox. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pty.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

long escape(const char *op, const char *arg, const char *more); /* in escape.c */
long writable(const char *list); /* in writable.c, with the next */
long nested(const char *dir, long levels);

static int say(long result) {
    if (result >= 0) { puts("ok"); return 0; }
    printf("%s\n", strerrorname_np(errno));
    return 1;
}

static long read_one(const char *path) {
    char byte;
    int fd = open(path, O_RDONLY);
    return fd < 0 ? -1 : read(fd, &byte, 1);
}

static long unix_to(const char *name, int type, int fd) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    socklen_t len = offsetof(struct sockaddr_un, sun_path) + strlen(name) + (name[0] != '@');
    strcpy(at.sun_path, name);
    if (name[0] == '@') at.sun_path[0] = 0;
    if (fd < 0) fd = socket(AF_UNIX, type, 0);
    if (fd < 0) return -1;
    return type == SOCK_STREAM ? connect(fd, (void *)&at, len) : sendto(fd, "x", 1, 0, (void *)&at, len);
}

static long tcp_to(const char *port) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(atoi(port)), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    return fd < 0 ? -1 : connect(fd, (void *)&at, sizeof at);
}

int main(int argc, char **argv) {
    const char *op = argv[1], *arg = argc > 2 ? argv[2] : "", *more = argc > 3 ? argv[3] : "";
    char byte = 0, block[256] = {0};
    int pair[2];
    if (!strcmp(op, "read")) return say(read_one(arg));
    if (!strcmp(op, "list")) return say(open(arg, O_RDONLY | O_DIRECTORY));
    if (!strcmp(op, "write")) return say(open(arg, O_WRONLY | O_CREAT | O_APPEND, 0600));
    if (!strcmp(op, "put")) return say(write(open(arg, O_WRONLY), "0", 1));
    if (!strcmp(op, "truncate")) return say(truncate(arg, 0));
    if (!strcmp(op, "mkdir")) return say(mkdir(arg, 0700));
    if (!strcmp(op, "writable")) return say(writable(arg));
    if (!strcmp(op, "nested")) return say(nested(getenv(arg), atol(more)));
    if (!strcmp(op, "unlink")) return say(unlink(arg));
    if (!strcmp(op, "rename")) return say(rename(arg, more));
    if (!strcmp(op, "link")) return say(link(arg, more));
    if (!strcmp(op, "symlink")) return say(symlink(arg, more));
    if (!strcmp(op, "mkfifo")) return say(mkfifo(arg, 0600));
    if (!strcmp(op, "mknod")) return say(mknod(arg, S_IFCHR | 0600, makedev(1, 3)));
    if (!strcmp(op, "socket")) return say(socket(atoi(arg), atoi(more), 0));
    if (!strcmp(op, "socketpair")) return say(socketpair(AF_UNIX, atoi(arg), 0, pair));
    if (!strcmp(op, "socketpair-of")) return say(socketpair(atoi(arg), SOCK_STREAM, 0, pair));
    if (!strcmp(op, "tcp")) return say(tcp_to(arg));
    if (!strcmp(op, "unix")) return say(unix_to(arg, SOCK_STREAM, -1));
    if (!strcmp(op, "pair-sendto")) {
        if (socketpair(AF_UNIX, atoi(more), 0, pair)) return say(-1);
        return say(unix_to(arg, SOCK_DGRAM, pair[0]));
    }
    if (!strcmp(op, "io_uring")) return say(syscall(SYS_io_uring_setup, 1, block));
    if (!strcmp(op, "x32")) return say(syscall(0x40000000 | SYS_getpid));
    if (!strcmp(op, "add_key")) return say(syscall(SYS_add_key, "user", "yoi-probe", "x", 1, -3));
    if (!strcmp(op, "shmget")) return say(syscall(SYS_shmget, 0, 4096, 0600));
    /* Of what is there already, by a number that is nobody's. */
    if (!strcmp(op, "shmctl")) return say(syscall(SYS_shmctl, -1, 2, block));
    if (!strcmp(op, "semctl")) return say(syscall(SYS_semctl, -1, 0, 2, block));
    if (!strcmp(op, "semop")) return say(syscall(SYS_semop, -1, block, 1));
    if (!strcmp(op, "semtimedop")) return say(syscall(SYS_semtimedop, -1, block, 1, 0));
    if (!strcmp(op, "msgsnd")) return say(syscall(SYS_msgsnd, -1, "yoi-probe", 1, 04000));
    if (!strcmp(op, "msgrcv")) return say(syscall(SYS_msgrcv, -1, block, 1, 0, 04000));
    if (!strcmp(op, "msgctl")) return say(syscall(SYS_msgctl, -1, 2, block));
    if (!strcmp(op, "mq_unlink")) return say(syscall(SYS_mq_unlink, "yoi-probe-absent"));
    if (!strcmp(op, "kill")) return say(kill(atoi(arg), atoi(more)));
    if (!strcmp(op, "ptrace")) {
        long result = ptrace(PTRACE_SEIZE, atoi(arg), 0, 0);
        if (!result) ptrace(PTRACE_DETACH, atoi(arg), 0, 0);
        return say(result);
    }
    if (!strcmp(op, "peek")) {
        struct iovec here = {&byte, 1}, there = {(void *)strtoul(more, 0, 10), 1};
        return say(process_vm_readv(atoi(arg), &here, 1, &there, 1, 0));
    }
    if (!strcmp(op, "prlimit")) {
        struct rlimit limit;
        return say(prlimit(atoi(arg), RLIMIT_CORE, 0, &limit));
    }
    if (!strcmp(op, "setrlimit")) {
        /* Down to what it is, which anybody may. "raw": by the call that the C library no longer uses. */
        struct rlimit limit;
        if (prlimit(0, atoi(arg), 0, &limit)) return say(-1);
        return say(!strcmp(more, "raw") ? syscall(SYS_setrlimit, atoi(arg), &limit) : prlimit(0, atoi(arg), &limit, 0));
    }
    if (!strcmp(op, "tiocsti")) {
        /* Into a terminal of its own where there is one: the answer is the filter's or the driver's. */
        int fd = open("/dev/null", O_RDWR);
        return say(ioctl(fd, TIOCSTI, &byte));
    }
    if (!strcmp(op, "openpty")) {
        int master, slave;
        return say(openpty(&master, &slave, 0, 0, 0));
    }
    if (!strcmp(op, "nnp-root")) return say(read_one("/proc/kcore"));
    if (!strcmp(op, "daemon")) {
        /* Forks twice with a session in between; the last writes a byte into the file when it lives long. */
        if (fork() == 0) {
            setsid();
            if (fork() == 0) {
                if (!strcmp(more, "bare")) { char *env[] = {0}; execle("/bin/sleep", "sleep", arg, (char *)0, env); _exit(9); }
                if (!strcmp(more, "quiet")) { close(0); close(1); close(2); }
                sleep(atoi(arg));
                _exit(0);
            }
            _exit(0);
        }
        wait(0);
        puts("ok");
        return 0;
    }
    if (!strcmp(op, "stop")) { puts("stopping"); fflush(stdout); raise(SIGSTOP); puts("continued"); return 0; }
    if (!strcmp(op, "stubborn")) { signal(SIGTERM, SIG_IGN); puts("ready"); fflush(stdout); for (;;) pause(); }
    if (!strcmp(op, "polite")) { puts("ready"); fflush(stdout); for (;;) pause(); }
    if (!strcmp(op, "flood")) { memset(block, 'x', sizeof block); for (long n = atol(arg); n > 0; n -= sizeof block) if (write(1, block, sizeof block) < 0) return 1; return 0; }
    long escaped = escape(op, arg, more);
    if (escaped != -2) return say(escaped);
    puts("unknown");
    return 2;
}
