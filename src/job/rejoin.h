/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rejoin.h - when an agent whose connection to who started it is cut, or silent, tries others, and when it gives up.
 * Pure: time is an argument, and the caller does what is asked and tells what came of it. One *round* is a try at each
 * address at once; the first that answers and proves itself is taken.
 *
 *   heard again, on the old connection   the tries are given up
 *   cut, and each address refuses        nobody listens there any more: the end
 *   nobody answers at all                the end: CUT after a connection was cut, SILENT_MOST after the last word
 *   somebody is there, and stopped       its end comes after STOPPED_MOST only */
#ifndef RNL_JOB_REJOIN_H
#define RNL_JOB_REJOIN_H

#include <stdint.h>

enum {
    RNL_REJOIN_SILENT_MS = 5000, /* pings come every 2 s */
    RNL_REJOIN_ROUND_MS = 3000,
    RNL_REJOIN_PAUSE_MS = 500,
    RNL_REJOIN_CUT_MS = 20000,
    RNL_REJOIN_SILENT_MOST_MS = 120000,
    RNL_REJOIN_STOPPED_MOST_MS = 600000
};

enum rnl_rejoin_step {
    RNL_REJOIN_WAIT,
    RNL_REJOIN_TRY,   /* a connection to each address; rnl_rejoin_tries says how many there are */
    RNL_REJOIN_STOP,  /* close them */
    RNL_REJOIN_PAUSE, /* close them but those that nobody has accepted: who is stopped has room for few of these. They
                         are tries of the next round, and met from the beginning */
    RNL_REJOIN_GIVE_UP
};

struct rnl_rejoin {
    uint64_t heard_ns, cut_ns, round_ends_ns, next_ns; /* cut: 0 = it is not */
    uint32_t tries, under_way, refused;
    uint8_t trying;
    uint8_t met, met_now; /* by this round or the one before; by this one */
};

void rnl_rejoin_heard(struct rnl_rejoin *, uint64_t now_ns); /* something came on the connection that is used */
void rnl_rejoin_cut(struct rnl_rejoin *, uint64_t now_ns);
void rnl_rejoin_back(struct rnl_rejoin *, uint64_t now_ns); /* there is a new one */

void rnl_rejoin_tries(struct rnl_rejoin *, uint32_t n);
void rnl_rejoin_met(struct rnl_rejoin *); /* one of them is connected */
void rnl_rejoin_failed(struct rnl_rejoin *, int refused);

enum rnl_rejoin_step rnl_rejoin_look(struct rnl_rejoin *, uint64_t now_ns);
uint64_t rnl_rejoin_deadline_ns(const struct rnl_rejoin *); /* look then, at the latest */

#endif
