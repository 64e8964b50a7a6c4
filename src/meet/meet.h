/* SPDX-License-Identifier: BSD-3-Clause
 *
 * meet.h - the env of an endpoint alone (RNL_ALONE): its peers are added by introductions, and each leaves by itself.
 *
 * The process carries a membership of its own (membership.h), in which it is rank 0 and each peer has a slot: the
 * membership's rank. What is behind a slot is told by the socket of the pair, one end of a pair of sockets whose other
 * end the peer has: greetings, wake-ups, and by its end a death. Nothing else is shared with a peer but the segment
 * that one of the two made: no page, no doorbell, no key. So a peer can harm no other one.
 *
 * How a pair of sockets comes to be is all that differs between the ways to be introduced: the daemon hands one end to
 * whoever serves (daemon.h), a program's own socket carries it, or the peer connects to the socket that an address
 * names. The daemon is in no pair: it may end, and be started again, without anybody being parted. */
#ifndef RNL_MEET_MEET_H
#define RNL_MEET_MEET_H

#include "base/env.h"
#include "runnel/runnel.h"

/* Makes the env. opt may be NULL. 0, RNL_ERR_ARG, RNL_ERR_NO_MEMORY or RNL_ERR_SYSTEM. */
int rnl_meet_env(const struct rnl_options *opt, struct rnl_env **out);

#endif
