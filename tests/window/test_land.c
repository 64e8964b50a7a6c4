/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A put whose bytes come in two parts, between which the owner revokes its window: what comes then lands nowhere,
 * wherever the put was cut. Both endpoints are driven by this thread, so each step is where the test wants it. */
#include "runnel/window.h"

#include "endpoint/endpoint.h"
#include "window/window_internal.h"
#include "window/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "support/hub.h"

enum { ID = 7, BYTES = 4096, OWNER = 0, SENDER, LOOKS = 200 };
static const uint64_t bound_ns = 60000000000;

static void look(struct test_hub *h)
{
    assert_true(rnl_extract(h->ep[SENDER], SIZE_MAX) >= 0 && rnl_extract(h->ep[OWNER], SIZE_MAX) >= 0);
}

static rnl_import *import(struct test_hub *h, rnl_window **w, unsigned char **at)
{
    const struct rnl_offer o = {.size = sizeof o, .id = ID, .flags = RNL_OFFER_CARRIED};
    rnl_import *m;
    void *p;
    test_hub_open(h, 2, NULL);
    h->ep[OWNER]->env->open = h->ep[SENDER]->env->open = NULL; /* the endpoints themselves are the link */
    assert_int_equal(rnl_window_alloc(h->ep[OWNER], BYTES, &p, w), 0);
    *at = p;
    assert_int_equal(rnl_window_offer(*w, &o), 0);
    assert_int_equal(rnl_import_begin(h->ep[SENDER], OWNER, ID, &m), 0);
    for (uint64_t end = test_now_ns() + bound_ns; rnl_import_state(m, NULL) == 0;) {
        look(h);
        assert_true(test_now_ns() < end);
    }
    assert_int_equal(rnl_import_state(m, NULL), 1);
    return m;
}

/* The peer puts n bytes, of which `cut` are sent before the window is revoked. */
static void revoke_within(size_t n, size_t cut, bool revoke)
{
    unsigned char bytes[BYTES];
    struct test_hub h;
    rnl_window *w;
    unsigned char *at;
    rnl_import *m = import(&h, &w, &at);
    const struct window_put head = {.grant = m->grant, .generation = m->generation, .n = n};
    const struct rnl_message b = {
        .peer = m->peer->at, .handler = RNL_LIBRARY_ID + WINDOW_PUT, .bound = sizeof head + n};
    rnl_stream *s;
    memset(bytes, 0xbb, sizeof bytes);
    assert_ptr_equal(m->peer->via, h.ep[SENDER]);
    assert_int_equal(rnl_begin(h.ep[SENDER], &b, &s), 0);
    assert_int_equal(rnl_piece(s, &head, sizeof head), 0);
    assert_int_equal(rnl_piece(s, bytes, cut), 0);
    assert_int_equal(rnl_flush(h.ep[SENDER]), 0);
    for (unsigned i = 0; i < LOOKS; i++)
        look(&h);
    if (revoke) {
        assert_int_equal(rnl_window_revoke(w, 0), 0);
        memset(at, 1, BYTES);
    }
    assert_int_equal(rnl_piece(s, bytes + cut, n - cut), 0);
    assert_int_equal(rnl_end(s), 0);
    for (unsigned i = 0; i < LOOKS; i++)
        look(&h);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(at[i], revoke ? 1 : 0xbb);
    assert_int_equal(h.ep[OWNER]->windows->count[WINDOW_REFUSED], revoke);
    assert_int_equal(test_hub_close(&h), 0);
}

static void what_comes_after_a_revoke_lands_nowhere(void **state)
{
    (void)state;
    for (int revoke = 0; revoke < 2; revoke++)
        for (size_t n = 8; n <= BYTES; n *= 8) {
            const size_t tail = 8;
            revoke_within(n, 0, revoke);
            revoke_within(n, n - tail, revoke); /* all but its end, which is stored last */
            revoke_within(n, n - 1, revoke);
            if (n > tail)
                revoke_within(n, n - tail - 3, revoke);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_comes_after_a_revoke_lands_nowhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
