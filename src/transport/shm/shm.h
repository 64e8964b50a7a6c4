/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shm.h - the rings of pair.h as a transport (transport/contract.h): reliable, three lanes, a descriptor.
 *
 * The short path of messages does not come this way, it is inlined from stream/ to ring/; this table serves what speaks
 * packets: the conformance suite, wrappers, tools. Peers are ranks of the job of `env`. A packet of up to 56 bytes is
 * an item of a line (items of one length share lines), a longer one an extent of the lane's bulk area, announced by a
 * line; both are composed and viewed in place.
 *
 * Beyond the contract:
 *   - Nothing here reads env's events: who owns env connects on RNL_EVENT_CONNECT and disconnects on RNL_EVENT_DEATH.
 * Connecting does not wait for the peer; until the peer has connected too, a lane takes RNL_GRANT_MIN units of 64
 * bytes.
 *   - A second reserve before the commit of the first is RNL_BUSY.
 *   - Views of a peer end with disconnect and close; releasing them later does nothing.
 *   - The pair of two ranks exists once: after disconnect a second connect is what env says (RNL_ERR_JOB), except to
 * oneself. */
#ifndef RNL_TRANSPORT_SHM_SHM_H
#define RNL_TRANSPORT_SHM_SHM_H

#include "transport/contract.h"

enum { RNL_SHM_MTU = 64 << 10 };

/* env stays the caller's and must outlive the transport. 0, RNL_ERR_NO_MEMORY. */
int rnl_shm_transport_new(struct rnl_env *env, struct rnl_transport **out);

#endif
