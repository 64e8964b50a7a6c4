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
 *   full     rank 0 sends to rank 1, which takes nothing in, until it is killed
 *   deep     a handler of rank 0 that waits for the rest of its message runs over its stack
 *   astray   such a handler writes to where nothing is
 *   signals  the same as `deep`, but the program has a handler of SIGSEGV itself, installed before
 *   signals_late  or installed when the handler runs already */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "multi/fm_check.h"
#include "runnel/fm.h"
#include "runnel/runnel.h"

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

/* ---- handlers that SIGSEGV ends ---- */

static bool goes_deep, handles_late;

static unsigned deep(unsigned more)
{
    volatile unsigned char frame[4096];
    frame[0] = (unsigned char)more;
    return more == 0 ? frame[0] : deep(more - 1) + frame[0];
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)context;
    _exit(rnl_overrun(NULL, info->si_addr) == MAIN ? 9 : 10);
}

static void handle_faults(void)
{
    static unsigned char stack[1 << 16];
    const stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
    const struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    CHECK(sigaltstack(&own, NULL) == 0 && sigaction(SIGSEGV, &action, NULL) == 0);
}

static int on_half(FM_stream *s, unsigned from)
{
    static int *volatile nowhere;
    char half[500];
    (void)from;
    FM_receive(half, s, sizeof half);
    FM_receive(half, s, sizeof half); /* suspends it */
    if (handles_late)
        handle_faults();
    if (goes_deep)
        dones += deep(1000);
    else
        *nowhere = 1;
    return FM_CONTINUE;
}

static void in_a_handler(void)
{
    static const char half[500];
    FM_register_handler(MAIN, on_half);
    FM_register_handler(DONE, on_done);
    if (me == 1) {
        FM_stream *s = FM_begin_message(0, 2 * sizeof half, MAIN);
        FM_send_piece(s, half, sizeof half);
        await_dones(1); /* rank 0 has its first half by then */
        FM_send_piece(s, half, sizeof half);
        FM_end_message(s);
    } else {
        for (unsigned i = 0; i < 100; i++)
            (void)FM_wait(1000);
        send(1, DONE);
    }
    FM_finalize();
}

static void goes_deep_there(void)
{
    goes_deep = true;
    in_a_handler();
}

static void signals(void)
{
    handle_faults();
    goes_deep_there();
}

static void signals_late(void)
{
    handles_late = true;
    goes_deep_there();
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
    } cases[] = {{"dropped", dropped},
                 {"forgets", forgets},
                 {"took", took},
                 {"held", held},
                 {"number", number},
                 {"full", full},
                 {"deep", goes_deep_there},
                 {"astray", in_a_handler},
                 {"signals", signals},
                 {"signals_late", signals_late}};
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
