/* SPDX-License-Identifier: BSD-3-Clause
 *
 * paths.h - which path to a peer is active, that is, to which of its addresses packets go: path validation and
 * migration (RFC 9000, 8.2 and 9) as a pure state machine. Time and random numbers are arguments.
 *
 * A peer may have several addresses; the job says which, and nobody else does. Packets go on one path, the active one,
 * as long as what is sent there is acknowledged. When nothing has been for `stall_limit_ns`, all paths are challenged,
 * the active one too, each with random values of its own, again and again. A response with such a value, in a packet of
 * the connection and from the address that was challenged, proves that this path leads to the peer and back. If it is
 * the active one, the peer is only slow: a program that computes responds to nothing, and when it calls again it
 * responds before it acknowledges. The first other path that responds becomes the active one if the active one has
 * neither responded nor acknowledged in twice the time that this one takes.
 *
 * A card of ours may say that it has no link, or be gone (rnl_paths_down). If the active path leaves by it, all are
 * challenged at once, and the first other that responds becomes active without a chance for this one. That is a hint:
 * if a path responds all the same, it counts no more for that path until the card says it anew. Where paths are ranked,
 * a better one that responds within a moment of the first is taken in its place.
 *
 *   active path works --- nothing acknowledged, several timeouts, stall_limit_ns ---> all paths are challenged
 *      ^  ^                                                                            |       |
 *      |  +--- something acknowledged, or the active path responds: all others void ---+       |
 *      +--------------- another path responds, the active one does not: it is active ----------+
 *
 * Each side decides for what it sends. The two may use different paths, and one direction of a path may be dead. A side
 * that has nothing in flight finds this out by a ping when the peer's data come from another address than its active
 * path, as they do when the peer has migrated. All paths are challenged when the ping has not been acknowledged for a
 * moment, however long timeouts are. An active path that works is never left; one that is there again is used
 * when the present one is dead. So the peer's data may come from another address for good. They are no hint any more
 * once something that was sent after the first of them is acknowledged, until they come from yet another address, or
 * the peer shows that it is in trouble, by challenging a path that is not the active one. Without this last rule a side
 * that only receives would never learn that its active path has died since, because the peer finds its own path alive.
 * A side whose first address of a peer is the best, a card that it drives, may say so when the connection begins on
 * another (rnl_paths_want_first): that one is challenged a few times and becomes the active path when it responds. It
 * may have been silent only since its owner had not begun yet.
 * A peer that knows only one address of ours challenges none; so it is pinged again every `confirmed_ns` while its data
 * come from another address. */
#ifndef RNL_NET_FLOW_PATHS_H
#define RNL_NET_FLOW_PATHS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    RNL_FLOW_PATHS_MAX = 4,
    RNL_PATHS_CHALLENGES = 4, /* challenges of one path whose responses are still accepted */
    RNL_PATHS_CHALLENGE_BYTES =
        1200 /* of a challenge and its response, as long as data: what proves a path proves it for data */
};

struct rnl_paths {
    struct rnl_path_challenges {
        uint64_t value[RNL_PATHS_CHALLENGES]; /* 0 = none */
        uint64_t sent_ns[RNL_PATHS_CHALLENGES];
        uint64_t number[RNL_PATHS_CHALLENGES]; /* of the packet that carried it */
        uint8_t next;                          /* the place of the oldest, which the next one takes */
    } path[RNL_FLOW_PATHS_MAX];
    uint64_t stall_limit_ns;
    uint64_t next_ns, gap_ns; /* the time of the next challenges, and the interval to those after them */
    uint64_t hinted_ns;       /* when the peer's data came from another address and a ping was due; 0 = not lately */
    uint64_t hint_number;     /* of our packet that pings, or of a later one; 0 = none yet */
    uint64_t hint_sent_ns;    /* when it was sent; once it is acknowledged, none follows for confirmed_ns */
    uint64_t confirmed_ns;
    uint64_t asked_number; /* of the first packet after a hint, while nothing as late is acknowledged; 0 = none */
    uint64_t asked_ns;     /* when that hint came */
    uint64_t rtt_ns;       /* of the quickest response of the path that was proved */
    uint64_t proved_ns;    /* when its first response came */
    uint64_t limit_ns;     /* when the active path will have been silent for too long; UINT64_MAX = it is not silent */
    uint64_t works_ns;     /* when the active path last responded; 0 = it was never challenged */
    uint8_t count, active; /* the number of paths, and which one is active */
    uint8_t challenging;   /* challenges are in flight */
    uint8_t proved;        /* 1 + the path that has responded; 0 = none */
    uint8_t wanted;        /* so often the first path is still challenged, since it is the best; 0 = it is not */
    uint8_t down;          /* bits of the paths whose card, on our side, has no link or is gone */
    uint8_t from;          /* 1 + the path that the peer's data come from; 0 = the active one */
    bool ranked;           /* a lower path is better than a higher one: a card than the kernel's */
};

void rnl_paths_init(struct rnl_paths *paths, unsigned count, unsigned active, uint64_t stall_limit_ns,
                    uint64_t confirmed_ns);
/* Returns the bits of the paths that have to be challenged now. `stuck_ns` is how long nothing has been acknowledged, 0
 * if something has, and everything that had arrived by `looked_ns` has been taken in. *move = 1 says that paths->active
 * has changed, and paths->rtt_ns is the time that its response took. */
unsigned rnl_paths_step(struct rnl_paths *paths, uint64_t stuck_ns, uint64_t looked_ns, uint64_t now_ns, int *move);
/* When rnl_paths_step has to be called, even if nothing happens; UINT64_MAX = there is no such time. */
uint64_t rnl_paths_deadline(const struct rnl_paths *paths);
/* The path `path` was challenged with `value`, which nobody can guess, in packet `number`. */
void rnl_paths_challenged(struct rnl_paths *paths, unsigned path, uint64_t value, uint64_t number, uint64_t now_ns);
/* A response with this value came from the address of `path`. true = it proves the path; false = there was no such
 * challenge, or not of this path, or it is void. */
bool rnl_paths_response(struct rnl_paths *paths, unsigned path, uint64_t value, uint64_t now_ns);
/* 1 = packet `number` is a challenge of `path` whose response is still accepted. */
int rnl_paths_pending(const struct rnl_paths *paths, unsigned path, uint64_t number);
/* `path` is the active path from now on, and what was known of the one before is forgotten. */
void rnl_paths_set_active(struct rnl_paths *paths, unsigned path);
/* The first path is not the active one, and is to be as soon as it responds, within some seconds. */
void rnl_paths_want_first(struct rnl_paths *paths);
/* Data of the peer came from `path`. `next` is the number of our next packet, `acked` the largest acknowledged. true =
 * it is time for a ping, which shows whether our packets still arrive. */
bool rnl_paths_hint(struct rnl_paths *paths, unsigned path, uint64_t next, uint64_t acked, uint64_t now_ns);
/* The largest number that is acknowledged. Called before each rnl_paths_step. */
void rnl_paths_acked(struct rnl_paths *paths, uint64_t acked);
/* From now on the paths with these bits leave by cards that have no link or are gone. */
void rnl_paths_down(struct rnl_paths *paths, unsigned down);
/* The peer's challenge came from `path`. */
void rnl_paths_doubt(struct rnl_paths *paths, unsigned path);

#endif
