/* SPDX-License-Identifier: BSD-3-Clause
 *
 * secure_stream.h - an authenticated and encrypted stream of messages over TCP, between two ends that have one key: the
 * daemons of two hosts (meet/node_key.h), or the launcher and a node agent that it did not start (rendezvous.h). Both
 * ends prove that they have the key before either sends anything of value; a stranger receives 32 random bytes.
 *
 *   server to client   nonce 32
 *   client to server   nonce 32 | proof 32 of "client" by both nonces | header 24 of its stream
 *   server to client   proof 32 of "server" by both nonces | header 24 of its stream
 *   each to each       bytes 2 | a block of libsodium's secretstream, `bytes` long: one message
 *
 * Everything is derived from the key, the kind of the ends and both nonces, by a keyed hash with a label: the
 * proofs, the keys of both directions, and the key of the pair of processes that the stream is about. So no stream has
 * the keys of another one, nothing that was recorded counts again, and ends of different kinds, as a daemon of a user
 * and one of the node, do not talk to each other. Who records streams and gets the key later can read them. A stream
 * lies in pages that no core dump contains. */
#ifndef RNL_JOB_SECURE_STREAM_H
#define RNL_JOB_SECURE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RNL_SECURE_STREAM_KEY = 32,
    RNL_SECURE_STREAM_BYTES = 256,     /* a message between daemons is no longer */
    RNL_SECURE_STREAM_LIMIT_MS = 10000 /* for the other end's half of the handshake, where it is waited for */
};

struct rnl_secure_stream;

/* ---- a stream in an event loop: nothing here waits ---- */

/* Takes over fd, a TCP socket that is connected or about to be. Messages have at most `most` bytes, the same at both
 * ends. NULL: no memory; fd is closed. */
struct rnl_secure_stream *rnl_secure_stream_new(int fd, bool server, const unsigned char key[RNL_SECURE_STREAM_KEY],
                                                uint32_t kind, size_t most);
void rnl_secure_stream_free(struct rnl_secure_stream *); /* fine on NULL */
int rnl_secure_stream_fd(const struct rnl_secure_stream *);
/* Takes in what has come. 1 = a message, of *n bytes; 0 = there is none now; RNL_ERR_UNREACHABLE: the other end is
 * gone, or has not the key, or what came is forged. */
int rnl_secure_stream_receive(struct rnl_secure_stream *, unsigned char *out, size_t *n);
bool rnl_secure_stream_is_up(const struct rnl_secure_stream *); /* both ends have proved themselves */
/* Sends a message. 0; RNL_ERR_UNREACHABLE: the stream is not up, has ended, or its reader does not read. */
int rnl_secure_stream_send(struct rnl_secure_stream *, const void *msg, size_t n);
/* Sends what is left. 1 = something still is; 0; RNL_ERR_UNREACHABLE. */
int rnl_secure_stream_flush(struct rnl_secure_stream *);
/* The key of the pair of processes that are introduced by this stream; both ends have the same. */
void rnl_secure_stream_pair_key(const struct rnl_secure_stream *, unsigned char out[RNL_SECURE_STREAM_KEY]);

/* ---- a stream that is waited for ---- */

/* Shakes hands over fd, a connected socket, which the stream owns from now on, also on failure. Blocks for
 * RNL_SECURE_STREAM_LIMIT_MS at most. NULL: the other end did not prove that it has the key; *answered = it said
 * something, so waiting longer is of no use. */
struct rnl_secure_stream *rnl_secure_stream_open(int fd, bool server, const unsigned char key[RNL_SECURE_STREAM_KEY],
                                                 bool *answered);
/* Carries bytes both ways between the stream and two pipes or sockets, until either side ends. The reader of `out` must
 * always read. */
void rnl_secure_stream_relay(struct rnl_secure_stream *, int in, int out);

/* ---- sockets ---- */

/* Begins to connect to the daemon at an IPv6 address, or a mapped IPv4 one, which may take a while; listens at a port
 * of each address of this host. Both return a socket that does not block, or the failed call's negative errno. */
int rnl_secure_stream_dial(const unsigned char ip[16], uint16_t port);
int rnl_secure_stream_listen(uint16_t port);
/* Accepts who calls there. Returns a descriptor or -errno, and the address that the call comes from. */
int rnl_secure_stream_accept(int listener, unsigned char ip[16]);

#endif
