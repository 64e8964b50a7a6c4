/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shim.c - makes the n-th call fail. Preloaded into the programs of a job; stands before the functions of the C library
 * that set-up paths use, counts their calls, and lets one of them (or it and all later ones of the same function) fail
 * without being made. Set by the environment, which the launcher hands on to its ranks:
 *
 *   RNL_FAULT_PLACE  in which process: launcher (or a program that nobody launched), agent (of its host), startR (rank
 *                    R between fork and exec), rankR
 *   RNL_FAULT_AT     n, from 1 on
 *   RNL_FAULT_OF     count only the calls of this function
 *   RNL_FAULT_HOW    usual: the likeliest errno; other: a second one; intr: EINTR, only where a signal handler could
 *                    cause it; short: less than was asked for, or descriptors lost on their way; usual+, other+: from
 *                    then on all calls of that function
 *   RNL_FAULT_ERRNO  this number instead
 *   RNL_FAULT_LOG    a file that gets a line for the call that failed, and one for each descriptor that a program which
 *                    ends by exit() leaves open
 *   RNL_FAULT_ME     000; kept by the shim: 1 + rank
 *
 * A call is handed on with as many words as any of these functions takes, which the calling conventions of Linux allow.
 * What the C library calls within itself is not seen, but for malloc. */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum result { MINUS_ONE, NIL, NEGATIVE_MAP };
enum how { USUAL = 1, OTHER, INTR, SHORT };
enum { INTERRUPTIBLE = 1, SHORTENED = 2 };

/* X(identifier, symbol, usual errno, other errno, what a failure returns, INTERRUPTIBLE | SHORTENED) */
#define CALLS(X)                                                                    \
    X(aligned_alloc, "aligned_alloc", ENOMEM, ENOMEM, NIL, 0)                       \
    X(calloc, "calloc", ENOMEM, ENOMEM, NIL, 0)                                     \
    X(dup2, "dup2", EMFILE, EBUSY, MINUS_ONE, 0)                                    \
    X(epoll_create1, "epoll_create1", EMFILE, ENOMEM, MINUS_ONE, 0)                 \
    X(epoll_ctl, "epoll_ctl", ENOMEM, ENOSPC, MINUS_ONE, 0)                         \
    X(epoll_wait, "epoll_wait", EINTR, EINTR, MINUS_ONE, INTERRUPTIBLE)             \
    X(eventfd, "eventfd", EMFILE, ENFILE, MINUS_ONE, 0)                             \
    X(execvp, "execvp", ENOMEM, EACCES, MINUS_ONE, 0)                               \
    X(fcntl, "fcntl", EPERM, EMFILE, MINUS_ONE, 0)                                  \
    X(fcntl64, "fcntl64", EPERM, EMFILE, MINUS_ONE, 0)                              \
    X(fopen64, "fopen64", EMFILE, ENOENT, NIL, 0)                                   \
    X(fork, "fork", EAGAIN, ENOMEM, MINUS_ONE, 0)                                   \
    X(ftruncate, "ftruncate", EFBIG, ENOMEM, MINUS_ONE, 0)                          \
    X(ftruncate64, "ftruncate64", EFBIG, ENOMEM, MINUS_ONE, 0)                      \
    X(gethostname, "gethostname", EPERM, ENAMETOOLONG, MINUS_ONE, 0)                \
    X(getrandom, "getrandom", ENOSYS, EPERM, MINUS_ONE, 0)                          \
    X(getrlimit64, "getrlimit64", EPERM, EPERM, MINUS_ONE, 0)                       \
    X(getsockopt, "getsockopt", ENOBUFS, EPERM, MINUS_ONE, 0)                       \
    X(madvise, "madvise", EINVAL, ENOMEM, MINUS_ONE, 0)                             \
    X(malloc, "malloc", ENOMEM, ENOMEM, NIL, 0)                                     \
    X(memfd_create, "memfd_create", EMFILE, ENOSYS, MINUS_ONE, 0)                   \
    X(mmap, "mmap", ENOMEM, EPERM, NEGATIVE_MAP, 0)                                 \
    X(mmap64, "mmap64", ENOMEM, EPERM, NEGATIVE_MAP, 0)                             \
    X(mprotect, "mprotect", ENOMEM, EACCES, MINUS_ONE, 0)                           \
    X(open, "open", EMFILE, EACCES, MINUS_ONE, 0)                                   \
    X(open64, "open64", EMFILE, EACCES, MINUS_ONE, 0)                               \
    X(openat64, "openat64", EMFILE, EACCES, MINUS_ONE, 0)                           \
    X(pipe2, "pipe2", EMFILE, ENFILE, MINUS_ONE, 0)                                 \
    X(poll, "poll", EINTR, ENOMEM, MINUS_ONE, INTERRUPTIBLE)                        \
    X(prctl, "prctl", EPERM, EINVAL, MINUS_ONE, 0)                                  \
    X(pread64, "pread64", EIO, EACCES, MINUS_ONE, INTERRUPTIBLE)                    \
    X(read, "read", EIO, EIO, MINUS_ONE, INTERRUPTIBLE | SHORTENED)                 \
    X(readlinkat, "readlinkat", EACCES, ENOENT, MINUS_ONE, 0)                       \
    X(realloc, "realloc", ENOMEM, ENOMEM, NIL, 0)                                   \
    X(recvmsg, "recvmsg", ENOMEM, ECONNRESET, MINUS_ONE, INTERRUPTIBLE | SHORTENED) \
    X(sched_getaffinity, "sched_getaffinity", ENOSYS, EPERM, MINUS_ONE, 0)          \
    X(sched_setaffinity, "sched_setaffinity", EINVAL, EPERM, MINUS_ONE, 0)          \
    X(send, "send", ENOBUFS, EPIPE, MINUS_ONE, INTERRUPTIBLE)                       \
    X(sendmsg, "sendmsg", ENOBUFS, ETOOMANYREFS, MINUS_ONE, INTERRUPTIBLE)          \
    X(setpgid, "setpgid", EPERM, EACCES, MINUS_ONE, 0)                              \
    X(setrlimit64, "setrlimit64", EPERM, EINVAL, MINUS_ONE, 0)                      \
    X(setsockopt, "setsockopt", ENOBUFS, EPERM, MINUS_ONE, 0)                       \
    X(sigaction, "sigaction", EINVAL, EPERM, MINUS_ONE, 0)                          \
    X(signalfd, "signalfd", EMFILE, ENFILE, MINUS_ONE, 0)                           \
    X(sigprocmask, "sigprocmask", EINVAL, EPERM, MINUS_ONE, 0)                      \
    X(socketpair, "socketpair", EMFILE, ENFILE, MINUS_ONE, 0)                       \
    X(syscall, "syscall", ENOSYS, EMFILE, MINUS_ONE, 0)                             \
    X(waitid, "waitid", EINTR, EINTR, MINUS_ONE, INTERRUPTIBLE)                     \
    X(waitpid, "waitpid", EINTR, EINTR, MINUS_ONE, INTERRUPTIBLE)                   \
    X(write, "write", EIO, ENOSPC, MINUS_ONE, INTERRUPTIBLE | SHORTENED)

enum call {
#define NUMBER(id, symbol, usual, other, result, traits) CALL_##id,
    CALLS(NUMBER)
#undef NUMBER
        CALL_COUNT
};

typedef long function(long, long, long, long, long, long, long);
static const struct {
    const char *name;
    int usual, other, result, traits;
} calls[] = {
#define ROW(id, symbol, usual, other, result, traits) {symbol, usual, other, result, traits},
    CALLS(ROW)
#undef ROW
};

static struct {
    function *real[CALL_COUNT];
    _Atomic unsigned long count;
    unsigned long at;
    int on, how, lasting, number; /* on: this process is the place */
    _Atomic int failing;          /* 1 + the call that fails from now on */
    int of;                       /* 1 + the one that is counted */
    char *me;                     /* in the environment */
    const char *place, *log;
    unsigned forks;
    unsigned char had[1024];
} shim;
static _Thread_local int within
    __attribute__((tls_model("initial-exec"))); /* what the shim itself calls is not counted */

static function *real(enum call c)
{
    if (!shim.real[c]) {
        within++;
        *(void **)&shim.real[c] = dlsym(RTLD_NEXT, calls[c].name);
        within--;
    }
    return shim.real[c];
}

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
    char line[400];
    va_list args;
    if (!shim.log)
        return;
    within++;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    function *call = real(CALL_syscall);
    long fd = call(SYS_openat, -100 /* AT_FDCWD */, (long)shim.log, 02001 /* O_WRONLY | O_APPEND */, 0, 0, 0);
    if (fd >= 0) {
        call(SYS_write, fd, (long)line, n, 0, 0, 0);
        call(SYS_close, fd, 0, 0, 0, 0, 0);
    }
    within--;
}

static int is_open(int fd)
{
    return real(CALL_fcntl)(fd, 1 /* F_GETFD */, 0, 0, 0, 0, 0) != -1;
}

enum { AGENT = 998, GUARD = 999 }; /* what RNL_FAULT_ME is in processes that are no ranks */

static const char *my_place(char *text, size_t room, int started)
{
    int me = shim.me != NULL ? atoi(shim.me) : 0;
    if (me == 0 || me == AGENT)
        return me == 0 ? "launcher" : "agent";
    snprintf(text, room, "%s%d", started ? "start" : "rank", me - 1);
    return text;
}

static void begin(int started)
{
    char text[24];
    atomic_store(&shim.count, 0);
    atomic_store(&shim.failing, 0);
    shim.on = shim.place != NULL && strcmp(shim.place, my_place(text, sizeof text, started)) == 0;
}

__attribute__((constructor)) static void set_up(void)
{
    const char *of = getenv("RNL_FAULT_OF"), *how = getenv("RNL_FAULT_HOW"), *at = getenv("RNL_FAULT_AT");
    const char *number = getenv("RNL_FAULT_ERRNO");
    within++;
    for (int i = 0; i < CALL_COUNT; i++) {
        (void)real((enum call)i);
        if (of != NULL && strcmp(of, calls[i].name) == 0)
            shim.of = i + 1;
    }
    shim.me = getenv("RNL_FAULT_ME");
    shim.place = getenv("RNL_FAULT_PLACE");
    shim.log = getenv("RNL_FAULT_LOG");
    shim.at = at != NULL ? strtoul(at, NULL, 10) : 0;
    shim.number = number != NULL ? atoi(number) : 0;
    shim.how = !how || how[0] == 'u' ? USUAL : how[0] == 'o' ? OTHER : how[0] == 'i' ? INTR : SHORT;
    shim.lasting = how != NULL && strchr(how, '+') != NULL;
    for (int fd = 0; fd < (int)sizeof shim.had; fd++)
        shim.had[fd] = (unsigned char)is_open(fd);
    begin(0);
    within--;
}

__attribute__((destructor)) static void tear_down(void)
{
    char place[24], path[40], target[200];
    within++;
    for (int fd = 0; fd < (int)sizeof shim.had; fd++) {
        if (shim.had[fd] || !is_open(fd))
            continue;
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(path, target, sizeof target - 1);
        target[n > 0 ? n : 0] = '\0';
        note("left %s %d %s\n", my_place(place, sizeof place, 0), fd, target);
    }
    within--;
}

static int suits(enum call c)
{
    if (shim.how == INTR)
        return calls[c].traits & INTERRUPTIBLE;
    if (shim.how == SHORT)
        return calls[c].traits & SHORTENED;
    int number = shim.how == OTHER ? calls[c].other : calls[c].usual;
    if (shim.how == OTHER && number == calls[c].usual)
        return 0;                            /* has been tried */
    return !shim.lasting || number != EINTR; /* nobody is interrupted for ever */
}

/* libuv takes for granted its signal pipe, epoll, signal handlers and the growth of its table, and aborts: calls of
 * these kinds that it makes itself are left alone. */
static int libuv_relies_on(enum call c, const void *caller)
{
    Dl_info where;
    return (c == CALL_read || c == CALL_write || c == CALL_epoll_ctl || c == CALL_epoll_wait || c == CALL_sigaction ||
            c == CALL_sigprocmask || c == CALL_realloc || c == CALL_pipe2) &&
           dladdr(caller, &where) && where.dli_fname && strstr(where.dli_fname, "libuv.so");
}

/* 1 = this call is the one. */
static int strikes(enum call c, const void *caller)
{
    char place[24];
    Dl_info where = {.dli_fname = NULL};
    if (!shim.on || within || shim.at == 0 || libuv_relies_on(c, caller))
        return 0;
    if (atomic_load_explicit(&shim.failing, memory_order_relaxed) == 1 + (int)c)
        return 1;
    if ((shim.of != 0 && shim.of != 1 + (int)c) || !suits(c) || atomic_fetch_add(&shim.count, 1) + 1 != shim.at)
        return 0;
    if (shim.lasting)
        atomic_store(&shim.failing, 1 + (int)c);
    within++;
    int found = dladdr(caller, &where);
    note("failed %s %lu %s %s+0x%lx\n", shim.place, shim.at, calls[c].name,
         found && where.dli_fname != NULL ? where.dli_fname : my_place(place, sizeof place, 0),
         found ? (unsigned long)((const char *)caller - (const char *)where.dli_fbase) : 0ul);
    within--;
    return 1;
}

/* Less than was asked for, but something; a packet without its descriptors. */
static long shortened(enum call c, long a, long b, long n)
{
    struct msghdr *msg = (struct msghdr *)b;
    if (c != CALL_recvmsg)
        return real(c)(a, b, n > 1 && n % 8 != 0 ? n / 2 : n, 0, 0, 0, 0); /* counters and signals come whole */
    long got = real(c)(a, b, n, 0, 0, 0, 0);
    if (got < 0)
        return got;
    for (struct cmsghdr *m = CMSG_FIRSTHDR(msg); m != NULL; m = CMSG_NXTHDR(msg, m)) {
        if (m->cmsg_level != SOL_SOCKET || m->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; CMSG_LEN(i + sizeof(int)) <= m->cmsg_len; i += sizeof(int)) {
            int fd;
            memcpy(&fd, CMSG_DATA(m) + i, sizeof fd);
            close(fd);
        }
        msg->msg_flags |= MSG_CTRUNC;
        msg->msg_controllen = 0;
        break;
    }
    return got;
}

static long failed(enum call c)
{
    errno = shim.number != 0    ? shim.number
            : shim.how == INTR  ? EINTR
            : shim.how == OTHER ? calls[c].other
                                : calls[c].usual;
    return calls[c].result == NIL ? 0 : -1; /* MAP_FAILED is -1 too */
}

/* The launcher starts its agent, and the agent a guard, and then the ranks. For a rank this is the place of what runs
 * in the child until it executes the program, and of that program, which gets the environment that the agent was
 * sent. */
static long forked(void)
{
    const int number = atoi(shim.me) == 0 ? AGENT : shim.forks++ > 0 ? (int)shim.forks - 1 : GUARD;
    long child = real(CALL_fork)(0, 0, 0, 0, 0, 0, 0);
    if ((int)child == 0) {
        const char digits[3] = {(char)('0' + number / 100 % 10), (char)('0' + number / 10 % 10),
                                (char)('0' + number % 10)};
        shim.me = getenv("RNL_FAULT_ME");
        memcpy(shim.me, digits, sizeof digits);
        begin(1);
    }
    return child;
}

/* Questions about a descriptor that there is cannot fail. */
static int asks_only(enum call c, long command)
{
    return (c == CALL_fcntl || c == CALL_fcntl64) && (command == 1 /* F_GETFD */ || command == 1034 /* F_GET_SEALS */);
}

static long handle(enum call c, const void *caller, long a, long b, long d, long e, long f, long g, long h)
{
    if (!asks_only(c, b) && strikes(c, caller))
        return shim.how == SHORT ? shortened(c, a, b, d) : failed(c);
    if (c == CALL_fork && shim.me != NULL && (atoi(shim.me) == 0 || atoi(shim.me) == AGENT))
        return forked();
    return real(c)(a, b, d, e, f, g, h);
}

/* Their own prototypes would say more than is needed here, so they get other names in C. */
#define DEFINE(id, symbol, usual, other, result, traits)                                           \
    EXPORT long shim_##id(long a, long b, long c, long d, long e, long f, long g) __asm__(symbol); \
    long shim_##id(long a, long b, long c, long d, long e, long f, long g)                         \
    {                                                                                              \
        return handle(CALL_##id, __builtin_return_address(0), a, b, c, d, e, f, g);                \
    }
CALLS(DEFINE)
