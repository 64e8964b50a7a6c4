/* SPDX-License-Identifier: BSD-3-Clause
 *
 * brief.h - what the agent of a host has to know, and what it tells of its host: bodies of frames (job/trunk.h). What
 * comes in was written by an agent or a launcher of this release, and is checked like anybody's. */
#ifndef RNL_JOB_BRIEF_H
#define RNL_JOB_BRIEF_H

#include "job/here.h"

enum rnl_brief_flags {
    RNL_BRIEF_KEEP_GOING = 1,
    RNL_BRIEF_TAG = 2,
    RNL_BRIEF_BIND = 4,
    RNL_BRIEF_ONE_MACHINE = 8, /* the hosts share its cores: --bind core deals them to all ranks */
    RNL_BRIEF_DATAGRAMS = 16,  /* between ranks of one host, too */
    RNL_BRIEF_OUT_TERMINAL = 32,
    RNL_BRIEF_ERR_TERMINAL = 64,
    RNL_BRIEF_NO_CALL_BACK = 128,
    RNL_BRIEF_FLAGS = 255
};

/* Where an agent comes back to when the pipes to who started it fail: job/back.h. */
enum { RNL_BACK_WAYS_MAX = 8, RNL_BACK_KEY = 32 };
struct rnl_back_at {
    uint32_t ways; /* 0 = it cannot */
    uint16_t port;
    unsigned char key[RNL_BACK_KEY];
    uint8_t ip[RNL_BACK_WAYS_MAX][16];
};

struct rnl_brief { /* JOB */
    uint32_t size, host, hosts, flags;
    uint32_t reach, fan; /* how the agents behind this one are started: job/launch.h */
    unsigned char key[RNL_JOB_KEY_BYTES];
    struct rnl_back_at back;
    struct rnl_host *at; /* all of them */
    char *folder, *ssh, *agent, **argv, **environment;
};
void rnl_brief_pack(struct rnl_pack *, const struct rnl_brief *);
/* 0, RNL_ERR_JOB, RNL_ERR_NO_MEMORY. */
int rnl_brief_unpack(const void *body, size_t bytes, struct rnl_brief *out);
void rnl_brief_free(struct rnl_brief *); /* what unpack made */

#endif
