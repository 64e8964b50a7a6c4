/* SPDX-License-Identifier: BSD-3-Clause
 *
 * place.h - how a worker that somebody else started, without a pipe to the launcher, takes its place in a job. It waits
 * until all have come (door.h), and the launcher is started on their hosts. The ranks that the launcher starts are
 * *stand-ins* (`amudprun --stand-in`). Each listens on an abstract socket, NAME.rank; a worker tries them, proves that
 * it has the key, which is in a file of mode 0600, and is given what the launcher had given the stand-in: the door, the
 * two outputs, and the master's environment. From then on the stand-in lives as long as the worker, and ends as it
 * does: the launcher need not know.
 *
 *   stand-in to worker    'n' | nonce 32
 *   worker to stand-in    'p' | nonce 32 | proof 32           of "worker", both nonces
 *   stand-in to worker    'g' | proof 32 | rank 4             of "stand-in", both nonces; door, output, errors go with
 * it 'v' | bytes of the environment      as often as needed 'e' worker to stand-in    'x' | code 4 before it ends
 *
 * A stranger of another user is hung up on at once, one of the same user after 2 seconds or a wrong proof. */
#ifndef RNL_AMUDP_PLACE_H
#define RNL_AMUDP_PLACE_H

#include "amudp/amudp_in.h"
#include "job/channel.h"

#include <sys/types.h>
#include <sys/un.h>

enum {
    RNL_PLACE_KEY = 32,
    RNL_PLACE_PROOF = RNL_CHANNEL_PROOF,
    RNL_PLACE_PACKET = 32768,
    RNL_PLACE_PATIENCE_MS = 2000,
    RNL_PLACE_SEARCH_MS = 60000 /* the longest that a worker looks for a free one */
};

struct rnl_amudp_place {
    char file[256]; /* has the key */
    char name[48];  /* of the sockets, without the rank */
};

/* A new key in a new file, a new name. 0, or -1 and said. */
int rnl_amudp_place_new(struct rnl_amudp_place *out);
/* The key, if the file is ours alone. 0 or -1, and said. */
int rnl_amudp_place_key(const char *file, unsigned char key[RNL_PLACE_KEY]);
/* The address of a rank's stand-in; returns its length. */
socklen_t rnl_amudp_place_address(const char *name, int rank, struct sockaddr_un *out);

/* ---- master.c, spawn.c ---- */
int rnl_amudp_find_tool(const char *name, char *path, size_t room); /* 0, or -1 and said */
int rnl_amudp_is_spawner(pid_t pid);

/* ---- tools/amudprun ---- */
/* Waits for a worker to take our place, and until it ends. Returns its exit status. */
int rnl_amudp_stand_in(const char *file, const char *name);
/* In the place of ssh. Returns the command's exit status, or 255. */
int rnl_amudp_reach(int argc, char **argv);

#endif
