/* SPDX-License-Identifier: BSD-3-Clause
 *
 * error.c - the per-thread record of the last failure, and the names of statuses. rnl_fail() writes the whole record;
 * success leaves it alone. Neither function changes errno. Back-pressure (RNL_NO_ROOM, RNL_BUSY) need not be
 * recorded. */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local struct rnl_error last_error = {RNL_OK, 0, "no error"};
/* 1 = the last failure is a wait that timed out. Programs wait for nothing all day, so its sentence is written only
 * when somebody reads it. */
static _Thread_local unsigned char timed_out;

static const char *errno_text(int sys_errno)
{
#if defined(__GLIBC__)
    const char *text = strerrordesc_np(sys_errno); /* constant strings: strerror() may share a buffer between threads */
    return text ? text : "unknown error";
#else
    return strerror(sys_errno);
#endif
}

/* Builds the sentence aside, since its arguments may point into the record that it replaces. */
RNL_PRINTF(3, 0) static int record(int status, int sys_errno, const char *format, va_list args)
{
    int saved = errno;
    char text[sizeof last_error.text];
    int n = vsnprintf(text, sizeof text, format, args);
    if (n < 0)
        text[n = 0] = '\0';
    if (sys_errno != 0 && (size_t)n < sizeof text)
        snprintf(text + n, sizeof text - (size_t)n, ": %s", errno_text(sys_errno));
    timed_out = 0;
    last_error.status = status;
    last_error.sys_errno = sys_errno;
    memcpy(last_error.text, text, sizeof text);
    errno = saved;
    return status;
}

int rnl_fail(int status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    record(status, 0, format, args);
    va_end(args);
    return status;
}

int rnl_fail_errno(int status, int sys_errno, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    record(status, sys_errno, format, args);
    va_end(args);
    return status;
}

int rnl_timed_out(void)
{
    timed_out = 1;
    return RNL_TIMED_OUT;
}

const struct rnl_error *rnl_last_error(void)
{
    if (timed_out)
        rnl_fail(RNL_TIMED_OUT, "nothing came within the time given; give more, or wait again");
    return &last_error;
}

const char *rnl_status_name(int status)
{
    if (status > 0)
        return "RNL_OK"; /* a count */
    switch ((enum rnl_status)status) {
#define NAME(s) \
    case s:     \
        return #s
        NAME(RNL_OK);
        NAME(RNL_NO_ROOM);
        NAME(RNL_BUSY);
        NAME(RNL_TIMED_OUT);
        NAME(RNL_INTERRUPTED);
        NAME(RNL_ERR_ARG);
        NAME(RNL_ERR_RANK);
        NAME(RNL_ERR_HANDLER);
        NAME(RNL_ERR_TOO_LONG);
        NAME(RNL_ERR_CONTEXT);
        NAME(RNL_ERR_PAST_END);
        NAME(RNL_ERR_NO_MEMORY);
        NAME(RNL_ERR_SYSTEM);
        NAME(RNL_ERR_UNSUPPORTED);
        NAME(RNL_ERR_REFUSED);
        NAME(RNL_ERR_UNREACHABLE);
        NAME(RNL_ERR_REVOKED);
        NAME(RNL_ERR_REJECTED);
        NAME(RNL_ERR_ABORTED);
        NAME(RNL_ERR_PEER_DEAD);
        NAME(RNL_ERR_PEER_BROKEN);
        NAME(RNL_ERR_CLOSED);
        NAME(RNL_ERR_FORKED);
        NAME(RNL_ERR_JOB);
#undef NAME
    }
    return "unknown status";
}

const char *rnl_version(void)
{
    return RNL_VERSION;
}
