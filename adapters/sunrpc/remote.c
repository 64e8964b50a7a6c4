/* SPDX-License-Identifier: BSD-3-Clause
 *
 * remote.c - the endpoint of this process and its peers: opening it, what comes, waiting, the thread that keeps links
 * alive. Messages of a peer become parts in its queue, of which it can fill no more than the window. */
#include "remote_internal.h"
#include "server.h"

#include "base/error.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    PEERS = 1023,
    KEEP_NS = 500000000,
    SLEEP_NS_MAX = 1000000000,
    ARMS_MAX = 64,
    COMING_NS = 20000000,
    DOUBTFUL_NS = 100000000
};
static const uint64_t doubt_most_ns = 3000000000; /* a process that lives answers within half a second */

struct rnl_rpc_remote_state rnl_rpc_remote_state = {.lock = PTHREAD_MUTEX_INITIALIZER, .arrivals = -1, .relays = -1};
#define S rnl_rpc_remote_state
_Atomic unsigned rnl_rpc_remote_links;
static pthread_cond_t news; /* somebody is to be reached */
static unsigned forks;      /* how many forks lie between the first process and this one */

/* ---- descriptors ---- */

bool rnl_rpc_remote_make_fd(struct rnl_rpc_remote *f, int *sock)
{
    int pair[2];
    if (!f->is_server) {
        f->link.fd = f->ring = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        return rnl_rpc_has_room(f->ring);
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
        return false;
    *sock = f->link.fd = pair[0];
    f->ring = pair[1];
    return rnl_rpc_has_room(pair[0]) && rnl_rpc_has_room(pair[1]);
}

void rnl_rpc_remote_ring(struct rnl_rpc_remote *f)
{
    const uint64_t one = 1;
    if (f->ring < 0 || f->link.armed == RNL_RPC_ARM_NONE)
        return;
    if (f->link.armed == RNL_RPC_ARM_ONCE)
        f->link.armed = RNL_RPC_ARM_NONE;
    if (f->is_server)
        (void)send(f->ring, &one, sizeof one, MSG_NOSIGNAL | MSG_DONTWAIT);
    else
        (void)!write(f->ring, &one, sizeof one);
}

/* ---- peers ---- */

struct rnl_rpc_remote *rnl_rpc_remote_new(unsigned peer, bool is_server, const struct rnl_rpc_link_ops *ops)
{
    struct rnl_rpc_remote *f = peer < S.count && !S.peers[peer] ? calloc(1, sizeof *f) : NULL;
    if (!f)
        return NULL;
    f->link.ops = ops;
    f->link.remote = true;
    f->link.fd = f->ring = f->watched = f->relay = -1;
    f->peer = peer;
    f->is_server = is_server;
    f->end = &f->first;
    f->began_ns = rnl_rpc_now_ns();
    f->uid = (uid_t)-1;
    f->forks = forks;
    S.peers[peer] = f;
    atomic_fetch_add_explicit(&rnl_rpc_remote_links, 1, memory_order_relaxed);
    return f;
}

void rnl_rpc_remote_drop(struct rnl_rpc_remote *f)
{
    f->dead = f->link.broken = true;
    if (f->forks == forks)
        rnl_rpc_remote_coming(f, false);
    if (f->peer && f->forks == forks) {
        S.peers[f->peer] = NULL;
        (void)S.lib->leave(S.ep, f->peer);
        f->peer = 0;
    }
    if (f->ring >= 0) {
        f->link.armed = RNL_RPC_ARM_ONCE;
        rnl_rpc_remote_ring(f);
    }
    if (f->is_server && f->ring >= 0) { /* the end of file is the news */
        close(f->ring);
        f->ring = -1;
    }
}

void rnl_rpc_remote_free(struct rnl_rpc_remote *f)
{
    rnl_rpc_remote_drop(f);
    rnl_rpc_remote_relay_forget(f);
    if (f->relay >= 0)
        close(f->relay);
    if (f->open)
        free(f->open);
    while (f->first) {
        struct rnl_rpc_remote_part *p = f->first;
        f->first = p->next;
        free(p);
    }
    if (f->forks == forks)
        atomic_fetch_sub_explicit(&rnl_rpc_remote_links, 1, memory_order_relaxed);
    free(f->room);
    free(f);
}

static const char *why_dead(const struct rnl_peer_info *info)
{
    if (info->reason != RNL_DEATH_NEVER_JOINED)
        return "its server has gone";
    switch (info->detail) {
    case RNL_ERR_REFUSED:
        return "the daemon of its server's host does not admit this user";
    case RNL_ERR_UNREACHABLE:
        return "the daemons of the two hosts do not reach each other: one of them is missing, has no key or another "
               "one (see `runnel key`)";
    default:
        return "the daemons did not introduce the two processes";
    }
}

static void on_death(void *arg, unsigned peer, enum rnl_death_reason reason)
{
    (void)arg, (void)reason;
    if (peer >= S.count || !S.peers[peer]) {
        (void)S.lib->leave(S.ep, peer);
        return;
    }
    struct rnl_rpc_remote *f = S.peers[peer];
    struct rnl_peer_info info;
    if (S.lib->peer(S.ep, peer, &info) == 0)
        f->why = why_dead(&info);
    rnl_rpc_remote_drop(f);
    if (f->is_server && f->link.fd < 0) /* nobody has been acknowledged of it */
        rnl_rpc_remote_free(f);
}

/* ---- messages ---- */

static void take_part(struct rnl_rpc_remote *f, struct rnl_rpc_remote_part *p)
{
    const uint64_t count = p->n + RNL_RPC_REMOTE_PART;
    if (f->came + count - f->taken > RNL_RPC_REMOTE_WINDOW || p->n > RNL_RPC_REMOTE_BYTES) {
        free(p);
        rnl_rpc_remote_drop(f);
        return;
    }
    f->came += count;
    *f->end = p;
    f->end = &p->next;
    rnl_rpc_remote_ring(f);
}

/* Returns whether the part was taken over. */
static bool take_message(struct rnl_rpc_remote *f, uint32_t word, struct rnl_rpc_remote_part *p)
{
    uint64_t taken;
    switch (word >> 24) {
    case RNL_RPC_REMOTE_HELLO:
        if (!f->is_server || f->up || f->greeted || p->n != sizeof f->token)
            break;
        memcpy(f->token, p->bytes, sizeof f->token);
        f->greeted = true;
        taken = 1;
        (void)!write(S.arrivals, &taken, sizeof taken);
        return false;
    case RNL_RPC_REMOTE_WELCOME:
        if (f->is_server || p->n != sizeof f->proof || !rnl_rpc_secret_equal((const char *)p->bytes, f->proof))
            break;
        f->up = true;
        rnl_rpc_remote_coming(f, false);
        return false;
    case RNL_RPC_REMOTE_DATA:
        p->last = (word & RNL_RPC_REMOTE_LAST) != 0;
        if (!f->up)
            break;
        take_part(f, p);
        return true;
    case RNL_RPC_REMOTE_TAKEN:
        if (p->n != sizeof taken)
            break;
        memcpy(&taken, p->bytes, sizeof taken);
        taken = be64toh(taken);
        if (taken < f->acknowledged || taken > f->sent)
            break;
        f->acknowledged = taken;
        rnl_rpc_remote_ring(f);
        return false;
    case RNL_RPC_REMOTE_FLUSH:
        return false;
    default:
        break;
    }
    rnl_rpc_remote_drop(f);
    return false;
}

static int on_message(rnl_stream *s, unsigned peer, void *ctx)
{
    uint32_t word;
    const size_t n = S.lib->length(s, NULL);
    (void)ctx;
    struct rnl_rpc_remote_part *p =
        n >= sizeof word && n - sizeof word <= RNL_RPC_REMOTE_BYTES ? malloc(sizeof *p + n) : NULL;
    if (!p && peer < S.count && S.peers[peer])
        rnl_rpc_remote_drop(S.peers[peer]);
    if (!p || S.lib->receive(s, &word, sizeof word) < 0 ||
        (n > sizeof word && S.lib->receive(s, p->bytes, n - sizeof word) < 0)) {
        free(p); /* the peer has died, which is acknowledged by itself */
        return RNL_DONE;
    }
    word = ntohl(word);
    p->next = NULL;
    p->n = (uint32_t)(n - sizeof word);
    if (word >> 24 == RNL_RPC_REMOTE_FLUSH)
        (void)!S.lib->reply(s, RNL_RPC_REMOTE_FLUSHED, NULL, 0);
    struct rnl_rpc_remote *f = peer < S.count ? S.peers[peer] : NULL; /* it may have gone meanwhile */
    if (!f || !take_message(f, word, p))
        free(p);
    return RNL_DONE;
}

static int on_flushed(rnl_stream *s, unsigned peer, void *ctx)
{
    (void)s, (void)ctx;
    if (peer < S.count && S.peers[peer]) {
        S.peers[peer]->flushed = true;
        rnl_rpc_remote_ring(S.peers[peer]);
    }
    return RNL_DONE;
}

int rnl_rpc_remote_send(struct rnl_rpc_remote *f, unsigned kind, bool last, const void *bytes, size_t n, bool answer)
{
    const uint32_t word = htonl(kind << 24 | (last ? RNL_RPC_REMOTE_LAST : 0));
    const struct rnl_message m = {.peer = f->peer,
                                  .handler = RNL_RPC_REMOTE_MESSAGES,
                                  .bound = sizeof word + n,
                                  .answer = answer ? sizeof word : 0,
                                  .flags = RNL_NO_WAIT};
    rnl_stream *s;
    if (f->dead)
        return -1;
    int status = S.lib->begin(S.ep, &m, &s);
    if (status == RNL_NO_ROOM || status == RNL_BUSY)
        return 0;
    if (status == 0) {
        status = S.lib->piece(s, &word, sizeof word);
        if (status == 0 && n)
            status = S.lib->piece(s, bytes, n);
        if (status == 0)
            status = S.lib->end(s);
        else
            (void)S.lib->abort(s);
    }
    if (status == 0)
        return 1;
    rnl_rpc_remote_drop(f);
    return -1;
}

void rnl_rpc_remote_greet(void)
{
    struct rnl_peer_info info;
    for (unsigned i = 1; i < S.count; i++) {
        struct rnl_rpc_remote *f = S.peers[i];
        if (f && f->coming && !f->said_hello && S.lib->peer(S.ep, i, &info) == 0 && info.state == RNL_PEER_UP)
            f->said_hello = rnl_rpc_remote_send(f, RNL_RPC_REMOTE_HELLO, false, f->token, sizeof f->token, false) != 0;
    }
}

/* ---- progress ---- */

void rnl_rpc_remote_pump(void)
{
    if (!S.ep)
        return;
    S.pumped_ns = rnl_rpc_now_ns();
    (void)!S.lib->extract(S.ep, SIZE_MAX);
}

void rnl_rpc_remote_arm(void)
{
    int fd;
    for (unsigned i = 0; i < ARMS_MAX && S.lib->arm(S.ep, &fd) > 0; i++)
        rnl_rpc_remote_pump();
}

void rnl_rpc_remote_look(void)
{
    pthread_mutex_lock(&S.lock);
    rnl_rpc_remote_pump();
    pthread_mutex_unlock(&S.lock);
}

static bool look(struct rnl_rpc_remote *f, bool (*ready)(struct rnl_rpc_remote *))
{
    pthread_mutex_lock(&S.lock);
    rnl_rpc_remote_pump();
    bool is = ready(f) || f->link.broken;
    pthread_mutex_unlock(&S.lock);
    return is;
}

/* A look that found nothing for so long takes the time of somebody who may be on this processor: the next waits of this
 * thread sleep at once. */
static bool spin(struct rnl_rpc_remote *f, bool (*ready)(struct rnl_rpc_remote *))
{
    struct rnl_rpc_spinner spinner;
    uint64_t now = rnl_rpc_now_ns();
    rnl_rpc_spinner_begin(&spinner, now);
    while (rnl_rpc_spinner_look(&spinner, &rnl_rpc_crowd, now)) {
        if (look(f, ready))
            return true;
        now = rnl_rpc_now_ns();
    }
    rnl_rpc_crowd.until_ns = now + RNL_RPC_CROWDED_NS;
    return false;
}

/* The connection to the server has ended: if its process still answers, only that connection was in its way. The
 * daemons tell of a death, too, unless they have ended before. */
static void doubt(struct rnl_rpc_remote *f)
{
    const uint64_t now = rnl_rpc_now_ns();
    if (f->watched >= 0) {
        f->watched = -1;
        f->flushed = false;
        f->doubt_ns = now;
        (void)rnl_rpc_remote_send(f, RNL_RPC_REMOTE_FLUSH, false, NULL, 0, true);
    } else if (f->flushed) {
        f->doubt_ns = 0;
    } else if (now - f->doubt_ns > doubt_most_ns) {
        rnl_rpc_remote_drop(f);
    }
}

void rnl_rpc_remote_watch(struct rnl_rpc_link *link, int fd)
{
    rnl_rpc_remote_of(link)->watched = fd;
}

static void sleep_on(struct rnl_rpc_remote *f, bool (*ready)(struct rnl_rpc_remote *), uint64_t ns)
{
    struct pollfd fds[3] = {
        {.fd = -1, .events = POLLIN}, {.fd = f->link.fd, .events = POLLIN}, {.fd = f->watched, .events = POLLRDHUP}};
    if (f->doubt_ns && ns > DOUBTFUL_NS)
        ns = DOUBTFUL_NS;
    struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    pthread_mutex_lock(&S.lock);
    f->link.armed = RNL_RPC_ARM_ONCE;
    while (!ready(f) && !f->link.broken && S.lib->arm(S.ep, &fds[0].fd) > 0)
        rnl_rpc_remote_pump();
    bool is = ready(f) || f->link.broken;
    pthread_mutex_unlock(&S.lock);
    if (!is)
        (void)syscall(SYS_ppoll, fds, 3, &t, NULL, 8);
    pthread_mutex_lock(&S.lock);
    if (fds[2].revents || f->doubt_ns)
        doubt(f);
    f->link.armed = RNL_RPC_ARM_NONE;
    pthread_mutex_unlock(&S.lock);
    f->link.ops->drain(&f->link);
}

bool rnl_rpc_remote_wait(struct rnl_rpc_remote *f, bool (*ready)(struct rnl_rpc_remote *), uint64_t deadline_ns)
{
    bool is = look(f, ready);
    uint64_t now = rnl_rpc_now_ns();
    if (!is && now < deadline_ns && !rnl_rpc_is_crowded(&rnl_rpc_crowd, now))
        is = spin(f, ready);
    while (!is && (now = rnl_rpc_now_ns()) < deadline_ns) {
        const uint64_t left = deadline_ns - now;
        sleep_on(f, ready, left < SLEEP_NS_MAX ? left : SLEEP_NS_MAX);
        is = look(f, ready);
    }
    pthread_mutex_lock(&S.lock);
    is = ready(f);
    pthread_mutex_unlock(&S.lock);
    return is;
}

void rnl_rpc_remote_news(void)
{
    pthread_cond_signal(&news);
}

/* One turn while somebody comes, or what a child has said waits for room. */
static void keep_coming(bool hears_children)
{
    struct pollfd fds[2] = {{.fd = -1, .events = POLLIN}, {.fd = hears_children ? S.relays : -1, .events = POLLIN}};
    const struct timespec t = {0, COMING_NS};
    rnl_rpc_remote_greet();
    const bool is_armed = S.lib->arm(S.ep, &fds[0].fd) == 0;
    pthread_mutex_unlock(&S.lock);
    if (is_armed)
        (void)syscall(SYS_ppoll, fds, 2, &t, NULL, 8);
    pthread_mutex_lock(&S.lock);
    rnl_rpc_remote_pump();
}

/* One turn while there are children that may reply. */
static void keep_listening(void)
{
    struct pollfd fd = {.fd = S.relays, .events = POLLIN};
    const struct timespec t = {0, KEEP_NS};
    pthread_mutex_unlock(&S.lock);
    (void)syscall(SYS_ppoll, &fd, 1, &t, NULL, 8);
    pthread_mutex_lock(&S.lock);
}

/* Peers are answered and what was lost is sent again, although the program does something else for long; servers are
 * reached while calls still go the old way; and what children reply is passed on. */
static void *keep(void *none)
{
    pthread_mutex_lock(&S.lock);
    for (;;) {
        struct timespec until;
        bool waits;
        const bool children = rnl_rpc_remote_relay(&waits);
        if (S.coming || waits) {
            keep_coming(children && !waits);
            continue;
        }
        if (children) {
            keep_listening();
        } else {
            clock_gettime(CLOCK_MONOTONIC, &until);
            until.tv_nsec += KEEP_NS;
            until.tv_sec += until.tv_nsec / 1000000000;
            until.tv_nsec %= 1000000000;
            (void)pthread_cond_timedwait(&news, &S.lock, &until);
        }
        if (rnl_rpc_now_ns() - S.pumped_ns >= KEEP_NS)
            rnl_rpc_remote_pump();
    }
    return none;
}

/* ---- opening, forking, ending ---- */

static void before_fork(void)
{
    rnl_rpc_server_before_fork(); /* which takes the lock, too */
    pthread_mutex_lock(&S.lock);
}
static void after_fork(void)
{
    rnl_rpc_remote_forked(false);
    pthread_mutex_unlock(&S.lock);
}
/* The endpoint stays the parent's, and so do its peers: a child that wants some opens one of its own. */
static void in_child(void)
{
    forks++;
    rnl_rpc_remote_forked(true);
    S.ep = NULL;
    S.peers = NULL;
    S.count = S.coming = 0;
    S.arrivals = -1;
    atomic_store_explicit(&rnl_rpc_remote_links, 0, memory_order_relaxed);
    pthread_mutex_unlock(&S.lock);
}

bool rnl_rpc_remote_is_forked(struct rnl_rpc_link *link)
{
    return link->remote && rnl_rpc_remote_of(link)->forks != forks;
}

void rnl_rpc_remote_coming(struct rnl_rpc_remote *f, bool is)
{
    S.coming += is - f->coming;
    f->coming = is;
    if (is)
        pthread_cond_signal(&news);
}

static bool start_thread(void)
{
    pthread_t thread;
    pthread_attr_t attr;
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&news, &clock);
    pthread_condattr_destroy(&clock);
    sigset_t all, before;
    sigfillset(&all);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int e = pthread_create(&thread, &attr, keep, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return e == 0;
}

bool rnl_rpc_remote_open(const char **why)
{
    static bool fork_is_watched;
    const struct rnl_options options = {
        .size = sizeof options, .flags = RNL_ALONE | RNL_SHARED | RNL_NO_YIELD, .peers = PEERS};
    if (S.ep)
        return true;
    rnl_rpc_host_begin();
    S.lib = rnl_rpc_runnel();
    *why = "librunnel is not installed beside this library, or is another release";
    if (!S.lib)
        return false;
    *why = "no endpoint could be opened";
    if (!fork_is_watched && pthread_atfork(before_fork, after_fork, in_child) != 0)
        return false;
    fork_is_watched = true;
    if (S.lib->open(&S.ep, &options) < 0) {
        S.ep = NULL;
        return false;
    }
    S.count = S.lib->size(S.ep);
    S.peers = calloc(S.count, sizeof *S.peers);
    if (!S.peers || S.lib->handler_stream(S.ep, RNL_RPC_REMOTE_MESSAGES, on_message, NULL) < 0 ||
        S.lib->handler_stream(S.ep, RNL_RPC_REMOTE_FLUSHED, on_flushed, NULL) < 0 || !start_thread()) {
        S.ep = NULL; /* and is kept, unused: this happens once */
        return false;
    }
    S.lib->on_death(S.ep, on_death, NULL);
    return true;
}
