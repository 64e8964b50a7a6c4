/* SPDX-License-Identifier: BSD-3-Clause
 *
 * daemon_name.c - how daemons are found and started: the abstract names at which they listen, and who does so there. */
#include "base/error.h"
#include "meet/daemon_internal.h"
#include "meet/proto.h"
#include "meet/who.h"
#include "runnel/runnel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BACKLOG = 128, SUFFIX_BYTES = 8 };

const char *rnl_daemon_named(void)
{
    char copy[RNL_MEET_NAME_BYTES];
    const char *text = secure_getenv("RUNNEL_DAEMON");
    return text && rnl_meet_name(text, copy) ? text : NULL;
}

/* Sets the name of the daemon of that user, or of the node's, and with a suffix one by which it is found only by who
 * looks for it. Returns the length of the address. */
static socklen_t name_of(const char *name, bool of_node, uid_t uid, const char *suffix, struct sockaddr_un *out)
{
    char whose[16];
    snprintf(whose, sizeof whose, of_node ? "node" : "%u", (unsigned)uid);
    memset(out, 0, sizeof *out);
    out->sun_family = AF_UNIX;
    int n = snprintf(out->sun_path + 1, sizeof out->sun_path - 1, "runnel-daemon-%s%s%s%s%s", name ? name : "",
                     name ? "-" : "", whose, *suffix ? "-" : "", suffix);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

/* Connects to an abstract address whose listener is of that user, or root. Returns the socket or -errno; -EPERM:
 * another user listens there. */
static int connect_to(const struct sockaddr_un *at, socklen_t bytes, uid_t uid)
{
    struct rnl_who who;
    int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (sock < 0)
        return -errno;
    int e = connect(sock, (const struct sockaddr *)at, bytes) < 0 ? -errno : 0;
    if (e == 0)
        e = rnl_who_at(sock, &who);
    if (e == 0 && who.uid != uid && who.uid != 0)
        e = -EPERM;
    if (e < 0)
        close(sock);
    return e < 0 ? e : sock;
}

/* Connects to a daemon of that user that listens at a name with a suffix, other than `own`: the kernel's list has all
 * names, and nobody can take them all. Sets *at to its name. Returns the socket, -EAGAIN or -ECONNREFUSED. */
static int search(const char *name, bool of_node, uid_t uid, const char *own, struct sockaddr_un *at)
{
    char line[512], found[108];
    int busy = 0, sock = -1;
    struct sockaddr_un first;
    (void)name_of(name, of_node, uid, "", &first);
    const size_t n = strlen(first.sun_path + 1);
    FILE *f = fopen("/proc/net/unix", "re");
    while (f && sock < 0 && fgets(line, sizeof line, f)) {
        /* address, references, protocol, flags (listens), type (SOCK_SEQPACKET), state, inode, name */
        if (sscanf(line, "%*s %*s %*s 00010000 0005 %*s %*s @%107s", found) != 1 || strlen(found) <= n + 1 ||
            strncmp(found, first.sun_path + 1, n) != 0 || found[n] != '-' ||
            strspn(found + n + 1, "0123456789abcdef") != 2 * (size_t)SUFFIX_BYTES ||
            strlen(found + n + 1) != 2 * (size_t)SUFFIX_BYTES || (own && strcmp(found, own) == 0))
            continue;
        socklen_t bytes = name_of(name, of_node, uid, found + n + 1, at);
        sock = connect_to(at, bytes, uid);
        busy |= sock == -EAGAIN;
    }
    if (f)
        fclose(f);
    return sock >= 0 ? sock : busy ? -EAGAIN : -ECONNREFUSED;
}

/* A listener who lets nobody in cannot be told from a daemon that is busy: the others are looked at, too. */
static int find(const char *name, bool of_node, uid_t uid)
{
    struct sockaddr_un at;
    socklen_t bytes = name_of(name, of_node, uid, "", &at);
    int first = connect_to(&at, bytes, uid);
    if (first >= 0 || (first != -ECONNREFUSED && first != -EPERM && first != -EAGAIN))
        return first;
    int sock = search(name, of_node, uid, NULL, &at);
    return sock >= 0 || first != -EAGAIN ? sock : -EAGAIN;
}

int rnl_daemon_connect(uid_t uid, const char *name)
{
    int sock = find(name, false, uid);
    if (sock != -ECONNREFUSED && sock != -EAGAIN)
        return sock;
    int of_node = find(name, true, 0);
    return of_node >= 0 ? of_node : sock;
}

/* Binds the first name or, where somebody else has it, one that cannot be known before. 0; RNL_ERR_REFUSED: a daemon of
 * this user listens there; -errno. */
static int bind_name(const struct rnl_daemon_options *opt, int sock, uid_t uid, struct sockaddr_un *at)
{
    uint64_t random;
    char suffix[2 * SUFFIX_BYTES + 1];
    socklen_t bytes = name_of(opt->name, opt->of_node, uid, "", at);
    if (bind(sock, (const struct sockaddr *)at, bytes) == 0)
        return 0;
    int other = errno == EADDRINUSE ? -ECONNREFUSED : -errno;
    for (int i = 0; i < opt->attempts && (other == -ECONNREFUSED || other == -EAGAIN); i++) {
        other = connect_to(at, bytes, uid);
        if (other == -ECONNREFUSED || other == -EAGAIN) /* it may be about to listen, or busy */
            (void)poll(NULL, 0, 10);
    }
    if (other >= 0) {
        close(other);
        return RNL_ERR_REFUSED;
    }
    if (other != -ECONNREFUSED && other != -EAGAIN && other != -EPERM)
        return other;
    if (getrandom(&random, sizeof random, 0) != sizeof random)
        return -errno;
    snprintf(suffix, sizeof suffix, "%016llx", (unsigned long long)random);
    bytes = name_of(opt->name, opt->of_node, uid, suffix, at);
    return bind(sock, (const struct sockaddr *)at, bytes) < 0 ? -errno : 0;
}

/* Whether another daemon of this user is to go on instead of this one, which listens already. Of two that begin at once
 * each sees the other, and the one with the lesser name goes on; one that was there before does not go away. */
static bool is_one_too_many(const struct rnl_daemon_options *opt, uid_t uid, const char *own)
{
    for (int i = 0; i <= opt->attempts; i++) {
        struct sockaddr_un at;
        int other = search(opt->name, opt->of_node, uid, own, &at);
        if (other < 0)
            return false;
        close(other);
        if (strcmp(at.sun_path + 1, own) < 0)
            return true;
        (void)poll(NULL, 0, 10);
    }
    return true;
}

int rnl_daemon_listen(const struct rnl_daemon_options *opt)
{
    char copy[RNL_MEET_NAME_BYTES];
    struct sockaddr_un at;
    uid_t uid = geteuid();
    if (opt->name && (!rnl_meet_name(opt->name, copy) || strlen(opt->name) > 40))
        return rnl_fail(RNL_ERR_ARG, "'%.70s' is no name of a daemon: up to 40 letters, digits and ._-", opt->name);
    if (opt->of_node && uid != 0)
        return rnl_fail(RNL_ERR_ARG, "the daemon of the node is root's: processes trust no other one with all users");
    int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (sock < 0)
        return rnl_fail_errno(RNL_ERR_SYSTEM, errno, "cannot make a socket");
    int e = bind_name(opt, sock, uid, &at);
    if (e == 0 && listen(sock, BACKLOG) < 0)
        e = -errno;
    if (e == 0 && is_one_too_many(opt, uid, at.sun_path + 1))
        e = RNL_ERR_REFUSED;
    if (e == 0)
        return sock;
    close(sock);
    if (e == RNL_ERR_REFUSED)
        return rnl_fail(e, "a daemon of this %s runs already", opt->of_node ? "node" : "user");
    return rnl_fail_errno(RNL_ERR_SYSTEM, -e, "the daemon cannot listen at an abstract socket");
}

/* ---- starting ---- */

/* Where this process has more rights than who started it, PATH is not trusted. The daemon is of all processes of the
 * user: nothing else of this one's environment is for it. */
int rnl_daemon_start(pid_t *child)
{
    static const char installed[] = RNL_BINDIR "/runnel";
    char command[] = "runnel", sub[] = "daemon", option[] = "--background", *argv[] = {command, sub, option, NULL};
    char path[4096 + 8], named[RNL_MEET_NAME_BYTES + 16], *env[3] = {NULL, NULL, NULL}, **next = env;
    const char *text = secure_getenv("PATH");
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    if (text && strlen(text) < 4096) {
        snprintf(path, sizeof path, "PATH=%s", text);
        *next++ = path;
    }
    if (rnl_daemon_named()) {
        snprintf(named, sizeof named, "RUNNEL_DAEMON=%s", rnl_daemon_named());
        *next++ = named;
    }
    if (posix_spawn_file_actions_init(&files) != 0)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory to start the daemon");
    if (posix_spawnattr_init(&how) != 0) {
        posix_spawn_file_actions_destroy(&files);
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory to start the daemon");
    }
    for (int fd = 0; fd < 3; fd++)
        (void)posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
    (void)posix_spawn_file_actions_addclosefrom_np(&files, 3);
    (void)posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
    (void)posix_spawnattr_setsigmask(&how, &none);
    (void)posix_spawnattr_setsigdefault(&how, &all);
    int e = getauxval(AT_SECURE) ? ENOENT : posix_spawnp(child, command, &files, &how, argv, env);
    if (e != 0)
        e = posix_spawn(child, installed, &files, &how, argv, env);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&how);
    return e == 0 ? 0
                  : rnl_fail_errno(RNL_ERR_UNREACHABLE, e, "cannot start `runnel daemon`, neither from PATH nor as %s",
                                   installed);
}

int rnl_daemon_started(pid_t *child)
{
    int status = 0;
    if (*child <= 0)
        return 1;
    pid_t ended = waitpid(*child, &status, WNOHANG);
    if (ended == 0 || (ended < 0 && errno == EINTR))
        return 0;
    *child = 0;
    return ended > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 127
               ? rnl_fail(RNL_ERR_UNREACHABLE, "`runnel daemon` cannot be executed")
               : 1;
}
