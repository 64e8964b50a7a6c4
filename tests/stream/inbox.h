/* SPDX-License-Identifier: BSD-3-Clause
 *
 * inbox.h - handlers that note what they got, for the directed tests of streams; and sending in one line. */
#ifndef RNL_TESTS_STREAM_INBOX_H
#define RNL_TESTS_STREAM_INBOX_H

#include "runnel/counters.h"
#include "support/hub.h"
#include "support/random.h"
#include "support/unit.h"
#include "support/wires.h"

enum { INBOX_MAX = 4096 };
struct inbox {
    unsigned count; /* messages whose handler returned */
    unsigned started;
    struct {
        unsigned peer;
        size_t n;
        uint64_t first; /* first 8 bytes, zero-filled */
    } got[INBOX_MAX];
    unsigned char *buf; /* of the last one */
    size_t room;
    size_t piece; /* receive in pieces of so many bytes; 0 = what is here, at least one byte */
    int ending;   /* what the handler returns */
};

static inline void inbox_room(struct inbox *b, size_t n)
{
    if (b->room < n) {
        b->buf = realloc(b->buf, n);
        TEST_MUST(b->buf != NULL);
        b->room = n;
    }
}

static inline void inbox_note(struct inbox *b, unsigned peer, size_t n)
{
    TEST_MUST(b->count < INBOX_MAX);
    b->got[b->count].peer = peer;
    b->got[b->count].n = n;
    b->got[b->count].first = 0;
    if (n)
        memcpy(&b->got[b->count].first, b->buf, n < 8 ? n : 8);
    b->count++;
}

/* Stream handler: receives until the end, which it finds by asking past it. */
static inline int inbox_stream(rnl_stream *s, unsigned peer, void *ctx)
{
    struct inbox *b = ctx;
    size_t n = 0;
    b->started++;
    for (;;) {
        size_t want = b->piece ? b->piece : rnl_peek(s, NULL);
        if (want == 0)
            want = 1;
        inbox_room(b, n + want + 1);
        int status = rnl_receive(s, b->buf + n, want);
        if (status == RNL_ERR_PAST_END && want > 1) { /* the last, shorter piece */
            for (status = 0; status == 0; n += status == 0)
                status = rnl_receive(s, b->buf + n, 1);
        }
        if (status == RNL_ERR_PAST_END)
            break;
        TEST_MUST(status == 0);
        n += want;
    }
    inbox_note(b, peer, n);
    return b->ending;
}

/* Stream handler for messages that begin with their length (a uint32_t, itself included). Many may run at once. */
static inline int inbox_sized(rnl_stream *s, unsigned peer, void *ctx)
{
    struct inbox *b = ctx;
    uint32_t n;
    b->started++;
    TEST_MUST(rnl_receive(s, &n, sizeof n) == 0);
    unsigned char *buf = malloc(n);
    TEST_MUST(buf != NULL);
    memcpy(buf, &n, sizeof n);
    for (size_t at = sizeof n; at < n;) {
        size_t want = b->piece && b->piece < n - at ? b->piece : n - at;
        TEST_MUST(rnl_receive(s, buf + at, want) == 0);
        at += want;
    }
    inbox_room(b, n);
    memcpy(b->buf, buf, n);
    free(buf);
    inbox_note(b, peer, n);
    return b->ending;
}

static inline int inbox_whole(const void *buf, size_t n, unsigned peer, void *ctx)
{
    struct inbox *b = ctx;
    b->started++;
    inbox_room(b, n + 1);
    if (buf)
        memcpy(b->buf, buf, n);
    else
        memset(b->buf, 0, n);
    inbox_note(b, peer, n);
    return b->ending;
}

static inline void inbox_free(struct inbox *b)
{
    free(b->buf);
    memset(b, 0, sizeof *b);
}

/* One message of n bytes, without waiting. 0 or the status of the begin. */
static inline int post_card(rnl_endpoint *ep, unsigned peer, unsigned handler, const void *buf, size_t n)
{
    const struct rnl_message b = {.peer = peer, .handler = handler, .bound = n, .flags = RNL_NO_WAIT};
    rnl_stream *s;
    test_wires_settle();
    int status = rnl_begin(ep, &b, &s);
    if (status < 0)
        return status;
    TEST_MUST(rnl_piece(s, buf, n) == 0);
    TEST_MUST(rnl_end(s) == 0);
    return 0;
}

static inline int open_stream(rnl_endpoint *ep, unsigned peer, unsigned handler, size_t bound, rnl_stream **s)
{
    const struct rnl_message b = {.peer = peer, .handler = handler, .bound = bound, .flags = RNL_NO_WAIT};
    test_wires_settle();
    return rnl_begin(ep, &b, s);
}

/* Where the ranks are on different hosts, what was sent arrives first. */
static inline int64_t extract_settled(rnl_endpoint *ep, size_t max)
{
    test_wires_settle();
    return rnl_extract(ep, max);
}
#define rnl_extract extract_settled

/* Extracts until an extract brings neither bytes nor messages. */
static inline void drain(rnl_endpoint *ep)
{
    const struct rnl_counters *c = rnl_get_counters(ep);
    for (;;) {
        uint64_t before = c->messages_received + c->replies_received + c->refused_received + c->bytes_received;
        TEST_MUST(rnl_extract(ep, SIZE_MAX) >= 0);
        if (c->messages_received + c->replies_received + c->refused_received + c->bytes_received == before)
            return;
    }
}

/* All pairs are connected and have been granted what they get. */
static inline void acquaint(struct test_hub *h)
{
    for (unsigned i = 0; i < h->size; i++)
        for (unsigned k = 0; k < h->size; k++)
            TEST_MUST(rnl_send(h->ep[i], k, 1, NULL, 0) == 0);
    for (unsigned i = 0; i < 3 * h->size; i++)
        drain(h->ep[i % h->size]);
}

/* ---- the fixture of tests with a hub: its ranks share one inbox. A test's own begins with INBOX_FIXTURE ---- */

#define INBOX_FIXTURE                                  \
    struct test_hub h;                                 \
    rnl_endpoint *a, *b, *c; /* of ranks 0, 1 and 2 */ \
    struct inbox in, other   /* the other is for handlers that a test tells apart */
struct inbox_fixture {
    INBOX_FIXTURE;
};

/* Makes a fixture of so many bytes, zeros behind what all have. `handlers` registers those of each rank. */
static inline int inbox_open(void **state, size_t bytes, unsigned ranks, const struct rnl_options *opt,
                             void (*handlers)(rnl_endpoint *, void *fixture))
{
    struct inbox_fixture *f = calloc(1, bytes);
    TEST_MUST(f != NULL);
    test_hub_open(&f->h, ranks, opt);
    f->a = f->h.ep[0], f->b = f->h.ep[1], f->c = ranks > 2 ? f->h.ep[2] : NULL;
    for (unsigned i = 0; i < ranks; i++)
        handlers(f->h.ep[i], f);
    acquaint(&f->h);
    f->in.count = f->in.started = 0;
    *state = f;
    return 0;
}

static inline int inbox_close(void **state)
{
    struct inbox_fixture *f = *state;
    const int status = test_hub_close(&f->h);
    inbox_free(&f->in);
    inbox_free(&f->other);
    free(f);
    return status;
}

static inline const char *sentence(void)
{
    return rnl_last_error()->text;
}

/* The sentence names these. */
#define SAYS(expected, ...)                                                      \
    do {                                                                         \
        const char *const words[] = {__VA_ARGS__};                               \
        assert_int_equal(rnl_last_error()->status, expected);                    \
        for (size_t word = 0; word < sizeof words / sizeof *words; word++)       \
            if (!strstr(sentence(), words[word]))                                \
                fail_msg("\"%s\" does not say \"%s\"", sentence(), words[word]); \
    } while (0)

#endif
