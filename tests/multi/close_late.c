/* SPDX-License-Identifier: BSD-3-Clause
 *
 * close_late.c - multi-close_late, 3 ranks: rank 1 comes into FM_finalize last, right after a message to rank 0, whose
 * handler sends to rank 2, whose handler takes its time and then sends to rank 1. All have reported that they are idle
 * before that, and rank 1 must stay in FM_finalize until it has taken the message in.
 *
 * multi-close_late PROGRAM: each rank runs PROGRAM while it is in the job. */
#include <stdlib.h>

#include "multi/fm_check.h"
#include "runnel/fm.h"

enum { FIRST = 1, SECOND, THIRD };

static int thirds;

static void send(unsigned long to, unsigned long handler)
{
    FM_stream *s = FM_begin_message(to, 8, handler);
    CHECK(s != NULL);
    FM_send_piece(s, "12345678", 8);
    FM_end_message(s);
}

static int on_first(FM_stream *s, unsigned from)
{
    (void)s, (void)from;
    send(2, SECOND);
    return FM_CONTINUE;
}

static int on_second(FM_stream *s, unsigned from)
{
    (void)s, (void)from;
    check_sleep_ms(500);
    send(1, THIRD);
    return FM_CONTINUE;
}

static int on_third(FM_stream *s, unsigned from)
{
    (void)s, (void)from;
    thirds++;
    return FM_CONTINUE;
}

int main(int argc, char **argv)
{
    FM_initialize();
    unsigned long me = check_rank = FM_nodeid;
    FM_register_handler(FIRST, on_first);
    FM_register_handler(SECOND, on_second);
    FM_register_handler(THIRD, on_third);
    if (argc > 1) {
        CHECK(system(argv[1]) == 0);
    } else if (me == 1) {
        check_sleep_ms(500);
        send(0, FIRST);
    }
    FM_finalize();
    CHECK(argc > 1 || thirds == (me == 1));
    return 0;
}
