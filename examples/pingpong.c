/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pingpong - how long a message takes: runnel run -n 2 pingpong
 *
 * Rank 0 sends a message, rank 1 sends it back; half of that time is printed, for a few sizes. Each has its handler
 * copy the message out. For measurements to compare with others use `runnel bench`, which knows what the machine itself
 * costs. */
#include <runnel/fm.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { HANDLER = 1, MOST_BYTES = 65536, MOST_ROUNDS = 100000, LIMIT_NS = 400 * 1000 * 1000 };
static const size_t sizes[] = {8, 64, 512, 4096, MOST_BYTES};

static char out[MOST_BYTES], in[MOST_BYTES];
static size_t size; /* both ranks go through the sizes in the same order */
static bool arrived;

static int on_ball(FM_stream *stream, unsigned sender)
{
    (void)sender;
    FM_receive(in, stream, size);
    arrived = true;
    return FM_CONTINUE;
}

static void throw_ball(unsigned rank)
{
    FM_stream *stream = FM_begin_message(rank, size, HANDLER);
    FM_send_piece(stream, out, size);
    FM_end_message(stream);
}

static void catch_ball(void)
{
    while (!arrived)
        FM_extract(~0ul);
    arrived = false;
}

static long long now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    long long x = *(const long long *)a, y = *(const long long *)b;
    return (x > y) - (x < y);
}

/* The first byte says whether another ball follows. */
static void serve(void)
{
    static long long times[MOST_ROUNDS];
    long long start = now_ns(), before = start, now = start;
    int n = 0;
    for (bool last = false; !last; before = now) {
        last = n + 1 == MOST_ROUNDS || now - start > LIMIT_NS;
        out[0] = !last;
        throw_ball(1);
        catch_ball();
        now = now_ns();
        times[n++] = now - before;
    }
    int first = n / 10; /* those before are a warm-up */
    n -= first;
    qsort(times + first, (size_t)n, sizeof times[0], compare);
    printf("%7zu %12.0f %12.0f %10d\n", size, (double)times[first + n / 2] / 2,
           (double)times[first + n - 1 - n / 100] / 2, n);
    fflush(stdout);
}

static void answer(void)
{
    do {
        catch_ball();
        memcpy(out, in, size);
        throw_ball(0);
    } while (out[0]);
}

int main(void)
{
    FM_initialize();
    FM_register_handler(HANDLER, on_ball);
    if (FM_numnodes < 2) {
        fputs("pingpong: two ranks are needed: runnel run -n 2 pingpong\n", stderr);
        return 2;
    }
    if (FM_nodeid == 0)
        printf("  bytes    median ns       p99 ns     rounds   (one way)\n");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size = sizes[i];
        if (FM_nodeid == 0)
            serve();
        else if (FM_nodeid == 1)
            answer();
    }
    FM_finalize();
    return 0;
}
