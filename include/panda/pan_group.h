/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pan_group.h - the groups of Panda 2.0 (panda/pan_sys.h): closed, with names, joined and left while they are in use.
 * Their members deliver all messages in one order, also those of several groups. */
#ifndef RNL_PAN_GROUP_H
#define RNL_PAN_GROUP_H

#include <panda/pan_sys.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct PAN_GROUP_T pan_group_t, *pan_group_p;
PAN_PUBLIC void pan_group_init(void);
PAN_PUBLIC void pan_group_end(void);
/* Waits until this process is a member. The handler clears its message. */
PAN_PUBLIC pan_group_p pan_group_join(char *group_name, void (*receive)(pan_msg_p msg_in));
PAN_PUBLIC void pan_group_leave(pan_group_p g); /* waits until it is none */
PAN_PUBLIC void pan_group_clear(pan_group_p g);
/* The message belongs to Panda until the sender's own handler gets it, the same message and not a copy. */
PAN_PUBLIC void pan_group_send(pan_group_p g, pan_msg_p msg);
/* Waits until the group has so many members or more. */
PAN_PUBLIC void pan_group_await_size(pan_group_p g, int n);
/* Parameters, of which there are none: lists that end with NULL. */
PAN_PUBLIC void pan_group_va_set_params(void *first, ...);
PAN_PUBLIC void pan_group_va_get_params(void *first, ...);
PAN_PUBLIC void pan_group_va_set_g_params(pan_group_p g, ...);
PAN_PUBLIC void pan_group_va_get_g_params(pan_group_p g, ...);

#ifdef __cplusplus
}
#endif
#endif
