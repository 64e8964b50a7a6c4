/* SPDX-License-Identifier: BSD-3-Clause
 *
 * vproc_poll.c - an event loop: each rank sleeps in poll on its endpoint's descriptor, is woken by what comes, and
 * otherwise some ten times a second.
 *
 *     vproc-poll.so */
#include <poll.h>
#include <runnel/fm.h>
#include <stdio.h>
#include <time.h>

enum { NOTES = 20 };
static unsigned came, woken;

static int on_note(FM_stream *s, unsigned from)
{
    unsigned serial;
    (void)from;
    FM_receive(&serial, s, sizeof serial);
    if (serial != came)
        printf("WRONG: note %u, not %u\n", serial, came);
    came++;
    return FM_CONTINUE;
}

static long long now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void loop(int fd, long long until)
{
    for (long long now; (now = now_ms()) < until;) {
        struct pollfd p[2] = {{.fd = fd, .events = POLLIN}, {.fd = -1}};
        int found = poll(p, 2, (int)(until - now));
        if (found < 0 || (found > 0 && p[0].revents != POLLIN))
            printf("WRONG: poll says %d, %#x\n", found, (unsigned)p[0].revents);
        woken += found > 0;
        while (FM_extract(~0ul) > 0)
            continue;
    }
}

int main(void)
{
    struct pollfd none = {.fd = 60, .events = POLLIN};
    FM_initialize();
    FM_register_handler(1, on_note);
    int fd = FM_fd();
    long long began = now_ms();
    if (poll(&none, 1, 0) != 1 || none.revents != POLLNVAL)
        printf("WRONG: a descriptor that is none\n");
    for (unsigned i = 0; i < NOTES; i++) {
        loop(fd, began + 50 * (i + 1));
        if (FM_nodeid == 0) {
            FM_stream *s = FM_begin_message(1, sizeof i, 1);
            FM_send_piece(s, &i, sizeof i);
            FM_end_message(s);
        }
    }
    loop(fd, began + 2000);
    if (FM_nodeid == 1)
        printf("%u notes, %s\n", came, woken < 4 * NOTES ? "woken for them" : "hardly asleep");
    else
        printf("rank %ld %s\n", (long)FM_nodeid, woken < 4 * NOTES ? "slept" : "hardly slept");
    FM_finalize();
    return 0;
}
