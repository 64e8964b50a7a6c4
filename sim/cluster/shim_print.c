/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shim_print.c - the printf family of a virtual process: the C library formats, the stream is the process's. */
#include "sim/cluster/arena.h"
#include "sim/cluster/cluster_internal.h"
#include "sim/cluster/shim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 1024 };

__attribute__((format(printf, 2, 0))) int vc_file_vprint(struct vc_process_file *f, const char *format, va_list args)
{
    char small[TEXT], *text = small;
    va_list again;
    vc_process_called(vc_process_now);
    va_copy(again, args);
    int n = vsnprintf(small, sizeof small, format, args);
    if (n >= (int)sizeof small) {
        text = malloc((size_t)n + 1);
        if (!text)
            n = -1;
        else
            vsnprintf(text, (size_t)n + 1, format, again);
    }
    va_end(again);
    if (n > 0 && vc_file_put(f, text, (size_t)n) < 0)
        n = -1;
    if (text != small)
        free(text);
    return n;
}

#define FORMAT(f, a) __attribute__((format(printf, f, a)))

FORMAT(2, 0) static int shim_vfprintf(struct vc_process_file *f, const char *format, va_list args)
{
    return vc_file_vprint(f, format, args);
}

FORMAT(3, 0) static int shim___vfprintf_chk(struct vc_process_file *f, int flag, const char *format, va_list args)
{
    (void)flag;
    return vc_file_vprint(f, format, args);
}

FORMAT(1, 0) static int shim_vprintf(const char *format, va_list args)
{
    return vc_file_vprint(vc_arena_now()->out, format, args);
}

FORMAT(2, 0) static int shim___vprintf_chk(int flag, const char *format, va_list args)
{
    (void)flag;
    return shim_vprintf(format, args);
}

FORMAT(1, 2) static int shim_printf(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = shim_vprintf(format, args);
    va_end(args);
    return n;
}

FORMAT(2, 3) static int shim___printf_chk(int flag, const char *format, ...)
{
    va_list args;
    (void)flag;
    va_start(args, format);
    int n = shim_vprintf(format, args);
    va_end(args);
    return n;
}

FORMAT(2, 3) static int shim_fprintf(struct vc_process_file *f, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vc_file_vprint(f, format, args);
    va_end(args);
    return n;
}

FORMAT(3, 4) static int shim___fprintf_chk(struct vc_process_file *f, int flag, const char *format, ...)
{
    va_list args;
    (void)flag;
    va_start(args, format);
    int n = vc_file_vprint(f, format, args);
    va_end(args);
    return n;
}

FORMAT(2, 0) static int shim_vdprintf(int fd, const char *format, va_list args)
{
    struct vc_process_file f = {.fd = fd, .open = 1, .writes = 1, .lines = 1};
    int n = vc_file_vprint(&f, format, args);
    return f.failed ? -1 : n;
}

FORMAT(2, 3) static int shim_dprintf(int fd, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = shim_vdprintf(fd, format, args);
    va_end(args);
    return n;
}

/* Into memory of the process's heap. */
FORMAT(2, 0) static int shim_vasprintf(char **out, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    char *text = n >= 0 ? vc_arena_alloc((size_t)n + 1, 16) : NULL;
    if (text)
        vsnprintf(text, (size_t)n + 1, format, again);
    va_end(again);
    *out = text;
    return text ? n : -1;
}

FORMAT(2, 3) static int shim_asprintf(char **out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = shim_vasprintf(out, format, args);
    va_end(args);
    return n;
}

static void shim_perror(const char *what)
{
    int e = errno;
    shim_fprintf(vc_arena_now()->err, "%s%s%s\n", what && *what ? what : "", what && *what ? ": " : "",
                 strerrordesc_np(e) ? strerrordesc_np(e) : "unknown error");
}

const struct vc_shim vc_shim_print[] = {
    VC_SHIM(vfprintf),  VC_SHIM(__vfprintf_chk),
    VC_SHIM(vprintf),   VC_SHIM(__vprintf_chk),
    VC_SHIM(printf),    VC_SHIM(__printf_chk),
    VC_SHIM(fprintf),   VC_SHIM(__fprintf_chk),
    VC_SHIM(vdprintf),  VC_SHIM(dprintf),
    VC_SHIM(vasprintf), VC_SHIM(asprintf),
    VC_SHIM(perror),    VC_SHIM_END,
};
