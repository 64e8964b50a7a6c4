/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fm1_traffic.c - FM 1.1, mixed traffic: runnel run -n N multi-fm1_traffic [poll]. Everybody sends everybody short and
 * long messages; handlers send on to a third rank, which FM 1.1 allows. With "poll" each send also extracts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "multi/fm_check.h"
#include "runnel/fm1.h"

enum { SHORT = 1, LONG, ON, RANKS_MAX = 64 };

static unsigned long me, ranks;
static uint64_t shorts[RANKS_MAX], longs[RANKS_MAX], passed_on, came_on;
static unsigned char buf[FM1_MAX];

struct head {
    uint32_t from, k;
};

/* k-th long message: mostly short, some up to the limit. */
static unsigned long_bytes(unsigned long from, unsigned long to, uint64_t k)
{
    uint64_t x = check_key(LONG, from, to, k);
    unsigned n = x % 10 < 6   ? (unsigned)(x >> 8) % 200
                 : x % 10 < 9 ? (unsigned)(x >> 8) % 30000
                              : (unsigned)(x >> 8) % FM1_MAX;
    return sizeof(struct head) + n <= FM1_MAX ? n : FM1_MAX - sizeof(struct head);
}

static void on_short(void *buffer, unsigned size)
{
    int w[4];
    CHECK(size == sizeof w);
    memcpy(w, buffer, sizeof w);
    CHECK((unsigned long)w[0] < ranks);
    CHECK((uint64_t)(unsigned)w[1] == shorts[w[0]]++);
    CHECK(w[2] == (w[0] ^ w[1]) && w[3] == -w[1]);
}

static void on_long(void *buffer, unsigned size)
{
    struct head h;
    memcpy(&h, buffer, sizeof h);
    CHECK(h.from < ranks && h.k == longs[h.from]++);
    unsigned n = long_bytes(h.from, me, h.k);
    CHECK(size == sizeof h + n);
    check_bytes(check_key(LONG, h.from, me, h.k), 0, (char *)buffer + sizeof h, n, "a long message");
    memset(buffer, 0xdd, size); /* it is private */
    FM_send_4((me + 1) % ranks, ON, (int)h.from, (int)me, (int)h.k, 7);
    if (h.k % 4 == 0) { /* and a long one from inside a handler */
        unsigned char more[5000];
        memset(more, 0x33, sizeof more);
        FM_send((me + 1) % ranks, ON, more, sizeof more);
        passed_on++;
    }
    passed_on++;
}

static void on_on(void *buffer, unsigned size)
{
    const unsigned char *b = buffer;
    CHECK(size == 16 || size == 5000);
    for (unsigned i = 0; size == 5000 && i < size; i++)
        CHECK(b[i] == 0x33);
    came_on++;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "poll") == 0)
        FM_set_parameter(FM1_POLL_ON_SEND, 1);
    FM_initialize();
    me = check_rank = FM_nodeid;
    ranks = FM_numnodes;
    CHECK(ranks <= RANKS_MAX);
    const uint64_t messages = FM_COUNT(ranks > 4 ? 150 : 600);
    FM_register_handler(SHORT, on_short);
    FM_register_handler(LONG, on_long);
    FM_register_handler(ON, on_on);
    for (uint64_t k = 0; k < messages; k++) {
        for (unsigned long i = 0; i < ranks; i++) {
            unsigned long to = (me + i) % ranks;
            struct head h = {(uint32_t)me, (uint32_t)k};
            unsigned n = long_bytes(me, to, k);
            FM_send_4(to, SHORT, (int)me, (int)k, (int)me ^ (int)k, -(int)k);
            memcpy(buf, &h, sizeof h);
            check_fill(check_key(LONG, me, to, k), 0, buf + sizeof h, n);
            FM_send(to, LONG, buf, sizeof h + n);
            if (k % 3 == 0)
                (void)FM_extract();
        }
    }
    FM_finalize();
    for (unsigned long r = 0; r < ranks; r++)
        CHECK(shorts[r] == messages && longs[r] == messages);
    CHECK(passed_on == came_on); /* the rank before us had as many */
    return 0;
}
