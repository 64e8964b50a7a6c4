/* SPDX-License-Identifier: BSD-3-Clause
 *
 * brief.h - what the agent of a host has to know, and what it tells of its host: bodies of frames (job/trunk.h). What
 * comes in was written by an agent or a launcher of this release, and is checked like anybody's. */
#ifndef RNL_JOB_BRIEF_H
#define RNL_JOB_BRIEF_H

#include "job/proto.h"
#include "job/trunk.h"
#include "transport/socket.h"

enum {
    RNL_HOSTS_MAX = 512,
    RNL_HOST_WAYS_MAX = 32 /* addresses of a host that are tried */
};

struct rnl_host { /* its ranks are [first, first + count) */
    char name[RNL_JOB_HOST_BYTES];
    uint32_t first, count;
};

enum rnl_brief_flags {
    RNL_BRIEF_KEEP_GOING = 1,
    RNL_BRIEF_TAG = 2,
    RNL_BRIEF_BIND = 4,
    RNL_BRIEF_ONE_MACHINE = 8, /* the hosts share its cores: --bind core deals them to all ranks */
    RNL_BRIEF_DATAGRAMS = 16,  /* between ranks of one host, too */
    RNL_BRIEF_OUT_TERMINAL = 32,
    RNL_BRIEF_ERR_TERMINAL = 64,
    RNL_BRIEF_FLAGS = 127
};

struct rnl_brief { /* JOB */
    uint32_t size, host, hosts, flags;
    uint32_t reach, fan; /* how the agents behind this one are started: job/launch.h */
    unsigned char key[RNL_JOB_KEY_BYTES];
    struct rnl_host *at; /* all of them */
    char *folder, *ssh, *agent, **argv, **environment;
};
void rnl_brief_pack(struct rnl_pack *, const struct rnl_brief *);
/* 0, RNL_ERR_JOB, RNL_ERR_NO_MEMORY. */
int rnl_brief_unpack(const void *body, size_t bytes, struct rnl_brief *out);
void rnl_brief_free(struct rnl_brief *); /* what unpack made */

struct rnl_here { /* HERE: where a host is */
    uint32_t host, ways, ranks;
    uint16_t probe_port;
    struct rnl_here_way {
        uint8_t ip[16];
        char interface[16];
    } way[RNL_HOST_WAYS_MAX];
    uint16_t *port; /* of each of its ranks */
};
void rnl_here_pack(struct rnl_pack *, const struct rnl_here *);
/* `count`: the ranks of that host. 0, RNL_ERR_JOB, RNL_ERR_NO_MEMORY. */
int rnl_here_unpack(struct rnl_unpack *, uint32_t hosts, const struct rnl_host *at, struct rnl_here *out);
void rnl_here_free(struct rnl_here *);

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
