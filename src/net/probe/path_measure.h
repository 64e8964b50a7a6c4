/* SPDX-License-Identifier: BSD-3-Clause
 *
 * path_measure.h - measures one direction of a path between two hosts, for `runnel doctor`: the longest datagram that
 * passes, then loss, reordering, repetition and round trips of a train of numbered datagrams. It is pure: the probe
 * (address_probe.h) carries what it sends and feeds it what arrives. The receiver of a direction only counts; each of
 * its echoes has all its counts, so the last echo is the result, and lost echoes do no harm.
 *
 *   sizes    up to 16 sizes between what passes and what the own interface takes, several times; then 16 between the
 *            longest that was echoed and the next one, until they are neighbours
 *   train    `train` datagrams, long and short ones by turns, at most `window` of which are without an echo
 *   tally    asks for the counts once everything that is late has had its time */
#ifndef RNL_PROBE_PATH_MEASURE_H
#define RNL_PROBE_PATH_MEASURE_H

#include <assert.h>
#include <stdint.h>

enum {
    RNL_PATH_BYTES_MOST = 9188, /* the longest size that is tried: what fits a jumbo frame */
    RNL_PATH_TRAIN_MOST = 400,
    RNL_PATH_SIZES = 16
};

/* Numbers of datagrams: of the train from 0 on; of sizes the size itself behind this; of the question for the
 * counts. */
enum { RNL_PATH_NUMBER_SIZE = 1 << 16, RNL_PATH_NUMBER_TALLY = 1 << 17 };

struct rnl_path_counts { /* what the receiver of a direction has seen of the train; travels in each echo */
    uint32_t came, reordered, repeated;
};
static_assert(sizeof(struct rnl_path_counts) == 12, "the counts of an echo");

struct rnl_path_receiver {
    struct rnl_path_counts counts;
    uint32_t next; /* the highest number that came, and 1 */
    uint8_t seen[RNL_PATH_TRAIN_MOST / 8 + 1];
};
/* A datagram of that number arrived. */
void rnl_path_receive(struct rnl_path_receiver *, uint32_t number);

struct rnl_path_result {
    uint32_t sent;                       /* datagrams of the train */
    struct rnl_path_counts counts;       /* of them, at the receiver */
    uint32_t passes, takes;              /* bytes of the longest datagram that came through; that the own host sends */
    uint32_t echoes;                     /* how many round trips were measured */
    uint32_t done;                       /* 1 = the counts are those at the end of the train */
    uint64_t least_ns, half_ns, most_ns; /* round trips: the shortest, the median, the longest */
};

/* What a send came to: too long for the own interface, or it went, or was lost on its way. */
enum rnl_path_sent { RNL_PATH_WENT, RNL_PATH_TOO_LONG };

struct rnl_path_sender {
    enum { RNL_PATH_LIMIT, RNL_PATH_FINDS, RNL_PATH_TRAINS, RNL_PATH_SETTLES, RNL_PATH_TALLIES, RNL_PATH_OVER } phase;
    uint32_t train, window, next, echoed, sizes, tries;
    uint32_t size[RNL_PATH_SIZES];
    uint64_t at_ns, begun_ns; /* of the next step; of this search for sizes */
    uint64_t sent_ns[RNL_PATH_TRAIN_MOST];
    uint64_t trip_ns[RNL_PATH_TRAIN_MOST];
    struct rnl_path_result result;
};
/* Begins. `hosts` take part: with many, trains are short, so that nothing is lost for want of room at a receiver.
 * `passes`: bytes that are known to pass. */
void rnl_path_begin(struct rnl_path_sender *, uint32_t hosts, uint32_t passes, uint64_t now_ns);
/* Sends what is due. `send` sends a datagram of that number and size; it may be called many times. */
void rnl_path_step(struct rnl_path_sender *, uint64_t now_ns,
                   enum rnl_path_sent (*send)(void *arg, uint32_t number, uint32_t bytes), void *arg);
void rnl_path_echo(struct rnl_path_sender *, uint32_t number, const struct rnl_path_counts *, uint64_t now_ns);
/* When the next step is due; UINT64_MAX = the measurement is over. */
uint64_t rnl_path_deadline_ns(const struct rnl_path_sender *);
/* The result so far; its counts are whole only if `done`. */
void rnl_path_result(const struct rnl_path_sender *, struct rnl_path_result *out);

#endif
