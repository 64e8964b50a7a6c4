/* SPDX-License-Identifier: BSD-3-Clause
 *
 * peer.c - see peer.h: which peers are wanted and there, and the supervisors as runnel bench sees them. What a
 * supervisor does is in peer_supervise.c. */
#include "peer.h"
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { QUIT_MS = 5000, END_MS = 10000 };

static int family_named(const char *name, size_t n)
{
    for (int f = 0; f < BENCH_PEER_NAMED; f++)
        if (strlen(bench_peer_name(f)) == n && !strncmp(bench_peer_name(f), name, n))
            return f;
    return -1;
}

int bench_peers_parse(const char *list, unsigned *apis, char *text, size_t size)
{
    for (const char *at = list;; at++) {
        size_t n = strcspn(at, ",");
        int f = family_named(at, n);
        unsigned found = 0;
        for (unsigned a = BENCH_OWN; a < BENCH_RPC; a++) {
            const char *name = bench_api_name(a);
            if (((int)bench_peer_family(a) == f && !(BENCH_ON_PROVIDER & 1u << a)) ||
                (strlen(name) == n && !strncmp(name, at, n)))
                found |= 1u << a;
        }
        if (!found) {
            snprintf(
                text, size,
                "there is no peer '%.*s': --peer takes openmpi, mpich, ucx, libfabric, corosync, or one of the rows "
                "openmpi brings besides: ompi-ucx; ucx: ucx-am, ucx-tag, ucx-put; or what stands on Runnel: provider, "
                "ompi-rnl, mpich-rnl",
                (int)(n < 32 ? n : 32), at);
            return -EINVAL;
        }
        *apis |= found;
        at += n;
        if (!*at)
            return 0;
    }
}

int bench_peers_prefix(struct bench_peers *p, const char *name_dir, char *text, size_t size)
{
    size_t n = strcspn(name_dir, "=");
    int f = family_named(name_dir, n);
    if (f < 0 || name_dir[n] != '=' || name_dir[n + 1] != '/') {
        snprintf(text, size,
                 "--peer-prefix %s: give the name of a peer and the full path of the folder under which it is "
                 "installed, such as openmpi=/opt/openmpi-5",
                 name_dir);
        return -EINVAL;
    }
    p->prefix[f] = name_dir + n + 1;
    return 0;
}

static bool is_there(const char *what)
{
    if (strchr(what, '/'))
        return access(what, R_OK) == 0;
    char name[PATH_MAX];
    for (const char *p = getenv("PATH"); p && *p;) {
        size_t n = strcspn(p, ":");
        snprintf(name, sizeof name, "%.*s/%s", (int)n, p, what);
        if (n && access(name, X_OK) == 0)
            return true;
        p += n + (p[n] == ':');
    }
    return false;
}

int bench_peers_present(struct bench_peers *p, unsigned apis, char *text, size_t size)
{
    char packages[256] = "", missing[512] = "", elsewhere[512] = "";
    unsigned asked = 0;
    if (apis & BENCH_ON_PROVIDER && !*p->provider) {
        snprintf(text, size,
                 "the provider for libfabric, librnl-fi.so, is neither beside this program nor installed: build Runnel "
                 "where libfabric-dev is, or leave provider, ompi-rnl and mpich-rnl out");
        return -ENOENT;
    }
    for (unsigned a = BENCH_OWN; a < BENCH_APIS; a++)
        if (apis & 1u << a)
            asked |= 1u << bench_peer_family(a);
    for (int f = 0; f < BENCH_PEER_FAMILIES; f++) {
        struct bench_words need = {0};
        if (!(asked & 1u << f))
            continue;
        bench_peer_needs(p, f, &need);
        for (unsigned i = 0; i < need.n; i++) {
            if (is_there(need.word[i]))
                continue;
            char *list = p->prefix[f] ? elsewhere : missing;
            size_t used = strlen(list), other = strlen(packages);
            snprintf(list + used, sizeof missing - used, "%s%s needs %s", used ? "; " : "", bench_peer_name(f),
                     need.word[i]);
            if (!p->prefix[f])
                snprintf(packages + other, sizeof packages - other, " %s", bench_peer_packages(f));
            break;
        }
    }
    if (*missing)
        snprintf(text, size,
                 "%s, which is not there. `scripts/setup peers` installs the Debian packages:%s; for another build "
                 "give --peer-prefix NAME=DIR",
                 missing, packages);
    else if (*elsewhere)
        snprintf(text, size, "%s, which is not there: is the folder of --peer-prefix the right one?", elsewhere);
    return *missing || *elsewhere ? -ENOENT : 0;
}

int bench_find_self(char out[PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);
    if (n <= 0)
        return -ENOENT;
    out[n] = 0;
    char *slash = strrchr(out, '/');
    if (slash)
        *slash = 0;
    return 0;
}

int bench_find_sources(char out[PATH_MAX])
{
    char self[PATH_MAX], probe[2 * PATH_MAX];
    if (bench_find_self(self))
        return -ENOENT;
    for (int i = 0; i < 2; i++) {
        snprintf(probe, sizeof probe, i == 0 ? "%s/../share/runnel/peers" : RNL_BENCH_SOURCES, self);
        if (!realpath(probe, out))
            continue;
        snprintf(probe, sizeof probe, "%s/bench/peers/common.h", out);
        if (access(probe, R_OK) == 0)
            return 0;
    }
    return -ENOENT;
}

static void open_pipes(struct bench_peers *p, unsigned apis)
{
    memset(p->sharers, 0, sizeof p->sharers);
    memset(p->made, 0xff, sizeof p->made);
    for (unsigned a = BENCH_APIS; a-- > BENCH_OWN;)
        if (apis & 1u << a) {
            p->maker[bench_peer_family(a)] = a;
            p->sharers[bench_peer_family(a)]++;
        }
    for (int f = 0; f < BENCH_PEER_FAMILIES; f++)
        if (p->sharers[f] > 1 && pipe2(p->made[f], O_CLOEXEC) < 0)
            p->made[f][0] = p->made[f][1] = -1; /* each compiles its own */
}

int bench_peers_start(struct bench_peers *p, struct bench_area *area, int area_fd, unsigned apis, char *text,
                      size_t size)
{
    p->area = area;
    bench_area_path(area_fd, p->area_path);
    if (apis >> BENCH_OWN == 0)
        return 0;
    if (bench_find_sources(p->sources)) {
        snprintf(text, size,
                 "the programs that measure peers are compiled when they are wanted, and their source is "
                 "neither in ../share/runnel/peers beside this command nor where it was built");
        return -ENOENT;
    }
    open_pipes(p, apis);
    fflush(NULL); /* or the forked ones would write it again */
    for (unsigned a = BENCH_OWN; a < BENCH_APIS; a++) {
        if (!(apis & 1u << a))
            continue;
        pid_t parent = getpid(), pid = fork();
        if (pid < 0) {
            snprintf(text, size, "could not start a process: %s", strerror(errno));
            return -EAGAIN;
        }
        if (pid == 0)
            _exit(bench_peer_supervise(p, a, parent));
        p->supervisor[a] = pid;
    }
    for (int f = 0; f < BENCH_PEER_FAMILIES; f++)
        for (int i = 0; i < 2; i++)
            if (p->made[f][i] >= 0)
                close(p->made[f][i]);
    return 0;
}

static unsigned wait_until_gone(struct bench_peers *p, unsigned apis, unsigned ms)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    uint64_t end = bench_now_ns() + (uint64_t)ms * 1000000u;
    for (;;) {
        unsigned left = 0;
        for (unsigned a = BENCH_OWN; a < BENCH_APIS; a++) {
            if (p->supervisor[a] && waitpid(p->supervisor[a], NULL, WNOHANG) != 0)
                p->supervisor[a] = 0;
            left |= p->supervisor[a] ? 1u << a : 0;
        }
        if (!(left & apis) || bench_now_ns() > end)
            return left & apis;
        nanosleep(&pause, NULL);
    }
}

static void end(struct bench_peers *p, unsigned apis)
{
    static const int how[] = {SIGTERM, SIGKILL};
    for (unsigned k = 0; k < 2 && apis; k++) {
        for (unsigned a = BENCH_OWN; a < BENCH_APIS; a++)
            if (apis & 1u << a && p->supervisor[a])
                kill(p->supervisor[a], how[k]);
        apis = wait_until_gone(p, apis, END_MS);
    }
}

void bench_peers_drop(void *peers, unsigned api)
{
    end(peers, 1u << api);
}

void bench_peers_end(struct bench_peers *p, bool failed)
{
    unsigned left = 0;
    for (unsigned a = BENCH_OWN; a < BENCH_APIS; a++)
        left |= p->supervisor[a] ? 1u << a : 0;
    if (!failed && left) {
        const struct bench_order quit = {.test = BENCH_QUIT};
        for (unsigned a = BENCH_OWN; a < BENCH_APIS; a++)
            if (left & 1u << a)
                bench_pair_order(&p->area->pair[a], &quit);
        left = wait_until_gone(p, left, QUIT_MS);
    }
    end(p, left);
}
