/* SPDX-License-Identifier: BSD-3-Clause
 *
 * barrier.c - the personality, in the words of the C++ ABI, of frames that no exception passes. */
#include "stream/barrier.h"

#include <stdint.h>
#include <unwind.h>

_Unwind_Reason_Code rnl_no_exception(int version, _Unwind_Action actions, uint64_t class,
                                     struct _Unwind_Exception *thrown, struct _Unwind_Context *at)
    __attribute__((used, visibility("hidden")));

_Unwind_Reason_Code rnl_no_exception(int version, _Unwind_Action actions, uint64_t class,
                                     struct _Unwind_Exception *thrown, struct _Unwind_Context *at)
{
    (void)version, (void)class, (void)thrown, (void)at;
    return actions & _UA_FORCE_UNWIND ? _URC_CONTINUE_UNWIND : _URC_FATAL_PHASE1_ERROR;
}
