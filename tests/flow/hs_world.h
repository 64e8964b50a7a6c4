/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hs_world.h - some processes that shake hands over a network of a test: virtual time, each datagram with an ordinal by
 * which it is dropped, repeated or delayed, everything that was ever said kept for replaying it. What must never happen
 * is checked at every step; hs_world_settled tells whether everybody has what he wants in the end. */
#ifndef RNL_TESTS_RELIABLE_HS_WORLD_H
#define RNL_TESTS_RELIABLE_HS_WORLD_H

#include "net/flow/handshake.h"

#include <stdint.h>

enum { HS_NODES = 3, HS_STRANGER = HS_NODES, HS_FLYING = 256, HS_SAID = 4096, HS_BYTES = 160 };

enum hs_fault_kind { HS_NONE = 0, HS_DROP, HS_TWICE, HS_LATE, HS_VERY_LATE, HS_FAULTS };
struct hs_fault {
    uint32_t ordinal; /* of the datagram that was sent as the n-th, from 1 on */
    enum hs_fault_kind kind;
};
struct hs_datagram {
    unsigned from, to; /* nodes */
    uint64_t due_ns;
    uint32_t bytes;
    unsigned char at[HS_BYTES];
};
/* What one node has with another. */
struct hs_link {
    struct rnl_hs_peer peer;
    struct rnl_hs_made made;
    struct rnl_keys keys;
    uint64_t number, say_ns; /* next packet to send, and when */
    unsigned said, heard;    /* packets of this connection */
    unsigned gone_up;        /* connections that were up and ended, though nobody restarted */
    unsigned failed;
    int has_peer, have, up, wants, status;
    char sentence[256];
};
struct hs_node {
    struct rnl_handshake hs;
    struct rnl_job_keys job;
    uint64_t incarnation;
    struct hs_link link[HS_NODES];
    int dead;
};
struct hs_world {
    struct hs_node node[HS_NODES];
    struct hs_datagram flying[HS_FLYING];
    unsigned flying_count, nodes;
    uint64_t now_ns;
    uint32_t sent;      /* datagrams so far, which is also the last ordinal */
    uint32_t delivered; /* datagrams so far */
    const struct hs_fault *fault;
    unsigned faults;
    int told; /* the job tells everybody about each restart at once */
    uint64_t seed;
    struct hs_datagram said[HS_SAID]; /* everything, for replays */
    unsigned said_count;
    unsigned char (*keys)[RNL_KEY_BYTES]; /* of all connections, by sender: none twice */
    unsigned keys_count, keys_room;
};

void hs_world_init(struct hs_world *w, unsigned nodes, uint64_t seed);
void hs_world_fini(struct hs_world *w);
/* Before anything was said. */
void hs_world_config(struct hs_world *w, unsigned node, const struct rnl_hs_config *config);
struct rnl_hs_config hs_world_usual(const struct hs_world *w, unsigned node);

void hs_world_want(struct hs_world *w, unsigned from, unsigned to);
/* A new process takes the place of that node's; it wants what the old one wanted, or nothing. */
void hs_world_restart(struct hs_world *w, unsigned node, int wants);
/* Anybody's datagram, now, to that node, as if from `from`. */
void hs_world_inject(struct hs_world *w, unsigned from, unsigned to, const void *at, uint32_t bytes);
/* One delivery or one deadline: 1, or 0 if nothing is left before until_ns. */
int hs_world_step(struct hs_world *w, uint64_t until_ns);
/* Until nothing moves; then everybody says something on each connection that is up, until nothing moves. */
void hs_world_run(struct hs_world *w);
/* Whoever wants a connection has it, both ends have the same, and packets went both ways. */
int hs_world_settled(const struct hs_world *w);

#endif
