/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stand_print.c - the printf family of a copy: the C library formats, the stream is the copy's. */
#include "sim/cluster/files.h"
#include "sim/cluster/inside.h"
#include "sim/cluster/stand.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 1024 };

__attribute__((format(printf, 2, 0))) int rnl_file_vprint(struct rnl_guest_file *f, const char *format, va_list args)
{
    char small[TEXT], *text = small;
    va_list again;
    rnl_guest_called(rnl_guest_now);
    va_copy(again, args);
    int n = vsnprintf(small, sizeof small, format, args);
    if (n >= (int)sizeof small) {
        text = malloc((size_t)n + 1);
        if (text == NULL)
            n = -1;
        else
            vsnprintf(text, (size_t)n + 1, format, again);
    }
    va_end(again);
    if (n > 0 && rnl_file_put(f, text, (size_t)n) < 0)
        n = -1;
    if (text != small)
        free(text);
    return n;
}

#define FORMAT(f, a) __attribute__((format(printf, f, a)))

FORMAT(2, 0) static int stand_vfprintf(struct rnl_guest_file *f, const char *format, va_list args)
{
    return rnl_file_vprint(f, format, args);
}

FORMAT(3, 0) static int stand___vfprintf_chk(struct rnl_guest_file *f, int flag, const char *format, va_list args)
{
    (void)flag;
    return rnl_file_vprint(f, format, args);
}

FORMAT(1, 0) static int stand_vprintf(const char *format, va_list args)
{
    return rnl_file_vprint(rnl_arena_now()->out, format, args);
}

FORMAT(2, 0) static int stand___vprintf_chk(int flag, const char *format, va_list args)
{
    (void)flag;
    return stand_vprintf(format, args);
}

FORMAT(1, 2) static int stand_printf(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = stand_vprintf(format, args);
    va_end(args);
    return n;
}

FORMAT(2, 3) static int stand___printf_chk(int flag, const char *format, ...)
{
    va_list args;
    (void)flag;
    va_start(args, format);
    int n = stand_vprintf(format, args);
    va_end(args);
    return n;
}

FORMAT(2, 3) static int stand_fprintf(struct rnl_guest_file *f, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = rnl_file_vprint(f, format, args);
    va_end(args);
    return n;
}

FORMAT(3, 4) static int stand___fprintf_chk(struct rnl_guest_file *f, int flag, const char *format, ...)
{
    va_list args;
    (void)flag;
    va_start(args, format);
    int n = rnl_file_vprint(f, format, args);
    va_end(args);
    return n;
}

FORMAT(2, 0) static int stand_vdprintf(int fd, const char *format, va_list args)
{
    struct rnl_guest_file f = {.fd = fd, .open = 1, .writes = 1, .lines = 1};
    int n = rnl_file_vprint(&f, format, args);
    return f.failed ? -1 : n;
}

FORMAT(2, 3) static int stand_dprintf(int fd, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = stand_vdprintf(fd, format, args);
    va_end(args);
    return n;
}

/* Into memory of the copy's heap. */
FORMAT(2, 0) static int stand_vasprintf(char **out, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    char *text = n >= 0 ? rnl_arena_alloc((size_t)n + 1, 16) : NULL;
    if (text != NULL)
        vsnprintf(text, (size_t)n + 1, format, again);
    va_end(again);
    *out = text;
    return text ? n : -1;
}

FORMAT(2, 3) static int stand_asprintf(char **out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = stand_vasprintf(out, format, args);
    va_end(args);
    return n;
}

static void stand_perror(const char *what)
{
    int e = errno;
    stand_fprintf(rnl_arena_now()->err, "%s%s%s\n", what && *what ? what : "", what && *what ? ": " : "",
                  strerrordesc_np(e) ? strerrordesc_np(e) : "unknown error");
}

const struct rnl_stand rnl_stand_print[] = {
    RNL_STAND(vfprintf),  RNL_STAND(__vfprintf_chk),
    RNL_STAND(vprintf),   RNL_STAND(__vprintf_chk),
    RNL_STAND(printf),    RNL_STAND(__printf_chk),
    RNL_STAND(fprintf),   RNL_STAND(__fprintf_chk),
    RNL_STAND(vdprintf),  RNL_STAND(dprintf),
    RNL_STAND(vasprintf), RNL_STAND(asprintf),
    RNL_STAND(perror),    RNL_STAND_END,
};
