/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wires.c - a network in memory: a queue of datagrams for each host. Sockets of several threads may use it. */
#include "support/wires.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "endpoint/endpoint.h"
#include "endpoint/net.h"
#include "net/datagram/udp.h"
#include "net/fault/fault.h"
#include "remote/remote.h"
#include "support/must.h"
#include "support/random.h"

enum {
    QUEUE = 4096,
    DATAGRAM_MAX = 9000,
    PORT = 7000,
    SETTLE_NS = 1000000000,
    SETTLE_ROUNDS = 50,
    TICK_NS = 100,
    NAP_NS = 50000
};

struct datagram {
    struct datagram *next;
    uint32_t bytes;
    uint8_t ecn;
    struct rnl_socket_addr from;
    unsigned char at[];
};
struct port {
    struct rnl_socket socket; /* first */
    struct test_wires *w;
    struct rnl_env *env;
    rnl_endpoint *ep;
    struct datagram *first, **last;
    uint32_t count;
    int open, armed;
    uint8_t deaf, mute, down; /* by address */
    struct rnl_socket_frames frames;
};
struct test_wires {
    pthread_mutex_t lock;
    unsigned size;
    unsigned long sent, calls, looks, refused;
    unsigned refuse_every, refuse_why;
    unsigned addresses;
    test_wires_tap *tap;
    void *tap_arg;
    _Atomic uint64_t clock_ns; /* 0 = the real one */
    _Atomic int stopped;
    _Atomic uint64_t drawn; /* random numbers, with that clock */
    char faults[RNL_FAULT_TEXT];
    struct rnl_remote_options opt;
    struct rnl_env_ops *ops; /* of each rank */
    struct port port[];
};

static struct rnl_socket_addr addr_of(unsigned rank, unsigned way)
{
    struct rnl_socket_addr a = {.ip = {[10] = 0xff, [11] = 0xff, [12] = 10}, .port = PORT};
    a.ip[13] = (uint8_t)way;
    a.ip[14] = (uint8_t)(rank >> 8);
    a.ip[15] = (uint8_t)rank;
    return a;
}

static struct port *port_of(struct test_wires *w, const struct rnl_socket_addr *a)
{
    unsigned rank = (unsigned)a->ip[14] << 8 | a->ip[15];
    struct rnl_socket_addr known = addr_of(rank, a->ip[13]);
    return rank < w->size && a->ip[13] < w->addresses && rnl_socket_addr_equal(&known, a) ? &w->port[rank] : NULL;
}

static void wake(const struct port *p)
{
    struct rnl_env *env = p->env;
    env->ops->fd_raise(env, env->rank);
    atomic_fetch_add_explicit(&env->bell->word, 1, memory_order_release);
    env->ops->wake(env, &env->bell->word);
}

static void put(struct test_wires *w, struct port *to, const struct rnl_socket_addr *from, const unsigned char *at,
                uint32_t bytes, uint8_t ecn)
{
    w->sent++;
    if (!to || !to->open || to->count == QUEUE)
        return;
    struct datagram *d = malloc(sizeof *d + bytes);
    if (!d)
        return; /* lost, as where a host has no memory: there are tests that take it away */
    *d = (struct datagram){.bytes = bytes, .ecn = ecn, .from = *from};
    memcpy(d->at, at, bytes);
    *to->last = d;
    to->last = &d->next;
    to->count++;
    if (to->armed)
        wake(to);
    to->armed = 0;
}

/* One datagram: both ends of a way have the same number. */
static void pass(struct port *from, const struct rnl_socket_addr *to, const unsigned char *at, uint32_t bytes,
                 uint8_t ecn)
{
    struct test_wires *w = from->w;
    struct port *there = port_of(w, to);
    unsigned way = to->ip[13], rank = (unsigned)(from - w->port);
    const struct rnl_socket_addr source = addr_of(rank, way);
    unsigned char copy[DATAGRAM_MAX];
    memcpy(copy, at, bytes);
    int lost = there && ((from->mute | there->deaf) >> way & 1);
    if (there && w->tap && !w->tap(w->tap_arg, rank, (unsigned)(there - w->port), way, copy, bytes))
        lost = 1;
    put(w, lost ? NULL : there, &source, copy, bytes, ecn);
}

static int wires_send(struct rnl_socket *s, const struct rnl_socket_out *out, int n, struct rnl_socket_result *result)
{
    struct port *p = (struct port *)(void *)s;
    *result = (struct rnl_socket_result){0};
    pthread_mutex_lock(&p->w->lock);
    p->w->calls++;
    if (p->w->refuse_every && p->w->calls % p->w->refuse_every == 0) {
        *result = (struct rnl_socket_result){p->w->refuse_why, 0};
        p->w->refused++;
        n = 0;
    }
    for (int i = 0; i < n; i++) {
        uint32_t step = out[i].segment ? out[i].segment : out[i].bytes;
        for (uint32_t at = 0; at < out[i].bytes; at += step)
            pass(p, &out[i].to, (const unsigned char *)out[i].at + at,
                 step < out[i].bytes - at ? step : out[i].bytes - at, out[i].ecn);
    }
    pthread_mutex_unlock(&p->w->lock);
    return n;
}

static int wires_recv(struct rnl_socket *s, struct rnl_socket_in *in, int n)
{
    struct port *p = (struct port *)(void *)s;
    int i = 0;
    pthread_mutex_lock(&p->w->lock);
    p->w->looks++;
    for (; i < n && p->first; i++) {
        struct datagram *d = p->first;
        in[i].bytes = d->bytes < in[i].room ? d->bytes : in[i].room;
        in[i].cut = d->bytes > in[i].room;
        in[i].segment = 0;
        in[i].ecn = d->ecn;
        in[i].from = d->from;
        memcpy(in[i].at, d->at, in[i].bytes);
        p->first = d->next;
        if (!p->first)
            p->last = &p->first;
        p->count--;
        free(d);
    }
    pthread_mutex_unlock(&p->w->lock);
    return i;
}

static int wires_error(struct rnl_socket *s, struct rnl_socket_error *e)
{
    (void)s, (void)e;
    return 0;
}

static int wires_arm(struct rnl_socket *s)
{
    struct port *p = (struct port *)(void *)s;
    pthread_mutex_lock(&p->w->lock);
    int there = p->first != NULL;
    p->armed = !there;
    pthread_mutex_unlock(&p->w->lock);
    return there;
}

static int wires_fd(struct rnl_socket *s)
{
    (void)s;
    return RNL_ERR_UNSUPPORTED;
}

static void forget(struct port *p)
{
    for (struct datagram *d = p->first, *next; d; d = next) {
        next = d->next;
        free(d);
    }
    p->first = NULL;
    p->last = &p->first;
    p->count = 0;
}

static void wires_close(struct rnl_socket *s)
{
    struct port *p = (struct port *)(void *)s;
    pthread_mutex_lock(&p->w->lock);
    p->open = p->armed = 0;
    forget(p);
    pthread_mutex_unlock(&p->w->lock);
}

static bool wires_is_down(struct rnl_socket *s, const struct rnl_socket_addr *to)
{
    return ((const struct port *)(void *)s)->down >> to->ip[13] & 1;
}

static const struct rnl_socket_ops socket_ops = {.size = sizeof socket_ops,
                                                 .send = wires_send,
                                                 .recv = wires_recv,
                                                 .error = wires_error,
                                                 .arm = wires_arm,
                                                 .fd = wires_fd,
                                                 .close = wires_close,
                                                 .is_down = wires_is_down};

/* ---- a clock of their own ---- */

static struct test_wires *ticking; /* there is one at a time */

static uint64_t tick(struct rnl_env *env)
{
    (void)env;
    return test_wires_now_ns(ticking);
}

/* Chance of its own, too: what goes by such a clock is the same each time. */
static uint64_t draw(struct rnl_env *env)
{
    struct test_random r = test_random_of(env->rank, atomic_fetch_add(&ticking->drawn, 1));
    return test_random_next(&r);
}

static test_wires_idle *idle;
static int idles;

/* What the others do while this one waits, where one thread drives all. */
static void others_go_on(const struct rnl_env *env)
{
    if (!idle || idles)
        return;
    idles = 1;
    idle(env->rank);
    idles = 0;
}

void test_wires_idles(test_wires_idle *fn)
{
    idle = fn;
}

static uint64_t give_way(struct rnl_env *env)
{
    uint64_t before = tick(env);
    others_go_on(env);
    sched_yield();
    return tick(env) - before;
}

static void nap(struct rnl_env *env, _Atomic uint32_t *word, uint32_t expected, uint64_t deadline_ns)
{
    uint64_t now = tick(env), left = deadline_ns > now ? deadline_ns - now : 0;
    if (atomic_load_explicit(word, memory_order_acquire) != expected)
        return;
    test_wires_pass(ticking, left < NAP_NS ? left : NAP_NS);
    others_go_on(env);
    sched_yield();
}

void test_wires_ticks(struct test_wires *w)
{
    ticking = w;
    atomic_store(&w->clock_ns, test_now_ns());
}

uint64_t test_wires_now_ns(struct test_wires *w)
{
    uint64_t step = atomic_load(&w->stopped) ? 0 : TICK_NS;
    return atomic_fetch_add(&w->clock_ns, step) + step;
}

void test_wires_stop(struct test_wires *w, int yes)
{
    atomic_store(&w->stopped, yes);
}

void test_wires_pass(struct test_wires *w, uint64_t ns)
{
    atomic_fetch_add(&w->clock_ns, ns);
}

/* ---- endpoints ---- */

static unsigned per_host = 1;

static int address(uint32_t rank, unsigned way, struct rnl_rank_address *out)
{
    struct rnl_socket_addr a = addr_of(rank, way);
    struct rnl_addr addr;
    rnl_udp_addr_of(&a, &addr);
    *out = (struct rnl_rank_address){.addr_bytes = addr.len};
    memcpy(out->addr, addr.bytes, addr.len);
    return 1;
}

static int place(struct rnl_env *env, uint32_t rank, struct rnl_rank_address *out)
{
    return rank / per_host != env->rank / per_host && address(rank, 0, out);
}

static unsigned addresses = 1;

static int way(struct rnl_env *env, uint32_t rank, unsigned n, struct rnl_rank_address *out)
{
    return rank / per_host != env->rank / per_host && n + 1 < addresses && address(rank, n + 1, out);
}

void test_wires_addresses(struct test_wires *w, unsigned n)
{
    w->addresses = addresses = n;
}

void test_wires_address(struct test_wires *w, unsigned rank, unsigned which, int in, int out)
{
    struct port *p = &w->port[rank];
    pthread_mutex_lock(&w->lock);
    p->deaf = (uint8_t)((p->deaf & ~(1u << which)) | (unsigned)!in << which);
    p->mute = (uint8_t)((p->mute & ~(1u << which)) | (unsigned)!out << which);
    pthread_mutex_unlock(&w->lock);
}

void test_wires_link(struct test_wires *w, unsigned rank, unsigned which, int up)
{
    struct port *p = &w->port[rank];
    p->down = (uint8_t)((p->down & ~(1u << which)) | (unsigned)!up << which);
    p->frames.links++;
}

void test_wires_tapped(struct test_wires *w, test_wires_tap *tap, void *arg)
{
    pthread_mutex_lock(&w->lock);
    w->tap = tap;
    w->tap_arg = arg;
    pthread_mutex_unlock(&w->lock);
}

void test_wires_forge(struct test_wires *w, unsigned from, unsigned which, unsigned to, const void *at, uint32_t bytes)
{
    const struct rnl_socket_addr source = addr_of(from, which);
    pthread_mutex_lock(&w->lock);
    put(w, &w->port[to], &source, at, bytes, 0);
    pthread_mutex_unlock(&w->lock);
}

struct test_wires *test_wires_new(unsigned size, const char *faults, unsigned ranks_per_host)
{
    struct test_wires *w = calloc(1, sizeof *w + size * sizeof *w->port);
    TEST_MUST(w != NULL && strlen(faults) < sizeof w->faults);
    strcpy(w->faults, faults);
    w->ops = calloc(size, sizeof *w->ops);
    TEST_MUST(w->ops != NULL);
    pthread_mutex_init(&w->lock, NULL);
    w->size = size;
    w->opt.rest_ns = faults[0] ? 20000 : 0; /* rough networks: now and then in every run */
    per_host = ranks_per_host ? ranks_per_host : 1;
    test_wires_addresses(w, 1);
    for (unsigned i = 0; i < size; i++) {
        struct port *p = &w->port[i];
        p->w = w;
        p->last = &p->first;
        p->socket = (struct rnl_socket){.ops = &socket_ops,
                                        .frames = &p->frames,
                                        .self = addr_of(i, 0),
                                        .datagram_max = DATAGRAM_MAX,
                                        .segments_max = 16,
                                        .segment_bytes = 60000,
                                        .merged_bytes = DATAGRAM_MAX,
                                        .receive_bytes = 1 << 20,
                                        .has_ecn = 1};
    }
    return w;
}

struct test_wires *test_wires_wanted(unsigned size)
{
    const char *faults = getenv("RNL_TEST_REMOTE"), *hosts = getenv("RNL_TEST_PER_HOST");
    return faults ? test_wires_new(size, faults, hosts ? (unsigned)atoi(hosts) : 1) : NULL;
}

void test_wires_options(struct test_wires *w, const struct rnl_remote_options *opt)
{
    w->opt = *opt;
}

void test_wires_attach(struct test_wires *w, rnl_endpoint *ep)
{
    struct rnl_env *env = ep->env;
    struct port *p = &w->port[env->rank];
    struct rnl_fault fault = {0};
    w->ops[env->rank] = *env->ops;
    w->ops[env->rank].rank_address = place;
    w->ops[env->rank].alternate_address = way;
    if (atomic_load(&w->clock_ns)) {
        w->ops[env->rank].now_ns = tick;
        w->ops[env->rank].park = nap;
        w->ops[env->rank].random = draw;
        w->ops[env->rank].yield = give_way;
    }
    env->ops = &w->ops[env->rank];
    pthread_mutex_lock(&w->lock);
    p->env = env;
    p->ep = ep;
    p->open = 1;
    pthread_mutex_unlock(&w->lock);
    TEST_MUST(rnl_udp_transport_new(env, &p->socket, NULL, &env->datagrams) == 0);
    TEST_MUST(rnl_fault_parse(w->faults, &fault) == 0);
    if (w->faults[0])
        TEST_MUST(rnl_fault_transport_new(env->datagrams, &fault, env->ops->now_ns(env), &env->datagrams) == 0);
    memset(env->job_key, 0x5a, sizeof env->job_key);
    TEST_MUST(rnl_ep_net_new(ep, &w->opt) == 0);
    rnl_ep_net_soon(ep);
}

static struct test_wires *eager; /* there is one at a time */

static uint64_t now_ns(struct test_wires *w)
{
    return w && atomic_load(&w->clock_ns) ? test_wires_now_ns(w) : test_now_ns();
}

void test_wires_settle(void)
{
    struct test_wires *w = eager;
    uint64_t until = now_ns(w) + SETTLE_NS;
    unsigned left = w && atomic_load(&w->stopped) ? SETTLE_ROUNDS : UINT_MAX; /* what is due later stays */
    for (int rest = 0; w && !rest && left-- && now_ns(w) < until;) {
        rest = 1;
        for (unsigned i = 0; i < w->size; i++) {
            struct port *p = &w->port[i];
            if (!p->open || p->ep->fast.open == RNL_EP_FORKED)
                continue;
            rnl_ep_net_maintain(p->ep);
            rnl_ep_net_receive(p->ep);
            rnl_ep_net_send(p->ep);
            rest &= rnl_remote_at_rest(p->ep->remote) && !p->first;
        }
        for (unsigned i = 0; i < w->size; i++)
            rest &= !w->port[i].first;
    }
}

void test_wires_connect(struct test_wires *w)
{
    struct rnl_conn *conn;
    eager = w;
    for (unsigned i = 0; i < w->size; i++)
        for (unsigned k = 0; k < w->size; k++)
            if (i != k)
                TEST_MUST(rnl_ep_connect(w->port[i].ep, k, &conn) == 0);
    test_wires_settle();
}

void test_wires_connect_wanted(struct test_wires *w)
{
    if (w && getenv("RNL_TEST_EAGER"))
        test_wires_connect(w);
}

void test_wires_threads(struct test_wires *w)
{
    if (w == eager)
        eager = NULL;
}

void test_wires_free(struct test_wires *w)
{
    if (!w)
        return;
    for (unsigned i = 0; i < w->size; i++)
        forget(&w->port[i]);
    pthread_mutex_destroy(&w->lock);
    free(w->ops);
    free(w);
}

void test_wires_refuse(struct test_wires *w, unsigned every, unsigned why)
{
    pthread_mutex_lock(&w->lock);
    w->refuse_every = every;
    w->refuse_why = why;
    pthread_mutex_unlock(&w->lock);
}

static unsigned long value(struct test_wires *w, const unsigned long *of)
{
    pthread_mutex_lock(&w->lock);
    unsigned long n = *of;
    pthread_mutex_unlock(&w->lock);
    return n;
}

unsigned long test_wires_refused(struct test_wires *w)
{
    return value(w, &w->refused);
}

unsigned long test_wires_looks(struct test_wires *w)
{
    return value(w, &w->looks);
}

unsigned long test_wires_calls(struct test_wires *w)
{
    return value(w, &w->calls);
}

unsigned long test_wires_sent(struct test_wires *w)
{
    return value(w, &w->sent);
}
