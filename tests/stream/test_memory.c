/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A receiver that lacks memory: the message waits, nothing of it is lost, and the program is told, once. And what
 * counts against the receive budget. */
#include "stream/inbox.h"

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>

#include "support/seam.h"

enum { NOTE = 1, WHOLE = 2, ASK = 3, KEEP = 4, LATE = 5 };
enum { LONG_BYTES = 500000 };

struct fixture {
    INBOX_FIXTURE;
    int kept_status[3], keeps;
    rnl_kept *kept[3];
};

static int asked(rnl_stream *s, unsigned peer, void *ctx)
{
    (void)peer, (void)ctx;
    TEST_MUST(rnl_reply(s, NOTE, test_pattern(1, 0), 30000) == 0);
    return RNL_DONE;
}

static int keeps(rnl_stream *s, unsigned peer, void *ctx)
{
    struct fixture *f = ctx;
    f->kept_status[peer] = rnl_keep(s, &f->kept[peer]);
    f->keeps++;
    return f->kept_status[peer] == 0 ? RNL_KEEP : RNL_DONE;
}

static void handlers(rnl_endpoint *ep, void *fixture)
{
    struct fixture *f = fixture;
    TEST_MUST(rnl_handler_stream(ep, NOTE, inbox_stream, &f->in) == NOTE);
    TEST_MUST(rnl_handler_whole(ep, WHOLE, inbox_whole, &f->in, 0) == WHOLE);
    TEST_MUST(rnl_handler_stream(ep, ASK, asked, f) == ASK);
    TEST_MUST(rnl_handler_stream(ep, KEEP, keeps, f) == KEEP);
}

static int set_up(void **state)
{
    return inbox_open(state, sizeof(struct fixture), 3, NULL, handlers);
}

#define tear_down inbox_close

/* Datagrams in flight, and links that wake, take memory of the same process. It is about the message's alone: links
 * stay awake, and every other one of these pieces is free for what carries it. Those between keep them too small for
 * the message itself. */
enum { SPARES = 96, SPARE = 40000 };

static void put_by(void **piece)
{
    for (unsigned i = 0; i < SPARES; i++)
        assert_non_null(piece[i] = malloc(SPARE));
}

static void give(void **piece, unsigned first)
{
    for (unsigned i = first; i < SPARES; i += 2)
        free(piece[i]);
}

static int post_on_bulk_lane(rnl_endpoint *ep, unsigned peer, unsigned handler, const void *buf, size_t n)
{
    const struct rnl_message b = {.peer = peer, .handler = handler, .bound = n, .flags = RNL_BULK};
    const struct rnl_buffer piece = {buf, n};
    return rnl_post(ep, &b, &piece, 1, NULL, NULL);
}

static void waits_for_memory(struct fixture *f, int (*send)(rnl_endpoint *, unsigned, unsigned, const void *, size_t))
{
    struct rlimit before, now;
    long pages = 0;
    void *volatile hole[2000]; /* volatile: no compiler leaves them out */
    void *spare[SPARES];
    unsigned holes = 0;
    if (test_slowness() != 1) {
        puts("skip: the sanitizers' own memory cannot be limited");
        skip();
    }
    inbox_room(&f->in, (1 << 20) + 1);
    test_seam_stay_active(f->a);
    test_seam_stay_active(f->b);
    assert_int_equal(send(f->a, 1, WHOLE, test_pattern(1, 0), 1000), 0); /* the area is mapped */
    drain(f->b);
    put_by(spare);
    FILE *statm = fopen("/proc/self/statm", "r");
    assert_non_null(statm);
    assert_int_equal(fscanf(statm, "%ld", &pages), 1);
    fclose(statm);
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    now = before;
    now.rlim_cur = (rlim_t)pages * 4096;
    assert_int_equal(send(f->a, 1, WHOLE, test_pattern(1, 0), 500000), 0);
    assert_int_equal(setrlimit(RLIMIT_AS, &now), 0);
    while (holes < 2000 && (hole[holes] = malloc(500000)) != NULL) /* what is left in the arenas */
        holes++;
    give(spare, 0);
    int64_t status = 0; /* over a rough network the message begins to arrive some time */
    for (int tries = 0; tries < 10000 && status >= 0 && f->in.count < 2; tries++)
        status = rnl_extract(f->b, SIZE_MAX);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    while (holes > 0)
        free(hole[--holes]);
    give(spare, 1);
    assert_int_equal(status, RNL_ERR_NO_MEMORY);
    SAYS(RNL_ERR_NO_MEMORY, "rank 0", "500000");
    assert_int_equal(f->in.count, 1);
    for (unsigned i = 0; i < 10; i++) { /* between hosts not all of a post may have been sent */
        drain(f->b);
        drain(f->a);
    }
    assert_int_equal(f->in.count, 2);
    assert_int_equal(f->in.got[1].n, 500000);
    assert_memory_equal(f->in.buf, test_pattern(1, 0), 500000);
}

static void a_whole_message_without_memory_waits(void **state)
{
    waits_for_memory(*state, post_card);
}

static void so_does_one_of_the_bulk_lane(void **state)
{
    waits_for_memory(*state, post_on_bulk_lane);
}

static void *leaves(void *ep)
{
    (void)!rnl_close(ep); /* b leaves without it */
    return NULL;
}

/* Also if it waited for something else first, and so was counted as that. */
static void a_message_that_gets_no_memory_ends_close(void **state)
{
    struct fixture *f = *state;
    struct rlimit before, now;
    long pages = 0;
    pthread_t thread[2];
    void *volatile hole[2000];
    unsigned holes = 0;
    if (test_slowness() != 1) {
        puts("skip: the sanitizers' own memory cannot be limited");
        skip();
    }
    test_seam_stay_active(f->a);
    test_seam_stay_active(f->b);
    assert_int_equal(post_card(f->a, 1, LATE, test_pattern(1, 0), LONG_BYTES), 0);
    drain(f->b);
    assert_int_equal(rnl_get_counters(f->b)->no_handler, 1);
    assert_int_equal(rnl_handler_whole(f->b, LATE, inbox_whole, &f->in, 0), LATE);
    (void)mallopt(M_ARENA_MAX, 1); /* no others, whose room comes and goes */
    test_wires_threads(f->h.wires);
    assert_int_equal(pthread_create(&thread[0], NULL, leaves, f->a), 0);
    assert_int_equal(pthread_create(&thread[1], NULL, leaves, f->c), 0);
    FILE *statm = fopen("/proc/self/statm", "r");
    assert_non_null(statm);
    assert_int_equal(fscanf(statm, "%ld", &pages), 1);
    fclose(statm);
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    now = before;
    now.rlim_cur = (rlim_t)pages * 4096 + LONG_BYTES / 2; /* enough for all else */
    assert_int_equal(setrlimit(RLIMIT_AS, &now), 0);
    while (holes < 2000 && (hole[holes] = malloc(LONG_BYTES)) != NULL)
        holes++;
    int status = rnl_close(f->b);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    while (holes > 0)
        free(hole[--holes]);
    pthread_join(thread[0], NULL);
    pthread_join(thread[1], NULL);
    for (unsigned i = 0; i < 3; i++)
        f->h.ep[i] = NULL;
    assert_int_equal(f->in.count, 0);
    assert_int_equal(status, RNL_ERR_NO_MEMORY);
}

static uint64_t ahead_ns; /* of the receiver's clock */
static uint64_t (*own_now)(struct rnl_env *);
static uint64_t now_ns(struct rnl_env *env)
{
    return own_now(env) + ahead_ns;
}

/* A sender whose message waited for memory for ever would wait with it, and nobody would say why. */
static void a_sender_whose_message_gets_no_memory_is_given_up(void **state)
{
    struct fixture *f = *state;
    struct rlimit before, now;
    struct rnl_peer_info info;
    struct test_seam seam;
    long pages = 0;
    void *volatile hole[2000];
    unsigned holes = 0;
    if (test_slowness() != 1 || f->h.wires) {
        puts(f->h.wires ? "skip: an hour's silence is a death of its own between hosts"
                        : "skip: the sanitizers' own memory cannot be limited");
        skip();
    }
    assert_int_equal(post_card(f->a, 1, LATE, test_pattern(1, 0), LONG_BYTES), 0);
    drain(f->b);
    assert_int_equal(rnl_handler_whole(f->b, LATE, inbox_whole, &f->in, 0), LATE);
    (void)mallopt(M_ARENA_MAX, 1);
    test_seam_open(&seam, f->b);
    own_now = seam.ops.now_ns;
    seam.ops.now_ns = now_ns;
    ahead_ns = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    assert_non_null(statm);
    assert_int_equal(fscanf(statm, "%ld", &pages), 1);
    fclose(statm);
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    now = before;
    now.rlim_cur = (rlim_t)pages * 4096 + LONG_BYTES / 2; /* enough for all else */
    assert_int_equal(setrlimit(RLIMIT_AS, &now), 0);
    while (holes < 2000 && (hole[holes] = malloc(LONG_BYTES)) != NULL)
        holes++;
    int64_t told = 0, after = 0;
    for (int tries = 0; tries < 10000 && told == 0; tries++)
        told = rnl_extract(f->b, SIZE_MAX);
    ahead_ns = (uint64_t)29 * 1000 * 1000 * 1000; /* rnl_options.silence_ms is 30 s */
    for (int tries = 0; tries < 100 && after >= 0; tries++)
        after = rnl_extract(f->b, SIZE_MAX);
    int alive = rnl_peer(f->b, 0, &info) == 0 && info.state == RNL_PEER_UP;
    ahead_ns += (uint64_t)3600 * 1000 * 1000 * 1000;
    for (int tries = 0; tries < 10000 && info.state != RNL_PEER_DEAD; tries++)
        TEST_MUST(rnl_extract(f->b, SIZE_MAX) >= 0 && rnl_peer(f->b, 0, &info) == 0);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    while (holes > 0)
        free(hole[--holes]);
    test_seam_close(&seam);
    assert_int_equal(told, RNL_ERR_NO_MEMORY);
    assert_int_equal(after, 0); /* it is told once */
    assert_true(alive);
    assert_int_equal(info.state, RNL_PEER_DEAD);
    assert_int_equal(info.reason, RNL_DEATH_NO_MEMORY);
    while (rnl_peer(f->a, 1, &info) == 0 && info.state != RNL_PEER_DEAD)
        assert_true(rnl_wait(f->a, 60000000000) == 0);
    assert_int_equal(info.reason, RNL_DEATH_DISCONNECTED);
    assert_int_equal(rnl_send(f->a, 1, NOTE, "x", 1), RNL_ERR_PEER_DEAD);
    SAYS(RNL_ERR_PEER_DEAD, "rank 1", "no memory");
    assert_int_equal(f->in.count, 0);
}

static void suspended_keeps_and_collected_messages_count_against_the_budget(void **state)
{
    struct fixture *f = *state;
    rnl_stream *s, *t, *u;
    size_t budget = test_seam_set_budget(f->b, 1500);
    assert_int_equal(open_stream(f->a, 1, KEEP, 1000, &s), 0);
    assert_int_equal(open_stream(f->c, 1, KEEP, 1000, &t), 0);
    assert_int_equal(rnl_piece(s, test_pattern(1, 0), 500), 0);
    assert_int_equal(rnl_piece(t, test_pattern(1, 0), 500), 0);
    assert_int_equal(rnl_flush(f->a), 0);
    assert_int_equal(rnl_flush(f->c), 0);
    drain(f->b);
    assert_int_equal(f->keeps, 1); /* the other is suspended */
    assert_int_equal(f->kept_status[0] + f->kept_status[2], RNL_NO_ROOM);
    assert_int_equal(rnl_end(s), 0);
    assert_int_equal(rnl_end(t), 0);
    drain(f->b);
    assert_int_equal(f->keeps, 2);
    unsigned who = f->kept[0] ? 0 : 2;
    assert_int_equal(rnl_get_counters(f->b)->kept_bytes, 500); /* fewer came */
    rnl_kept_free(f->kept[who]);
    assert_int_equal(rnl_get_counters(f->b)->kept_bytes, 0);
    assert_int_equal(open_stream(f->a, 1, WHOLE, 1000, &u), 0);
    assert_int_equal(rnl_piece(u, test_pattern(1, 0), 500), 0);
    assert_int_equal(rnl_flush(f->a), 0);
    drain(f->b);
    f->kept_status[2] = 0;
    assert_int_equal(post_card(f->c, 1, KEEP, test_pattern(1, 0), 600), 0);
    drain(f->b);
    assert_int_equal(f->kept_status[2], RNL_NO_ROOM);
    assert_int_equal(rnl_abort(u), 0);
    drain(f->b);
    assert_int_equal(post_card(f->c, 1, KEEP, test_pattern(1, 0), 600), 0);
    drain(f->b);
    assert_int_equal(f->kept_status[2], 0);
    rnl_kept_free(f->kept[2]);
    (void)test_seam_set_budget(f->b, budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_whole_message_without_memory_waits),
        TEST(so_does_one_of_the_bulk_lane),
        TEST(a_message_that_gets_no_memory_ends_close),
        TEST(a_sender_whose_message_gets_no_memory_is_given_up),
        TEST(suspended_keeps_and_collected_messages_count_against_the_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
