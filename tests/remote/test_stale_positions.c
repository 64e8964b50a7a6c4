/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Headers quote how far their sender has read, by the low half of a position. What another host says comes by two ways:
 * its words with the next packet, its lines when it is their turn. So lines that were written long ago are heard after
 * words that were said just now: whole ringfuls of the opposite direction lie between. */
#include "stream/inbox.h"

#include <stdio.h>

#include "endpoint/net.h"
#include "remote/remote_internal.h"

enum { LONG = 1, SHORT, LONG_BYTES = 5000, SHORT_BYTES = 40, AT_ONCE = 600, WINDOW = 700, APART = 0x10000 };

struct talker {
    rnl_endpoint *ep;
    unsigned peer, handler;
    size_t bytes;
    unsigned sent, heard;
};

static int on_message(const void *buf, size_t n, unsigned peer, void *ctx)
{
    struct talker *t = ctx;
    unsigned number;
    TEST_MUST(peer == t->peer && n >= sizeof number);
    memcpy(&number, buf, sizeof number);
    TEST_MUST(number == t->heard);
    t->heard++;
    return RNL_DONE;
}

/* As many as there is room for; each begins a line, since no two neighbours are of one length. */
static void say(struct talker *t)
{
    unsigned char buf[LONG_BYTES] = {0};
    for (unsigned i = 0; i < AT_ONCE; i++) {
        const struct rnl_message b = {
            .peer = t->peer, .handler = t->handler, .bound = t->bytes - t->sent % 2, .flags = RNL_NO_WAIT};
        rnl_stream *s;
        int status = rnl_begin(t->ep, &b, &s);
        if (status == RNL_NO_ROOM)
            return;
        assert_int_equal(status, 0);
        memcpy(buf, &t->sent, sizeof t->sent);
        assert_int_equal(rnl_piece(s, buf, b.bound), 0);
        assert_int_equal(rnl_end(s), 0);
        t->sent++;
    }
}

static void what_waited_long_is_not_taken_for_new(void **state)
{
    struct test_hub h;
    (void)state;
    test_hub_open(&h, 2, NULL);
    struct test_wires *wires = test_wires_new(2, "", 1);
    struct talker a = {h.ep[0], 1, LONG, LONG_BYTES, 0, 0}, b = {h.ep[1], 0, SHORT, SHORT_BYTES, 0, 0};
    test_wires_attach(wires, a.ep);
    test_wires_attach(wires, b.ep);
    assert_int_equal(rnl_handler_whole(b.ep, LONG, on_message, &b, 0), LONG);
    assert_int_equal(rnl_handler_whole(a.ep, SHORT, on_message, &a, 0), SHORT);
    test_wires_connect(wires);
    test_wires_threads(wires); /* nobody runs but who is called */
    struct rnl_channel *pair = &b.ep->peer[0].conn->channel;
    assert_int_equal(rnl_channel_grow_tx(pair), 0); /* as for who has waited for room a few times */
    uint64_t apart = 0, until = test_now_ns() + (uint64_t)30000000000;
    while (apart <= APART || b.heard < a.sent || a.heard < b.sent) {
        assert_true(test_now_ns() < until);
        a.ep->peer[1].conn->remote->flow.congest.window = (uint64_t)WINDOW << 8; /* others use its way, too */
        if (apart <= APART) {
            say(&a);
            say(&b);
        }
        assert_true(rnl_extract(a.ep, SIZE_MAX) >= 0);
        assert_true(rnl_extract(b.ep, SIZE_MAX) >= 0);
        uint64_t said = atomic_load(&pair->theirs->credit[0].position), quoted = pair->rx[0].acked_by_peer;
        if (quoted && said > quoted && said - quoted > apart)
            apart = said - quoted;
        rnl_ep_credit(b.ep);
    }
    printf("%u long messages, %u short ones; words were up to %llu positions ahead of quotes\n", b.heard, a.heard,
           (unsigned long long)apart);
    assert_int_equal(rnl_get_counters(a.ep)->broken + rnl_get_counters(b.ep)->broken, 0);
    assert_int_equal(test_hub_close(&h), 0);
    test_wires_free(wires);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_waited_long_is_not_taken_for_new)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
