/* SPDX-License-Identifier: BSD-3-Clause
 *
 * remote.h - links between processes of two hosts: over an endpoint alone (runnel/meet.h), which the process opens for
 * the first of them. The daemons of the two hosts introduce the two processes, and have to have one key; each link is a
 * peer of its own. librunnel is loaded when the first link is wanted, so that others do not pay for it.
 *
 * Whoever waits for a link drives the endpoint, and a thread does so twice a second in case that nobody waits: peers
 * are answered, and what was lost is sent again. */
#ifndef RNL_RPC_REMOTE_H
#define RNL_RPC_REMOTE_H

#include "greeting.h"
#include "link.h"

#include <stdatomic.h>
#include <sys/types.h>

extern _Atomic unsigned rnl_rpc_remote_links; /* how many there are; 0 = nothing of this file needs a look */

/* Returns why this process cannot have links to other hosts, or NULL if it may. Nothing is loaded or started. */
const char *rnl_rpc_remote_lacks(void);

/* ---- a client ---- */

/* Begins to reach a service, "USER/NAME@HOST", and does not wait. Returns a link that carries nothing yet, or NULL with
 * *why set. Its descriptor is the caller's. */
struct rnl_rpc_link *rnl_rpc_remote_reach(const char *service, const char token[RNL_RPC_TOKEN_BYTES],
                                          const char proof[RNL_RPC_TOKEN_BYTES], const char **why);
/* 1 = the server has welcomed this client: the link carries calls; 0 = not yet; -1 = it never will, *why says why. */
int rnl_rpc_remote_is_up(struct rnl_rpc_link *, const char **why);
/* Whoever waits for the link also looks whether the connection `fd`, by which the server was asked, ends: then the
 * server has to show that it lives. */
void rnl_rpc_remote_watch(struct rnl_rpc_link *, int fd);
/* Makes sure, within a second or so, that what was written has arrived: for what nobody answers. */
void rnl_rpc_remote_flush(struct rnl_rpc_link *);

/* ---- a server ---- */

/* Offers this process to those who have been given a token. *name is valid for good, *ready a descriptor that becomes
 * readable when somebody may have come. Returns false with *why set if it cannot. */
bool rnl_rpc_remote_serve(const char **name, int *ready, const char **why);
/* Takes in what came, and gives the next peer that has shown a token; NULL = none. The link belongs to the caller, who
 * welcomes it or closes it. *sock is a descriptor that becomes readable as link->fd would, and is the caller's. */
struct rnl_rpc_link *rnl_rpc_remote_next(char token[RNL_RPC_TOKEN_BYTES], uid_t *uid, int *sock);
bool rnl_rpc_remote_welcome(struct rnl_rpc_link *, const char proof[RNL_RPC_TOKEN_BYTES]);

/* ---- both ---- */

/* Takes in what has come for any link. */
void rnl_rpc_remote_look(void);
/* Whether this process is a child of the one that has the link, which cannot use it. */
bool rnl_rpc_remote_is_forked(struct rnl_rpc_link *);

#endif
