/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shim_stdio.c - streams of a virtual process. They are buffered in the process's own heap, so a crash loses what was
 * not flushed, as it would. glibc's macros for single characters find zeros in the fields they look at and call the
 * functions here.
 */
#include "sim/cluster/arena.h"
#include "sim/cluster/cluster_internal.h"
#include "sim/cluster/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct vc_process_file file;

enum { GLIBC_EOF = 0x10, GLIBC_ERROR = 0x20 }; /* its macros read these from the first word */

static int fail(file *f)
{
    f->failed = 1;
    f->glibc_flags |= GLIBC_ERROR;
    return -1;
}

static void ended(file *f)
{
    f->at_end = 1;
    f->glibc_flags |= GLIBC_EOF;
}

static bool have_buffer(file *f)
{
    if (!f->buffer)
        f->buffer = vc_arena_alloc(VC_FILE_BUFFER, 16);
    return f->buffer != NULL;
}

/* ---- out ---- */

static int write_all(file *f, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t went = vc_fd_write(f->fd, bytes, n);
        if (went <= 0)
            return fail(f);
        bytes += went;
        n -= (size_t)went;
    }
    return 0;
}

/* What was composed goes out; what was read ahead is given back. */
static int flush(file *f)
{
    size_t n = f->have - f->at;
    if (f->writes == 2) {
        f->writes = 1;
        n = f->have;
        f->at = f->have = 0;
        return write_all(f, f->buffer, n);
    }
    f->at = f->have = 0;
    f->given_back = 0;
    if (n > 0 && f->fd > 2)
        (void)vc_fd_seek(f->fd, -(off_t)n, SEEK_CUR);
    return 0;
}

int vc_file_put(file *f, const char *bytes, size_t n)
{
    if (!f->writes) {
        errno = EBADF;
        return fail(f);
    }
    if (f->fd <= 2 || f->lines || n >= VC_FILE_BUFFER ||
        !have_buffer(f)) /* the rank's output is in lines in any case */
        return flush(f) < 0 ? -1 : write_all(f, bytes, n);
    if (f->writes == 1) {
        (void)flush(f);
        f->writes = 2;
    }
    if (f->have + n > VC_FILE_BUFFER) {
        if (flush(f) < 0)
            return -1;
        f->writes = 2;
    }
    memcpy(f->buffer + f->have, bytes, n);
    f->have += n;
    return 0;
}

void vc_files_flush(void)
{
    for (file *f = vc_arena_now()->files; f; f = f->next)
        (void)flush(f);
}

static int shim_fflush(file *f)
{
    vc_process_called(vc_process_now);
    if (f)
        return flush(f);
    vc_files_flush();
    return 0;
}

static size_t shim_fwrite(const void *from, size_t each, size_t n, file *f)
{
    size_t bytes;
    vc_process_called(vc_process_now);
    if (each == 0 || n == 0 || __builtin_mul_overflow(each, n, &bytes))
        return 0;
    return vc_file_put(f, from, bytes) == 0 ? n : 0;
}

static int shim_fputs(const char *s, file *f)
{
    vc_process_called(vc_process_now);
    return vc_file_put(f, s, strlen(s));
}

static int shim_puts(const char *s)
{
    return shim_fputs(s, vc_arena_now()->out) < 0 ? EOF : shim_fputs("\n", vc_arena_now()->out);
}

static int shim_fputc(int c, file *f)
{
    char byte = (char)c;
    vc_process_called(vc_process_now);
    return vc_file_put(f, &byte, 1) < 0 ? EOF : (unsigned char)byte;
}

static int shim___overflow(file *f, int c)
{
    return shim_fputc(c, f);
}

static int shim_putchar(int c)
{
    return shim_fputc(c, vc_arena_now()->out);
}

/* ---- in ---- */

/* 1: there is something in the buffer. */
static int fill(file *f)
{
    if (f->at < f->have && f->writes != 2)
        return 1;
    if (f->writes == 2 && flush(f) < 0)
        return 0;
    if (!have_buffer(f)) {
        fail(f);
        return 0;
    }
    ssize_t n = vc_fd_read(f->fd, f->buffer, VC_FILE_BUFFER);
    f->at = 0;
    f->have = n > 0 ? (size_t)n : 0;
    if (n == 0)
        ended(f);
    else if (n < 0)
        fail(f);
    return n > 0;
}

static int next(file *f)
{
    if (f->given_back) {
        f->given_back = 0;
        return f->back;
    }
    return fill(f) ? (unsigned char)f->buffer[f->at++] : EOF;
}

static int shim_fgetc(file *f)
{
    vc_process_called(vc_process_now);
    return next(f);
}

static int shim_getchar(void)
{
    return shim_fgetc(vc_arena_now()->in);
}

static int shim_ungetc(int c, file *f)
{
    if (c == EOF || f->given_back)
        return EOF;
    f->given_back = 1;
    f->back = (unsigned char)c;
    f->at_end = 0;
    f->glibc_flags &= ~GLIBC_EOF;
    return f->back;
}

static size_t shim_fread(void *to, size_t each, size_t n, file *f)
{
    size_t bytes, done = 0;
    vc_process_called(vc_process_now);
    if (each == 0 || n == 0 || __builtin_mul_overflow(each, n, &bytes))
        return 0;
    if (f->given_back)
        ((char *)to)[done++] = (char)next(f);
    while (done < bytes && fill(f)) {
        size_t some = f->have - f->at < bytes - done ? f->have - f->at : bytes - done;
        memcpy((char *)to + done, f->buffer + f->at, some);
        f->at += some;
        done += some;
    }
    return done / each;
}

static char *shim_fgets(char *to, int n, file *f)
{
    int done = 0;
    vc_process_called(vc_process_now);
    while (done < n - 1) {
        int c = next(f);
        if (c == EOF)
            break;
        to[done++] = (char)c;
        if (c == '\n')
            break;
    }
    if (done == 0 || f->failed)
        return NULL;
    to[done] = '\0';
    return to;
}

static ssize_t shim_getdelim(char **line, size_t *room, int delimiter, file *f)
{
    size_t n = 0;
    vc_process_called(vc_process_now);
    for (int c; (c = next(f)) != EOF;) {
        if (!*line || n + 2 > *room) {
            size_t more = 2 * (n + 64);
            char *bigger = vc_arena_alloc(more, 16);
            if (!bigger)
                return fail(f);
            if (*line)
                memcpy(bigger, *line, n);
            vc_arena_free(*line);
            *line = bigger;
            *room = more;
        }
        (*line)[n++] = (char)c;
        if (c == delimiter)
            break;
    }
    if (n == 0)
        return -1;
    (*line)[n] = '\0';
    return (ssize_t)n;
}

static ssize_t shim_getline(char **line, size_t *room, file *f)
{
    return shim_getdelim(line, room, '\n', f);
}

/* ---- opening and closing ---- */

/* -1: no mode of fopen's. */
static int flags_of(const char *mode)
{
    int both = strchr(mode, '+') != NULL, more = strchr(mode, 'x') ? O_EXCL : 0;
    switch (mode[0]) {
    case 'r':
        return both ? O_RDWR : O_RDONLY;
    case 'w':
        return (both ? O_RDWR : O_WRONLY) | O_CREAT | O_TRUNC | more;
    case 'a':
        return (both ? O_RDWR : O_WRONLY) | O_CREAT | O_APPEND | more;
    default:
        errno = EINVAL;
        return -1;
    }
}

static file *shim_fdopen(int fd, const char *mode)
{
    struct vc_arena *a = vc_arena_now();
    int flags = flags_of(mode);
    file *f = flags < 0 ? NULL : vc_arena_alloc(sizeof *f, 16);
    if (!f)
        return NULL;
    memset(f, 0, sizeof *f);
    f->fd = fd;
    f->open = 1;
    f->writes = (flags & O_ACCMODE) != O_RDONLY;
    f->next = a->files;
    a->files = f;
    return f;
}

static file *shim_fopen(const char *path, const char *mode)
{
    int flags = flags_of(mode), fd = flags < 0 ? -1 : vc_fd_open(path, flags, 0666);
    vc_process_called(vc_process_now);
    if (fd < 0)
        return NULL;
    file *f = shim_fdopen(fd, mode);
    if (!f)
        vc_fd_close(fd);
    return f;
}

static int shim_fclose(file *f)
{
    struct vc_arena *a = vc_arena_now();
    vc_process_called(vc_process_now);
    int status = flush(f);
    if (f->fd > 2 && vc_fd_close(f->fd) < 0)
        status = -1;
    f->open = 0;
    for (file **at = &a->files; *at; at = &(*at)->next) {
        if (*at != f)
            continue;
        *at = f->next;
        vc_arena_free(f->buffer);
        vc_arena_free(f);
        break;
    }
    return status;
}

/* ---- where and how ---- */

static int shim_fseeko(file *f, off_t offset, int whence)
{
    vc_process_called(vc_process_now);
    if (flush(f) < 0 || vc_fd_seek(f->fd, offset, whence) < 0)
        return -1;
    f->at_end = 0;
    f->glibc_flags &= ~GLIBC_EOF;
    return 0;
}

static off_t shim_ftello(file *f)
{
    off_t at = vc_fd_seek(f->fd, 0, SEEK_CUR);
    if (at < 0)
        return -1;
    return f->writes == 2 ? at + (off_t)f->have : at - (off_t)(f->have - f->at) - f->given_back;
}

static void shim_rewind(file *f)
{
    (void)shim_fseeko(f, 0, SEEK_SET);
    f->failed = 0;
    f->glibc_flags = 0;
}

static int shim_setvbuf(file *f, char *buffer, int mode, size_t n)
{
    (void)buffer, (void)n; /* ours serves */
    if (flush(f) < 0)
        return -1;
    f->lines = mode != _IOFBF;
    return 0;
}

static void shim_setbuf(file *f, char *buffer)
{
    (void)shim_setvbuf(f, buffer, buffer ? _IOFBF : _IONBF, BUFSIZ);
}

static int shim_feof(const file *f)
{
    return f->at_end;
}

static int shim_ferror(const file *f)
{
    return f->failed;
}

static void shim_clearerr(file *f)
{
    f->at_end = f->failed = 0;
    f->glibc_flags = 0;
}

static int shim_fileno(const file *f)
{
    return f->fd;
}

static void shim_nothing(void)
{
    /* flockfile and funlockfile: there is one thread */
}

const struct vc_shim vc_shim_stdio[] = {
    VC_SHIM(fflush),
    VC_SHIM_AS(fflush_unlocked, shim_fflush),
    VC_SHIM(fwrite),
    VC_SHIM_AS(fwrite_unlocked, shim_fwrite),
    VC_SHIM(fputs),
    VC_SHIM_AS(fputs_unlocked, shim_fputs),
    VC_SHIM(puts),
    VC_SHIM(fputc),
    VC_SHIM_AS(putc, shim_fputc),
    VC_SHIM_AS(_IO_putc, shim_fputc),
    VC_SHIM_AS(fputc_unlocked, shim_fputc),
    VC_SHIM_AS(putc_unlocked, shim_fputc),
    VC_SHIM(__overflow),
    VC_SHIM(putchar),
    VC_SHIM_AS(putchar_unlocked, shim_putchar),
    VC_SHIM(fgetc),
    VC_SHIM_AS(getc, shim_fgetc),
    VC_SHIM_AS(_IO_getc, shim_fgetc),
    VC_SHIM_AS(fgetc_unlocked, shim_fgetc),
    VC_SHIM_AS(getc_unlocked, shim_fgetc),
    VC_SHIM_AS(__uflow, shim_fgetc),
    VC_SHIM(getchar),
    VC_SHIM_AS(getchar_unlocked, shim_getchar),
    VC_SHIM(ungetc),
    VC_SHIM(fread),
    VC_SHIM_AS(fread_unlocked, shim_fread),
    VC_SHIM(fgets),
    VC_SHIM_AS(fgets_unlocked, shim_fgets),
    VC_SHIM(getdelim),
    VC_SHIM_AS(__getdelim, shim_getdelim),
    VC_SHIM(getline),
    VC_SHIM(fdopen),
    VC_SHIM(fopen),
    VC_SHIM_AS(fopen64, shim_fopen),
    VC_SHIM(fclose),
    VC_SHIM(fseeko),
    VC_SHIM_AS(fseek, shim_fseeko),
    VC_SHIM_AS(fseeko64, shim_fseeko),
    VC_SHIM(ftello),
    VC_SHIM_AS(ftell, shim_ftello),
    VC_SHIM_AS(ftello64, shim_ftello),
    VC_SHIM(rewind),
    VC_SHIM(setvbuf),
    VC_SHIM(setbuf),
    VC_SHIM(feof),
    VC_SHIM_AS(feof_unlocked, shim_feof),
    VC_SHIM(ferror),
    VC_SHIM_AS(ferror_unlocked, shim_ferror),
    VC_SHIM(clearerr),
    VC_SHIM(fileno),
    VC_SHIM_AS(fileno_unlocked, shim_fileno),
    VC_SHIM_AS(flockfile, shim_nothing),
    VC_SHIM_AS(funlockfile, shim_nothing),
    VC_SHIM_END,
};
