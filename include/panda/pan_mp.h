/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pan_mp.h - the message passing of Panda 2.0 (panda/pan_sys.h): messages to maps, which are registered in the same
 * order everywhere, or to a receive that waits on DIRECT_MAP, whose number the sender was told. */
#ifndef RNL_PAN_MP_H
#define RNL_PAN_MP_H

#include <panda/pan_sys.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DIRECT_MAP 0
#define MODE_SYNC  0 /* waits */
#define MODE_SYNC2 1 /* pan_mp_finish_send, pan_mp_finish_receive wait */
#define MODE_ASYNC 2 /* the message is cleared when it has been sent */
PAN_PUBLIC void pan_mp_init(void);
PAN_PUBLIC void pan_mp_end(void);
PAN_PUBLIC int pan_mp_register_map(void);
PAN_PUBLIC void pan_mp_free_map(int map);
/* Calls it for each message of the map that nobody has received. */
PAN_PUBLIC void pan_mp_clear_map(int map, void (*clear)(pan_msg_p message));
/* To a map, or to the number of a receive. Returns a number for the two below. */
PAN_PUBLIC int pan_mp_send_message(int cpu, int entry, pan_msg_p message, int mode);
PAN_PUBLIC void pan_mp_finish_send(int entry);
PAN_PUBLIC int pan_mp_poll_send(int entry); /* 1: it has been sent */
/* Replaces what is in the message by the next one of the map. Returns a number for the two below. */
PAN_PUBLIC int pan_mp_receive_message(int map, pan_msg_p message, int mode);
PAN_PUBLIC void pan_mp_finish_receive(int entry);
PAN_PUBLIC int pan_mp_poll_receive(int entry); /* 1: it has been received, and its number is free */
/* The handler is called for each message of the map, and clears it. */
PAN_PUBLIC void pan_mp_register_async_receive(int map, void (*handler)(int map, pan_msg_p msg));

#ifdef __cplusplus
}
#endif
#endif
