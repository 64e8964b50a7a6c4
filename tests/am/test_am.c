/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What AM-2 does when all is well: each kind of message with each number of arguments, there and back, between two
 * ranks and to oneself; tokens, tables, names, events. */
#include "am/world.h"

#include <stdlib.h>

/* ---- handlers of every number of arguments ---- */

enum { ECHO = 20, NOTE = 40, ECHO_I = 60, NOTE_I = 80, ECHO_X = 100 };

static void got(void *token, unsigned n, const int32_t *a, void *buf, size_t nbytes)
{
    note(token);
    noted.count++;
    noted.numargs = n;
    memcpy(noted.args, a, n * sizeof *a);
    noted.buf = buf;
    noted.nbytes = nbytes;
    if (buf)
        memcpy(noted.bytes, buf, nbytes);
}

#define P0
#define P1  , int32_t a0
#define P2  P1, int32_t a1
#define P3  P2, int32_t a2
#define P4  P3, int32_t a3
#define P5  P4, int32_t a4
#define P6  P5, int32_t a5
#define P7  P6, int32_t a6
#define P8  P7, int32_t a7
#define P9  P8, int32_t a8
#define P10 P9, int32_t a9
#define P11 P10, int32_t a10
#define P12 P11, int32_t a11
#define P13 P12, int32_t a12
#define P14 P13, int32_t a13
#define P15 P14, int32_t a14
#define P16 P15, int32_t a15
#define W0
#define W1  , a0
#define W2  W1, a1
#define W3  W2, a2
#define W4  W3, a3
#define W5  W4, a4
#define W6  W5, a5
#define W7  W6, a6
#define W8  W7, a7
#define W9  W8, a8
#define W10 W9, a9
#define W11 W10, a10
#define W12 W11, a11
#define W13 W12, a12
#define W14 W13, a13
#define W15 W14, a14
#define W16 W15, a15
#define C0
#define C1  , 1
#define C2  C1, -2
#define C3  C2, 3
#define C4  C3, INT32_MIN
#define C5  C4, 5
#define C6  C5, INT32_MAX
#define C7  C6, 7
#define C8  C7, -8
#define C9  C8, 9
#define C10 C9, 10
#define C11 C10, 11
#define C12 C11, -12
#define C13 C12, 13
#define C14 C13, 14
#define C15 C14, 15
#define C16 C15, -16
static const int32_t constants[17] = {0 C16};

/* Requests go to echo_n, which replies with one argument less to note_(n - 1): both sides see all numbers. */
#define HANDLERS(n)                                                                                    \
    static void note_##n(void *t P##n)                                                                 \
    {                                                                                                  \
        const int32_t a[] = {0 W##n};                                                                  \
        got(t, n, a + 1, NULL, 0);                                                                     \
    }                                                                                                  \
    static void note_i_##n(void *t, void *buf, size_t nbytes P##n)                                     \
    {                                                                                                  \
        const int32_t a[] = {0 W##n};                                                                  \
        got(t, n, a + 1, buf, nbytes);                                                                 \
    }                                                                                                  \
    static void echo_##n(void *t P##n)                                                                 \
    {                                                                                                  \
        const int32_t a[] = {0 W##n};                                                                  \
        got(t, n, a + 1, NULL, 0);                                                                     \
        assert_int_equal(AM_Reply##n(t, NOTE + n W##n), AM_OK);                                        \
    }                                                                                                  \
    static void echo_i_##n(void *t, void *buf, size_t nbytes P##n)                                     \
    {                                                                                                  \
        const int32_t a[] = {0 W##n};                                                                  \
        got(t, n, a + 1, buf, nbytes);                                                                 \
        assert_int_equal(AM_ReplyI##n(t, NOTE_I + n, buf, nbytes W##n), AM_OK);                        \
    }                                                                                                  \
    static void echo_x_##n(void *t, void *buf, size_t nbytes P##n)                                     \
    {                                                                                                  \
        const int32_t a[] = {0 W##n};                                                                  \
        got(t, n, a + 1, buf, nbytes);                                                                 \
        assert_int_equal(AM_ReplyXfer##n(t, 1000 + n, NOTE_I + n, buf, nbytes W##n), AM_OK);           \
    }                                                                                                  \
    static int request_##n(int to)                                                                     \
    {                                                                                                  \
        return AM_Request##n(world.ep[0], to, ECHO + n C##n);                                          \
    }                                                                                                  \
    static int request_i_##n(int to, const void *src, size_t nbytes)                                   \
    {                                                                                                  \
        return AM_RequestI##n(world.ep[0], to, ECHO_I + n, src, nbytes C##n);                          \
    }                                                                                                  \
    static int request_x_##n(int to, const void *src, size_t nbytes)                                   \
    {                                                                                                  \
        return n & 1 ? AM_RequestXfer##n(world.ep[0], to, 500 + n, ECHO_X + n, src, nbytes C##n)       \
                     : AM_RequestXferAsync##n(world.ep[0], to, 500 + n, ECHO_X + n, src, nbytes C##n); \
    }                                                                                                  \
    static int get_##n(int to, size_t nbytes)                                                          \
    {                                                                                                  \
        return n & 1 ? AM_GetXfer##n(world.ep[0], to, 300, NOTE_I + n, 2000 + n, nbytes C##n)          \
                     : AM_GetXferAsync##n(world.ep[0], to, 300, NOTE_I + n, 2000 + n, nbytes C##n);    \
    }                                                                                                  \
    static void set_##n(ep_t ep)                                                                       \
    {                                                                                                  \
        assert_int_equal(AM_SetHandler(ep, NOTE + n, note_##n), AM_OK);                                \
        assert_int_equal(AM_SetHandler(ep, NOTE_I + n, note_i_##n), AM_OK);                            \
        assert_int_equal(AM_SetHandler(ep, ECHO + n, echo_##n), AM_OK);                                \
        assert_int_equal(AM_SetHandler(ep, ECHO_I + n, echo_i_##n), AM_OK);                            \
        assert_int_equal(AM_SetHandler(ep, ECHO_X + n, echo_x_##n), AM_OK);                            \
    }
#define ALL(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16)
ALL(HANDLERS)

#define REQUEST(n) request_##n,
static int (*const request[])(int) = {ALL(REQUEST)};
#define REQUEST_I(n) request_i_##n,
static int (*const request_i[])(int, const void *, size_t) = {ALL(REQUEST_I)};
#define REQUEST_X(n) request_x_##n,
static int (*const request_x[])(int, const void *, size_t) = {ALL(REQUEST_X)};
#define GET(n) get_##n,
static int (*const get[])(int, size_t) = {ALL(GET)};
#define SET(n) set_##n,
static void (*const set[])(ep_t) = {ALL(SET)};

static int setup(void **state)
{
    (void)state;
    world_open(2, AM_SEQ);
    for (unsigned i = 0; i < 2; i++)
        for (unsigned n = 0; n <= 16; n++)
            set[n](world.ep[i]);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    world_close();
    return 0;
}

/* ---- messages ---- */

/* After a request with n arguments to rank `to` and its reply. */
static void seen(int to, unsigned n, unsigned handlers)
{
    settle();
    assert_int_equal(noted.count, handlers);
    assert_int_equal(noted.returned, 0);
    assert_int_equal(noted.numargs, n);
    assert_memory_equal(noted.args, constants + 1, n * sizeof *noted.args);
    assert_true(AM_NameEqual(noted.source, world.name[to]));
    assert_ptr_equal(noted.dest, world.ep[0]);
    assert_int_equal(noted.tag, TAG);
    assert_int_equal(noted.info.numargs, n);
    assert_int_equal(noted.info.status, 0);
    noted.count = 0;
}

static void short_messages_carry_0_to_16_arguments_there_and_back(void **state)
{
    (void)state;
    for (int to = 0; to < 2; to++) {
        for (unsigned n = 0; n <= 16; n++) {
            assert_int_equal(request[n](to), AM_OK);
            seen(to, n, 2);
            assert_int_equal(noted.info.opcode, AM_REPLY_M);
        }
    }
}

static void medium_messages_are_handed_over_in_an_aligned_buffer(void **state)
{
    static const size_t sizes[] = {0, 1, 8, 24, 100, 512, 513, 4096, 20000, RNL_AM_MEDIUM};
    (void)state;
    for (int to = 0; to < 2; to++) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            unsigned n = (unsigned)(i * 5 % 17);
            size_t nbytes = sizes[i];
            const unsigned char *bytes = test_pattern(i, 0);
            assert_int_equal(request_i[n](to, bytes, nbytes), AM_OK);
            seen(to, n, 2);
            assert_int_equal(noted.info.opcode, AM_REPLY_IM);
            assert_int_equal(noted.nbytes, nbytes);
            assert_int_equal(noted.info.nbytes, nbytes);
            assert_memory_equal(noted.bytes, bytes, nbytes);
            assert_int_equal((uintptr_t)noted.buf & 7, 0);
        }
    }
}

static void bulk_messages_lie_in_the_segment(void **state)
{
    static const size_t sizes[] = {0, 1, 100, 4096, 16384, 40000, RNL_AM_MEDIUM};
    (void)state;
    for (int to = 0; to < 2; to++) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            unsigned n = (unsigned)(i * 7 + 1) % 17;
            size_t nbytes = sizes[i];
            const unsigned char *bytes = test_pattern(i + 50, 0);
            assert_int_equal(request_x[n](to, bytes, nbytes), AM_OK);
            seen(to, n, 2);
            assert_int_equal(noted.info.opcode, AM_REPLY_XFER_M);
            assert_int_equal(noted.nbytes, nbytes);
            assert_int_equal(noted.info.dest_offset, 1000 + n);
            assert_ptr_equal(noted.buf, world.seg[0] + 1000 + n);
            if (to == 1)
                assert_memory_equal(world.seg[1] + 500 + n, bytes, nbytes);
            assert_memory_equal(world.seg[0] + 1000 + n, bytes, nbytes);
        }
    }
}

static void a_get_fetches_into_the_own_segment(void **state)
{
    (void)state;
    for (unsigned n = 0; n <= 16; n++) {
        size_t nbytes = (size_t)n * 4000;
        memcpy(world.seg[1] + 300, test_pattern(n + 7, 0), nbytes);
        assert_int_equal(get[n](1, nbytes), AM_OK);
        seen(1, n, 1);
        assert_int_equal(noted.info.opcode, AM_GET_XFER_M);
        assert_int_equal(noted.nbytes, nbytes);
        assert_ptr_equal(noted.buf, world.seg[0] + 2000 + n);
        assert_memory_equal(noted.bytes, test_pattern(n + 7, 0), nbytes);
    }
}

static void without_an_address_offsets_are_addresses(void **state)
{
    static char there[100];
    (void)state;
    assert_int_equal(AM_SetSeg(world.ep[1], NULL, UINTPTR_MAX), AM_OK);
    assert_int_equal(AM_RequestXfer0(world.ep[0], 1, (uintptr_t)there, NOTE_I, "abc", 4), AM_OK);
    settle();
    assert_string_equal(there, "abc");
    assert_int_equal(AM_GetXfer0(world.ep[0], 1, (uintptr_t)there, NOTE_I, 0, 4), AM_OK);
    settle();
    assert_string_equal((char *)world.seg[0], "abc");
    assert_int_equal(noted.count, 2);
}

/* ---- tables ---- */

static void translations_are_mapped_and_unmapped_at_any_time_and_grow(void **state)
{
    int index, entries;
    tag_t tag;
    en_t name;
    (void)state;
    assert_int_equal(AM_GetNumTranslations(world.ep[0], &entries), AM_OK);
    assert_int_equal(entries, 256);
    assert_int_equal(AM_MapAny(world.ep[0], &index, world.name[1], 5), AM_OK);
    assert_int_equal(index, 2);
    assert_int_equal(AM_GetTranslationInuse(world.ep[0], 2), AM_OK);
    assert_int_equal(AM_GetTranslationTag(world.ep[0], 2, &tag), AM_OK);
    assert_int_equal(tag, 5);
    assert_int_equal(AM_GetTranslationName(world.ep[0], 2, &name), AM_OK);
    assert_true(AM_NameEqual(name, world.name[1]));
    assert_int_equal(AM_SetTranslationTag(world.ep[0], 2, TAG), AM_OK);
    assert_int_equal(request[3](2), AM_OK);
    seen(1, 3, 2);
    assert_int_equal(AM_UnMap(world.ep[0], 2), AM_OK);
    assert_int_equal(AM_GetTranslationInuse(world.ep[0], 2), AM_ERR_RESOURCE);
    assert_int_equal(AM_SetNumTranslations(world.ep[0], 5000), AM_OK);
    assert_int_equal(AM_Map(world.ep[0], 4999, world.name[0], TAG), AM_OK);
    assert_int_equal(request[2](4999), AM_OK);
    seen(0, 2, 2);
    assert_int_equal(AM_SetNumTranslations(world.ep[0], 4999), AM_ERR_IN_USE);
    assert_int_equal(AM_UnMap(world.ep[0], 4999), AM_OK);
    assert_int_equal(AM_SetNumTranslations(world.ep[0], 2), AM_OK);
    assert_int_equal(AM_MapAny(world.ep[0], &index, world.name[1], 5), AM_ERR_RESOURCE);
    for (int i = 0; i < 2; i++) /* a hint, as often as one likes */
        assert_int_equal(AM_SetExpectedResources(world.ep[0], 10 + i, 128), AM_OK);
    assert_int_equal(AM_GetNumTranslations(world.ep[0], &entries), AM_OK);
    assert_int_equal(entries, 11);
    assert_int_equal(AM_MapAny(world.ep[0], &index, world.name[1], 5), AM_OK);
    AM_MaxNumTranslations(&entries);
    assert_int_equal(entries, 1 << 20);
}

/* ---- events ---- */

static void a_wait_ends_when_a_handler_has_run_for_the_bundle(void **state)
{
    int mask = 9;
    eb_t second;
    ep_t other;
    en_t name;
    (void)state;
    assert_int_equal(AM_GetEventMask(world.eb[0], &mask), AM_OK);
    assert_int_equal(mask, AM_NOEVENTS);
    assert_int_equal(AM_WaitSema(world.eb[0]), AM_ERR_BAD_ARG);
    SAYS("for ever");
    assert_int_equal(AM_SetEventMask(world.eb[0], 7), AM_ERR_BAD_ARG);
    assert_int_equal(AM_SetEventMask(world.eb[0], AM_NOTEMPTY), AM_OK);
    assert_int_equal(AM_WaitSemaFor(world.eb[0], 1000), AM_ERR_NOT_SENT);
    assert_int_equal(AM_Request0(world.ep[0], 0, NOTE), AM_OK); /* to itself: its poll, or the wait's */
    assert_int_equal(AM_WaitSema(world.eb[0]), AM_OK);
    assert_int_equal(noted.count, 1);
    assert_int_equal(AM_WaitSemaFor(world.eb[0], 1000), AM_ERR_NOT_SENT);
    assert_int_equal(AM_AllocateBundleOn(world.h.ep[0], AM_SEQ, &second), AM_OK);
    assert_int_equal(AM_AllocateEndpoint(second, &other, &name), AM_OK);
    assert_int_equal(AM_SetTag(other, AM_ALL), AM_OK);
    assert_int_equal(AM_SetHandler(other, 1, note_0), AM_OK);
    assert_int_equal(AM_Map(world.ep[0], 9, name, 0), AM_OK);
    assert_int_equal(AM_Request0(world.ep[0], 9, 1), AM_OK);
    assert_int_equal(AM_WaitSemaFor(world.eb[0], 100000), AM_ERR_NOT_SENT); /* runs it, but it is not its bundle's */
    assert_int_equal(noted.count, 2);
    assert_int_equal(AM_SetEventMask(second, AM_NOTEMPTY), AM_OK);
    assert_int_equal(AM_WaitSema(second), AM_OK);
    assert_int_equal(AM_FreeBundle(second), AM_OK);
}

static unsigned before, after;
static void hook_before(void *arg, void *token, const struct rnl_am_token_info *info, void *buf)
{
    (void)token, (void)buf;
    assert_ptr_equal(arg, &before);
    assert_int_equal(before, after);
    assert_int_equal(info->numargs, 2);
    before++;
}
static void hook_after(void *arg, void *token, const struct rnl_am_token_info *info, void *buf)
{
    (void)arg, (void)token, (void)info, (void)buf;
    after++;
    assert_int_equal(before, after);
}

static void hooks_stand_around_each_handler(void **state)
{
    struct rnl_am_hooks hooks = {hook_before, hook_after, &before};
    (void)state;
    assert_int_equal(AM_SetHooks(world.ep[1], &hooks), AM_OK);
    assert_int_equal(request[2](1), AM_OK);
    assert_int_equal(request_i[2](1, "x", 1), AM_OK);
    settle();
    assert_int_equal(after, 2);
    assert_int_equal(AM_SetHooks(world.ep[1], NULL), AM_OK);
    assert_int_equal(request[2](1), AM_OK);
    settle();
    assert_int_equal(after, 2);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(short_messages_carry_0_to_16_arguments_there_and_back),
        CASE(medium_messages_are_handed_over_in_an_aligned_buffer),
        CASE(bulk_messages_lie_in_the_segment),
        CASE(a_get_fetches_into_the_own_segment),
        CASE(without_an_address_offsets_are_addresses),
        CASE(translations_are_mapped_and_unmapped_at_any_time_and_grow),
        CASE(a_wait_ends_when_a_handler_has_run_for_the_bundle),
        CASE(hooks_stand_around_each_handler),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
