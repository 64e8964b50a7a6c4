/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Each reason for which a message comes back, of each kind of message that it can befall; and that nothing else happens
 * then: the handler does not run, and the message comes back once. */
#include "am/world.h"

#include "api/am/core.h"
#include "api/am/process.h"

#include <stdlib.h>

enum { COUNT = 1, REPLY_SHORT, REPLY_MEDIUM, REPLY_BULK, ABSENT = 99 };

static void count(void *token, int32_t a)
{
    note(token);
    noted.args[0] = a;
    noted.count++;
}
static void count_payload(void *token, void *buf, size_t nbytes)
{
    (void)buf, (void)nbytes;
    note(token);
    noted.count++;
}
static handler_t reply_to;
static uintptr_t reply_at;
static void reply_short(void *token)
{
    noted.count++;
    assert_int_equal(AM_Reply2(token, reply_to, 8, 9), AM_OK);
}
static void reply_medium(void *token)
{
    noted.count++;
    assert_int_equal(AM_ReplyI1(token, reply_to, "abc", 3, 8), AM_OK);
}
static void reply_bulk(void *token)
{
    noted.count++;
    assert_int_equal(AM_ReplyXfer0(token, reply_at, reply_to, "abc", 3), AM_OK);
}

static int setup(void **state)
{
    (void)state;
    world_open(2, AM_SEQ);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(AM_SetHandler(world.ep[i], COUNT, count), AM_OK);
        assert_int_equal(AM_SetHandler(world.ep[i], COUNT + 10, count_payload), AM_OK);
        assert_int_equal(AM_SetHandler(world.ep[i], REPLY_SHORT, reply_short), AM_OK);
        assert_int_equal(AM_SetHandler(world.ep[i], REPLY_MEDIUM, reply_medium), AM_OK);
        assert_int_equal(AM_SetHandler(world.ep[i], REPLY_BULK, reply_bulk), AM_OK);
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    world_close();
    return 0;
}

/* Each kind of request to translation `index`, with these, comes back with `why`. */
static void all_come_back(int index, handler_t h, int why)
{
    static const unsigned char bytes[20000];
    unsigned ran = noted.count;
    ep_t ep = world.ep[0];
    assert_int_equal(AM_Request3(ep, index, h, 4, 5, 6), AM_OK);
    CAME_BACK(why, AM_REQUEST_M);
    assert_int_equal(noted.info.numargs, 3);
    assert_int_equal(noted.info.args[2], 6);
    assert_int_equal(noted.info.handler, h);
    assert_int_equal(noted.info.index, index);
    assert_int_equal(noted.info.status, why);
    assert_ptr_equal(noted.dest, ep);
    assert_int_equal(AM_Request16(ep, index, h, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16), AM_OK);
    CAME_BACK(why, AM_REQUEST_M);
    assert_int_equal(noted.info.args[15], 16);
    assert_int_equal(AM_RequestI1(ep, index, h, bytes, 20000, 7), AM_OK);
    CAME_BACK(why, AM_REQUEST_IM);
    assert_int_equal(noted.info.nbytes, 20000);
    assert_int_equal(AM_RequestXfer1(ep, index, 512, h, bytes, 100, 7), AM_OK);
    CAME_BACK(why, AM_REQUEST_XFER_M);
    assert_int_equal(noted.info.dest_offset, 512);
    assert_int_equal(noted.count, ran);
}

static void nothing_passes_a_wrong_tag(void **state)
{
    (void)state;
    assert_int_equal(AM_SetTag(world.ep[1], TAG + 1), AM_OK);
    all_come_back(1, COUNT, AM_EBADTAG);
    assert_true(AM_NameEqual(noted.source, world.name[1]));
    assert_int_equal(AM_GetXfer0(world.ep[0], 1, 0, COUNT + 10, 0, 10), AM_OK);
    CAME_BACK(AM_EBADTAG, AM_GET_XFER_M);
    assert_int_equal(AM_SetTag(world.ep[1], AM_NONE), AM_OK); /* also who brings AM_NONE */
    assert_int_equal(AM_SetTranslationTag(world.ep[0], 1, AM_NONE), AM_OK);
    all_come_back(1, COUNT, AM_EBADTAG);
    assert_int_equal(AM_SetTag(world.ep[1], AM_ALL), AM_OK);
    assert_int_equal(AM_Request1(world.ep[0], 1, COUNT, 5), AM_OK);
    settle();
    assert_int_equal(noted.count, 1);
    assert_int_equal(AM_SetTag(world.ep[1], 5), AM_OK);
    assert_int_equal(AM_SetTranslationTag(world.ep[0], 1, AM_ALL), AM_OK); /* all are let in, not all let one in */
    all_come_back(1, COUNT, AM_EBADTAG);
}

static void nothing_reaches_an_endpoint_that_is_not_there(void **state)
{
    en_t name = world.name[1];
    (void)state;
    name.number = 500;
    assert_int_equal(AM_Map(world.ep[0], 7, name, TAG), AM_OK);
    all_come_back(7, COUNT, AM_EBADENDPOINT);
    name = world.name[1];
    name.generation++;
    assert_int_equal(AM_Map(world.ep[0], 8, name, TAG), AM_OK);
    all_come_back(8, COUNT, AM_EBADENDPOINT);
    assert_int_equal(AM_FreeEndpoint(world.ep[1]), AM_OK);
    all_come_back(1, COUNT, AM_EBADENDPOINT);
    assert_int_equal(AM_FreeBundle(world.eb[1]), AM_OK); /* and when nobody is */
    world.eb[1] = world.eb[0];
    for (int i = 0; i < 3; i++)
        assert_true(rnl_extract(world.h.ep[1], SIZE_MAX) >= 0);
    assert_int_equal(AM_Request1(world.ep[0], 1, COUNT, 1), AM_OK);
    assert_true(rnl_extract(world.h.ep[1], SIZE_MAX) > 0);
    CAME_BACK(AM_EBADENDPOINT, AM_REQUEST_M);
    assert_int_equal(AM_AllocateBundleOn(world.h.ep[1], AM_SEQ, &world.eb[1]), AM_OK);
}

static void nothing_is_sent_by_a_translation_that_is_not_in_use(void **state)
{
    (void)state;
    assert_int_equal(AM_UnMap(world.ep[0], 1), AM_OK);
    all_come_back(1, COUNT, AM_EBADENTRY);
    assert_int_equal(AM_Map(world.ep[0], 1, world.name[1], TAG), AM_OK);
    assert_int_equal(AM_Request1(world.ep[0], 1, COUNT, 5), AM_OK);
    settle();
    assert_int_equal(noted.count, 1);
}

static void nothing_is_written_outside_the_segment(void **state)
{
    static const unsigned char bytes[RNL_AM_MEDIUM] = {9};
    static const struct {
        uint64_t offset, nbytes;
        int why;
    } places[] = {{SEG + 1, 0, AM_EBADSEGOFF},   {SEG + 1, 10, AM_EBADSEGOFF}, {UINT64_MAX, 10, AM_EBADSEGOFF},
                  {SEG, 1, AM_EBADLENGTH},       {SEG - 9, 10, AM_EBADLENGTH}, {SEG - 40000, 40001, AM_EBADLENGTH},
                  {UINT64_MAX, 1, AM_EBADSEGOFF}};
    (void)state;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        assert_int_equal(AM_RequestXfer0(world.ep[0], 1, places[i].offset, COUNT + 10, bytes, places[i].nbytes), AM_OK);
        CAME_BACK(places[i].why, AM_REQUEST_XFER_M);
        assert_int_equal(AM_GetXfer0(world.ep[0], 1, places[i].offset, COUNT + 10, 0, places[i].nbytes), AM_OK);
        CAME_BACK(places[i].why, AM_GET_XFER_M); /* there */
        assert_int_equal(AM_GetXfer0(world.ep[0], 1, 0, COUNT + 10, places[i].offset, places[i].nbytes), AM_OK);
        CAME_BACK(places[i].why, AM_GET_XFER_M); /* here */
        assert_int_equal(noted.info.index, 1);
        assert_int_equal(noted.info.index, 1);
    }
    assert_int_equal(noted.count, 0);
    assert_int_equal(AM_RequestXfer0(world.ep[0], 1, SEG - 10, COUNT + 10, bytes, 10), AM_OK); /* just inside */
    assert_int_equal(AM_RequestXfer0(world.ep[0], 1, SEG, COUNT + 10, bytes, 0), AM_OK);
    settle();
    assert_int_equal(noted.count, 2);
    assert_int_equal(AM_SetSeg(world.ep[1], world.seg[1], 0), AM_OK);
    assert_int_equal(AM_RequestXfer0(world.ep[0], 1, 0, COUNT + 10, bytes, 1), AM_OK);
    CAME_BACK(AM_EBADLENGTH, AM_REQUEST_XFER_M);
}

/* ---- who is no AM-2 ---- */

static void raw(const void *head, size_t n)
{
    struct rnl_message b = {.peer = 1, .handler = RNL_AM_ID_REQUEST, .bound = n, .answer = RNL_AM_REPLY_ROOM};
    rnl_stream *s;
    assert_int_equal(rnl_begin(world.h.ep[0], &b, &s), 0);
    assert_int_equal(rnl_piece(s, head, n), 0);
    assert_int_equal(rnl_end(s), 0);
}

static void a_message_that_is_none_comes_back_or_is_dropped(void **state)
{
    unsigned char bytes[RNL_AM_HEADER_MAX + 64];
    struct rnl_am_message m = {.handler = COUNT,
                               .to = 0,
                               .to_generation = world.name[1].generation,
                               .from = 0,
                               .from_generation = world.name[0].generation,
                               .tag = TAG};
    (void)state;
    for (unsigned op = 0; op < 8; op++) {
        for (unsigned args = 0; args < 32; args++) {
            for (int whole = 0; whole < 2; whole++) {
                memset(bytes, 0xee, sizeof bytes); /* lengths beyond anything */
                m.op = 0;
                m.numargs = 0;
                size_t n = rnl_am_write_request(bytes, &m);
                bytes[0] = (unsigned char)(op | args << 3);
                int good = op == 0 && args <= 16 && (whole || args == 0);
                raw(bytes, whole ? sizeof bytes : n);
                settle();
                assert_int_equal(noted.count, good);
                assert_int_equal(noted.returned, !good);
                if (!good && (!whole || op > 3 || args > 16))
                    assert_int_equal(noted.status, AM_EBADARGS);
                noted.count = noted.returned = 0;
            }
        }
    }
    for (size_t n = 0; n < 24; n++) /* not even a head */
        raw(bytes, n);
    settle();
    assert_int_equal(noted.count + noted.returned, 0);
    m.op = RNL_AM_OP_MEDIUM; /* more bytes than a buffer has, and fewer than it says */
    m.nbytes = RNL_AM_MEDIUM + 1;
    m.handler = COUNT + 10;
    raw(bytes, rnl_am_write_request(bytes, &m));
    CAME_BACK(AM_EBADLENGTH, AM_REQUEST_IM);
    m.nbytes = 60;
    raw(bytes, rnl_am_write_request(bytes, &m) + 59);
    CAME_BACK(AM_EBADARGS, AM_REQUEST_IM);
    assert_int_equal(noted.count, 0);
}

/* ---- room, death ---- */

static void what_finds_no_room_in_time_comes_back(void **state)
{
    unsigned sent = 0;
    (void)state;
    assert_int_equal(AM_SetCongestionLimit(world.ep[0], 2000000), AM_OK);
    while (!noted.returned) {
        assert_int_equal(AM_Request1(world.ep[0], 1, COUNT, 1), AM_OK);
        sent++;
        assert_true(sent < 100000);
    }
    assert_int_equal(noted.status, AM_ECONGESTION);
    assert_int_equal(AM_RequestXferAsync0(world.ep[0], 1, 0, COUNT + 10, "x", 1), AM_ERR_NOT_SENT);
    noted.returned = 0;
    for (int i = 0; i < 200; i++)
        settle();
    assert_int_equal(noted.count, sent - 1);
    assert_int_equal(noted.returned, 0);
    assert_int_equal(AM_RequestXferAsync0(world.ep[0], 1, 0, COUNT + 10, "x", 1), AM_OK);
}

static void what_a_dead_rank_had_not_read_comes_back(void **state)
{
    (void)state;
    reply_to = COUNT;
    assert_int_equal(AM_Request0(world.ep[0], 1, REPLY_SHORT), AM_OK);
    settle(); /* the reply says that it was read */
    assert_int_equal(noted.count, 2);
    for (int i = 0; i < 5; i++)
        assert_int_equal(AM_Request1(world.ep[0], 1, COUNT, i), AM_OK);
    test_hub_kill(&world.h, 1, RNL_DEATH_SIGNAL, 9);
    settle();
    assert_int_equal(noted.returned, 5);
    assert_int_equal(noted.status, AM_EUNREACHABLE);
    assert_int_equal(noted.info.args[0], 4);
    assert_int_equal(noted.info.index, 1);
    settle();
    assert_int_equal(noted.returned, 5);
    noted.returned = 0;
    all_come_back(1, COUNT, AM_EUNREACHABLE);
    assert_int_equal(AM_Request1(world.ep[0], 0, COUNT, 7), AM_OK); /* the living go on */
    settle();
    assert_int_equal(noted.count, 3);
}

static void reply_and_die(void *token, void *buf, size_t nbytes)
{
    (void)buf, (void)nbytes;
    assert_int_equal(AM_Reply2(token, COUNT, 8, 9), AM_OK);
    test_hub_kill(&world.h, 1, RNL_DEATH_SIGNAL, 9);
    settle();
}

/* It died in the handler of a request whose line counts as read when that returns: only the answer tells. */
static void what_a_dead_rank_had_answered_does_not_come_back(void **state)
{
    static const unsigned char bytes[3000];
    (void)state;
    assert_int_equal(AM_SetHandler(world.ep[1], COUNT + 11, reply_and_die), AM_OK);
    assert_int_equal(AM_RequestXfer0(world.ep[0], 1, 0, COUNT + 11, bytes, sizeof bytes), AM_OK);
    for (int i = 0; i < 5; i++)
        assert_int_equal(AM_Request1(world.ep[0], 1, COUNT, i), AM_OK);
    assert_true(rnl_extract(world.h.ep[1], 1) > 0);
    assert_int_equal(noted.args[0], 8);  /* the answer has come */
    assert_int_equal(noted.returned, 5); /* and what was behind the request has come back */
    assert_int_equal(noted.info.args[0], 4);
}

static void a_reply_to_a_dead_rank_comes_back(void **state)
{
    (void)state;
    reply_to = COUNT;
    for (int read = 0; read < 2; read++) {
        if (read) {
            world_close();
            setup(state);
        }
        assert_int_equal(AM_Request0(world.ep[0], 1, REPLY_SHORT), AM_OK);
        if (read)
            assert_int_equal(AM_Poll(world.eb[1]), AM_OK); /* replied before anybody knows */
        test_hub_kill(&world.h, 0, RNL_DEATH_EXIT, 0);
        settle();
        assert_int_equal(noted.count, 1);
        assert_int_equal(noted.returned, 1);
        assert_int_equal(noted.status, AM_EUNREACHABLE);
        assert_int_equal(noted.opcode, AM_REPLY_M);
        assert_ptr_equal(noted.dest, world.ep[1]);
        assert_int_equal(noted.info.args[1], 9);
    }
}

static void without_a_handler_0_a_poll_says_so_once(void **state)
{
    (void)state;
    assert_int_equal(AM_SetHandler(world.ep[0], 0, NULL), AM_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(AM_Request1(world.ep[0], 1, ABSENT, 7), AM_OK);
    assert_int_equal(AM_Poll(world.eb[1]), AM_OK);
    assert_int_equal(AM_Poll(world.eb[0]), AM_ERR_NOT_SENT);
    SAYS("handler 0");
    assert_int_equal(AM_Poll(world.eb[0]), AM_OK);
    assert_int_equal(AM_Request1(world.ep[0], 1, COUNT, 7), AM_OK);
    settle();
    assert_int_equal(noted.count, 1);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(nothing_passes_a_wrong_tag),
        CASE(nothing_reaches_an_endpoint_that_is_not_there),
        CASE(nothing_is_sent_by_a_translation_that_is_not_in_use),
        CASE(nothing_is_written_outside_the_segment),
        CASE(a_message_that_is_none_comes_back_or_is_dropped),
        CASE(what_finds_no_room_in_time_comes_back),
        CASE(what_a_dead_rank_had_not_read_comes_back),
        CASE(what_a_dead_rank_had_answered_does_not_come_back),
        CASE(a_reply_to_a_dead_rank_comes_back),
        CASE(without_a_handler_0_a_poll_says_so_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
