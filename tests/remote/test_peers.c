/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_peers.c - what one endpoint with very many peers of other hosts takes of memory. Each peer in turn is a whole
 * endpoint at the other end of a wire, exchanges messages, and is then taken away without a word; time is ours. What is
 * counted: everything that the endpoint, its links and its transport have of the heap and of mapped memory.
 *
 *     unit-remote-peers [PEERS MEGABYTES]       PEERS connected peers take less than MEGABYTES; else 1,000 and 16 */
#include <stdio.h>

#include "support/unit.h"
#include <malloc.h>

#include "endpoint/net.h"
#include "net/datagram/udp.h"
#include "remote/remote_internal.h"
#include "stream/stream.h"
#include "support/must.h"
#include "support/random.h"

enum { NOTE = 1, QUEUE = 64, LONGEST = 1472, MESSAGES = 4, ROUNDS_MAX = 2000 };
#define MS ((uint64_t)1000000)

static uint32_t ranks = 1001;
static size_t most_bytes = (size_t)16 << 20;
static uint64_t now_ns = 1000 * MS, drawn;

/* ---- a wire: two sockets ---- */

struct end {
    struct rnl_socket s; /* first */
    struct end **other;  /* where what it sends comes */
    uint32_t count, first;
    struct {
        uint32_t bytes;
        struct rnl_socket_addr from;
        unsigned char at[LONGEST];
    } queue[QUEUE];
};
static struct end *many, *one; /* the endpoint with many peers; the peer whose turn it is */

static struct rnl_socket_addr address(uint32_t rank)
{
    return (struct rnl_socket_addr){
        .ip = {[10] = 0xff, 0xff, 10, (uint8_t)(rank >> 16), (uint8_t)(rank >> 8), (uint8_t)rank}, .port = 7000};
}

static void put(struct end *to, const struct rnl_socket_addr *from, const void *at, uint32_t bytes)
{
    if (!to || to->count == QUEUE)
        return;
    uint32_t i = (to->first + to->count++) % QUEUE;
    TEST_MUST(bytes <= LONGEST);
    to->queue[i].bytes = bytes;
    to->queue[i].from = *from;
    memcpy(to->queue[i].at, at, bytes);
}

static int end_send(struct rnl_socket *s, const struct rnl_socket_out *out, int n, struct rnl_socket_result *result)
{
    struct end *e = (struct end *)(void *)s;
    *result = (struct rnl_socket_result){0};
    for (int i = 0; i < n; i++) {
        struct end *to = *e->other;
        if (to && rnl_socket_addr_equal(&out[i].to, &to->s.self))
            put(to, &s->self, out[i].at, out[i].bytes);
    }
    return n;
}

static int end_recv(struct rnl_socket *s, struct rnl_socket_in *in, int n)
{
    struct end *e = (struct end *)(void *)s;
    int i = 0;
    for (; i < n && e->count; i++, e->count--, e->first = (e->first + 1) % QUEUE) {
        in[i].bytes = e->queue[e->first].bytes;
        in[i].segment = in[i].ecn = in[i].cut = 0;
        in[i].from = e->queue[e->first].from;
        memcpy(in[i].at, e->queue[e->first].at, in[i].bytes);
    }
    return i;
}

static int end_error(struct rnl_socket *s, struct rnl_socket_error *e)
{
    (void)s, (void)e;
    return 0;
}

static int end_arm(struct rnl_socket *s)
{
    return ((struct end *)(void *)s)->count > 0;
}

static int end_fd(struct rnl_socket *s)
{
    (void)s;
    return rnl_fail(RNL_ERR_UNSUPPORTED, "a wire has no descriptor");
}

static void end_close(struct rnl_socket *s)
{
    free(s);
}

static const struct rnl_socket_ops end_ops = {.size = sizeof end_ops,
                                              .send = end_send,
                                              .recv = end_recv,
                                              .error = end_error,
                                              .arm = end_arm,
                                              .fd = end_fd,
                                              .close = end_close};

/* ---- the world ---- */

static uint64_t env_now(struct rnl_env *env)
{
    (void)env;
    return now_ns += 20;
}

static uint64_t env_random(struct rnl_env *env)
{
    (void)env;
    return ++drawn * 0x9e3779b97f4a7c15;
}

static uint64_t env_yield(struct rnl_env *env)
{
    (void)env;
    now_ns += 1000;
    return 1000;
}

static void env_park(struct rnl_env *env, _Atomic uint32_t *word, uint32_t expected, uint64_t deadline_ns)
{
    (void)env, (void)word, (void)expected;
    if (deadline_ns != UINT64_MAX && deadline_ns > now_ns)
        now_ns = deadline_ns;
}

static void env_wake(struct rnl_env *env, _Atomic uint32_t *word)
{
    (void)env, (void)word;
}

static int env_fence(struct rnl_env *env)
{
    (void)env;
    return 0;
}

static void env_sense(struct rnl_env *env, uint8_t *d)
{
    (void)env, (void)d;
}

static int env_event(struct rnl_env *env, struct rnl_event *out)
{
    (void)env, (void)out;
    return 0;
}

static int env_place(struct rnl_env *env, uint32_t rank, struct rnl_rank_address *out)
{
    const struct rnl_socket_addr at = address(rank);
    struct rnl_addr addr;
    if (rank == env->rank)
        return 0;
    rnl_udp_addr_of(&at, &addr);
    *out = (struct rnl_rank_address){.addr_bytes = addr.len};
    memcpy(out->addr, addr.bytes, addr.len);
    return 1;
}

static void env_close(struct rnl_env *env)
{
    free(env);
}

static const struct rnl_env_ops env_ops = {.size = sizeof env_ops,
                                           .now_ns = env_now,
                                           .random = env_random,
                                           .yield = env_yield,
                                           .park = env_park,
                                           .wake = env_wake,
                                           .heavy_fence = env_fence,
                                           .sense_fence = env_sense,
                                           .event = env_event,
                                           .close = env_close,
                                           .rank_address = env_place};

static rnl_endpoint *open_one(uint32_t rank, struct end **self, struct end **other)
{
    static _Atomic uint32_t news;
    static struct rnl_bell bell;
    const struct rnl_options opt = {.size = sizeof opt, .handlers = 8, .stacks = rank ? 1 : 0};
    struct rnl_env *env = calloc(1, sizeof *env);
    struct end *e = calloc(1, sizeof *e);
    rnl_endpoint *ep;
    TEST_MUST(env != NULL && e != NULL);
    e->s = (struct rnl_socket){.ops = &end_ops,
                               .self = address(rank),
                               .datagram_max = LONGEST,
                               .segments_max = 1,
                               .segment_bytes = LONGEST,
                               .merged_bytes = LONGEST,
                               .receive_bytes = 212992};
    e->other = other;
    *self = e;
    *env = (struct rnl_env){
        .ops = &env_ops, .rank = rank, .size = ranks, .incarnation = 1 + rank, .event_seq = &news, .bell = &bell};
    env->facts = (struct rnl_env_facts){.cpus = 1, .page_bytes = 4096, .have_membarrier = 1};
    TEST_MUST(rnl_udp_transport_new(env, &e->s, NULL, &env->datagrams) == 0);
    TEST_MUST(rnl_ep_new(env, &opt, &ep) == 0);
    rnl_stream_attach(ep);
    return ep;
}

/* ---- what it takes ---- */

static size_t heap_bytes(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

/* Of the process, and of it alone: what mapped pages really take. */
static size_t private_bytes(void)
{
    char line[200];
    unsigned long kb = 0, sum = 0;
    FILE *f = fopen("/proc/self/smaps_rollup", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "Pss: %lu", &kb) == 1)
            sum = kb;
    if (f)
        fclose(f);
    return sum * 1024;
}

static unsigned came;
static int on_note(rnl_stream *s, unsigned peer, void *ctx)
{
    unsigned char buf[200];
    size_t n = rnl_peek(s, NULL);
    (void)ctx;
    TEST_MUST(rnl_receive(s, buf, n) == 0 && buf[0] == (unsigned char)peer);
    came++;
    return RNL_DONE;
}

static void turn(rnl_endpoint *a, rnl_endpoint *b)
{
    TEST_MUST(rnl_extract(a, SIZE_MAX) >= 0);
    TEST_MUST(rnl_extract(b, SIZE_MAX) >= 0);
    now_ns += 5000;
}

static int at_rest(const rnl_endpoint *ep, uint32_t rank)
{
    const struct rnl_remote_conn *link = ep->peer[rank].conn->remote;
    return link->established && rnl_flow_idle(&link->flow) && !(link->replica && rnl_replica_pending(link->replica));
}

/* Messages both ways, until all of it is said and acknowledged; then the peer is there no more. */
static void exchange(rnl_endpoint *ep, uint32_t rank)
{
    rnl_endpoint *peer = open_one(rank, &one, &many);
    unsigned char mine[40] = {0}, theirs[40] = {(unsigned char)rank};
    TEST_MUST(rnl_handler_stream(peer, NOTE, on_note, NULL) == NOTE);
    came = 0;
    for (unsigned i = 0; i < MESSAGES; i++) {
        TEST_MUST(rnl_send(peer, 0, NOTE, theirs, sizeof theirs) == 0);
        TEST_MUST(rnl_send(ep, rank, NOTE, mine, sizeof mine) == 0);
    }
    for (unsigned i = 0; i < ROUNDS_MAX && came < 2 * MESSAGES; i++)
        turn(ep, peer);
    for (unsigned k = 0; k < 3; k++) { /* what was read is said, and that it was heard, too */
        rnl_ep_advertise(ep, ep->peer[rank].conn);
        rnl_ep_advertise(peer, peer->peer[0].conn);
        rnl_ep_net_maintain(ep);
        rnl_ep_net_maintain(peer);
        for (unsigned i = 0; i < ROUNDS_MAX && !(at_rest(ep, rank) && at_rest(peer, 0)); i++)
            turn(ep, peer);
    }
    TEST_MUST(came == 2 * MESSAGES && at_rest(ep, rank));
    one = NULL;
    rnl_ep_free(peer); /* its farewell does not arrive: nobody has the wire */
    many->count = 0;
}

static void many_peers_take_little_memory(void **state)
{
    (void)state;
    rnl_ep_free(open_one(1, &one, &many)); /* what is made once a process is made now */
    one = NULL;
    size_t heap = heap_bytes(), all = private_bytes();
    rnl_endpoint *ep = open_one(0, &many, &one);
    assert_int_equal(rnl_handler_stream(ep, NOTE, on_note, NULL), NOTE);
    uint32_t most_awake = 0;
    for (uint32_t rank = 2; rank < ranks; rank++) {
        exchange(ep, rank);
        most_awake = ep->remote->active_count > most_awake ? ep->remote->active_count : most_awake;
    }
    malloc_trim(0);
    size_t at_once = private_bytes() - all;
    for (unsigned i = 0; i < 100 && ep->remote->active_count; i++) {
        now_ns += 60 * MS;
        rnl_ep_net_maintain(ep);
        rnl_ep_net_send(ep);
    }
    malloc_trim(0);
    size_t heap_now = heap_bytes() - heap, now = private_bytes() - all;
    printf(
        "%u peers, all connected: %zu KB of heap, %zu KB of the process at rest, %zu KB before (%u links awake then, "
        "%u at most, %u now)\n",
        ranks - 2, heap_now / 1024, now / 1024, at_once / 1024, ep->remote->active_few, most_awake,
        ep->remote->active_count);
    for (uint32_t rank = 2; rank < ranks; rank++)
        assert_int_equal(ep->peer[rank].state, RNL_PEER_IS_UP);
    assert_int_equal(ep->remote->active_count, 0);
    /* The more are awake, the sooner they rest. */
    assert_true(2 * most_awake < 7 * ep->remote->active_few);
    if (test_slowness() == 1) { /* a sanitizer has memory of its own */
        assert_true(heap_now < most_bytes);
        assert_true(now < most_bytes);
        assert_true(at_once < most_bytes);
    }
    rnl_ep_free(ep);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(many_peers_take_little_memory)};
    if (argc > 2) {
        ranks = (uint32_t)atoi(argv[1]) + 2;
        most_bytes = (size_t)atoi(argv[2]) << 20;
        if (test_slowness() > 1 && ranks > 3002) /* memory is not judged there */
            ranks = 3002;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
