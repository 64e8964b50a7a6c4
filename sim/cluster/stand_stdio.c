/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stand_stdio.c - streams of a copy. They are buffered in the copy's own heap, so a crash loses what was not flushed,
 * as it would. glibc's macros for single characters find zeros in the fields they look at and call the functions here.
 */
#include "sim/cluster/files.h"
#include "sim/cluster/inside.h"
#include "sim/cluster/stand.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct rnl_guest_file file;

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

static int have_buffer(file *f)
{
    if (f->buffer == NULL)
        f->buffer = rnl_arena_alloc(RNL_FILE_BUFFER, 16);
    return f->buffer != NULL;
}

/* ---- out ---- */

static int write_all(file *f, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t went = rnl_fd_write(f->fd, bytes, n);
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
        (void)rnl_fd_seek(f->fd, -(off_t)n, SEEK_CUR);
    return 0;
}

int rnl_file_put(file *f, const char *bytes, size_t n)
{
    if (!f->writes) {
        errno = EBADF;
        return fail(f);
    }
    if (f->fd <= 2 || f->lines || n >= RNL_FILE_BUFFER ||
        !have_buffer(f)) /* the rank's output is in lines in any case */
        return flush(f) < 0 ? -1 : write_all(f, bytes, n);
    if (f->writes == 1) {
        (void)flush(f);
        f->writes = 2;
    }
    if (f->have + n > RNL_FILE_BUFFER) {
        if (flush(f) < 0)
            return -1;
        f->writes = 2;
    }
    memcpy(f->buffer + f->have, bytes, n);
    f->have += n;
    return 0;
}

void rnl_files_flush(void)
{
    for (file *f = rnl_arena_now()->files; f != NULL; f = f->next)
        (void)flush(f);
}

static int stand_fflush(file *f)
{
    rnl_guest_called(rnl_guest_now);
    if (f != NULL)
        return flush(f);
    rnl_files_flush();
    return 0;
}

static size_t stand_fwrite(const void *from, size_t each, size_t n, file *f)
{
    size_t bytes;
    rnl_guest_called(rnl_guest_now);
    if (each == 0 || n == 0 || __builtin_mul_overflow(each, n, &bytes))
        return 0;
    return rnl_file_put(f, from, bytes) == 0 ? n : 0;
}

static int stand_fputs(const char *s, file *f)
{
    rnl_guest_called(rnl_guest_now);
    return rnl_file_put(f, s, strlen(s));
}

static int stand_puts(const char *s)
{
    return stand_fputs(s, rnl_arena_now()->out) < 0 ? EOF : stand_fputs("\n", rnl_arena_now()->out);
}

static int stand_fputc(int c, file *f)
{
    char byte = (char)c;
    rnl_guest_called(rnl_guest_now);
    return rnl_file_put(f, &byte, 1) < 0 ? EOF : (unsigned char)byte;
}

static int stand___overflow(file *f, int c)
{
    return stand_fputc(c, f);
}

static int stand_putchar(int c)
{
    return stand_fputc(c, rnl_arena_now()->out);
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
    ssize_t n = rnl_fd_read(f->fd, f->buffer, RNL_FILE_BUFFER);
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

static int stand_fgetc(file *f)
{
    rnl_guest_called(rnl_guest_now);
    return next(f);
}

static int stand_getchar(void)
{
    return stand_fgetc(rnl_arena_now()->in);
}

static int stand_ungetc(int c, file *f)
{
    if (c == EOF || f->given_back)
        return EOF;
    f->given_back = 1;
    f->back = (unsigned char)c;
    f->at_end = 0;
    f->glibc_flags &= ~GLIBC_EOF;
    return f->back;
}

static size_t stand_fread(void *to, size_t each, size_t n, file *f)
{
    size_t bytes, done = 0;
    rnl_guest_called(rnl_guest_now);
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

static char *stand_fgets(char *to, int n, file *f)
{
    int done = 0;
    rnl_guest_called(rnl_guest_now);
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

static ssize_t stand_getdelim(char **line, size_t *room, int delimiter, file *f)
{
    size_t n = 0;
    rnl_guest_called(rnl_guest_now);
    for (int c; (c = next(f)) != EOF;) {
        if (*line == NULL || n + 2 > *room) {
            size_t more = 2 * (n + 64);
            char *bigger = rnl_arena_alloc(more, 16);
            if (bigger == NULL)
                return fail(f);
            if (*line != NULL)
                memcpy(bigger, *line, n);
            rnl_arena_free(*line);
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

static ssize_t stand_getline(char **line, size_t *room, file *f)
{
    return stand_getdelim(line, room, '\n', f);
}

/* ---- opening and closing ---- */

/* -1: no mode of fopen's. */
static int flags_of(const char *mode)
{
    int both = strchr(mode, '+') != NULL, more = strchr(mode, 'x') != NULL ? O_EXCL : 0;
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

static file *stand_fdopen(int fd, const char *mode)
{
    struct rnl_arena *a = rnl_arena_now();
    int flags = flags_of(mode);
    file *f = flags < 0 ? NULL : rnl_arena_alloc(sizeof *f, 16);
    if (f == NULL)
        return NULL;
    memset(f, 0, sizeof *f);
    f->fd = fd;
    f->open = 1;
    f->writes = (flags & O_ACCMODE) != O_RDONLY;
    f->next = a->files;
    a->files = f;
    return f;
}

static file *stand_fopen(const char *path, const char *mode)
{
    int flags = flags_of(mode), fd = flags < 0 ? -1 : rnl_fd_open(path, flags, 0666);
    rnl_guest_called(rnl_guest_now);
    if (fd < 0)
        return NULL;
    file *f = stand_fdopen(fd, mode);
    if (f == NULL)
        rnl_fd_close(fd);
    return f;
}

static int stand_fclose(file *f)
{
    struct rnl_arena *a = rnl_arena_now();
    rnl_guest_called(rnl_guest_now);
    int status = flush(f);
    if (f->fd > 2 && rnl_fd_close(f->fd) < 0)
        status = -1;
    f->open = 0;
    for (file **at = &a->files; *at != NULL; at = &(*at)->next) {
        if (*at != f)
            continue;
        *at = f->next;
        rnl_arena_free(f->buffer);
        rnl_arena_free(f);
        break;
    }
    return status;
}

/* ---- where and how ---- */

static int stand_fseeko(file *f, off_t offset, int whence)
{
    rnl_guest_called(rnl_guest_now);
    if (flush(f) < 0 || rnl_fd_seek(f->fd, offset, whence) < 0)
        return -1;
    f->at_end = 0;
    f->glibc_flags &= ~GLIBC_EOF;
    return 0;
}

static off_t stand_ftello(file *f)
{
    off_t at = rnl_fd_seek(f->fd, 0, SEEK_CUR);
    if (at < 0)
        return -1;
    return f->writes == 2 ? at + (off_t)f->have : at - (off_t)(f->have - f->at) - f->given_back;
}

static void stand_rewind(file *f)
{
    (void)stand_fseeko(f, 0, SEEK_SET);
    f->failed = 0;
    f->glibc_flags = 0;
}

static int stand_setvbuf(file *f, char *buffer, int mode, size_t n)
{
    (void)buffer, (void)n; /* ours serves */
    if (flush(f) < 0)
        return -1;
    f->lines = mode != _IOFBF;
    return 0;
}

static void stand_setbuf(file *f, char *buffer)
{
    (void)stand_setvbuf(f, buffer, buffer ? _IOFBF : _IONBF, BUFSIZ);
}

static int stand_feof(const file *f)
{
    return f->at_end;
}

static int stand_ferror(const file *f)
{
    return f->failed;
}

static void stand_clearerr(file *f)
{
    f->at_end = f->failed = 0;
    f->glibc_flags = 0;
}

static int stand_fileno(const file *f)
{
    return f->fd;
}

static void stand_nothing(void)
{
    /* flockfile and funlockfile: there is one thread */
}

const struct rnl_stand rnl_stand_stdio[] = {
    RNL_STAND(fflush),
    RNL_STAND_AS(fflush_unlocked, stand_fflush),
    RNL_STAND(fwrite),
    RNL_STAND_AS(fwrite_unlocked, stand_fwrite),
    RNL_STAND(fputs),
    RNL_STAND_AS(fputs_unlocked, stand_fputs),
    RNL_STAND(puts),
    RNL_STAND(fputc),
    RNL_STAND_AS(putc, stand_fputc),
    RNL_STAND_AS(_IO_putc, stand_fputc),
    RNL_STAND_AS(fputc_unlocked, stand_fputc),
    RNL_STAND_AS(putc_unlocked, stand_fputc),
    RNL_STAND(__overflow),
    RNL_STAND(putchar),
    RNL_STAND_AS(putchar_unlocked, stand_putchar),
    RNL_STAND(fgetc),
    RNL_STAND_AS(getc, stand_fgetc),
    RNL_STAND_AS(_IO_getc, stand_fgetc),
    RNL_STAND_AS(fgetc_unlocked, stand_fgetc),
    RNL_STAND_AS(getc_unlocked, stand_fgetc),
    RNL_STAND_AS(__uflow, stand_fgetc),
    RNL_STAND(getchar),
    RNL_STAND_AS(getchar_unlocked, stand_getchar),
    RNL_STAND(ungetc),
    RNL_STAND(fread),
    RNL_STAND_AS(fread_unlocked, stand_fread),
    RNL_STAND(fgets),
    RNL_STAND_AS(fgets_unlocked, stand_fgets),
    RNL_STAND(getdelim),
    RNL_STAND_AS(__getdelim, stand_getdelim),
    RNL_STAND(getline),
    RNL_STAND(fdopen),
    RNL_STAND(fopen),
    RNL_STAND_AS(fopen64, stand_fopen),
    RNL_STAND(fclose),
    RNL_STAND(fseeko),
    RNL_STAND_AS(fseek, stand_fseeko),
    RNL_STAND_AS(fseeko64, stand_fseeko),
    RNL_STAND(ftello),
    RNL_STAND_AS(ftell, stand_ftello),
    RNL_STAND_AS(ftello64, stand_ftello),
    RNL_STAND(rewind),
    RNL_STAND(setvbuf),
    RNL_STAND(setbuf),
    RNL_STAND(feof),
    RNL_STAND_AS(feof_unlocked, stand_feof),
    RNL_STAND(ferror),
    RNL_STAND_AS(ferror_unlocked, stand_ferror),
    RNL_STAND(clearerr),
    RNL_STAND(fileno),
    RNL_STAND_AS(fileno_unlocked, stand_fileno),
    RNL_STAND_AS(flockfile, stand_nothing),
    RNL_STAND_AS(funlockfile, stand_nothing),
    RNL_STAND_END,
};
