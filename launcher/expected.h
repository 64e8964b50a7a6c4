/* SPDX-License-Identifier: BSD-3-Clause
 *
 * expected.h - the ranks of a host that are expected instead of spawned (job/rendezvous.h): they come to an abstract
 * unix socket of its node agent and wait there until the job begins. */
#ifndef RNL_LAUNCHER_EXPECTED_H
#define RNL_LAUNCHER_EXPECTED_H

#include <stdbool.h>
#include <stdint.h>

struct rnl_node_agent;
struct rnl_slot;
struct rnl_expected;

/* `runnel agent` that a joiner has started: listens, and makes the standard streams of this process the control stream
 * to the launcher. NULL: another agent serves this host; or the launcher cannot be reached, and joiners were told. */
struct rnl_expected *rnl_expected_open(const char *where);
/* Begins to take in joiners and to report them. 0 or a negative errno of libuv. */
int rnl_expected_serve(struct rnl_node_agent *);
/* The job is known: gives each joiner its rank. */
void rnl_expected_deal(struct rnl_node_agent *);
/* Whether that rank's output is to go by the launcher. */
bool rnl_expected_routes(const struct rnl_node_agent *, uint32_t rank);
/* Hands its slot over to that rank, with the descriptors in `how`. 0 or -errno. */
int rnl_expected_take(struct rnl_node_agent *, uint32_t rank);
/* Whether the process in a slot has ended, as its pidfd or its connection says; how is put into the slot. */
bool rnl_expected_ended(struct rnl_node_agent *, struct rnl_slot *);
/* Tells those who still wait why it ends, if that is known; when the loop has closed its handles. Fine on NULL. */
void rnl_expected_free(struct rnl_expected *, const char *why);

#endif
