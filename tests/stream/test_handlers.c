/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Handlers: registering, whole messages, suspension, stacks that run out, what must not be called inside, and what
 * becomes of a message that a handler leaves open. */
#include "stream/inbox.h"

#include "fm/child.h"
#include "support/seam.h"

enum { NOTE = 1, LATE = 7 };

static struct inbox_fixture *open_fixture(unsigned size, const struct rnl_options *opt)
{
    struct inbox_fixture *f = calloc(1, sizeof *f);
    TEST_MUST(f != NULL);
    test_hub_open(&f->h, size, opt);
    f->a = f->h.ep[0];
    f->b = f->h.ep[1];
    f->c = f->h.ep[2];
    for (unsigned i = 0; i < size; i++)
        TEST_MUST(rnl_handler_stream(f->h.ep[i], NOTE, inbox_sized, &f->in) == NOTE);
    for (unsigned i = 0; i < size; i++)
        TEST_MUST(rnl_handler_stream(f->h.ep[i], 2, inbox_stream, &f->other) == 2);
    for (unsigned i = 0; i < size; i++)
        for (unsigned k = 0; k < size; k++)
            TEST_MUST(rnl_send(f->h.ep[i], k, 2, NULL, 0) == 0);
    for (unsigned i = 0; i < 3 * size; i++)
        drain(f->h.ep[i % size]);
    TEST_MUST(f->other.count == size * size);
    f->other.count = 0;
    return f;
}

static int set_up(void **state)
{
    *state = open_fixture(3, NULL);
    return 0;
}

#define tear_down inbox_close

/* ---- registering ---- */

static int nothing(rnl_stream *s, unsigned peer, void *ctx)
{
    (void)s, (void)peer, (void)ctx;
    return RNL_DONE;
}

static void numbers_go_from_1_up_and_run_out(void **state)
{
    const struct rnl_options opt = {.handlers = 5};
    struct test_hub h;
    struct rnl_limits l;
    (void)state;
    test_hub_open(&h, 1, &opt);
    rnl_endpoint *ep = h.ep[0];
    rnl_get_limits(ep, &l);
    assert_int_equal(l.handlers, 5);
    assert_int_equal(rnl_handler_stream(ep, 2, nothing, NULL), 2);
    assert_int_equal(rnl_handler_stream(ep, RNL_ANY_ID, nothing, NULL), 1);
    assert_int_equal(rnl_handler_whole(ep, RNL_ANY_ID, inbox_whole, NULL, 0), 3);
    assert_int_equal(rnl_handler_stream(ep, RNL_ANY_ID, nothing, NULL), 4);
    assert_int_equal(rnl_handler_stream(ep, RNL_ANY_ID, nothing, NULL), RNL_ERR_HANDLER);
    SAYS(RNL_ERR_HANDLER, "5", "rnl_options.handlers");
    assert_int_equal(rnl_handler_stream(ep, 0, nothing, NULL), 0); /* 0 only by name */
    assert_int_equal(rnl_handler_stream(ep, 5, nothing, NULL), RNL_ERR_HANDLER);
    SAYS(RNL_ERR_HANDLER, "5", "0 to 4");
    SAYS(RNL_ERR_HANDLER, "raise rnl_options.handlers", "65536");
    assert_int_equal(rnl_handler_stream(ep, -2, nothing, NULL), RNL_ERR_HANDLER);
    SAYS(RNL_ERR_HANDLER, "-2", "below 0", "RNL_ANY_ID");
    assert_null(strstr(sentence(), "raise"));
    assert_int_equal(rnl_handler_stream(ep, 1, NULL, NULL), RNL_ERR_ARG);
    assert_int_equal(rnl_handler_whole(ep, 1, NULL, NULL, 0), RNL_ERR_ARG);
    assert_int_equal(rnl_handler_whole(ep, 1, inbox_whole, NULL, 2), RNL_ERR_ARG);
    SAYS(RNL_ERR_ARG, "0x2", "RNL_IN_PLACE");
    assert_int_equal(test_hub_close(&h), 0);
}

/* ---- whole messages ---- */

struct place {
    rnl_endpoint *ep;
    const void *at;
    int shared, count;
    size_t n;
};

static int where_is_it(const void *buf, size_t n, unsigned peer, void *ctx)
{
    struct place *p = ctx;
    p->at = buf;
    p->n = n;
    p->shared = test_seam_is_in_bulk(p->ep, peer, buf);
    p->count++;
    if (n && buf)
        memset((void *)(uintptr_t)buf, 0xee, n); /* it is the handler's, until it returns */
    return RNL_DONE;
}

static void a_whole_message_is_private_or_in_place(void **state)
{
    static const size_t lengths[] = {0, 1, 48, 56, 57, 20000, 262144};
    struct inbox_fixture *f = *state;
    struct place p = {.ep = f->b};
    for (unsigned flags = 0; flags < 2; flags++) {
        assert_int_equal(rnl_handler_whole(f->b, LATE, where_is_it, &p, flags), LATE);
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            p.count = 0;
            assert_int_equal(post_card(f->a, 1, LATE, test_pattern(1, 0), lengths[i]), 0);
            drain(f->b);
            assert_int_equal(p.count, 1);
            assert_int_equal(p.n, lengths[i]);
            assert_non_null(p.at);
            if (lengths[i] > 56) /* others are copied out of their cell */
                assert_int_equal(p.shared, flags == RNL_IN_PLACE);
            else
                assert_int_equal(p.shared, 0);
        }
    }
}

static int posted(rnl_endpoint *from, rnl_endpoint *to, const struct rnl_message *b, const void *buf, size_t n)
{
    const struct rnl_buffer piece = {buf, n};
    int status = rnl_post(from, b, &piece, 1, NULL, NULL);
    for (unsigned i = 0; i < 200; i++) {
        drain(to);
        drain(from);
    }
    return status;
}

static void count_too_long(void *arg, unsigned peer, unsigned handler, unsigned reason, const void *buf, size_t n)
{
    TEST_MUST(peer == 1 && handler == LATE && reason == RNL_REASON_TOO_LONG && buf && n == 0);
    ++*(unsigned *)arg;
}

/* Sends n bytes to the handler LATE of rank 1, and returns how often the sender's extracts and waits have said that
 * they were too many. */
static unsigned times_told(struct inbox_fixture *f, size_t n, size_t bound, size_t answer)
{
    const struct rnl_message b = {.peer = 1, .handler = LATE, .bound = bound, .answer = answer};
    const struct rnl_buffer piece = {test_pattern(9, 0), n};
    unsigned told = 0;
    TEST_MUST(rnl_post(f->a, &b, &piece, 1, NULL, NULL) == 0);
    for (unsigned i = 0; i < 400; i++) {
        drain(f->b);
        int64_t status = i % 2 ? rnl_wait(f->a, 0) : rnl_extract(f->a, SIZE_MAX);
        TEST_MUST(status >= 0 || status == RNL_ERR_TOO_LONG || status == RNL_TIMED_OUT);
        if (status != RNL_ERR_TOO_LONG)
            continue;
        TEST_MUST(strstr(rnl_last_error()->text, "rank 1 threw away a message to its handler "));
        TEST_MUST(strstr(rnl_last_error()->text, "1048576 bytes"));
        told++;
    }
    return told;
}

static void the_sender_of_a_whole_message_that_is_too_long_is_told(void **state)
{
    struct inbox_fixture *f = *state;
    struct place p = {.ep = f->b};
    struct rnl_limits l;
    unsigned told = 0;
    rnl_get_limits(f->b, &l);
    size_t most = l.whole_max;
    assert_int_equal(rnl_handler_whole(f->b, LATE, where_is_it, &p, 0), LATE);
    for (size_t answer = 0; answer < 200; answer += 100) {
        assert_int_equal(times_told(f, most, most + 5, answer), 0); /* not longer than allowed, though it might be */
        assert_int_equal(times_told(f, most + 1, most + 1, answer), 1);
        assert_int_equal(times_told(f, 3 * most, 3 * most, answer), 1);
    }
    rnl_on_rejected(f->a, count_too_long, &told);
    assert_int_equal(times_told(f, most + 1, most + 1, 0), 0);
    assert_int_equal(told, 1);
    assert_int_equal(p.count, 7);
}

static void a_whole_message_that_is_too_long_is_thrown_away_and_told(void **state)
{
    struct inbox_fixture *f = *state;
    struct place p = {.ep = f->b};
    struct rnl_limits l;
    unsigned told = 0;
    rnl_get_limits(f->b, &l);
    rnl_on_rejected(f->a, count_too_long, &told);
    assert_int_equal(rnl_handler_whole(f->b, LATE, where_is_it, &p, 0), LATE);
    for (size_t more = 1; more < 100000; more += 99998) {
        const struct rnl_message b = {.peer = 1, .handler = LATE, .bound = l.whole_max + 99999};
        p.count = 0;
        p.at = &p;
        uint64_t before = rnl_get_counters(f->b)->bytes_received;
        assert_int_equal(posted(f->a, f->b, &b, test_pattern(9, 0), l.whole_max + more), 0);
        assert_int_equal(p.count, 1);
        assert_null(p.at);
        assert_int_equal(p.n, l.whole_max + more); /* its length, not its bound */
        assert_int_equal(rnl_get_counters(f->b)->bytes_received - before, l.whole_max + more);
        assert_int_equal(rnl_send(f->a, 1, 2, "next", 4), 0);
        drain(f->b);
        assert_memory_equal(f->other.buf, "next", 4);
    }
}

/* ---- inside a handler ---- */

struct inside {
    struct inbox_fixture *f;
    rnl_endpoint *ep;
    int runs;
};

static void try_what_is_forbidden(struct inside *in)
{
    char buf[RNL_SHORT_MAX] = "";
    struct rnl_limits l;
    rnl_stream *s;
    rnl_get_limits(in->ep, &l);
    TEST_MUST(rnl_extract(in->ep, SIZE_MAX) == RNL_ERR_CONTEXT);
    TEST_MUST(strstr(sentence(), "handler") != NULL);
    TEST_MUST(rnl_extract(in->ep, 0) == RNL_ERR_CONTEXT);
    TEST_MUST(rnl_wait(in->ep, 0) == RNL_ERR_CONTEXT);
    TEST_MUST(rnl_wait(in->ep, -1) == RNL_ERR_CONTEXT);
    TEST_MUST(rnl_close(in->ep) == RNL_ERR_CONTEXT);
    /* a begin that may wait outside must not wait here */
    struct rnl_message b = {.peer = 2, .handler = 2, .bound = l.reserve_max + 1};
    TEST_MUST(rnl_begin(in->ep, &b, &s) == RNL_ERR_TOO_LONG);
    for (b.bound = 48; b.bound < 4000; b.bound += 1000) {
        rnl_stream *second;
        TEST_MUST(rnl_begin(in->ep, &b, &s) == 0);
        TEST_MUST(rnl_send(in->ep, 2, 2, buf, 1) == RNL_BUSY);
        TEST_MUST(rnl_begin(in->ep, &b, &second) == RNL_BUSY);
        TEST_MUST(rnl_piece(s, buf, sizeof buf) == 0);
        TEST_MUST(rnl_end(s) == 0);
    }
    int status;
    while ((status = rnl_send(in->ep, 2, 2, buf, RNL_SHORT_MAX)) == 0)
        ;
    TEST_MUST(status == RNL_NO_ROOM);
    TEST_MUST(rnl_begin(in->ep, &b, &s) == RNL_NO_ROOM);
    TEST_MUST(strstr(sentence(), "leave it to the program") && !strstr(sentence(), "later"));
    b.peer = 0;
    TEST_MUST(rnl_begin(in->ep, &b, &s) == 0); /* another peer has room */
    TEST_MUST(rnl_end(s) == 0);
    in->runs++;
}

static int forbidden_stream(rnl_stream *s, unsigned peer, void *ctx)
{
    char byte;
    (void)peer;
    try_what_is_forbidden(ctx);
    while (rnl_receive(s, &byte, 1) == 0)
        ;
    return RNL_DONE;
}

static int forbidden_whole(const void *buf, size_t n, unsigned peer, void *ctx)
{
    (void)buf, (void)n, (void)peer;
    try_what_is_forbidden(ctx);
    return RNL_DONE;
}

static void no_progress_and_no_waiting_inside_a_handler(void **state)
{
    struct inbox_fixture *f = *state;
    struct inside in = {.f = f, .ep = f->b};
    rnl_stream *s;
    for (int whole = 0; whole < 2; whole++) {
        if (whole)
            assert_int_equal(rnl_handler_whole(f->b, LATE, forbidden_whole, &in, 0), LATE);
        else
            assert_int_equal(rnl_handler_stream(f->b, LATE, forbidden_stream, &in), LATE);
        assert_int_equal(rnl_send(f->a, 1, LATE, "x", 1), 0);
        drain(f->b);
        drain(f->c);
        drain(f->b);
        assert_int_equal(in.runs, 1 + 3 * whole);
        assert_int_equal(post_card(f->a, 1, LATE, test_pattern(1, 0), 3000), 0);
        drain(f->b);
        drain(f->c);
        drain(f->b);
        assert_int_equal(open_stream(f->a, 1, LATE, 3000, &s), 0); /* on a stack of its own */
        assert_int_equal(rnl_piece(s, test_pattern(1, 0), 1000), 0);
        assert_int_equal(rnl_flush(f->a), 0);
        drain(f->b);
        drain(f->c);
        assert_int_equal(rnl_end(s), 0);
        drain(f->b);
        drain(f->c);
        drain(f->b);
        assert_int_equal(in.runs, 3 + 3 * whole);
    }
    drain(f->a);
    assert_true(rnl_extract(f->b, 0) >= 0); /* outside again */
}

/* ---- what a handler leaves open ---- */

struct left_open {
    rnl_endpoint *ep;
    rnl_stream *out;
};

/* Begins a message to the third rank, and returns without ending it. */
static int leaves_open(rnl_stream *s, unsigned peer, void *ctx)
{
    struct left_open *l = ctx;
    char buf[200];
    const struct rnl_message b = {.peer = 2, .handler = 2, .bound = 100};
    (void)peer;
    TEST_MUST(rnl_begin(l->ep, &b, &l->out) == 0);
    TEST_MUST(rnl_receive(s, buf, sizeof buf) == 0);
    return RNL_DONE;
}

static int never_resumed(rnl_stream *s, unsigned peer, void *ctx)
{
    char buf[200];
    (void)peer, (void)ctx;
    TEST_MUST(rnl_receive(s, buf, sizeof buf) > 0); /* which it never is: the handler is not to come this far */
    return RNL_DONE;
}

/* What a handler had open is given up when that handler is dropped. This one has returned, so that its message is the
 * program's, and the next handler of that peer, which is dropped, has nothing open. */
static void what_a_handler_left_open_is_the_programs(void **state)
{
    struct inbox_fixture *f = *state;
    struct left_open l = {.ep = f->b};
    rnl_stream *s;
    assert_int_equal(rnl_handler_stream(f->b, LATE, leaves_open, &l), LATE);
    assert_int_equal(open_stream(f->a, 1, LATE, 200, &s), 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(rnl_piece(s, test_pattern(1, 0), 100), 0);
        assert_int_equal(rnl_flush(f->a), 0);
        drain(f->b);
    }
    assert_int_equal(rnl_end(s), 0);
    drain(f->b);
    assert_int_equal(rnl_get_counters(f->b)->stacks_in_use, 0);
    assert_int_equal(rnl_piece(l.out, "la", 2), 0);
    test_seam_register_dropped(f->b, LATE, never_resumed, NULL);
    assert_int_equal(open_stream(f->a, 1, LATE, 200, &s), 0);
    assert_int_equal(rnl_piece(s, test_pattern(1, 0), 100), 0);
    assert_int_equal(rnl_flush(f->a), 0);
    drain(f->b);
    assert_int_equal(rnl_get_counters(f->b)->stacks_in_use, 1);
    test_hub_kill(&f->h, 0, RNL_DEATH_SIGNAL, 9);
    drain(f->b);
    drain(f->b);
    assert_int_equal(rnl_get_counters(f->b)->stacks_in_use, 0);
    assert_int_equal(rnl_piece(l.out, "te", 2), 0);
    assert_int_equal(rnl_end(l.out), 0);
    drain(f->c);
    assert_int_equal(f->other.count, 1);
    assert_int_equal(f->other.got[0].n, 4);
    assert_memory_equal(f->other.buf, "late", 4);
}

/* ---- a ring that grows ---- */

struct relay {
    struct inbox_fixture *f;
    int ended;
};

/* Makes room at the peer of a send that waits for it, and takes that room for a message that stays open. */
static int relay(rnl_stream *s, unsigned peer, void *ctx)
{
    struct relay *r = ctx;
    const struct rnl_message b = {.peer = 1, .handler = 2, .bound = 8};
    rnl_stream *out;
    char byte;
    (void)peer;
    TEST_MUST(rnl_receive(s, &byte, 1) == 0);
    drain(r->f->b);
    if (byte == 'm') {
        TEST_MUST(rnl_begin(r->f->a, &b, &out) == 0);
        TEST_MUST(rnl_receive(s, &byte, 1) == 0);
        TEST_MUST(rnl_piece(out, "relayed!", 8) == 0);
        TEST_MUST(rnl_end(out) == 0);
        r->ended = 1;
    }
    return RNL_DONE;
}

/* The cell in which that message is composed is the ring's next one. */
static void a_ring_does_not_grow_under_an_open_message(void **state)
{
    struct inbox_fixture *f = *state;
    struct relay r = {.f = f};
    rnl_stream *s;
    TEST_MUST(rnl_handler_stream(f->a, 3, relay, &r) == 3);
    for (const char *what = "rm"; *what; what++) { /* full again and again: the ring wants to grow */
        unsigned before = f->other.count;
        assert_int_equal(open_stream(f->c, 0, 3, 100, &s), 0);
        assert_int_equal(rnl_piece(s, what, 1), 0);
        assert_int_equal(rnl_flush(f->c), 0);
        for (unsigned i = 0; post_card(f->a, 1, 2, "xy", 1 + i % 2) == 0; i++)
            ;                                          /* of differing lengths: none shares a cell */
        int status = rnl_send(f->a, 1, 2, "waits", 5); /* runs the handler */
        assert_int_equal(status, *what == 'm' ? RNL_BUSY : 0);
        assert_int_equal(rnl_piece(s, "e", 1), 0);
        assert_int_equal(rnl_end(s), 0);
        drain(f->a);
        drain(f->b);
        assert_true(f->other.count > before);
    }
    assert_int_equal(r.ended, 1);
    assert_memory_equal(f->other.buf, "relayed!", 8);
    assert_int_equal(f->other.got[f->other.count - 1].n, 8);
    assert_int_equal(rnl_send(f->a, 1, 2, "after", 5), 0);
    drain(f->b);
    assert_memory_equal(f->other.buf, "after", 5);
}

/* ---- a handler that overruns its stack ---- */

static rnl_endpoint *overrun;

static void on_fault(int signal, siginfo_t *info, void *context)
{
    char said[64];
    (void)signal, (void)context;
    int handler = rnl_overrun(overrun, info->si_addr);
    int n = snprintf(said, sizeof said, "handler %d, elsewhere %d, of any %d\n", handler, rnl_overrun(overrun, said),
                     rnl_overrun(NULL, info->si_addr));
    (void)!write(STDERR_FILENO, said, (size_t)n);
    _exit(9);
}

static unsigned deep(unsigned more)
{
    volatile unsigned char frame[4096];
    frame[0] = (unsigned char)more;
    return more == 0 ? frame[0] : deep(more - 1) + frame[0];
}

static int overruns(rnl_stream *s, unsigned peer, void *ctx)
{
    char buf[8];
    (void)peer;
    TEST_MUST(rnl_receive(s, buf, sizeof buf) == 0);
    *(unsigned *)ctx = deep(1000);
    return RNL_DONE;
}

static void begin_and_overrun(void)
{
    static unsigned char stack[1 << 16];
    static unsigned sum;
    const stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    const struct rnl_options opt = {.size = sizeof opt};
    rnl_stream *s;
    TEST_MUST(sigaltstack(&own, NULL) == 0 && sigaction(SIGSEGV, &action, NULL) == 0);
    TEST_MUST(rnl_open(&overrun, &opt) == 0 && rnl_handler_stream(overrun, 42, overruns, &sum) == 42);
    TEST_MUST(open_stream(overrun, 0, 42, 20000, &s) == 0);
    TEST_MUST(rnl_piece(s, test_pattern(1, 0), 100) == 0);
    (void)!rnl_extract(overrun, SIZE_MAX); /* half a message: its handler gets a stack of its own */
}

static void a_handler_that_overruns_its_stack_is_named(void **state)
{
    (void)state;
    if (test_slowness() != 1) {
        puts("skip: the sanitizers tell of it themselves");
        skip();
    }
    struct child_end end = in_child(begin_and_overrun);
    assert_string_equal(end.said, "handler 42, elsewhere -18, of any 42\n");
    assert_int_equal(end.status, 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_go_from_1_up_and_run_out),
        TEST(a_whole_message_is_private_or_in_place),
        TEST(a_whole_message_that_is_too_long_is_thrown_away_and_told),
        TEST(the_sender_of_a_whole_message_that_is_too_long_is_told),
        TEST(no_progress_and_no_waiting_inside_a_handler),
        TEST(what_a_handler_left_open_is_the_programs),
        TEST(a_ring_does_not_grow_under_an_open_message),
        cmocka_unit_test(a_handler_that_overruns_its_stack_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
