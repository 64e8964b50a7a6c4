/* SPDX-License-Identifier: BSD-3-Clause
 *
 * meet.h - the env of an endpoint alone (RNL_ALONE): its peers are added by introductions, and each leaves by itself.
 *
 * The process carries a membership of its own (membership.h), in which it is rank 0 and each peer has a slot: the
 * membership's rank. What is behind a slot is known by the socket of the pair, one end of a pair of sockets whose other
 * end the peer has: greetings, wake-ups, and by its end a death. Nothing else is shared with a peer but the segment
 * that one of the two made: no page, no doorbell, no key. So a peer can harm no other one.
 *
 * How a pair of sockets comes to be is all that differs between the ways to be introduced: the daemon hands one end to
 * whoever serves (daemon.h), a program's own socket carries it, or the peer connects to the socket that an address
 * names. The daemon is in no pair: it may end, and be started again, without ending any connection. */
#ifndef RNL_MEET_MEET_H
#define RNL_MEET_MEET_H

#include "base/env.h"
#include "runnel/runnel.h"

#include <stdbool.h>

/* What the world is to a process of the virtual cluster: its clock, its sleep and its host. Its sockets, and its memory
 * files, are the kernel's as everywhere, so all of this folder is the same there. */
struct rnl_meet_world {
    /* of the env: a copy of rnl_meet_real_ops whose time, random numbers, yield and close are the world's */
    const struct rnl_env_ops *ops;
    struct rnl_env_facts facts;
    char host[64]; /* its name */
    unsigned char host_id[8], ip[16];
    char daemon[40]; /* the name at which the daemons of this host listen */
    bool has_hosts;  /* they introduce to other hosts, too */
    bool is_gone;    /* the process was killed: it takes no leave of anybody */
    /* Sleeps until the descriptor is readable, or until then. */
    void (*sleep)(struct rnl_env *, int fd, uint64_t until_ns);
    int (*start_daemon)(struct rnl_env *); /* 0 or RNL_ERR_UNREACHABLE */
    /* The process of the endpoint whose own address has that name; 0 = there is none on this host. */
    int32_t (*pid)(struct rnl_env *, const unsigned char name[16]);
    int (*resolve)(struct rnl_env *, const char *host, unsigned char ip[16]); /* 0 or RNL_ERR_UNREACHABLE */
    int (*datagrams)(struct rnl_env *, uint16_t *port);                       /* sets env->datagrams. 0 or a status */
};
extern const struct rnl_env_ops rnl_meet_real_ops;
/* Makes an env in a world that the caller keeps until the env is closed, and finds it again. */
int rnl_meet_env_in(const struct rnl_options *opt, struct rnl_meet_world *, struct rnl_env **out);
struct rnl_meet_world *rnl_meet_world_of(struct rnl_env *);
const unsigned char *rnl_meet_name_of(struct rnl_env *); /* of its own address: 16 bytes */
/* The descriptor that is readable when there is something to look at, and when a look is due without. */
int rnl_meet_looks_at(struct rnl_env *, uint64_t *due_ns);

/* Makes the env. opt may be NULL. 0, RNL_ERR_ARG, RNL_ERR_NO_MEMORY or RNL_ERR_SYSTEM. */
int rnl_meet_env(const struct rnl_options *opt, struct rnl_env **out);

#endif
