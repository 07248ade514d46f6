/* More of what probe.c does: ways around the filter of system calls, and at other processes. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/kcmp.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a fork'ed or clone'd child came to: 0 or -1 with errno, by its exit code. */
static long child(long pid) {
    int status = 0;
    if (pid <= 0) return pid;
    waitpid((pid_t)pid, &status, __WALL);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;
    errno = WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
    return -1;
}

/* A process of its own in new namespaces; raw, because the library would refuse flags it does not know. */
static long cloned(unsigned long flags) {
    long pid = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) _exit(0);
    return child(pid);
}

static long cloned3(unsigned long flags) {
    struct clone_args args = {.flags = flags, .exit_signal = SIGCHLD};
    long pid = syscall(SYS_clone3, &args, sizeof args);
    if (pid == 0) _exit(0);
    return child(pid);
}

/* The system call of a program of 32 bits, from one of 64. */
static long int80(long number, long a, long b, long c) {
    long result = -ENOSYS;
#ifdef __x86_64__
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory", "r8", "r9", "r10", "r11");
#else
    (void)number, (void)a, (void)b, (void)c;
#endif
    if (result < 0) { errno = (int)-result; return -1; }
    return result;
}

/* A signal that the kernel sends because of a file: the owner of a pipe is told of what comes. */
static long owned(int pid) {
    int ends[2];
    if (pipe(ends) || fcntl(ends[0], F_SETOWN, pid) || fcntl(ends[0], F_SETSIG, SIGTERM)) return -1;
    if (fcntl(ends[0], F_SETFL, O_ASYNC)) return -1;
    return write(ends[1], "x", 1);
}

static long traces_its_own(void) {
    int status;
    pid_t pid = fork();
    if (pid == 0) { for (;;) pause(); }
    long result = ptrace(PTRACE_SEIZE, pid, 0, 0);
    int why = errno;
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    errno = why;
    return result;
}

static long one_end(const char *how, const char *name) {
    int pair[2];
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    socklen_t len = offsetof(struct sockaddr_un, sun_path) + strlen(name) + 1;
    strcpy(at.sun_path, name);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) return -1;
    if (!strcmp(how, "connect")) return connect(pair[0], (void *)&at, len);
    if (bind(pair[0], (void *)&at, len)) return -1;
    return listen(pair[0], 1);
}

static long in_memory(void) {
    int fd = memfd_create("yoi-probe", 0);
    const char text[] = "#!/bin/sh\nexit 0\n";
    if (fd < 0 || write(fd, text, sizeof text - 1) < 0) return -1;
    char *args[] = {"x", 0};
    pid_t pid = fork();
    if (pid == 0) { fexecve(fd, args, args + 1); _exit(errno); }
    return child(pid);
}

static long unnamed(const char *dir, const char *name) {
    char from[64];
    int fd = open(dir, O_TMPFILE | O_RDWR, 0600);
    if (fd < 0) return -1;
    snprintf(from, sizeof from, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, from, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
}

static void list_descriptors(void) {
    char path[64], to[256];
    for (int fd = 0; fd < 1024; fd++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t len = readlink(path, to, sizeof to - 1);
        if (len < 0) continue;
        to[len] = 0;
        printf("%d %.4s\n", fd, to);
    }
}

/* Another process told to be scheduled as it is. A group that began outside of this namespace has no number. */
static long scheduled(const char *how, int pid) {
    int group = getpgid(pid);
    struct sched_param param = {0};
    struct { unsigned size, policy; unsigned long flags; int nice; unsigned priority; unsigned long deadline[3]; } attr = {sizeof attr};
    cpu_set_t set;
    errno = 0;
    if (!strcmp(how, "scheduler")) return sched_setscheduler(pid, SCHED_OTHER, &param);
    if (!strcmp(how, "param")) return sched_setparam(pid, &param);
    if (!strcmp(how, "attr")) return syscall(SYS_sched_setattr, pid, &attr, 0);
    if (!strcmp(how, "nice")) return setpriority(PRIO_PROCESS, pid, getpriority(PRIO_PROCESS, pid));
    if (!strcmp(how, "nice-group")) return setpriority(group ? PRIO_PGRP : PRIO_PROCESS, group ? group : pid, getpriority(PRIO_PROCESS, pid));
    if (!strcmp(how, "nice-user")) return setpriority(PRIO_USER, 0, 0);
    if (!strcmp(how, "io")) return syscall(SYS_ioprio_set, 1, pid, syscall(SYS_ioprio_get, 1, pid));
    if (!strcmp(how, "io-group")) return syscall(SYS_ioprio_set, group ? 2 : 1, group ? group : pid, 0);
    if (!strcmp(how, "io-user")) return syscall(SYS_ioprio_set, 3, getuid(), 0);
    return sched_getaffinity(pid, sizeof set, &set) ? -1 : sched_setaffinity(pid, sizeof set, &set);
}

/* What is done to a file that is open for reading only; nothing of it is changed. */
static long held(const char *how, const char *name) {
    unsigned char block[128] = {0};
    int fd = open(name, O_RDONLY), flags = 0;
    if (fd < 0) return -1;
    if (!strcmp(how, "lease")) return fcntl(fd, F_SETLEASE, F_RDLCK);
    if (!strcmp(how, "notify")) return fcntl(fd, F_NOTIFY, DN_MODIFY);
    if (!strcmp(how, "getflags")) return ioctl(fd, FS_IOC_GETFLAGS, &flags);
    if (!strcmp(how, "setflags")) return ioctl(fd, FS_IOC_GETFLAGS, &flags) ? -1 : ioctl(fd, FS_IOC_SETFLAGS, &flags);
    if (!strcmp(how, "setxattr")) return ioctl(fd, FS_IOC_FSGETXATTR, block) ? -1 : ioctl(fd, FS_IOC_FSSETXATTR, block);
    return ioctl(fd, strtoul(how, 0, 0), block);
}

/* -2 for an operation that is none of these. */
long escape(const char *op, const char *arg, const char *more) {
    int pid = atoi(arg);
    char byte = 0;
    if (!strcmp(op, "call")) return syscall(atol(arg), -1, -1, -1, -1, -1, -1);
    if (!strcmp(op, "int80")) return int80(20, 0, 0, 0);
    if (!strcmp(op, "int80-socket")) return int80(359, AF_INET, SOCK_STREAM, 0);
    if (!strcmp(op, "unshare")) return unshare((int)strtoul(arg, 0, 0));
    if (!strcmp(op, "clone")) return cloned(strtoul(arg, 0, 0));
    if (!strcmp(op, "clone3")) return cloned3(strtoul(arg, 0, 0));
    if (!strcmp(op, "mount")) return mount("none", arg, "tmpfs", 0, 0);
    if (!strcmp(op, "chroot")) return chroot(arg);
    if (!strcmp(op, "tgkill")) return syscall(SYS_tgkill, pid, pid, SIGTERM);
    if (!strcmp(op, "sigqueue")) return sigqueue(pid, SIGTERM, (union sigval){0});
    if (!strcmp(op, "pidfd-kill") || !strcmp(op, "pidfd-getfd")) {
        int fd = (int)syscall(SYS_pidfd_open, pid, 0);
        if (fd < 0) return -1;
        return op[6] == 'k' ? syscall(SYS_pidfd_send_signal, fd, SIGTERM, 0, 0) : syscall(SYS_pidfd_getfd, fd, 1, 0);
    }
    if (!strcmp(op, "owned")) return owned(pid);
    if (!strcmp(op, "kcmp")) return syscall(SYS_kcmp, pid, getpid(), KCMP_FILE, 1, 1);
    if (!strcmp(op, "move-pages")) return syscall(SYS_move_pages, pid, 0, 0, 0, 0, 0);
    if (!strcmp(op, "migrate-pages")) return syscall(SYS_migrate_pages, pid, 0, 0, 0);
    if (!strcmp(op, "robust-list")) { void *head; size_t len; return syscall(SYS_get_robust_list, pid, &head, &len); }
    if (!strcmp(op, "madvise")) {
        struct iovec all = {(void *)4096, 4096};
        return syscall(SYS_process_madvise, syscall(SYS_pidfd_open, pid, 0), &all, 1, MADV_PAGEOUT, 0);
    }
    if (!strcmp(op, "scheduled")) return scheduled(arg, atoi(more));
    if (!strcmp(op, "held")) return held(arg, more);
    if (!strcmp(op, "ioctl")) return syscall(SYS_ioctl, open("/dev/null", O_RDWR), strtoul(arg, 0, 0), &byte);
    if (!strcmp(op, "pair")) return one_end(arg, more);
    if (!strcmp(op, "traces-its-own")) return traces_its_own();
    if (!strcmp(op, "exec-memory")) return in_memory();
    if (!strcmp(op, "exchange")) return renameat2(AT_FDCWD, arg, AT_FDCWD, more, RENAME_EXCHANGE);
    if (!strcmp(op, "unnamed")) return unnamed(arg, more);
    if (!strcmp(op, "chmod")) return chmod(arg, 0600);
    if (!strcmp(op, "descriptors")) { list_descriptors(); return 0; }
    if (!strcmp(op, "raise-limit")) {
        struct rlimit limit;
        if (getrlimit(RLIMIT_NOFILE, &limit)) return -1;
        limit.rlim_cur = limit.rlim_max = limit.rlim_max + 1;
        return setrlimit(RLIMIT_NOFILE, &limit);
    }
    return -2;
}
