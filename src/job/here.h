/* SPDX-License-Identifier: BSD-3-Clause
 *
 * here.h - the hosts of a job, where they are, what came of looking for each other, and the words of agents: as they
 * travel. What comes in is checked like anybody's. */
#ifndef RNL_JOB_HERE_H
#define RNL_JOB_HERE_H

#include "job/pack.h"
#include "job/proto.h"

enum {
    RNL_HOSTS_MAX = 512,
    RNL_HOST_WAYS_MAX = 32 /* addresses of a host that are tried */
};

/* What all hosts of a job must have alike, to be compared and shown: "PROTOCOL.PACKETS RELEASE". Two builds of one
 * release may differ in the first two: the versions of what agents and ranks say to those of other hosts. Returns it.
 */
enum { RNL_RELEASE_BYTES = 48 };
const char *rnl_here_release(char out[RNL_RELEASE_BYTES]);

struct rnl_host { /* its ranks are [first, first + count) */
    char name[RNL_JOB_HOST_BYTES];
    uint32_t first, count;
};

struct rnl_here { /* HERE: where a host is */
    uint32_t host, ways, ranks;
    uint16_t probe_port;
    uint64_t kernel; /* of a host with the same one it is only another namespace; 0 = not known */
    struct rnl_here_way {
        uint8_t ip[16];
        char interface[16];
    } way[RNL_HOST_WAYS_MAX];
    uint16_t *port; /* of each of its ranks */
};
/* Of addresses of IPv6, or of IPv4 mapped to that. */
int rnl_here_is_ipv4(const uint8_t ip[16]);
int rnl_here_is_loopback(const uint8_t ip[16]);
uint64_t rnl_here_kernel(void);
/* 1 = the same kernel: mostly no network lies between the two. Containers with a card each have one all the same. */
int rnl_here_together(const struct rnl_here *, const struct rnl_here *);
void rnl_here_pack(struct rnl_pack *, const struct rnl_here *);
/* `count`: the ranks of that host. 0, RNL_ERR_JOB, RNL_ERR_NO_MEMORY. */
int rnl_here_unpack(struct rnl_unpack *, uint32_t hosts, const struct rnl_host *at, struct rnl_here *out);
void rnl_here_free(struct rnl_here *);
/* RNL_ERR_JOB, with the sentence for bytes that say no such thing. */
int rnl_here_garbled(const char *what);

/* WORD */
struct rnl_word;
void rnl_word_pack(struct rnl_pack *, const struct rnl_word *);
void rnl_word_unpack(struct rnl_unpack *, struct rnl_word *out);

/* PROBED: what a host has tried in vain. */
struct rnl_vain {
    uint32_t other;       /* the host that could not be reached */
    uint32_t heard;       /* something was heard of it */
    uint32_t asked;       /* it was for us to ask it; else for it to ask us */
    uint32_t ways;        /* of these: */
    struct rnl_vain_way { /* one of its addresses */
        uint8_t ip[16];
        uint16_t port;
        uint8_t small;     /* short datagrams came back, long ones did not */
        uint8_t crooked;   /* the answer came from another address */
        int32_t sys_errno; /* what the kernel said last, 0 = nothing */
        uint8_t from_us;   /* ... of itself, not for somebody on the way */
    } way[RNL_HOST_WAYS_MAX];
};
void rnl_vain_pack(struct rnl_pack *, const struct rnl_vain *);
/* 0, RNL_ERR_JOB. */
int rnl_vain_unpack(struct rnl_unpack *, uint32_t hosts, struct rnl_vain *out);

#endif
