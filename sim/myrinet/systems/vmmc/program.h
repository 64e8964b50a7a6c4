/* SPDX-License-Identifier: BSD-3-Clause
 *
 * program.h - programs for runnel/vmmc.h on the papers' machine. A program is compiled with this file before its own
 * text (cc -include), so that its calls of VMMC have another name here, and its main is the function of each node's
 * task.
 *
 * Its nodes share the address space of this process, so a program must keep nothing in static variables, and can send
 * from memory of VMMC_Alloc only, which is memory of its node. Time passes in calls only, and a notification runs its
 * handler in the middle of one, as a signal; handlers may send, and neither export nor import. What the machine of the
 * paper has no counterpart for, requested imports, fails with RNL_ERR_UNSUPPORTED. */
#ifndef MYRI_VMMC_PROGRAM_H
#define MYRI_VMMC_PROGRAM_H

#define VMMC_Init                 vmmc_program_Init
#define VMMC_Exit                 vmmc_program_Exit
#define VMMC_Endpoint             vmmc_program_Endpoint
#define VMMC_Node                 vmmc_program_Node
#define VMMC_Nodes                vmmc_program_Nodes
#define VMMC_ProcessOf            vmmc_program_ProcessOf
#define VMMC_Poll                 vmmc_program_Poll
#define VMMC_Wait                 vmmc_program_Wait
#define VMMC_Alloc                vmmc_program_Alloc
#define VMMC_Free                 vmmc_program_Free
#define VMMC_ExportRecvBuf        vmmc_program_ExportRecvBuf
#define VMMC_UnexportRecvBuf      vmmc_program_UnexportRecvBuf
#define VMMC_UnexportRecvBufNow   vmmc_program_UnexportRecvBufNow
#define VMMC_Importers            vmmc_program_Importers
#define VMMC_ImportRecvBuf        vmmc_program_ImportRecvBuf
#define VMMC_ImportRecvBufReq     vmmc_program_ImportRecvBufReq
#define VMMC_CancelImport         vmmc_program_CancelImport
#define VMMC_UnimportRecvBuf      vmmc_program_UnimportRecvBuf
#define VMMC_SendMsg              vmmc_program_SendMsg
#define VMMC_SendMsgWithNotify    vmmc_program_SendMsgWithNotify
#define VMMC_SendMsgReq           vmmc_program_SendMsgReq
#define VMMC_BlockNotifications   vmmc_program_BlockNotifications
#define VMMC_UnblockNotifications vmmc_program_UnblockNotifications

#include "runnel/vmmc.h"

struct myri_hw;

/* Runs main on each node of a machine whose firmware is VMMC's, until all have returned. Returns 0; what the first
 * of them returned that is not 0; or a negative status: the machine had a fault. */
int vmmc_program_run(struct myri_hw *hw, int (*main)(int argc, char **argv), int argc, char **argv);

#endif
