/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_strangers.c - two AM endpoints exchange each kind of message, those that must come back included, while
 * everybody else does what he can (support/evil.h): datagrams of any length and content, a job with another key, which
 * asks them by AM, too, and what they sent before: again, cut, with bits flipped, back, from their addresses and from a
 * stranger's. Each request is handled once, with its bytes, and answered, or comes back once for its own reason;
 * nothing else is handled, and nothing else comes back. RNL_TEST_STRANGERS says how many datagrams come from outside.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "endpoint/link.h"
#include "runnel/am.h"
#include "support/evil.h"
#include "support/must.h"
#include "support/random.h"

enum {
    DATAGRAMS = 4000,
    FIRST = 100,   /* requests before the flood */
    LEAST = 600,   /* ... and in all */
    WINDOW = 64,   /* requests that are neither answered nor back */
    MEMORY = 4096, /* requests of which it is known whether they were handled */
    REGION = 5000, /* of a segment, for each of the window */
    TAG = 4711
};
enum { ASK = 1, ASK_BYTES, ANSWER, ANSWER_BYTES, ABSENT = 99 };
enum { BY_NAME, BY_WRONG_TAG };
enum { AT_FLOOD_ENDS, AT_ASKED, AT_DONE = AT_ASKED + TEST_FRIENDS };

/* What is asked for, and what becomes of it. */
enum kind { SHORT, MEDIUM, BULK, GET, WRONG_TAG, NO_HANDLER, BEYOND, BAD_REPLY, KINDS };
static const struct {
    op_t op, back; /* what comes back, where it does */
    int why;       /* 0 = it is answered */
    int there;     /* it is the reply that comes back, to who replied; and the request is never answered */
} fates[KINDS] = {
    [SHORT] = {.op = AM_REQUEST_M},
    [MEDIUM] = {.op = AM_REQUEST_IM},
    [BULK] = {.op = AM_REQUEST_XFER_M},
    [GET] = {.op = AM_GET_XFER_M},
    [WRONG_TAG] = {.op = AM_REQUEST_M, .back = AM_REQUEST_M, .why = AM_EBADTAG},
    [NO_HANDLER] = {.op = AM_REQUEST_IM, .back = AM_REQUEST_IM, .why = AM_EBADHANDLER},
    [BEYOND] = {.op = AM_REQUEST_XFER_M, .back = AM_REQUEST_XFER_M, .why = AM_EBADLENGTH},
    [BAD_REPLY] = {.op = AM_REQUEST_M, .back = AM_REPLY_M, .why = AM_EREPLYREJECTED, .there = 1},
};

struct one { /* a friend */
    unsigned rank;
    eb_t bundle;
    ep_t ep;
    uint32_t asked, settled; /* requests */
    uint32_t back;
    uint32_t heard, due_here;               /* of the other's; of these, those that reach a handler */
    uint32_t handled[MEMORY];               /* the last of that place */
    uint32_t replies_back, replies_lost;    /* ours; that we saw to be wrong */
    uint32_t open[WINDOW];                  /* 1 + the request that has the place */
    unsigned char seg[3 * WINDOW * REGION]; /* written by requests; by replies and gets; read by gets */
};
static struct one me;

static enum kind kind_of(uint32_t id)
{
    return (enum kind)(id * 2654435761u >> 16 & 7);
}
static size_t bytes_of(uint32_t id)
{
    return fates[kind_of(id)].op == AM_REQUEST_M ? 0 : 1 + id * 37 % (REGION - 1);
}
static const unsigned char *content(unsigned rank, uint32_t id)
{
    return test_pattern(1 + rank, id % 100000);
}
static uintptr_t place(unsigned part, uint32_t id)
{
    return ((uintptr_t)part * WINDOW + id % WINDOW) * REGION;
}

/* ---- handlers ---- */

static void from_the_other(void *token, int is_request)
{
    en_t source;
    ep_t dest;
    TEST_MUST(AM_GetSourceEndpoint(token, &source) == AM_OK && source.rank == !me.rank);
    TEST_MUST(AM_GetDestEndpoint(token, &dest) == AM_OK && dest == me.ep);
    tag_t tag;
    TEST_MUST(AM_GetMsgTag(token, &tag) == AM_OK && (!is_request || tag == TAG));
}

static void handle(void *token, int32_t id, const unsigned char *buf, size_t n)
{
    uint32_t *last = &me.handled[(uint32_t)id % MEMORY];
    unsigned other = !me.rank;
    from_the_other(token, 1);
    TEST_MUST(*last < (uint32_t)id + 1); /* not again */
    *last = (uint32_t)id + 1;
    me.heard++;
    TEST_MUST(n == bytes_of((uint32_t)id));
    TEST_MUST(n == 0 || memcmp(buf, content(other, (uint32_t)id), n) == 0);
    switch (kind_of((uint32_t)id)) {
    case SHORT:
        TEST_MUST(AM_Reply2(token, ANSWER, id, ~id) == AM_OK);
        break;
    case MEDIUM:
        TEST_MUST(AM_ReplyI1(token, ANSWER_BYTES, content(me.rank, (uint32_t)id), n, id) == AM_OK);
        break;
    case BULK:
        TEST_MUST(AM_ReplyXfer1(token, place(1, (uint32_t)id), ANSWER_BYTES, content(me.rank, (uint32_t)id), n, id) ==
                  AM_OK);
        break;
    case BAD_REPLY:
        me.replies_lost++;
        TEST_MUST(AM_Reply2(token, ABSENT, id, ~id) == AM_OK);
        break;
    default:
        TEST_MUST(!"a request that should not get here");
    }
}

static void on_ask(void *token, int32_t id, int32_t not_id)
{
    TEST_MUST(id == ~not_id);
    handle(token, id, NULL, 0);
}
static void on_ask_bytes(void *token, void *buf, size_t n, int32_t id)
{
    handle(token, id, buf, n);
}

static void settle(uint32_t id)
{
    TEST_MUST(me.open[id % WINDOW] == id + 1); /* asked, and nothing has become of it yet */
    me.open[id % WINDOW] = 0;
    me.settled++;
}

static void on_answer(void *token, int32_t id, int32_t not_id)
{
    from_the_other(token, 0);
    TEST_MUST(id == ~not_id && kind_of((uint32_t)id) == SHORT);
    settle((uint32_t)id);
}
static void on_answer_bytes(void *token, void *buf, size_t n, int32_t id)
{
    enum kind kind = kind_of((uint32_t)id);
    from_the_other(token, 0);
    TEST_MUST(kind == MEDIUM || kind == BULK || kind == GET);
    TEST_MUST(n == bytes_of((uint32_t)id));
    TEST_MUST(memcmp(buf, kind == GET ? test_pattern(10, id % WINDOW) : content(!me.rank, (uint32_t)id), n) == 0);
    settle((uint32_t)id);
}

static void on_returned(int status, op_t opcode, void *token)
{
    struct rnl_am_token_info info;
    TEST_MUST(AM_GetTokenInfo(token, &info) == AM_OK && info.numargs > 0);
    uint32_t id = (uint32_t)info.args[0];
    enum kind kind = kind_of(id);
    TEST_MUST(status == fates[kind].why && opcode == fates[kind].back);
    if (fates[kind].there) {
        TEST_MUST(me.handled[id % MEMORY] >= id + 1 && me.replies_back < me.replies_lost);
        me.replies_back++;
        return;
    }
    me.back++;
    settle(id);
}

/* ---- the two ---- */

static void ask(void)
{
    uint32_t id = me.asked++;
    int32_t a = (int32_t)id;
    enum kind kind = kind_of(id);
    size_t n = bytes_of(id);
    const unsigned char *bytes = content(me.rank, id);
    int r = AM_OK;
    me.open[id % WINDOW] = id + 1;
    switch (kind) {
    case SHORT:
        r = AM_Request2(me.ep, BY_NAME, ASK, a, ~a);
        break;
    case BAD_REPLY: /* nothing more comes of it here */
        settle(id);
        r = AM_Request2(me.ep, BY_NAME, ASK, a, ~a);
        break;
    case WRONG_TAG:
        r = AM_Request2(me.ep, BY_WRONG_TAG, ASK, a, ~a);
        break;
    case MEDIUM:
        r = AM_RequestI1(me.ep, BY_NAME, ASK_BYTES, bytes, n, a);
        break;
    case NO_HANDLER:
        r = AM_RequestI1(me.ep, BY_NAME, ABSENT, bytes, n, a);
        break;
    case BULK:
        r = AM_RequestXfer1(me.ep, BY_NAME, place(0, id), ASK_BYTES, bytes, n, a);
        break;
    case BEYOND:
        r = AM_RequestXfer1(me.ep, BY_NAME, sizeof me.seg - n + 1, ASK_BYTES, bytes, n, a);
        break;
    default:
        r = AM_GetXfer1(me.ep, BY_NAME, place(2, id), ANSWER_BYTES, place(1, id), n, a);
    }
    TEST_MUST(r == AM_OK);
}

static void ask_if_free(void)
{
    if (me.open[me.asked % WINDOW] == 0)
        ask();
}

static void open_am(struct test_loop_side *s)
{
    en_t name;
    me.rank = s->rank;
    TEST_MUST(AM_Init() == AM_OK && AM_AllocateBundleOn(s->ep, AM_SEQ, &me.bundle) == AM_OK);
    TEST_MUST(AM_AllocateEndpoint(me.bundle, &me.ep, &name) == AM_OK && AM_SetTag(me.ep, TAG) == AM_OK);
    TEST_MUST(AM_SetSeg(me.ep, me.seg, sizeof me.seg) == AM_OK);
    TEST_MUST(AM_SetHandler(me.ep, 0, on_returned) == AM_OK);
    TEST_MUST(AM_SetHandler(me.ep, ASK, on_ask) == AM_OK);
    TEST_MUST(AM_SetHandler(me.ep, ASK_BYTES, on_ask_bytes) == AM_OK);
    TEST_MUST(AM_SetHandler(me.ep, ANSWER, on_answer) == AM_OK);
    TEST_MUST(AM_SetHandler(me.ep, ANSWER_BYTES, on_answer_bytes) == AM_OK);
}

static void talk(struct test_loop_side *s)
{
    _Atomic uint64_t *word = s->run->word;
    open_am(s);
    TEST_MUST(AM_Map(me.ep, BY_NAME, AM_NameOf(!s->rank, 0), TAG) == AM_OK);
    TEST_MUST(AM_Map(me.ep, BY_WRONG_TAG, AM_NameOf(!s->rank, 0), TAG + 1) == AM_OK);
    for (uint32_t i = 0; i < WINDOW; i++)
        memcpy(me.seg + place(2, i), test_pattern(10, i), REGION);
    test_loop_meet(s);
    for (uint64_t until = test_now_ns() + (uint64_t)30000000000; me.settled < FIRST;) { /* the flood finds them at it */
        TEST_MUST(test_now_ns() < until);
        ask_if_free();
        TEST_MUST(AM_Poll(me.bundle) == AM_OK);
    }
    test_loop_meet(s);
    do {
        for (int i = 0; i < 10; i++)
            ask_if_free();
        TEST_MUST(AM_Poll(me.bundle) == AM_OK);
    } while (me.asked < LEAST || !atomic_load_explicit(&word[AT_FLOOD_ENDS], memory_order_relaxed));
    for (uint32_t id = 0; id < me.asked; id++)
        me.due_here += fates[kind_of(id)].why == 0 || fates[kind_of(id)].there ? kind_of(id) != GET : 0;
    atomic_store_explicit(&word[AT_ASKED + s->rank], 1 + me.due_here, memory_order_release);
    uint64_t all = 0;
    uint64_t both = 0;
    while (!both) {
        TEST_MUST(AM_Poll(me.bundle) == AM_OK);
        all = atomic_load_explicit(&word[AT_ASKED + !s->rank], memory_order_acquire);
        if (me.settled == me.asked && all > 0 && me.heard >= all - 1 && me.replies_back == me.replies_lost) {
            atomic_store_explicit(&word[AT_DONE + s->rank], 1, memory_order_release);
            both = atomic_load_explicit(&word[AT_DONE + !s->rank], memory_order_acquire);
        }
    }
    for (int i = 0; i < 1000; i++) /* should there be more */
        TEST_MUST(AM_Poll(me.bundle) == AM_OK);
    TEST_MUST(me.heard == all - 1 && me.settled == me.asked && me.replies_back == me.replies_lost);
    struct rnl_remote *r = s->ep->remote;
    printf("rank %u: %u requests, %u of them back, %u replies back, in spite of %llu datagrams of its own way and %llu "
           "strays; %llu refused, %llu come again\n",
           s->rank, me.asked, me.back, me.replies_back, (unsigned long long)test_evil_done(),
           (unsigned long long)s->ep->c->strays, (unsigned long long)r->count->refused,
           (unsigned long long)r->count->duplicates);
    fflush(stdout);
    TEST_MUST(me.back > 0 && me.replies_back > 0);
    TEST_MUST(r->count->refused > 0 && r->count->duplicates > 0 && s->ep->c->strays > 0);
}

/* ---- the others ---- */

static void flood(struct test_loop_side *s)
{
    test_loop_meet(s);
    test_loop_meet(s);
    test_flood(DATAGRAMS);
    atomic_store_explicit(&s->run->word[AT_FLOOD_ENDS], 1, memory_order_relaxed);
}

static unsigned outside_back;

static void on_outsiders(int status, op_t opcode, void *token)
{
    struct rnl_am_token_info info;
    TEST_MUST(AM_GetTokenInfo(token, &info) == AM_OK && (unsigned)info.args[0] < 2 * TEST_FRIENDS);
    TEST_MUST(status == AM_EUNREACHABLE && opcode == (info.args[0] % 2 ? AM_REQUEST_IM : AM_REQUEST_M));
    TEST_MUST(!(outside_back & 1u << info.args[0]));
    outside_back |= 1u << info.args[0];
}

/* It knows their names and their tag, and what it asks them comes back. */
static void knock(struct test_loop_side *s)
{
    open_am(s);
    TEST_MUST(AM_SetHandler(me.ep, 0, on_outsiders) == AM_OK);
    test_loop_meet(s);
    test_loop_meet(s);
    for (int i = 0; i < TEST_FRIENDS; i++) {
        TEST_MUST(AM_Map(me.ep, i, AM_NameOf((unsigned)i, 0), TAG) == AM_OK);
        TEST_MUST(AM_Request2(me.ep, i, ASK, 2 * i, ~(2 * i)) == AM_OK);
        TEST_MUST(AM_RequestI1(me.ep, i, ASK_BYTES, "let me in", 9, 2 * i + 1) == AM_OK);
    }
    TEST_MUST(AM_SetEventMask(me.bundle, AM_NOTEMPTY) == AM_OK);
    while (outside_back != (1u << 2 * TEST_FRIENDS) - 1) {
        int r = AM_WaitSemaFor(me.bundle, 100000000);
        TEST_MUST(r == AM_OK || r == AM_ERR_NOT_SENT);
    }
    TEST_MUST(me.heard == 0);
}

static void strangers_change_nothing(void **state)
{
    (void)state;
    assert_int_equal(test_strangers(talk, flood, knock), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strangers_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
