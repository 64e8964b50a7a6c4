/* SPDX-License-Identifier: BSD-3-Clause
 *
 * keeper.c - see keeper.h: its loop, and how ranks come in. What keepers of several hosts have in common is in
 * keeper_hosts.c. */
#include "job/keeper_in.h"

#include "base/env.h"
#include "base/error.h"
#include "job/fds.h"
#include "job/net.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ANSWER_BYTES = 16384 };
static const uint64_t come_ns = 60000000000; /* for all ranks to come in; they all are in rnl_open */

struct knock {
    unsigned char secret[RNL_KEEPER_SECRET];
    uint32_t rank;
};
/* Answers: 'R' with the door; 'V' and what was tried in vain; 'E' and a sentence. */

/* ---- ranks come in ---- */

static int is_ours(const struct keep *k, uint32_t rank)
{
    return rank < k->plan->size && (k->plan->hosts < 2 || k->plan->host_of[rank] == k->plan->host);
}

/* The others are not to wait for it. */
static void never_came(struct keep *k, uint32_t rank)
{
    if (k->agent != NULL)
        rnl_agent_exited(k->agent, rank, 0, -1, rnl_host_now_ns(NULL));
}

static void answer(struct keep *k, uint32_t rank, int fd)
{
    int door;
    if (k->failed) {
        rnl_packet_send(fd, k->said.at, k->said.bytes, NULL, 0, 0);
    } else if (rnl_agent_door(k->agent, rank, &door) == 0) {
        rnl_packet_send(fd, "R", 1, &door, 1, 0);
        close(door);
    } else {
        never_came(k, rank);
    }
    close(fd);
    k->came++;
}

void rnl_keep_fail(struct keep *k, char how, const void *at, size_t bytes)
{
    k->failed = 1;
    rnl_pack_bytes(&k->said, &how, 1);
    rnl_pack_bytes(&k->said, at, bytes);
}

/* Those who knocked before it was known what to say. */
static void answer_all(struct keep *k)
{
    for (uint32_t i = 0; i < k->plan->size; i++)
        if (k->waits[i] >= 0) {
            answer(k, i, k->waits[i]);
            k->waits[i] = -1;
        }
}

/* Who knows the secret gets the door of its rank; anybody else, the end of the connection. */
static void serve_guest(struct keep *k, int slot)
{
    struct knock said;
    struct rnl_packet p;
    int fd = k->guest[slot];
    int e = rnl_packet_receive(fd, &said, sizeof said, 0, &p, 0);
    if (e == -EAGAIN)
        return;
    unsigned char different = 0;
    for (size_t i = 0; e == 0 && i < RNL_KEEPER_SECRET; i++)
        different |= said.secret[i] ^ k->plan->where.secret[i];
    k->guest[slot] = -1;
    if (e < 0 || p.n != sizeof said || p.cut || different != 0 || !is_ours(k, said.rank) || k->had[said.rank]) {
        close(fd);
        return;
    }
    k->had[said.rank] = 1;
    if (k->agent != NULL || k->failed)
        answer(k, said.rank, fd);
    else
        k->waits[said.rank] = fd;
}

/* 0, or -1: there is no descriptor for it. */
static int accept_guest(struct keep *k)
{
    int fd = accept4(k->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct ucred who = {.uid = (uid_t)-1};
    socklen_t n = sizeof who;
    int slot = 0;
    if (fd < 0)
        return errno == EMFILE || errno == ENFILE ? -1 : 0;
    while (slot < GUESTS && k->guest[slot] >= 0)
        slot++;
    if (slot == GUESTS) { /* those who are here first have said nothing: the oldest goes */
        close(k->guest[0]);
        memmove(k->guest, k->guest + 1, (GUESTS - 1) * sizeof k->guest[0]);
        slot = GUESTS - 1;
    }
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) < 0 || who.uid != geteuid()) {
        close(fd);
        fd = -1;
    }
    k->guest[slot] = fd;
    return 0;
}

/* ---- the loop ---- */

static int wait_ms(uint64_t now, uint64_t at)
{
    return at == UINT64_MAX ? -1 : at <= now ? 0 : (int)((at - now) / 1000000 % 60000) + 1;
}

static uint64_t earliest(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Whether somebody needs it: until the last rank is gone, whose door has no other end then. */
static int is_needed(struct keep *k, uint64_t now)
{
    if (k->listener >= 0)
        return 1;
    if (k->failed)
        return 0;
    return rnl_agent_here(k->agent) > 0 || (k->plan->hosts > 1 && rnl_keep_stays(k, now));
}

static void serve(struct keep *k)
{
    uint64_t now = rnl_host_now_ns(NULL), until = now + come_ns;
    struct rnl_agent_death d;
    if (k->plan->hosts < 2)
        rnl_keep_make_agent(k, NULL);
    while (!k->ended && is_needed(k, now)) {
        struct pollfd p[GUESTS + 3] = {{.fd = k->agent != NULL ? rnl_agent_fd(k->agent) : -1, .events = POLLIN},
                                       {.fd = k->listener, .events = POLLIN},
                                       {.fd = k->plan->hosts > 1 ? k->plan->probe : -1, .events = POLLIN}};
        for (int i = 0; i < GUESTS; i++)
            p[i + 3] = (struct pollfd){.fd = k->guest[i], .events = POLLIN};
        uint64_t at = k->agent != NULL ? rnl_agent_deadline_ns(k->agent) : UINT64_MAX;
        at = earliest(at, k->listener >= 0 ? until : UINT64_MAX);
        if (k->plan->hosts > 1)
            at = earliest(at, rnl_keep_deadline_ns(k));
        (void)poll(p, GUESTS + 3, wait_ms(now, at));
        now = rnl_host_now_ns(NULL);
        for (int i = 0; i < GUESTS; i++)
            if (k->guest[i] >= 0 && p[i + 3].revents)
                serve_guest(k, i);
        if (k->listener >= 0 && p[1].revents && accept_guest(k) < 0)
            (void)poll(NULL, 0, 10); /* it stays readable */
        if (k->plan->hosts > 1)
            rnl_keep_step(k, now);
        if (k->agent != NULL || k->failed)
            answer_all(k);
        if (k->agent != NULL) {
            rnl_agent_step(k->agent, now);
            while (rnl_agent_next_death(k->agent, &d))
                ;
        }
        if (k->listener >= 0 && (k->came == k->plan->count || now >= until)) {
            close(k->listener);
            k->listener = -1;
            for (uint32_t i = 0; i < k->plan->size; i++)
                if (is_ours(k, i) && !k->had[i])
                    never_came(k, i);
        }
    }
}

/* ---- its process ---- */

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* What the program had open is not ours to keep open. */
static void close_others(const struct rnl_keeper *plan)
{
    int keep[RNL_JOB_RANKS_MAX + 3], n = 0;
    keep[n++] = plan->listener;
    for (uint32_t i = 0; plan->hosts > 1 && i < plan->count; i++)
        keep[n++] = plan->sockets[i];
    if (plan->hosts > 1)
        keep[n++] = plan->probe;
    qsort(keep, (size_t)n, sizeof keep[0], by_number);
    unsigned from = 3;
    for (int i = 0; i < n; i++) {
        if ((unsigned)keep[i] > from)
            syscall(SYS_close_range, from, (unsigned)keep[i] - 1, 0u);
        from = (unsigned)keep[i] + 1;
    }
    syscall(SYS_close_range, from, UINT32_MAX, 0u);
}

/* Out of the way of 0, 1 and 2, which a program may have closed. */
static int above_standard(int *fd)
{
    int up = *fd < 0 || *fd > 2 ? *fd : fcntl(*fd, F_DUPFD_CLOEXEC, 3);
    if (up < 0 && *fd >= 0)
        return -errno;
    if (up != *fd)
        close(*fd);
    *fd = up;
    return 0;
}

static _Noreturn void be_keeper(struct rnl_keeper *plan)
{
    struct keep *k = calloc(1, sizeof *k);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct rlimit files;
    setsid();
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_NAME, "runnel-agent");
    for (int fd = 0; fd < 3 && null >= 0; fd++)
        dup2(null, fd);
    close_others(plan);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) { /* several for each rank */
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    if (k == NULL)
        _exit(1);
    k->plan = plan;
    k->listener = plan->listener;
    for (int i = 0; i < GUESTS; i++)
        k->guest[i] = -1;
    for (uint32_t i = 0; i < RNL_JOB_RANKS_MAX; i++)
        k->waits[i] = -1;
    if (plan->hosts > 1 && rnl_keep_begin(k, rnl_host_now_ns(NULL)) < 0)
        _exit(1);
    serve(k);
    _exit(0);
}

int rnl_keeper_open(struct rnl_keeper *k, uint32_t count, int several, struct rnl_here *here)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    struct rnl_socket_addr at, *of = NULL;
    socklen_t n = sizeof name;
    int e = 0;
    k->count = count;
    k->probe = -1;
    /* An abstract name that the kernel chooses: nothing is left in a file system. */
    k->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (k->listener < 0 || above_standard(&k->listener) < 0 ||
        bind(k->listener, (struct sockaddr *)&name, sizeof name.sun_family) < 0 || listen(k->listener, 64) < 0 ||
        getsockname(k->listener, (struct sockaddr *)&name, &n) < 0 ||
        getrandom(k->where.secret, sizeof k->where.secret, 0) != (ssize_t)sizeof k->where.secret)
        return -errno;
    if (n - offsetof(struct sockaddr_un, sun_path) > sizeof k->where.name)
        return -ENAMETOOLONG;
    k->where.bytes = (uint32_t)(n - offsetof(struct sockaddr_un, sun_path));
    memcpy(k->where.name, name.sun_path, k->where.bytes);
    if (!several)
        return 0;
    k->sockets = calloc(count, sizeof *k->sockets);
    of = calloc(count, sizeof *of);
    here->port = calloc(count, sizeof *here->port);
    here->ranks = count;
    if (k->sockets == NULL || of == NULL || here->port == NULL)
        e = -ENOMEM;
    for (uint32_t i = 0; k->sockets != NULL && i < count; i++)
        k->sockets[i] = -1;
    for (uint32_t i = 0; e == 0 && i < count; i++) {
        e = rnl_net_open(RNL_NET_ANY, 1, &k->sockets[i], &of[i]);
        if (e == 0)
            e = above_standard(&k->sockets[i]);
        here->port[i] = of[i].port;
    }
    if (e == 0)
        e = rnl_net_open(RNL_NET_ANY, 1, &k->probe, &at);
    if (e == 0)
        e = above_standard(&k->probe);
    if (e == 0)
        e = rnl_search_ways(here);
    here->probe_port = e == 0 ? at.port : 0;
    free(of);
    return e;
}

void rnl_keeper_close(struct rnl_keeper *k)
{
    if (k->listener >= 0)
        close(k->listener);
    if (k->probe >= 0)
        close(k->probe);
    if (k->sockets != NULL)
        rnl_net_close(k->count, k->sockets);
    free(k->sockets);
    explicit_bzero(k, sizeof *k);
    k->listener = k->probe = -1;
}

int rnl_keeper_start(struct rnl_keeper *k)
{
    int e = 0, status = 0;
    pid_t child = fork();
    if (child == 0) {
        pid_t own = fork(); /* nobody's child, so that no wait of the program finds it */
        if (own == 0)
            be_keeper(k);
        _exit(own < 0 ? 1 : 0);
    }
    if (child < 0)
        return -errno;
    while (waitpid(child, &status, 0) < 0 && e == 0)
        e = errno == EINTR ? 0 : -errno;
    return e == -ECHILD || e == 0 ? (status == 0 ? 0 : -EAGAIN) : e;
}

/* ---- the rank's side ---- */

static int hear_vain(const char *at, size_t bytes, uint32_t hosts, struct rnl_vain *t, uint32_t *n)
{
    struct rnl_unpack u = {.at = (const unsigned char *)at, .left = bytes};
    uint32_t count = rnl_unpack_32(&u);
    for (uint32_t i = 0; i < count && i < RNL_KEEPER_TROUBLES && !u.bad; i++)
        (void)rnl_vain_unpack(&u, hosts, &t[i]);
    if (u.bad || count == 0 || count > RNL_KEEPER_TROUBLES)
        return rnl_here_garbled("what became of the tries of a host");
    *n = count;
    return 0;
}

int rnl_keeper_enter(const struct rnl_keeper_where *where, uint32_t rank, uint32_t hosts, int *door,
                     struct rnl_vain t[RNL_KEEPER_TROUBLES], uint32_t *n)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    struct knock k = {.rank = rank};
    struct rnl_packet p = {.nfds = 0};
    struct ucred who = {.uid = (uid_t)-1};
    socklen_t bytes = sizeof who;
    char *said = malloc(ANSWER_BYTES);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), e = fd < 0 ? -errno : said == NULL ? -ENOMEM : 0;
    if (e == 0 && where->bytes > sizeof where->name)
        e = -EINVAL;
    if (e == 0) {
        memcpy(name.sun_path, where->name, where->bytes);
        memcpy(k.secret, where->secret, sizeof k.secret);
        if (connect(fd, (struct sockaddr *)&name, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + where->bytes)) <
            0)
            e = -errno;
    }
    /* The name is free again once the agent has closed it: only ours is to hear the secret. */
    if (e == 0 && (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) < 0 || who.uid != geteuid()))
        e = -EPERM;
    if (e == 0)
        e = rnl_packet_send(fd, &k, sizeof k, NULL, 0, 1);
    if (e == 0)
        e = rnl_packet_receive(fd, said, ANSWER_BYTES, 1, &p, 1);
    if (e == 0 && (p.n == 0 || (said[0] == 'R') != (p.nfds == 1)))
        e = -EPROTO;
    if (fd >= 0)
        close(fd);
    explicit_bzero(&k, sizeof k);
    int r = 1;
    if (e < 0)
        r = rnl_fail_errno(RNL_ERR_JOB, -e,
                           "the agent that the first rank of this host started does not let this rank in: are all "
                           "ranks of a host in one network namespace?");
    else if (said[0] == 'R')
        *door = p.fds[0];
    else if (said[0] == 'V')
        r = hear_vain(said + 1, p.n - 1, hosts, t, n);
    else
        r = rnl_fail(RNL_ERR_JOB, "%.*s", (int)(p.n - 1), said + 1);
    free(said);
    return r;
}
