/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pan_rpc.h - the remote procedure calls of Panda 2.0 (panda/pan_sys.h). */
#ifndef RNL_PAN_RPC_H
#define RNL_PAN_RPC_H

#include <panda/pan_mp.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pan_upcall *pan_upcall_p;
typedef void (*pan_rpc_handler_f)(pan_upcall_p upcall, pan_msg_p request);
PAN_PUBLIC void pan_rpc_init(void);
PAN_PUBLIC void pan_rpc_end(void);
/* The request belongs to the handler, which may reply with it. */
PAN_PUBLIC void pan_rpc_register(pan_rpc_handler_f handler);
/* Waits for the reply, which the caller clears; the request stays the caller's. */
PAN_PUBLIC void pan_rpc_trans(int dest, pan_msg_p request, pan_msg_p *reply);
/* At any time, from any thread; the reply is cleared when it has been sent. */
PAN_PUBLIC void pan_rpc_reply(pan_upcall_p upcall, pan_msg_p reply);

#ifdef __cplusplus
}
#endif
#endif
