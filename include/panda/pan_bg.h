/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pan_bg.h - the one group of all processes of Panda 2.0 (panda/pan_sys.h), whose messages come in one order with those
 * of its named groups. */
#ifndef RNL_PAN_BG_H
#define RNL_PAN_BG_H

#include <panda/pan_sys.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BG_MODE_SYNC  0 /* waits until this process has delivered it */
#define BG_MODE_SYNC2 1 /* pan_bg_finish_send waits for that */
#define BG_MODE_ASYNC 2 /* the message belongs to Panda, and then to this process's own handler */
PAN_PUBLIC void pan_bg_init(void);
PAN_PUBLIC void pan_bg_end(void);
PAN_PUBLIC int pan_bg_send_message(pan_msg_p message, int mode);
PAN_PUBLIC void pan_bg_finish_send(int entry);
/* The handler clears the message. */
PAN_PUBLIC void pan_bg_register(void (*func)(pan_msg_p message));

#ifdef __cplusplus
}
#endif
#endif
