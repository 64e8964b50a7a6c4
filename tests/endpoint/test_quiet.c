/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connections to other hosts are looked at when something has come for them, and not before: what an extract costs does
 * not depend on how many there are. Beside them lie connections of this host, hot and cold ones. */
#include "stream/inbox.h"

#include "endpoint/link.h"

enum { NOTE = 1, SIZE = 12 };

struct fixture {
    struct test_hub h;
    struct test_wires *wires;
    rnl_endpoint *a;
    struct inbox in[SIZE];
};

static void open_them(struct fixture *f, unsigned per_host)
{
    memset(f, 0, sizeof *f);
    test_hub_open(&f->h, SIZE, NULL);
    f->wires = test_wires_new(SIZE, "", per_host);
    for (unsigned i = 0; i < SIZE; i++) {
        test_wires_attach(f->wires, f->h.ep[i]);
        assert_int_equal(rnl_handler_stream(f->h.ep[i], NOTE, inbox_stream, &f->in[i]), NOTE);
    }
    f->a = f->h.ep[0];
    test_wires_connect(f->wires);
}

static void close_them(struct fixture *f)
{
    test_wires_threads(f->wires);
    assert_int_equal(test_hub_close(&f->h), 0);
    test_wires_free(f->wires);
    for (unsigned i = 0; i < SIZE; i++)
        inbox_free(&f->in[i]);
}

/* Hot ones, cold ones, quiet ones; each knows its place, and only links are quiet, with nothing to take in. */
static void valid(const rnl_endpoint *ep)
{
    assert_true(ep->hot_count <= ep->cold_end && ep->cold_end <= ep->live && ep->live <= ep->size);
    assert_true(ep->turn == 0 || ep->turn < ep->hot_count);
    for (uint32_t i = 0; i < ep->live; i++) {
        struct rnl_conn *conn = ep->hot[i];
        assert_int_equal(conn->hot_index, i);
        assert_ptr_equal(ep->peer[conn->rank].conn, conn);
        if (i >= ep->cold_end)
            assert_true(conn->link && !rnl_ep_has_lines(conn));
        else if (i >= ep->hot_count)
            assert_true(!conn->link);
    }
}

/* All that is on its way is taken in. */
static void settle(struct fixture *f)
{
    for (unsigned round = 0; round < 4; round++) {
        test_wires_settle();
        for (unsigned i = 0; i < SIZE; i++) {
            drain(f->h.ep[i]);
            valid(f->h.ep[i]);
        }
    }
}

static void send_to(struct fixture *f, unsigned from, unsigned to)
{
    assert_int_equal(rnl_send(f->h.ep[from], to, NOTE, "note", 4), 0);
}

static void those_of_other_hosts_are_quiet_until_something_comes(void **state)
{
    struct fixture f;
    (void)state;
    open_them(&f, 1);
    for (unsigned i = 1; i < SIZE; i++)
        send_to(&f, 0, i);
    settle(&f);
    for (unsigned i = 1; i < SIZE; i++)
        assert_int_equal(f.in[i].count, 1);
    assert_int_equal(f.a->live, SIZE - 1);
    assert_int_equal(f.a->hot_count, 0);
    for (unsigned i = 1; i < SIZE; i++) /* one alone */
        send_to(&f, i, 0);
    settle(&f);
    assert_int_equal(f.in[0].count, SIZE - 1);
    assert_int_equal(f.a->hot_count, 0);
    send_to(&f, 0, 5); /* and to one that is quiet */
    send_to(&f, 7, 0);
    settle(&f);
    assert_int_equal(f.in[5].count, 2);
    assert_int_equal(f.in[0].count, SIZE);
    close_them(&f);
}

static void who_has_more_is_looked_at_again(void **state)
{
    struct fixture f;
    (void)state;
    open_them(&f, 1);
    for (unsigned i = 1; i < SIZE; i++)
        for (unsigned k = 0; k < 3; k++)
            send_to(&f, i, 0);
    test_wires_settle();
    for (unsigned i = 1; i <= 3 * (SIZE - 1); i++) { /* one message each time */
        assert_true(rnl_extract(f.a, 1) >= 0);
        valid(f.a);
        assert_int_equal(f.in[0].count, i);
    }
    close_them(&f);
}

static int ask_back(rnl_stream *s, unsigned peer, void *ctx)
{
    char note[4];
    (void)peer, (void)ctx;
    TEST_MUST(rnl_receive(s, note, sizeof note) == 0);
    TEST_MUST(rnl_reply(s, NOTE + 1, "back", 4) == 0);
    return RNL_DONE;
}

static int count_back(rnl_stream *s, unsigned peer, void *ctx)
{
    (void)s, (void)peer;
    ++*(unsigned *)ctx;
    return RNL_DONE;
}

static void an_answer_wakes_who_is_quiet(void **state)
{
    struct fixture f;
    unsigned backs = 0;
    rnl_stream *s;
    (void)state;
    open_them(&f, 1);
    for (unsigned i = 1; i < SIZE; i++)
        assert_int_equal(rnl_handler_stream(f.h.ep[i], NOTE, ask_back, NULL), NOTE);
    assert_int_equal(rnl_handler_stream(f.a, NOTE + 1, count_back, &backs), NOTE + 1);
    for (unsigned round = 1; round <= 3; round++) {
        for (unsigned i = 1; i < SIZE; i++) {
            const struct rnl_begin b = {.peer = i, .handler = NOTE, .bound = 4, .answer = 4};
            assert_int_equal(rnl_begin(f.a, &b, &s), 0);
            assert_int_equal(rnl_piece(s, "note", 4), 0);
            assert_int_equal(rnl_end(s), 0);
        }
        settle(&f);
        assert_int_equal(backs, round * (SIZE - 1));
    }
    close_them(&f);
}

static void beside_connections_of_this_host(void **state)
{
    struct fixture f;
    (void)state;
    open_them(&f, 6); /* 0 to 5 and 6 to 11 */
    for (unsigned round = 1; round <= 3; round++) {
        for (unsigned from = 0; from < SIZE; from++)
            for (unsigned to = 0; to < SIZE; to++)
                if (from != to)
                    send_to(&f, from, to);
        settle(&f);
        for (unsigned i = 0; i < SIZE; i++)
            assert_int_equal(f.in[i].count, round * (SIZE - 1));
    }
    assert_int_equal(f.a->live, SIZE - 1);
    assert_true(f.a->live - f.a->cold_end >= 6);
    close_them(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(those_of_other_hosts_are_quiet_until_something_comes),
        cmocka_unit_test(who_has_more_is_looked_at_again),
        cmocka_unit_test(an_answer_wakes_who_is_quiet),
        cmocka_unit_test(beside_connections_of_this_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
