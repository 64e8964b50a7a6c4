/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wire.c - a wire between two machines of QEMU that has a rate and a length, which QEMU's own have not:
 *
 *   wire BYTES-PER-SECOND DELAY-US FROM TO FROM TO
 *
 * What a machine sends arrives at the socket FROM and goes on to TO, one pair for each direction, each with that rate
 * and a queue of 64 frames; what comes while it is full is lost. After SIGUSR1 every frame takes DELAY-US longer; after
 * SIGUSR2 the wire is cut. Ends with SIGTERM, and says how many bytes went each way. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/must.h"

enum { QUEUE = 64, UNDER_WAY = 4096, LONGEST = 2048, BURST_NS = 20000000, BEHIND = 24 /* preamble, sum and gap */ };

struct frame {
    uint64_t due_ns;
    uint32_t bytes;
    uint8_t at[LONGEST];
};
struct direction {
    int in, out;
    struct sockaddr_un to;
    uint64_t free_ns, bytes; /* free_ns: when the sender's card has the wire again */
    uint32_t first, count;   /* of the frames that are on the wire, or wait for it */
    struct frame *frame;
};

static volatile sig_atomic_t ends, is_longer, is_cut;

static void on_signal(int signal)
{
    if (signal == SIGUSR1)
        is_longer = 1;
    else if (signal == SIGUSR2)
        is_cut = 1;
    else
        ends = 1;
}

static void name(struct sockaddr_un *a, const char *path)
{
    *a = (struct sockaddr_un){.sun_family = AF_UNIX};
    TEST_MUST(strlen(path) < sizeof a->sun_path);
    memcpy(a->sun_path, path, strlen(path));
}

static void open_direction(struct direction *d, const char *from, const char *to)
{
    struct sockaddr_un a;
    name(&a, from);
    name(&d->to, to);
    d->frame = calloc(UNDER_WAY, sizeof *d->frame);
    d->in = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    d->out = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    TEST_MUST(d->frame && d->in >= 0 && d->out >= 0 && bind(d->in, (void *)&a, sizeof a) == 0);
}

/* A wire that this process did not serve for a while, because it had no processor, has carried frames meanwhile. */
static void take(struct direction *d, uint64_t rate, uint64_t delay_ns, uint64_t now_ns)
{
    for (;;) {
        struct frame *f = &d->frame[(d->first + d->count) % UNDER_WAY];
        const ssize_t n = recv(d->in, f->at, sizeof f->at, 0);
        if (n < 0)
            return;
        if (d->free_ns + BURST_NS < now_ns)
            d->free_ns = now_ns - BURST_NS;
        const uint64_t each_ns = ((uint64_t)n + BEHIND) * 1000000000 / rate;
        const bool full = d->free_ns > now_ns + QUEUE * (uint64_t)1500 * 1000000000 / rate;
        if (is_cut || full || d->count == UNDER_WAY - 1)
            continue;
        d->free_ns += each_ns;
        f->bytes = (uint32_t)n;
        f->due_ns = d->free_ns + (is_longer ? delay_ns : 0);
        d->count++;
    }
}

/* Returns when the next frame is due. */
static uint64_t deliver(struct direction *d, uint64_t now_ns)
{
    while (d->count) {
        const struct frame *f = &d->frame[d->first];
        if (f->due_ns > now_ns)
            return f->due_ns;
        if (!is_cut && sendto(d->out, f->at, f->bytes, 0, (void *)&d->to, sizeof d->to) == (ssize_t)f->bytes)
            d->bytes += f->bytes;
        d->first = (d->first + 1) % UNDER_WAY;
        d->count--;
    }
    return UINT64_MAX;
}

int main(int argc, char **argv)
{
    static struct direction d[2];
    const struct sigaction on = {.sa_handler = on_signal};
    if (argc != 7)
        return 2;
    const uint64_t rate = strtoull(argv[1], NULL, 0), delay_ns = strtoull(argv[2], NULL, 0) * 1000;
    TEST_MUST(rate > 0 && prctl(PR_SET_PDEATHSIG, SIGTERM) == 0);
    TEST_MUST(sigaction(SIGTERM, &on, NULL) == 0 && sigaction(SIGUSR1, &on, NULL) == 0 &&
              sigaction(SIGUSR2, &on, NULL) == 0);
    for (int i = 0; i < 2; i++)
        open_direction(&d[i], argv[3 + 2 * i], argv[4 + 2 * i]);
    while (!ends) {
        uint64_t due_ns = UINT64_MAX;
        for (int i = 0; i < 2; i++) {
            const uint64_t now_ns = test_now_ns();
            take(&d[i], rate, delay_ns, now_ns);
            const uint64_t next_ns = deliver(&d[i], now_ns);
            due_ns = next_ns < due_ns ? next_ns : due_ns;
        }
        const uint64_t now_ns = test_now_ns(), wait_ns = due_ns <= now_ns ? 0 : due_ns - now_ns;
        struct pollfd any[2] = {{.fd = d[0].in, .events = POLLIN}, {.fd = d[1].in, .events = POLLIN}};
        const struct timespec wait = {.tv_nsec = (long)(wait_ns < 100000000 ? wait_ns : 100000000)};
        TEST_MUST(ppoll(any, 2, &wait, NULL) >= 0 || errno == EINTR);
    }
    printf("the wire carried %llu and %llu bytes\n", (unsigned long long)d[0].bytes, (unsigned long long)d[1].bytes);
    return 0;
}
