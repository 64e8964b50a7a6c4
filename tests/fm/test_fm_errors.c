/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What FM 2.x tells of its errors: to a program's own handler, or by the default one, which ends the process. */
#include "fm/child.h"
#include "fm/sized.h"

/* ---- with an error handler ---- */

static int past_the_end(FM_stream *s, unsigned sender)
{
    char buf[10];
    (void)sender;
    memset(buf, 'x', sizeof buf);
    in.started++;
    FM_receive(buf, s, 10);
    for (int i = 0; i < 10; i++)
        TEST_MUST(buf[i] == 0);
    in.count++;
    return FM_CONTINUE;
}

static void receiving_past_the_end_is_told_and_gives_zeros(void **state)
{
    (void)state;
    FM_register_handler(1, past_the_end);
    for (size_t bound = 8; bound <= 2000; bound += 1992) {
        clear();
        FM_stream *s = FM_begin_message(0, bound, 1);
        FM_send_piece(s, "12345678", 8);
        if (bound > 8)
            assert_int_equal(FM_extract(~0ul), 8);
        FM_end_message(s);
        assert_int_equal(FM_extract(~0ul), bound > 8 ? 0 : 8);
        assert_int_equal(in.started, 1);
        TOLD(RNL_ERR_PAST_END, "10 bytes");
        assert_int_equal(told.peer, 0);
        assert_int_equal(in.count, 1);
    }
    clear();
    FM_register_handler(1, sized); /* messages behind it are fine */
    send_sized(1, 100, 100, 100);
    assert_int_equal(FM_extract(~0ul), 100);
    assert_int_equal(in.count, 1);
}

static void wrong_sends_are_told(void **state)
{
    (void)state;
    FM_register_handler(1, sized);
    assert_null(FM_begin_message(1, 8, 1));
    TOLD(RNL_ERR_RANK, "rank 1");
    assert_int_equal(told.peer, 1);
    assert_null(FM_begin_message(1ul << 33, 8, 1));
    TOLD(RNL_ERR_RANK, "rank");
    assert_null(FM_begin_message(0, 8, 65536));
    TOLD(RNL_ERR_HANDLER, "65536");
    FM_stream *s = FM_begin_message(0, 8, 1);
    uint32_t n = 8;
    FM_send_piece(s, &n, 4);
    FM_send_piece(s, "12345", 5);
    TOLD(RNL_ERR_PAST_END, "5 bytes");
    FM_send_piece(s, "1234", 4);
    FM_end_message(s);
    clear();
    assert_int_equal(FM_extract(~0ul), 8);
    assert_int_equal(in.count, 1);
    assert_null(FM_begin_message(~0ul, 8, 1)); /* a dest that no cast makes valid */
    TOLD(RNL_ERR_RANK, "rank");
}

static void a_second_message_to_a_peer_is_told(void **state)
{
    (void)state;
    FM_register_handler(1, sized);
    for (size_t bound = 8; bound <= 2000; bound += 1992) {
        clear();
        uint32_t n = 8;
        FM_stream *s = FM_begin_message(0, bound, 1);
        FM_send_piece(s, &n, 4);
        assert_null(FM_begin_message(0, bound, 1));
        TOLD(RNL_BUSY, "rank 0", "open already", "end it first");
        assert_int_equal(told.peer, 0);
        FM_send_piece(s, "1234", 4);
        FM_end_message(s);
        FM_extract(~0ul);
        FM_extract(~0ul);
        assert_int_equal(in.count, 1);
    }
}

static FM_stream *incoming;

static int note_stream(FM_stream *s, unsigned sender)
{
    (void)sender;
    incoming = s;
    return FM_CONTINUE;
}

static void receiving_outside_a_handler_is_told(void **state)
{
    char buf[8];
    (void)state;
    FM_register_handler(1, note_stream);
    FM_stream *s = FM_begin_message(0, 8, 1);
    FM_send_piece(s, "12345678", 8);
    FM_end_message(s);
    assert_int_equal(FM_extract(~0ul), 8);
    FM_receive(buf, incoming, sizeof buf);
    TOLD(RNL_ERR_CONTEXT, "FM_receive");
}

static void parameters_are_checked(void **state)
{
    (void)state;
    FM_set_parameter(FM_MAX_HANDLERS, 5);
    TOLD(RNL_ERR_ARG, "FM_MAX_HANDLERS", "before FM_initialize");
    FM_set_parameter(FM_THREADS, 1);
    TOLD(RNL_ERR_ARG, "FM_THREADS");
    FM_set_parameter(FM_KEY_NAME, "x");
    TOLD(RNL_ERR_ARG, "FM_KEY_NAME");
    FM_set_parameter(12345, 1);
    TOLD(RNL_ERR_ARG, "12345");
    FM_set_parameter(FM_GRM_NAME, "manager"); /* accepted, unused */
    FM_set_parameter(FM_GRM_PORT, 1);
    FM_set_parameter(FM_CM_PORT, 1);
    FM_set_parameter(FM_QUIET, 0);
    FM_reallocate_credit();
    assert_int_equal(told.count, 0);
    FM_initialize();
    TOLD(RNL_ERR_CONTEXT, "twice");
}

/* ---- without an error handler ---- */

static void too_early(void)
{
    FM_set_parameter(FM_ERROR_HANDLER, (FM_error *)NULL);
    FM_extract(~0ul);
}

static void fd_too_early(void)
{
    FM_set_parameter(FM_ERROR_HANDLER, (FM_error *)NULL);
    FM_fd();
}

static void begin_too_early(void)
{
    FM_set_parameter(FM_ERROR_HANDLER, (FM_error *)NULL);
    FM_begin_message(0, 8, 1);
}

static void rank_too_early(void)
{
    FM_set_parameter(FM_ERROR_HANDLER, (FM_error *)NULL);
    printf("%lu", FM_nodeid);
}

static void rank_after_finalize(void)
{
    FM_initialize();
    FM_finalize();
    exit(FM_nodeid == 0 && FM_numnodes == 1 ? 0 : 9);
}

static void size_too_early(void)
{
    FM_set_parameter(FM_ERROR_HANDLER, (FM_error *)NULL);
    printf("%lu", FM_numnodes);
}

static void no_such_key(void)
{
    FM_set_parameter(FM_ERROR_HANDLER, (FM_error *)NULL);
    FM_set_parameter(12345, 1);
}

static void no_launcher(void)
{
    FM_set_parameter(FM_ERROR_HANDLER, (FM_error *)NULL);
    setenv("RUNNEL_FD", "nowhere", 1);
    FM_initialize();
}

/* The first of all cases: the process has had no rank so far. */
static void the_default_names_no_rank_while_there_is_none(void **state)
{
    (void)state;
    struct child_end e = in_child(no_such_key);
    assert_int_equal(e.status, 70);
    assert_ptr_equal(strstr(e.said, "runnel: FM_set_parameter: there is no key 12345"), e.said);
    e = in_child(no_launcher);
    assert_int_equal(e.status, 70);
    assert_ptr_equal(strstr(e.said, "runnel: RUNNEL_FD is 'nowhere'"), e.said);
}

static void wrong_rank(void)
{
    FM_set_parameter(FM_ERROR_HANDLER, (FM_error *)NULL);
    FM_initialize();
    FM_register_handler(1, sized);
    FM_begin_message(7, 8, 1);
}

static void wrong_rank_quietly(void)
{
    FM_set_parameter(FM_QUIET, 1);
    wrong_rank();
}

static void wrong_inside_a_handler(void)
{
    FM_set_parameter(FM_ERROR_HANDLER, (FM_error *)NULL);
    FM_initialize();
    FM_register_handler(1, past_the_end);
    FM_stream *s = FM_begin_message(0, 2000, 1);
    FM_send_piece(s, "1234", 4);
    FM_extract(~0ul);
    FM_end_message(s);
    FM_extract(~0ul);
}

static void after_finalize(void)
{
    FM_set_parameter(FM_ERROR_HANDLER, (FM_error *)NULL);
    FM_initialize();
    FM_finalize();
    FM_finalize();
}

static void good(void)
{
    FM_set_parameter(FM_ERROR_HANDLER, (FM_error *)NULL);
    FM_initialize();
    FM_finalize();
}

static void name_rank(int status, unsigned long peer, const char *sentence)
{
    (void)peer;
    fprintf(stderr, "told: %s (%s)\n", sentence, rnl_status_name(status));
    fprintf(stderr, "this is rank %lu\n", FM_nodeid);
}

static void no_launcher_and_a_handler_that_names_its_rank(void)
{
    FM_set_parameter(FM_ERROR_HANDLER, name_rank);
    setenv("RUNNEL_FD", "nowhere", 1);
    FM_initialize();
}

/* One of the first cases: this process has initialized nothing yet. */
static void a_handler_that_asks_for_a_rank_that_is_not_known_ends_the_program(void **state)
{
    (void)state;
    struct child_end e = in_child(no_launcher_and_a_handler_that_names_its_rank);
    assert_int_equal(e.status, 70);
    assert_ptr_equal(strstr(e.said, "told: RUNNEL_FD is 'nowhere'"), e.said);
    const char *own = strstr(e.said, "told: FM_nodeid was called before FM_initialize");
    assert_non_null(own);
    assert_null(strstr(own + 1, "told: "));
    assert_non_null(strstr(own, "\nrunnel: FM_nodeid was called before FM_initialize"));
}

/* The first case: this process has initialized nothing yet. */
static void there_is_no_rank_before_the_first_initialize(void **state)
{
    (void)state;
    struct child_end e = in_child(rank_too_early);
    assert_int_equal(e.status, 70);
    assert_non_null(strstr(e.said, "FM_nodeid was called before FM_initialize"));
    e = in_child(size_too_early);
    assert_non_null(strstr(e.said, "FM_numnodes was called before FM_initialize"));
}

static void the_default_explains_and_ends_with_status_70(void **state)
{
    (void)state;
    struct child_end e = in_child(good);
    assert_int_equal(e.status, 0);
    assert_string_equal(e.said, "");
    e = in_child(too_early);
    assert_int_equal(e.status, 70);
    assert_non_null(strstr(e.said, "FM_extract was called before FM_initialize"));
    e = in_child(fd_too_early);
    assert_non_null(strstr(e.said, "FM_fd was called before FM_initialize"));
    e = in_child(begin_too_early);
    assert_non_null(strstr(e.said, "FM_begin_message was called before FM_initialize"));
    e = in_child(rank_after_finalize);
    assert_int_equal(e.status, 0);
    e = in_child(wrong_rank);
    assert_int_equal(e.status, 70);
    assert_non_null(strstr(e.said, "rank 7"));
    assert_non_null(strstr(e.said, "RNL_ERR_RANK"));
    e = in_child(wrong_rank_quietly); /* FM_QUIET is for when it goes on */
    assert_int_equal(e.status, 70);
    assert_non_null(strstr(e.said, "rank 7"));
    e = in_child(wrong_inside_a_handler);
    if (e.status != 70)
        fail_msg("status %d: %s", e.status, e.said);
    assert_non_null(strstr(e.said, "RNL_ERR_PAST_END"));
    e = in_child(after_finalize);
    assert_int_equal(e.status, 70);
    assert_non_null(strstr(e.said, "FM_finalize was called"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_names_no_rank_while_there_is_none),
        cmocka_unit_test(there_is_no_rank_before_the_first_initialize),
        cmocka_unit_test(a_handler_that_asks_for_a_rank_that_is_not_known_ends_the_program),
        TEST(receiving_past_the_end_is_told_and_gives_zeros),
        TEST(wrong_sends_are_told),
        TEST(a_second_message_to_a_peer_is_told),
        TEST(receiving_outside_a_handler_is_told),
        TEST(parameters_are_checked),
        cmocka_unit_test(the_default_explains_and_ends_with_status_70),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
