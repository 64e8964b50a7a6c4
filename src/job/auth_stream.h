/* SPDX-License-Identifier: BSD-3-Clause
 *
 * auth_stream.h - an authenticated and encrypted stream of bytes over TCP, between the launcher and node agents that it
 * did not start (rendezvous.h). Both ends prove that they have the join key before either sends anything of value; a
 * stranger receives 32 random bytes.
 *
 *   server to client   nonce 32
 *   client to server   nonce 32 | proof 32 of "client" by both nonces | header 24 of its stream
 *   server to client   proof 32 of "server" by both nonces | header 24 of its stream
 *   each to each       bytes 2 | a block of libsodium's secretstream, `bytes` long */
#ifndef RNL_JOB_AUTH_STREAM_H
#define RNL_JOB_AUTH_STREAM_H

#include <stdbool.h>

enum { RNL_AUTH_STREAM_LIMIT_MS = 10000 /* for the other end's half of the handshake */ };

struct rnl_auth_stream;

/* Shakes hands over fd, a connected stream socket, which the stream owns from now on, also on failure. Blocks for
 * RNL_AUTH_STREAM_LIMIT_MS at most. NULL: the other end did not prove that it has the key; *answered = it said
 * something, so waiting longer is in vain. The stream lies in pages that no core dump contains. */
struct rnl_auth_stream *rnl_auth_stream_open(int fd, bool server, const unsigned char key[32], bool *answered);
void rnl_auth_stream_free(struct rnl_auth_stream *); /* fine on NULL */
/* Carries bytes both ways between the stream and two pipes or sockets, until either side ends. The reader of `out` must
 * always read. */
void rnl_auth_stream_relay(struct rnl_auth_stream *, int in, int out);

#endif
