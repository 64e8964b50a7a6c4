/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fm_unresponsive.c - a rank that does not call for long: runnel run -n 3 multi-fm_unresponsive SECONDS [idle]. Rank 1
 * joins and then calls nothing for so long, as one that computes; rank 2 does the same, and is stopped by SIGSTOP, by
 * itself; "idle": not before all that was said to it is acknowledged. Rank 0 sends to both, and waits. To it, rank 1 is
 * never dead and takes all in at last; rank 2 is dead in a bounded time, where it is reached by datagrams. Rank 0 says
 * "dead 2" then and lets it go on, since the close waits for whoever is stopped: all three close. Without arguments: a
 * job of one joins and leaves. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "multi/fm_check.h"
#include "runnel/fm.h"
#include "runnel/runnel.h"

enum { PING = 1, PID, OVER, MESSAGES = 50 };
static unsigned long pings, overs, dead;
static long victim;

static void on_error(int status, unsigned long peer, const char *sentence)
{
    if (FM_nodeid == 2) {
        printf("2 is told %d: %s\n", status, sentence);
        return;
    }
    if (status != RNL_ERR_PEER_DEAD || peer != 2)
        check_fail("the error handler was told %d about %lu: %s", status, peer, sentence);
    dead = 1;
}

static int on_ping(FM_stream *s, unsigned from)
{
    (void)s, (void)from;
    pings++;
    return FM_CONTINUE;
}

static int on_over(FM_stream *s, unsigned from)
{
    (void)s, (void)from;
    overs++;
    return FM_CONTINUE;
}

static int on_pid(FM_stream *s, unsigned from)
{
    (void)from;
    FM_receive(&victim, s, sizeof victim);
    return FM_CONTINUE;
}

static void send_to(unsigned long to, unsigned long handler, const void *at, unsigned long n)
{
    FM_stream *s = FM_begin_message(to, n, handler);
    if (!s)
        return; /* it is dead, which the error handler was told */
    if (n > 0)
        FM_send_piece(s, at, n);
    FM_end_message(s);
}

int main(int argc, char **argv)
{
    unsigned seconds = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
    FM_set_parameter(FM_ERROR_HANDLER, on_error);
    FM_initialize();
    FM_register_handler(PING, on_ping);
    FM_register_handler(PID, on_pid);
    FM_register_handler(OVER, on_over);
    if (FM_numnodes < 3) {
        FM_finalize();
        return 0;
    }
    if (FM_nodeid == 2) {
        long pid = getpid();
        send_to(0, PID, &pid, sizeof pid);
        while (pings == 0)
            FM_wait(100000);
        while (pings < 2 && argc > 2)
            FM_wait(100000);
        for (int i = 0; i < 5 && argc > 2; i++)
            FM_wait(100000);
        raise(SIGSTOP);
    } else if (FM_nodeid == 1) {
        while (pings == 0)
            FM_wait(100000);
        for (time_t end = time(NULL) + seconds; time(NULL) < end;)
            sleep(1);
        while (pings < MESSAGES)
            FM_wait(100000);
        send_to(0, OVER, NULL, 0);
    } else {
        while (victim == 0) /* before it is told to stop, for then nothing of it leaves any more */
            FM_wait(100000);
        for (int i = 0; i < MESSAGES; i++) {
            send_to(1, PING, NULL, 0);
            if (i < 2)
                send_to(2, PING, NULL, 0);
            FM_extract(1 << 20);
        }
        while (overs == 0 || !dead)
            FM_wait(100000);
        printf("dead 2\n");
        fflush(stdout);
        kill((pid_t)victim, SIGCONT);
    }
    FM_finalize();
    printf("closed %u\n", (unsigned)FM_nodeid);
    return 0;
}
