/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fm_wrong.c - programs that do something wrong, or seem to, one case per run: runnel run -n N multi-fm_wrong CASE.
 * The script that starts them judges what is said of them.
 *
 *   dropped  rank 1 never registers the handler of one message
 *   forgets  rank 1 ends without FM_finalize and has taken nothing in
 *   took     rank 1 ends without FM_finalize, but has taken everything in
 *   held     a handler of rank 0 holds a message open which the program may not take for its own
 *   number   rank 0 waits for a message whose sender took another number, until it is killed
 *   full     rank 0 sends to rank 1, which takes nothing in, until it is killed */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "multi/fm_check.h"
#include "runnel/fm.h"

enum { MAIN = 1, BACK, DONE, NEVER };

static unsigned long me, ranks, dones;

static void send(unsigned long to, unsigned long handler)
{
    FM_stream *s = FM_begin_message(to, 8, handler);
    CHECK(s != NULL);
    FM_send_piece(s, "12345678", 8);
    FM_end_message(s);
}

static int on_done(FM_stream *s, unsigned from)
{
    (void)s, (void)from;
    dones++;
    return FM_CONTINUE;
}

static void await_dones(unsigned long n)
{
    while (dones < n)
        (void)FM_wait(-1);
}

static void dropped(void)
{
    if (me == 0)
        send(1, NEVER);
    FM_finalize();
}

static void forgets(void)
{
    if (me == 1) {
        check_sleep_ms(500); /* the others are in FM_finalize by then */
        exit(0);
    }
    send(1, DONE);
    FM_finalize();
}

static void took(void)
{
    FM_register_handler(DONE, on_done);
    if (me == 1) {
        await_dones(ranks - 1);
        (void)FM_wait(500000); /* before it sleeps it says how far it has read */
        exit(0);
    }
    send(1, DONE);
    FM_finalize();
}

static int held_started;

static int on_held(FM_stream *s, unsigned from)
{
    char half[500];
    FM_receive(half, s, sizeof half);
    FM_stream *back = FM_begin_message(from, sizeof half, BACK);
    CHECK(back != NULL);
    held_started = 1;
    FM_receive(half, s, sizeof half);
    FM_send_piece(back, half, sizeof half);
    FM_end_message(back);
    return FM_CONTINUE;
}

static int on_back(FM_stream *s, unsigned from)
{
    (void)s, (void)from;
    return FM_CONTINUE;
}

static void held(void)
{
    static const char half[500];
    FM_stream *s;
    FM_register_handler(MAIN, on_held);
    FM_register_handler(BACK, on_back);
    FM_register_handler(DONE, on_done);
    if (me == 0) {
        while (!held_started)
            (void)FM_wait(-1);
        CHECK(FM_begin_message(1, 8, DONE) == NULL);
        send(2, DONE); /* only now the other half comes */
        while ((s = FM_begin_message(1, 8, DONE)) == NULL)
            (void)FM_extract(~0ul);
        FM_end_message(s);
    } else if (me == 1) {
        s = FM_begin_message(0, 2 * sizeof half, MAIN);
        FM_send_piece(s, half, sizeof half);
        await_dones(1);
        FM_send_piece(s, half, sizeof half);
        FM_end_message(s);
        await_dones(2);
    } else {
        await_dones(1);
        send(1, DONE);
    }
    FM_finalize();
}

static void number(void)
{
    FM_register_handler(DONE, on_done);
    if (me == 1)
        send(0, MAIN);
    if (me == 0)
        await_dones(1);
    pause();
}

static void full(void)
{
    FM_register_handler(DONE, on_done);
    if (me == 1)
        pause();
    for (;;)
        send(1, DONE);
}

/* Who ends in the middle leaves things behind: no leak check after exit. */
static void leave(int status, void *arg)
{
    (void)arg;
    _exit(status);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {{"dropped", dropped}, {"forgets", forgets}, {"took", took},
                 {"held", held},       {"number", number},   {"full", full}};
    on_exit(leave, NULL);
    FM_initialize();
    me = check_rank = FM_nodeid;
    ranks = FM_numnodes;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (argc > 1 && strcmp(argv[1], cases[i].name) == 0) {
            cases[i].run();
            return 0;
        }
    }
    if (argc > 1)
        fprintf(stderr, "multi-fm_wrong: there is no case '%s'\n", argv[1]);
    FM_finalize();
    return argc > 1 ? 64 : 0;
}
