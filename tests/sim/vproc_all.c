/* SPDX-License-Identifier: BSD-3-Clause
 *
 * vproc_all.c - everybody sends everybody else a few small messages, and counts what comes.
 *
 *     runnel sim -n N --hosts N vproc-all.so [MESSAGES [ROUNDS]]
 *
 * A round ends when as many have come as were sent to us in all rounds so far: after the first all are connected. */
#include <runnel/fm.h>
#include <stdio.h>
#include <stdlib.h>

enum { RANKS_MAX = 4096 };

struct note {
    unsigned from, serial, to, zero;
};
static unsigned came[RANKS_MAX], total, wrong;

static int on_note(FM_stream *s, unsigned from)
{
    struct note n;
    FM_receive(&n, s, sizeof n);
    wrong += n.from != from || n.to != FM_nodeid || n.serial != came[from];
    came[from]++;
    total++;
    return FM_CONTINUE;
}

int main(int argc, char **argv)
{
    unsigned messages = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
    FM_initialize();
    FM_register_handler(1, on_note);
    unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
    unsigned self = (unsigned)FM_nodeid, size = (unsigned)FM_numnodes, each = messages * (size - 1);
    for (unsigned round = 0; round < rounds; round++) {
        for (unsigned k = 1; k < size; k++) {
            unsigned to = (self + k) % size;
            for (unsigned i = 0; i < messages; i++) {
                struct note n = {self, round * messages + i, to, 0};
                FM_stream *s = FM_begin_message(to, sizeof n, 1);
                FM_send_piece(s, &n, sizeof n);
                FM_end_message(s);
            }
            FM_extract(~0ul);
        }
        while (total < (round + 1) * each)
            FM_wait(-1);
    }
    if (wrong || total != rounds * each)
        printf("rank %u: WRONG: %u of %u messages, %u wrong\n", self, total, rounds * each, wrong);
    FM_finalize();
    return wrong != 0;
}
