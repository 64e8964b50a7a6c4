/* SPDX-License-Identifier: BSD-3-Clause
 *
 * remote_lib.h - the functions of librunnel that links between hosts use. */
#ifndef RNL_RPC_REMOTE_LIB_H
#define RNL_RPC_REMOTE_LIB_H

#include "runnel/adapter.h"
#include "runnel/meet.h"

struct rnl_rpc_runnel {
    __typeof__(rnl_open) *open;
    __typeof__(rnl_size) *size;
    __typeof__(rnl_serve) *serve;
    __typeof__(rnl_reach) *reach;
    __typeof__(rnl_leave) *leave;
    __typeof__(rnl_peer) *peer;
    __typeof__(rnl_peer_cred) *peer_cred;
    __typeof__(rnl_on_death) *on_death;
    __typeof__(rnl_handler_stream) *handler_stream;
    __typeof__(rnl_length) *length;
    __typeof__(rnl_receive) *receive;
    __typeof__(rnl_reply) *reply;
    __typeof__(rnl_begin) *begin;
    __typeof__(rnl_piece) *piece;
    __typeof__(rnl_end) *end;
    __typeof__(rnl_abort) *abort;
    __typeof__(rnl_flush) *flush;
    __typeof__(rnl_extract) *extract;
    __typeof__(rnl_arm) *arm;
    __typeof__(rnl_room) *room;
    __typeof__(rnl_last_error) *last_error;
};
/* Loads the library at the first call. NULL: it is not there, or is another release. */
const struct rnl_rpc_runnel *rnl_rpc_runnel(void);

#endif
