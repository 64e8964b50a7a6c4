/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rendezvous.h - how a process that the launcher did not start joins a job (`runnel run --wait-for N --rendezvous
 * FILE`). The launcher listens at a bootstrap socket and writes FILE, mode 0600, whose lines are text:
 *
 *   KEY                          the join key: 64 hexadecimal digits
 *   runnel-rendezvous 3          the version
 *   master ADDRESS PORT          where the launcher listens; a line for each address
 *   agent PATH                   the runnel command, which serves a host as its node agent
 *
 * RUNNEL_RENDEZVOUS names that file, or holds what is in it. All ranks of a host join at its node agent, which listens
 * at an abstract unix socket (SOCK_SEQPACKET) whose name is derived from the join key. Where nobody listens the joiner
 * starts the agent. The agent calls each address in turn; the encrypted stream (secure_stream.h) is its control
 * stream to the launcher from then on. At the unix socket both sides check that the other is of the same user:
 *
 *   joiner   j | flags 1 | rank wanted 4 (-1: any) | proof 32 of the join key
 *   agent    d   with descriptors: bootstrap socket, environment (a memory file), and with ROUTE standard output, error
 *            x | sentence: refused
 *   joiner   t   it has taken its place
 *            x | exit code 4   before it ends. The end of the connection is the end of the agent.
 *
 * Numbers are little-endian. */
#ifndef RNL_JOB_RENDEZVOUS_H
#define RNL_JOB_RENDEZVOUS_H

#include "job/secure_stream.h"

#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

enum {
    RNL_RENDEZVOUS_VERSION = 3,
    RNL_RENDEZVOUS_KEY = 32,
    RNL_RENDEZVOUS_ADDRESSES = 32,
    RNL_RENDEZVOUS_ADDRESS_BYTES = 64,
    RNL_RENDEZVOUS_TEXT = 8192, /* the file is no longer */
    RNL_JOIN_PROOF = 32,
    RNL_JOIN_PACKET = 6 + RNL_JOIN_PROOF,
    RNL_JOIN_SENTENCE = 400, /* a refusal is no longer, with its first byte */
    RNL_JOIN_ROUTE = 1       /* the flag for rnl_join_options.route */
};

struct rnl_rendezvous {
    unsigned char key[RNL_RENDEZVOUS_KEY];
    unsigned addresses;
    struct {
        char text[RNL_RENDEZVOUS_ADDRESS_BYTES], port[8];
    } address[RNL_RENDEZVOUS_ADDRESSES];
    char agent[4096];
};

/* Reads a rendezvous file, by its name, or takes the content itself. 0 or RNL_ERR_JOB. The caller wipes the key. */
int rnl_rendezvous_read(const char *where, struct rnl_rendezvous *out);
/* Opens a stream to the launcher. Tries again until wait_ms are over, or it is known that nobody listens. NULL:
 * rnl_last_error says why. */
struct rnl_secure_stream *rnl_rendezvous_call(const struct rnl_rendezvous *, int wait_ms);
/* Makes the address of the agent's socket, which nobody can foresee who has not the key; returns its length. */
socklen_t rnl_rendezvous_socket(const unsigned char key[RNL_RENDEZVOUS_KEY], struct sockaddr_un *out);
/* Makes the proof of the join key that a joiner shows. */
void rnl_rendezvous_proof(const unsigned char key[RNL_RENDEZVOUS_KEY], unsigned char out[RNL_JOIN_PROOF]);
/* Whether the other end of a unix socket belongs to this user. Sets *pid if pid is not NULL; 0 = not visible here. */
bool rnl_join_is_ours(int fd, pid_t *pid);

/* ---- the rank's side: join.c ---- */

struct rnl_join_options {
    const char *where; /* RUNNEL_RENDEZVOUS */
    int wanted;        /* a rank, or -1 */
    bool route;        /* standard output and error are to be the launcher's */
};
struct rnl_joined {
    int bootstrap;     /* the bootstrap socket, close-on-exec */
    int lifeline;      /* a connection to the agent, which ends with it */
    char *environment; /* of the launcher: strings, each with its 0; malloced */
    size_t environment_bytes;
};
/* Waits until the job has begun. Starts the node agent of this host if there is none. 0, or RNL_ERR_JOB or
 * RNL_ERR_NO_MEMORY. From then on, the code with which this process calls exit is sent to the agent. */
int rnl_join(const struct rnl_join_options *, struct rnl_joined *out);
/* Sends the agent the code with which this process is about to end by _exit; no effect if it has not joined. */
void rnl_join_exits(int code);
/* Forks. The child's signals are as in a new process, whatever the program does with its own. */
pid_t rnl_join_fork(void);

#endif
