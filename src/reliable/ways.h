/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ways.h - which of a peer's addresses packets go to, as a pure state machine: time and chance are arguments.
 *
 * A peer may have several addresses; the job says which (nobody else does). Packets go to one, the aim, as long as what
 * is sent there is acknowledged. When it is not, for `patience_ns`, all are challenged, the aim too: each with random
 * values of its own, again and again. Who says such a value back, from the address that it was sent to, in a packet of
 * the connection, has proved that this way leads to the peer and back. If it is the aim, the peer is only slow: a
 * program that computes answers nothing, and when it calls again it answers before it acknowledges. The first other
 * that answers becomes the aim if the aim has neither answered nor acknowledged in twice the time that this one takes.
 *
 *   aim works --- nothing acknowledged, several timeouts, patience_ns ---> all are challenged
 *      ^  ^                                                                    |       |
 *      |  +--- something acknowledged, or the aim answers: all others are void +       |
 *      +--------------- another answers, and the aim does not: it is the aim ----------+
 *
 * Each side decides for what it sends; the two may go different ways, and one direction of a way may be dead. A side
 * that has nothing of its own under way finds out by asking, when the peer's data come from another address than its
 * aim: that is what they do when the peer has moved. An aim that works is never left: a way that is there again is used
 * when the present one is dead. So the peer's data may come from elsewhere for good. They are no hint any more once
 * something that was sent after the first of them is acknowledged, until they come from yet another address, or the
 * peer says that it is in trouble: it challenges a way that is not the aim. Without the last, who only listens would
 * never learn that its aim has died since, for the peer finds its own way alive. A peer that knows one address of ours
 * challenges none: so it is asked again every `settled_ns` while its data come from elsewhere. */
#ifndef RNL_RELIABLE_WAYS_H
#define RNL_RELIABLE_WAYS_H

#include <stdint.h>

enum {
    RNL_WAYS_MAX = 4,
    RNL_WAYS_VALUES = 4,  /* challenges of one way that may still be answered */
    RNL_WAYS_BYTES = 1200 /* of a challenge and its answer: what proves a way proves it for data */
};

struct rnl_ways {
    struct rnl_way {
        uint64_t value[RNL_WAYS_VALUES]; /* 0 = none */
        uint64_t asked_ns[RNL_WAYS_VALUES];
        uint64_t number[RNL_WAYS_VALUES]; /* of the packet */
        uint8_t next;                     /* the place of the next one, which is that of the oldest */
    } way[RNL_WAYS_MAX];
    uint64_t patience_ns;
    uint64_t next_ns, gap_ns; /* of challenges */
    uint64_t hinted_ns;       /* the peer's data came from elsewhere, and we asked; 0 = not lately */
    uint64_t hint_number;     /* that asks, or a later packet of ours; 0 = none yet */
    uint64_t question_ns;     /* it went then; once it is settled, that holds for settled_ns */
    uint64_t settled_ns;
    uint64_t rtt_ns;    /* of its quickest answer ... */
    uint64_t proved_ns; /* ... the first of which came then */
    uint64_t works_ns;  /* the aim has answered; 0 = it was never asked */
    uint8_t count, aim;
    uint8_t asking; /* challenges are under way */
    uint8_t proved; /* 1 + the way that has answered; 0 = none */
    uint8_t from;   /* 1 + the way that the peer's data come from; 0 = the aim */
};

void rnl_ways_init(struct rnl_ways *ways, unsigned count, unsigned aim, uint64_t patience_ns, uint64_t settled_ns);
/* What is to be done, `stuck_ns` being how long nothing has been acknowledged (0 = it is), and everything being taken
 * in that had come by `looked_ns`: bits of the ways to be challenged now. *move: 1 = ways->aim has changed, and
 * ways->rtt_ns says what its answer took. */
unsigned rnl_ways_step(struct rnl_ways *ways, uint64_t stuck_ns, uint64_t looked_ns, uint64_t now_ns, int *move);
/* Step by then, however little happens; UINT64_MAX = there is no hurry. */
uint64_t rnl_ways_deadline(const struct rnl_ways *ways);
/* `way` is challenged with `value`, which nobody can guess, in packet `number`. */
void rnl_ways_asked(struct rnl_ways *ways, unsigned way, uint64_t value, uint64_t number, uint64_t now_ns);
/* That value was said back, from the address of `way`. 1 = it proves it; 0 = nobody asked, or not there, or not now. */
int rnl_ways_answered(struct rnl_ways *ways, unsigned way, uint64_t value, uint64_t now_ns);
/* Packet `number` is such a challenge, to `way`, that may still be answered. */
int rnl_ways_under_way(const struct rnl_ways *ways, unsigned way, uint64_t number);
/* Packets go to `way` from now on: what was thought of the one before is of no interest. */
void rnl_ways_aim(struct rnl_ways *ways, unsigned way);
/* Data of the peer came from `way`. `next` is the number of our next packet, `acked` the largest that the peer has. 1 =
 * it is time to ask whether ours still arrive. */
int rnl_ways_hint(struct rnl_ways *ways, unsigned way, uint64_t next, uint64_t acked, uint64_t now_ns);
/* The peer's challenge came from `way`. */
void rnl_ways_doubt(struct rnl_ways *ways, unsigned way);

#endif
