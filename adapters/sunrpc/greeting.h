/* SPDX-License-Identifier: BSD-3-Clause
 *
 * greeting.h - how a client and a server find each other. All numbers of the two datagrams on the doorbell are in the
 * order of this host.
 *
 *   client                                    server
 *     RNL_RPC_PROGRAM over the CLIENT it has ---> ask: where are you?          INTRODUCE {boot id, network namespace}
 *     <-------------------------------------------- answer {0, socket, token, proof}, or {1}: not the same host
 *     connect to the abstract socket; HELLO {token} ->
 *     <------------------------------------------------- WELCOME {proof} + segment
 *
 * Between hosts the answer is {2, service, token, proof}, and the two datagrams are messages of remote_internal.h.
 *
 * Whoever answers on the address that the client has is the server, so nobody can take its place: the token names the
 * one who asked, the proof the one who answered. A server without this library answers that it has no such program. */
#ifndef RNL_RPC_GREETING_H
#define RNL_RPC_GREETING_H

#include <assert.h>
#include <rpc/types.h>
#include <rpc/xdr.h>
#include <stdbool.h>
#include <stdint.h>

enum { RNL_RPC_PROGRAM = 0x2fffb0c4, RNL_RPC_VERSION = 1 };
enum rnl_rpc_procedure { RNL_RPC_NULL = 0, RNL_RPC_INTRODUCE = 1 };
enum { RNL_RPC_TOKEN_BYTES = 16, RNL_RPC_NAME_BYTES = 16, RNL_RPC_BOOT_BYTES = 36, RNL_RPC_SERVICE_BYTES = 64 };
enum rnl_rpc_refused {
    RNL_RPC_COME = 0,
    RNL_RPC_REFUSED = 1,
    RNL_RPC_COME_REMOTE = 2, /* over the network */
    RNL_RPC_NO_KEY = 3       /* it could be so, but the server has no key or no daemon */
};

struct rnl_rpc_place { /* two processes with the same place reach each other's abstract sockets */
    char boot[RNL_RPC_BOOT_BYTES];
    uint64_t netns_device, netns_inode;
};
struct rnl_rpc_answer {
    u_int refused;    /* enum rnl_rpc_refused */
    u_int name_bytes; /* of the abstract socket's name, without the leading 0 byte */
    char name[RNL_RPC_NAME_BYTES];
    char token[RNL_RPC_TOKEN_BYTES], proof[RNL_RPC_TOKEN_BYTES];
    char service[RNL_RPC_SERVICE_BYTES]; /* RNL_RPC_COME_REMOTE only: USER/NAME, filled up with 0 bytes */
};
bool_t rnl_rpc_xdr_place(XDR *, struct rnl_rpc_place *);
bool_t rnl_rpc_xdr_answer(XDR *, struct rnl_rpc_answer *);

/* Returns false if this process cannot find out where it is. */
bool rnl_rpc_place_here(struct rnl_rpc_place *);
bool rnl_rpc_place_equal(const struct rnl_rpc_place *, const struct rnl_rpc_place *);

/*      0       4       8       12                      28
 *      +-------+-------+-------+-----------------------+
 *      | magic |version|barrier| token, or proof       |   HELLO, and WELCOME with the segment's descriptor
 *      +-------+-------+-------+-----------------------+
 *  barrier: 1 = the sender is registered for membarrier and will use it. */
enum { RNL_RPC_MAGIC = 0x52504331 };
struct rnl_rpc_hello {
    uint32_t magic, version, barrier;
    char secret[RNL_RPC_TOKEN_BYTES];
};
static_assert(sizeof(struct rnl_rpc_hello) == 28, "as drawn");

/* Sends it whole, with the descriptor if fd >= 0. */
bool rnl_rpc_hello_send(int sock, const char secret[RNL_RPC_TOKEN_BYTES], int fd);
/* 1 = it is here, with the descriptor in *fd, or -1; 0 = not yet; -1 = the peer is gone, or it is not one. NULL: no
 * descriptor is taken, so none has to be closed; closing blocks for a file of a file system that the peer runs. */
int rnl_rpc_hello_receive(int sock, struct rnl_rpc_hello *, int *fd);
/* Lets nobody send descriptors to this socket, or to those that it accepts, if the kernel can (Linux 6.16). */
void rnl_rpc_take_no_descriptors(int sock);
/* Links take descriptors that the program does not know of. They use the numbers below three quarters of what the
 * process can have, and of what select can wait for; the rest is the program's. */
bool rnl_rpc_has_room(int fd);
/* In a time that does not depend on where they differ. */
bool rnl_rpc_secret_equal(const char a[RNL_RPC_TOKEN_BYTES], const char b[RNL_RPC_TOKEN_BYTES]);

#endif
