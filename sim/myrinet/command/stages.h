/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stages.h - where the time of what an experiment measures goes, summed up from the spans of its trace.
 *
 * Every picosecond of a message or a cost is given to one stage, so stages add up to the measure exactly. Where several
 * things work at once, it is the one that is furthest on the message's way: of the receiver host before DMA before
 * card, then the wire, then of the sender DMA before card before host. The sender's card begins when its host has
 * stored its last word, or a packet has left. Nothing of the receiver's is on that way before the message's first
 * packet has come, nothing of its host's before the first transfer into its memory, or before its card has dealt with
 * what it reads from there, and of the sender's host nothing behind its call. Where nothing works, it is a wait for
 * whatever begins next. Of a cost, what the host itself does counts first.
 *
 * The stages of a rate are how long each part works within the time that the rate is taken from. */
#ifndef MYRI_STAGES_H
#define MYRI_STAGES_H

#include "sim/myrinet/experiments/run.h"

enum myri_stage_kind {
    MYRI_STAGE_HOST,
    MYRI_STAGE_BUS,
    MYRI_STAGE_CARD,
    MYRI_STAGE_DMA,
    MYRI_STAGE_WIRE,
    MYRI_STAGE_WAIT,
    MYRI_STAGE_KINDS
};
enum { MYRI_SENDER, MYRI_RECEIVER, MYRI_STAGES = 160, MYRI_STAGE_NAME = 48 };

struct myri_stage {
    enum myri_stage_kind kind;
    int role; /* MYRI_SENDER, MYRI_RECEIVER */
    char what[MYRI_STAGE_NAME];
    uint64_t ps;
    double middle; /* of its time within a message, in ps: their order */
};
struct myri_stages {
    struct myri_stage stage[MYRI_STAGES]; /* in the order of the way */
    int n;
    uint64_t ps, parts; /* of all messages; how many */
    int of_rate;        /* stages overlap: each is how long it works */
    double value;       /* of the experiment */
};

const char *myri_stage_kind_name(enum myri_stage_kind);
/* Runs the experiment. 0, or an error. Without parts where nothing says what its measure is made of. */
int myri_stages_of(const struct myri_experiment *, struct myri_stages *out);
/* us of each message or round trip; what of a measure is one: a round trip has two messages. */
double myri_stages_per(const struct myri_experiment *, const struct myri_stages *);
/* The sum of all stages of one kind and role, in picoseconds. */
uint64_t myri_stages_sum(const struct myri_stages *, enum myri_stage_kind, int role);

#endif
