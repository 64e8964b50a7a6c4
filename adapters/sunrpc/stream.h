/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stream.h - XDR streams over a link: what is encoded is stored where it travels, what is decoded is taken from where
 * it arrived. A stream does not end a record or leave one; its owner does.
 *
 * Where the bytes can still be changed by the peer, each is loaded once, and x_inline says NULL: generated code then
 * decodes word by word. Positions count from the begin of the record and cannot be set, as in libtirpc's record stream
 * over sockets. */
#ifndef RNL_RPC_STREAM_H
#define RNL_RPC_STREAM_H

#include "link.h"

#include <rpc/types.h>
#include <rpc/xdr.h>

void rnl_rpc_stream_out(XDR *, struct rnl_rpc_link *);
void rnl_rpc_stream_in(XDR *, struct rnl_rpc_link *);
bool rnl_rpc_stream_is_ours(const XDR *);

/* Writes or reads n numbers of 4 or 8 bytes, in the direction of x_op: what libtirpc does with a call for each. */
bool rnl_rpc_stream_numbers(XDR *, char *at, u_int n, u_int width);
bool_t rnl_rpc_xdr_nothing(XDR *, ...);
/* Writes n bytes as they are. */
bool rnl_rpc_stream_put(struct rnl_rpc_link *, const void *from, size_t n);

#endif
