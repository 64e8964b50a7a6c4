/* SPDX-License-Identifier: BSD-3-Clause
 *
 * report.c - what AMUDP prints. Its interface prints errors where AMX_VerboseErrors asks for it, and ends the program
 * where it says AMX_FatalErr; nothing else below include/amudp.h does either. A line is one write, so that those of
 * many processes do not mix. */
#include "api/amudp/amudp_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int AMX_VerboseErrors;
int AMX_SilentMode;
int AMUDP_PoliteSync;
const char *AMX_ProcessLabel;

static const char *const code_names[] = {"AM_OK",           "AM_ERR_NOT_INIT", "AM_ERR_BAD_ARG",
                                         "AM_ERR_RESOURCE", "AM_ERR_NOT_SENT", "AM_ERR_IN_USE"};

static void print(const char *kind, const char *format, va_list args) __attribute__((format(printf, 2, 0)));
static void print(const char *kind, const char *format, va_list args)
{
    char line[1024];
    size_t n;
    if (AMX_ProcessLabel)
        n = (size_t)snprintf(line, sizeof line, "%.200s: %s", AMX_ProcessLabel, kind);
    else if (rnl_amudp_spmd.started)
        n = (size_t)snprintf(line, sizeof line, "AMUDP: rank %d: %s", rnl_amudp_spmd.rank, kind);
    else
        n = (size_t)snprintf(line, sizeof line, "AMUDP: %s", kind);
    int more = vsnprintf(line + n, sizeof line - n - 1, format, args);
    if (more > 0)
        n += (size_t)more < sizeof line - n - 1 ? (size_t)more : sizeof line - n - 2;
    while (n > 0 && line[n - 1] == '\n')
        n--;
    line[n++] = '\n';
    fflush(stderr);
    for (size_t done = 0; done < n;) {
        ssize_t w = write(STDERR_FILENO, line + done, n - done);
        if (w <= 0)
            break;
        done += (size_t)w;
    }
}

void AMX_FatalErr(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print("fatal: ", format, args);
    va_end(args);
    abort();
}

void rnl_amudp_print(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print("", format, args);
    va_end(args);
}

int rnl_amudp_error(int code, const char *function)
{
    if (AMX_VerboseErrors)
        rnl_amudp_print("%s: %s: %s", function, code >= 0 && code <= AM_ERR_IN_USE ? code_names[code] : "error",
                        rnl_last_error()->text);
    return code;
}

int rnl_amudp_start_status(int code)
{
    if (code != AM_OK && !AMX_VerboseErrors)
        rnl_amudp_print("the job does not start: %s", rnl_last_error()->text);
    return code;
}

int rnl_amudp_fail(int code, const char *function, const char *format, ...)
{
    char text[200];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    (void)rnl_fail(code == AM_ERR_BAD_ARG    ? RNL_ERR_ARG
                   : code == AM_ERR_NOT_INIT ? RNL_ERR_CLOSED
                                             : RNL_ERR_CONTEXT,
                   "%s", text);
    return rnl_amudp_error(code, function);
}
