/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_link.c - pairs and the XDR streams over them, both ends in this process: bytes against libtirpc's memory stream,
 * waiting, a peer that dies, and one that writes what it likes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "adapters/sunrpc/greeting.h"
#include "adapters/sunrpc/host.h"
#include "adapters/sunrpc/pair.h"
#include "adapters/sunrpc/stream.h"

#include "support/must.h"
#include "support/random.h"

#include <fcntl.h>
#include <pthread.h>
#include <rpc/rpc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { SOON_MS = 10000 };

struct ends {
    struct rnl_rpc_link *client, *server;
    struct rnl_rpc_segment *third; /* the same memory once more, as a peer that keeps to no rule has it */
    int fd[2];
};

static void begin(struct ends *e)
{
    int memory = rnl_rpc_segment_new();
    TEST_MUST(memory >= 0);
    TEST_MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, e->fd) == 0);
    struct rnl_rpc_segment *a = rnl_rpc_segment_map(memory), *b = rnl_rpc_segment_map(memory);
    e->third = rnl_rpc_segment_map(memory);
    TEST_MUST(a && b && e->third);
    e->client = rnl_rpc_pair_new(a, e->fd[0], false, true);
    e->server = rnl_rpc_pair_new(b, e->fd[1], true, true);
    TEST_MUST(e->client && e->server);
    close(memory);
}

static void end(struct ends *e)
{
    e->client->ops->close(e->client);
    e->server->ops->close(e->server);
    rnl_rpc_segment_unmap(e->third);
    close(e->fd[0]);
    if (e->fd[1] >= 0)
        close(e->fd[1]);
}

static uint64_t soon(void)
{
    return rnl_rpc_now_ns() + (uint64_t)SOON_MS * 1000000u;
}

/* ---- streams ---- */

enum { ITEMS_MAX = 200, RECORD_MAX = 1 << 20 };

struct item {
    int kind; /* 0 = long, 1 = bytes, 2 = numbers of 4, 3 = numbers of 8, 4 = in place */
    u_int n;
    unsigned char *at, *back;
};

static bool_t go(XDR *x, struct item *i, unsigned char *at, bool ours)
{
    long v;
    int32_t *place;
    switch (i->kind) {
    case 0:
        memcpy(&v, at, sizeof v);
        v = (int32_t)v;
        if (!(x->x_op == XDR_ENCODE ? XDR_PUTLONG(x, &v) : XDR_GETLONG(x, &v)))
            return FALSE;
        v = (int32_t)v; /* the upper half is not of the stream */
        memcpy(at, &v, sizeof v);
        return TRUE;
    case 1:
        return x->x_op == XDR_ENCODE ? XDR_PUTBYTES(x, (char *)at, i->n) : XDR_GETBYTES(x, (char *)at, i->n);
    case 2:
    case 3:
        if (ours)
            return rnl_rpc_stream_numbers(x, (char *)at, i->n, i->kind == 2 ? 4 : 8);
        return xdr_vector(x, (char *)at, i->n, i->kind == 2 ? 4 : 8,
                          i->kind == 2 ? (xdrproc_t)xdr_int : (xdrproc_t)xdr_int64_t);
    default:
        place = XDR_INLINE(x, i->n * 4);
        if (!place)
            return x->x_op == XDR_ENCODE ? XDR_PUTBYTES(x, (char *)at, i->n * 4)
                                         : XDR_GETBYTES(x, (char *)at, i->n * 4);
        memcpy(x->x_op == XDR_ENCODE ? (void *)place : (void *)at, x->x_op == XDR_ENCODE ? (void *)at : (void *)place,
               i->n * 4);
        return TRUE;
    }
}

static size_t item_bytes(const struct item *i)
{
    static const size_t each[] = {8, 1, 4, 8, 4};
    return i->kind == 0 ? 8 : i->n * each[i->kind];
}

static void a_stream_carries_what_a_memory_stream_does(void **state)
{
    struct ends e;
    struct item items[ITEMS_MAX];
    unsigned char *expected = malloc(RECORD_MAX), *got = malloc(RECORD_MAX);
    struct test_random r;
    (void)state;
    r = test_random_of(42, 0);
    begin(&e);
    for (int round = 0; round < 400; round++) {
        int n = (int)test_random_below(&r, round % 10 == 0 ? ITEMS_MAX : 12), odd = round % 4 == 3;
        size_t room = RECORD_MAX * 7 / 8, used = 0;
        XDR mem, out, in;
        for (int i = 0; i < n; i++) {
            struct item *it = &items[i];
            it->kind = (int)test_random_below(&r, 5);
            it->n = (u_int)test_random_below(&r, test_random_below(&r, 20) == 0 ? 20000 : 40);
            if (it->kind == 1 && !odd)
                it->n &= ~3u;
            if (it->kind == 4)
                it->n = 1 + it->n % 12;
            if (used + item_bytes(it) > room)
                it->n = 0, it->kind = 1;
            used += item_bytes(it);
            it->at = malloc(item_bytes(it) + 1);
            it->back = malloc(item_bytes(it) + 1);
            for (size_t k = 0; k < item_bytes(it); k++)
                it->at[k] = (unsigned char)test_random_below(&r, 256);
            if (it->kind == 0) { /* what comes back is a word of 4 bytes with its sign */
                long v = (int32_t)test_random_below(&r, UINT32_MAX);
                memcpy(it->at, &v, sizeof v);
            }
        }
        bool twice = test_random_below(&r, 2); /* byte by byte, or item by item */
        size_t bytes;
        xdrmem_create(&mem, (char *)expected, RECORD_MAX, XDR_ENCODE);
        rnl_rpc_stream_out(&out, e.client);
        for (int i = 0; i < n; i++) {
            unsigned char copy[8];
            struct item plain = items[i];
            if (odd && plain.kind >= 2) /* the memory stream knows no numbers off a word */
                plain.kind = 1, plain.n = (u_int)item_bytes(&items[i]), items[i].kind = 1, items[i].n = plain.n;
            assert_true(go(&mem, &plain, plain.kind == 0 ? memcpy(copy, plain.at, 8) : plain.at, false));
            assert_int_equal(XDR_GETPOS(&mem) - item_bytes(&plain) + (plain.kind == 0 ? 4 : 0), XDR_GETPOS(&out));
            assert_true(go(&out, &items[i], items[i].at, true));
        }
        bytes = XDR_GETPOS(&mem);
        assert_int_equal(bytes, XDR_GETPOS(&out));
        assert_true(e.client->ops->end(e.client));
        rnl_rpc_stream_in(&in, e.server);
        assert_true(e.server->ops->wait(e.server, soon()));
        if (twice) {
            assert_true(XDR_GETBYTES(&in, (char *)got, (u_int)bytes));
            assert_memory_equal(got, expected, bytes);
        } else {
            for (int i = 0; i < n; i++) {
                memset(items[i].back, 0, item_bytes(&items[i]));
                assert_true(go(&in, &items[i], items[i].back, true));
                assert_memory_equal(items[i].back, items[i].at, item_bytes(&items[i]));
            }
        }
        assert_false(XDR_GETBYTES(&in, (char *)got, 1)); /* the record ends there */
        assert_true(e.server->ops->leave(e.server));
        assert_false(e.server->ops->here(e.server));
        for (int i = 0; i < n; i++) {
            free(items[i].at);
            free(items[i].back);
        }
    }
    end(&e);
    free(expected);
    free(got);
}

struct long_records {
    struct rnl_rpc_link *link;
    unsigned seed;
};
enum { LONG_RECORDS = 40 };

static void *write_long_records(void *arg)
{
    struct long_records *l = arg;
    struct test_random r;
    r = test_random_of(l->seed, 0);
    for (int k = 0; k < LONG_RECORDS; k++) {
        uint32_t n = (uint32_t)test_random_below(&r, k % 8 == 7 ? 6 << 20 : 3000);
        unsigned char *bytes = malloc(n + 1);
        for (uint32_t i = 0; i < n; i++)
            bytes[i] = (unsigned char)(i * 7 + (unsigned)k);
        TEST_MUST(rnl_rpc_stream_put(l->link, &n, sizeof n));
        for (uint32_t at = 0; at < n;) {
            uint32_t part = 1 + (uint32_t)test_random_below(&r, 100000);
            part = part < n - at ? part : n - at;
            TEST_MUST(rnl_rpc_stream_put(l->link, bytes + at, part));
            at += part;
        }
        TEST_MUST(l->link->ops->end(l->link));
        free(bytes);
    }
    return NULL;
}

static void records_of_any_length_arrive_while_they_are_written(void **state)
{
    struct ends e;
    pthread_t writer;
    (void)state;
    begin(&e);
    struct long_records l = {e.client, 7};
    pthread_create(&writer, NULL, write_long_records, &l);
    for (int k = 0; k < LONG_RECORDS; k++) {
        XDR in;
        uint32_t n;
        rnl_rpc_stream_in(&in, e.server);
        assert_true(e.server->ops->wait(e.server, soon()));
        assert_true(XDR_GETBYTES(&in, (char *)&n, sizeof n));
        unsigned char *bytes = malloc(n + 1);
        if (k % 3 != 2) {
            assert_true(XDR_GETBYTES(&in, (char *)bytes, n));
            for (uint32_t i = 0; i < n; i++)
                if (bytes[i] != (unsigned char)(i * 7 + (unsigned)k))
                    fail_msg("byte %u of record %d", i, k);
        } /* else the rest is skipped */
        assert_true(e.server->ops->leave(e.server));
        free(bytes);
    }
    pthread_join(writer, NULL);
    end(&e);
}

static void a_record_can_be_taken_back_before_a_part_is_on_its_way(void **state)
{
    struct ends e;
    char bytes[100] = "dropped", got[8];
    XDR in;
    (void)state;
    begin(&e);
    rnl_rpc_stream_in(&in, e.server);
    assert_true(rnl_rpc_stream_put(e.client, bytes, 8));
    assert_true(e.client->ops->drop(e.client));
    assert_true(rnl_rpc_stream_put(e.client, "kept....", 8));
    assert_true(e.client->ops->end(e.client));
    assert_true(e.server->ops->wait(e.server, soon()));
    assert_true(XDR_GETBYTES(&in, got, 8));
    assert_memory_equal(got, "kept....", 8);
    assert_true(e.server->ops->leave(e.server));
    assert_true(rnl_rpc_stream_put(e.client, bytes, sizeof bytes));
    assert_false(e.client->ops->drop(e.client));
    end(&e);
}

static void peeking_takes_nothing(void **state)
{
    struct ends e;
    uint32_t first = 0, word = 77;
    XDR in;
    long v;
    (void)state;
    begin(&e);
    assert_false(e.server->ops->peek(e.server, &first, sizeof first));
    assert_true(rnl_rpc_stream_put(e.client, &word, sizeof word));
    assert_true(e.client->ops->end(e.client));
    assert_true(e.server->ops->wait(e.server, soon()));
    assert_true(e.server->ops->peek(e.server, &first, sizeof first));
    assert_int_equal(first, 77);
    assert_false(e.server->ops->peek(e.server, &first, 64));
    rnl_rpc_stream_in(&in, e.server);
    assert_true(XDR_GETLONG(&in, &v));
    assert_int_equal(v, (long)(int32_t)__builtin_bswap32(77));
    end(&e);
}

/* ---- waiting ---- */

static void *write_late(void *arg)
{
    struct rnl_rpc_link *link = arg;
    struct timespec t = {0, 40000000}; /* the reader has gone to sleep by then */
    for (int i = 0; i < 3; i++) {
        nanosleep(&t, NULL);
        TEST_MUST(rnl_rpc_stream_put(link, "word", 4) && link->ops->end(link));
    }
    return NULL;
}

static void a_sleeper_is_woken(void **state)
{
    struct ends e;
    pthread_t writer;
    (void)state;
    begin(&e);
    pthread_create(&writer, NULL, write_late, e.client);
    for (int i = 0; i < 3; i++) {
        assert_true(e.server->ops->wait(e.server, soon()));
        assert_true(e.server->ops->next(e.server));
        assert_true(e.server->ops->leave(e.server));
    }
    pthread_join(writer, NULL);
    end(&e);
}

static void a_wait_ends_at_its_deadline(void **state)
{
    struct ends e;
    (void)state;
    begin(&e);
    uint64_t began = rnl_rpc_now_ns();
    assert_false(e.server->ops->wait(e.server, began + 5000000));
    assert_true(rnl_rpc_now_ns() >= began + 5000000);
    assert_false(e.server->broken);
    end(&e);
}

static void what_a_dead_peer_has_sent_is_still_read(void **state)
{
    struct ends e;
    (void)state;
    begin(&e);
    assert_true(rnl_rpc_stream_put(e.server, "word", 4));
    assert_true(e.server->ops->end(e.server));
    close(e.fd[1]);
    e.fd[1] = -1;
    assert_true(e.client->ops->wait(e.client, soon()));
    assert_true(e.client->ops->next(e.client));
    assert_true(e.client->ops->leave(e.client));
    assert_false(e.client->ops->wait(e.client, soon()));
    assert_true(e.client->broken);
    end(&e);
}

/* The reader never comes, so the writer has no room, and gives up at its deadline. */
static unsigned taken;

static void take_in(struct rnl_rpc_link *link)
{
    while (link->ops->here(link)) {
        TEST_MUST(link->ops->next(link) && link->ops->leave(link));
        taken++;
    }
}

static void who_has_no_room_takes_in_what_arrives(void **state)
{
    struct ends e;
    (void)state;
    begin(&e);
    for (int i = 0; i < 10; i++)
        assert_true(rnl_rpc_stream_put(e.server, "word", 4) && e.server->ops->end(e.server));
    e.client->blocked = take_in;
    taken = 0;
    int sent = 0;
    do
        e.client->deadline_ns = rnl_rpc_now_ns() + 30000000;
    while (rnl_rpc_stream_put(e.client, "word", 4) && e.client->ops->end(e.client) && ++sent < 1000);
    assert_int_equal(sent, RNL_RPC_CELLS);
    assert_int_equal(taken, 10);
    assert_true(e.client->broken);
    end(&e);
}

static void who_was_away_does_not_spin(void **state)
{
    struct rnl_rpc_crowd crowd = {0};
    struct rnl_rpc_spinner p;
    (void)state;
    rnl_rpc_spinner_begin(&p, 1000);
    assert_true(rnl_rpc_spinner_look(&p, &crowd, 1000 + RNL_RPC_SPIN_NS));
    assert_false(rnl_rpc_spinner_look(&p, &crowd, 1001 + RNL_RPC_SPIN_NS)); /* long enough */
    assert_false(rnl_rpc_is_crowded(&crowd, 1001 + RNL_RPC_SPIN_NS));
    rnl_rpc_spinner_begin(&p, 1000000);
    assert_false(rnl_rpc_spinner_look(&p, &crowd, 1000001 + RNL_RPC_DESCHEDULED_NS));
    uint64_t now = 1000001 + RNL_RPC_DESCHEDULED_NS;
    assert_int_equal(crowd.until_ns - now, RNL_RPC_ONCE_NS);
    for (unsigned i = 0; i < 8; i++) { /* again and again: the processor is shared */
        const uint64_t before = crowd.for_ns;
        rnl_rpc_spinner_begin(&p, crowd.until_ns);
        assert_false(rnl_rpc_spinner_look(&p, &crowd, now = crowd.until_ns + RNL_RPC_DESCHEDULED_NS + 1));
        assert_true(crowd.until_ns == now + crowd.for_ns && crowd.for_ns >= before);
    }
    assert_int_equal(crowd.for_ns, RNL_RPC_CROWDED_NS);
    rnl_rpc_spinner_begin(&p, now = crowd.until_ns + RNL_RPC_CALM_NS); /* once more, later */
    assert_false(rnl_rpc_spinner_look(&p, &crowd, now + RNL_RPC_DESCHEDULED_NS + 1));
    assert_int_equal(crowd.for_ns, RNL_RPC_ONCE_NS);
}

/* ---- peers that keep to no rule ---- */

/* Closing what a peer sent may block, if it is a file of a file system of the peer's. */
static void who_shows_a_token_can_leave_no_descriptor_behind(void **state)
{
    const char token[RNL_RPC_TOKEN_BYTES] = "a token";
    struct rnl_rpc_hello hello;
    int fd[2], sent[2];
    char byte;
    (void)state;
    TEST_MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) == 0 && pipe(sent) == 0);
    assert_true(rnl_rpc_hello_send(fd[0], token, sent[1]));
    close(sent[1]);
    int lowest = dup(0);
    close(lowest);
    assert_int_equal(rnl_rpc_hello_receive(fd[1], &hello, NULL), 1);
    int after = dup(0);
    close(after);
    assert_int_equal(lowest, after);
    assert_true(rnl_rpc_secret_equal(hello.secret, token));
    assert_int_equal(read(sent[0], &byte, 1), 0); /* nobody has the other end any more */
    /* Where the kernel can refuse to carry them, it does. */
    rnl_rpc_take_no_descriptors(fd[1]);
    if (!rnl_rpc_hello_send(fd[0], token, sent[0]))
        assert_int_equal(rnl_rpc_hello_receive(fd[1], &hello, NULL), 0);
    close(sent[0]);
    close(fd[0]);
    close(fd[1]);
}

static void memory_that_could_shrink_is_refused(void **state)
{
    struct rnl_rpc_segment *none;
    int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, sizeof(struct rnl_rpc_segment)), 0);
    none = rnl_rpc_segment_map(fd);
    assert_null(none);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SEAL), 0);
    none = rnl_rpc_segment_map(fd);
    assert_null(none);
    close(fd);
    fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(ftruncate(fd, 4096), 0);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL), 0);
    none = rnl_rpc_segment_map(fd);
    assert_null(none);
    close(fd);
}

static void forge(struct ends *e, uint64_t number, unsigned n, unsigned flags, uint64_t start, uint32_t bytes)
{
    struct rnl_rpc_cell *cell = &e->third->ring[RNL_RPC_CALLS].cell[(number - 1) % RNL_RPC_CELLS];
    memcpy(cell->payload, &start, sizeof start);
    memcpy(cell->payload + 8, &bytes, sizeof bytes);
    atomic_store(&cell->header, (uint32_t)number | (uint64_t)n << 32 | (uint64_t)flags << 56);
}

static void lengths_and_positions_beyond_the_segment_break_the_link(void **state)
{
    static const struct {
        unsigned n, flags;
        uint64_t start;
        uint32_t bytes;
    } lies[] = {
        {57, RNL_RPC_LAST, 0, 0},
        {255, RNL_RPC_LAST, 0, 0},
        {12, RNL_RPC_LAST | RNL_RPC_BULK, 0, RNL_RPC_BULK_BYTES + 1},
        {12, RNL_RPC_LAST | RNL_RPC_BULK, 0, UINT32_MAX},
        {12, RNL_RPC_LAST | RNL_RPC_BULK, RNL_RPC_BULK_BYTES - 64, 65},
        {12, RNL_RPC_LAST | RNL_RPC_BULK, 4, 4},
        {12, RNL_RPC_LAST | RNL_RPC_BULK, UINT64_MAX - 63, 64},
        {12, RNL_RPC_LAST | RNL_RPC_BULK, (uint64_t)2 * RNL_RPC_BULK_BYTES, 64},
    };
    (void)state;
    for (unsigned i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        struct ends e;
        begin(&e);
        forge(&e, 1, lies[i].n, lies[i].flags, lies[i].start, lies[i].bytes);
        assert_true(e.server->ops->here(e.server));
        if (e.server->ops->next(e.server) || !e.server->broken)
            fail_msg("lie %u was believed", i);
        end(&e);
    }
}

static void a_reader_that_claims_what_was_not_written_breaks_the_link(void **state)
{
    (void)state;
    for (int bulk = 0; bulk < 2; bulk++) {
        struct ends e;
        static char bytes[RNL_RPC_BULK_BYTES / 2];
        begin(&e);
        atomic_store(bulk ? &e.third->ring[RNL_RPC_CALLS].bulk_read : &e.third->ring[RNL_RPC_CALLS].cells_read,
                     1u << 30);
        e.client->deadline_ns = soon();
        bool ok = true;
        for (int i = 0; ok && i < 1000; i++)
            ok = rnl_rpc_stream_put(e.client, bytes, bulk ? sizeof bytes : 4) && e.client->ops->end(e.client);
        assert_false(ok);
        assert_true(e.client->broken);
        end(&e);
    }
}

static _Atomic bool stop;

static void *scribble(void *arg)
{
    struct ends *e = arg;
    struct test_random r;
    r = test_random_of(99, 0);
    while (!atomic_load(&stop)) {
        struct rnl_rpc_ring *ring = &e->third->ring[test_random_below(&r, 2)];
        struct rnl_rpc_cell *cell = &ring->cell[test_random_below(&r, RNL_RPC_CELLS)];
        uint64_t number = test_random_below(&r, 200), word = test_random_below(&r, UINT32_MAX);
        switch (test_random_below(&r, 5)) {
        case 0:
            atomic_store_explicit(&ring->cells_read, number, memory_order_relaxed);
            break;
        case 1:
            atomic_store_explicit(&ring->bulk_read, word % (RNL_RPC_BULK_BYTES * 2), memory_order_relaxed);
            break;
        case 2:
            memcpy(cell->payload, &word, sizeof word);
            memcpy(cell->payload + 8, &number, sizeof number);
            break;
        case 3:
            atomic_store_explicit(&cell->header, number | word << 32 | (word & 3) << 56, memory_order_relaxed);
            break;
        default:
            memcpy(ring->bulk + word % (RNL_RPC_BULK_BYTES - 8), &word, sizeof word);
            break;
        }
    }
    return NULL;
}

/* Nothing is expected of the contents; the sanitizers see a read or write outside, and every wait has an end. */
static void scribbling_reaches_nothing_but_the_segment(void **state)
{
    static char bytes[200000];
    (void)state;
    for (int round = 0; round < 30; round++) {
        struct ends e;
        pthread_t other;
        begin(&e);
        atomic_store(&stop, false);
        pthread_create(&other, NULL, scribble, &e);
        for (int k = 0; k < 200 && !e.server->broken; k++) {
            XDR in;
            struct rpc_msg msg;
            char room[MAX_AUTH_BYTES * 2];
            char *text = NULL, *array = NULL;
            u_int n = 0;
            e.server->deadline_ns = rnl_rpc_now_ns() + 2000000;
            if (!e.server->ops->wait(e.server, e.server->deadline_ns) || !e.server->ops->next(e.server))
                continue;
            rnl_rpc_stream_in(&in, e.server);
            memset(&msg, 0, sizeof msg);
            msg.rm_call.cb_cred.oa_base = room;
            msg.rm_call.cb_verf.oa_base = room + MAX_AUTH_BYTES;
            (void)xdr_callmsg(&in, &msg);
            if (xdr_bytes(&in, &text, &n, 5000))
                free(text);
            (void)xdr_array(&in, &array, &n, 5000, 4, (xdrproc_t)xdr_int);
            free(array);
            (void)e.server->ops->leave(e.server);
            if (!e.server->broken)
                (void)(rnl_rpc_stream_put(e.server, bytes, sizeof bytes) && e.server->ops->end(e.server));
        }
        atomic_store(&stop, true);
        pthread_join(other, NULL);
        end(&e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_carries_what_a_memory_stream_does),
        cmocka_unit_test(records_of_any_length_arrive_while_they_are_written),
        cmocka_unit_test(a_record_can_be_taken_back_before_a_part_is_on_its_way),
        cmocka_unit_test(peeking_takes_nothing),
        cmocka_unit_test(a_sleeper_is_woken),
        cmocka_unit_test(a_wait_ends_at_its_deadline),
        cmocka_unit_test(what_a_dead_peer_has_sent_is_still_read),
        cmocka_unit_test(who_has_no_room_takes_in_what_arrives),
        cmocka_unit_test(who_was_away_does_not_spin),
        cmocka_unit_test(who_shows_a_token_can_leave_no_descriptor_behind),
        cmocka_unit_test(memory_that_could_shrink_is_refused),
        cmocka_unit_test(lengths_and_positions_beyond_the_segment_break_the_link),
        cmocka_unit_test(a_reader_that_claims_what_was_not_written_breaks_the_link),
        cmocka_unit_test(scribbling_reaches_nothing_but_the_segment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
