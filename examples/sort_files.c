/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sort_files.c - the files of the sort example: lines of a share of the input, and the one output that all ranks write.
 * Ranks of one host open each other's files without names as /proc/PID/fd/N. */
#include "sort.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_BYTES = 256 << 10, MORE_BYTES = 4 << 10, MAX_TRIES = 100 };

/* --- input --- */

static char *copy_text(const char *text)
{
    size_t bytes = strlen(text) + 1;
    return memcpy(allocate(bytes), text, bytes);
}

void input_add(struct input *input, const char *path, uint64_t bytes)
{
    input->files = realloc(input->files, (input->n + 1) * sizeof *input->files);
    if (!input->files)
        die("no memory for the names of the inputs");
    input->files[input->n++] = (struct input_file){copy_text(path), bytes};
    input->bytes += bytes;
}

void input_free(struct input *input)
{
    for (size_t i = 0; i < input->n; i++)
        free(input->files[i].path);
    free(input->files);
}

/* Returns the path of a copy in memory, which lives as long as this process. */
static char *copy_to_memory(int fd, const char *path, uint64_t *bytes)
{
    static char buffer[64 << 10];
    int copy = memfd_create("sort-input", MFD_CLOEXEC);
    if (copy < 0)
        die("cannot make a file in memory for %s: %s", path, strerror(errno));
    ssize_t got;
    for (*bytes = 0; (got = read(fd, buffer, sizeof buffer)) != 0; *bytes += (uint64_t)got) {
        if (got < 0)
            die("cannot read %s: %s", path, strerror(errno));
        if (write(copy, buffer, (size_t)got) != got)
            die("no memory for what comes from %s: save it in a file and sort that", path);
    }
    char name[64];
    snprintf(name, sizeof name, "/proc/%d/fd/%d", (int)getpid(), copy);
    return copy_text(name);
}

void input_measure(struct input *input)
{
    input->bytes = 0;
    for (size_t i = 0; i < input->n; i++) {
        struct input_file *file = &input->files[i];
        bool standard = strcmp(file->path, "-") == 0;
        int fd = standard ? STDIN_FILENO : open(file->path, O_RDONLY | O_CLOEXEC);
        struct stat status;
        if (fd < 0 || fstat(fd, &status) != 0)
            die("cannot read %s: %s", file->path, strerror(errno));
        if (S_ISDIR(status.st_mode))
            die("%s is a directory: name the files in it", file->path);
        if (standard || !S_ISREG(status.st_mode)) {
            char *copy = copy_to_memory(fd, file->path, &file->bytes);
            free(file->path);
            file->path = copy;
        } else {
            file->bytes = (uint64_t)status.st_size;
        }
        input->bytes += file->bytes;
        if (!standard)
            close(fd);
    }
}

void reader_open(struct reader *r, const struct input *input, uint64_t begin, uint64_t end)
{
    *r = (struct reader){.input = input, .begin = begin, .end = end, .fd = -1, .capacity = READ_BYTES};
    r->buffer = allocate(r->capacity);
}

void reader_close(struct reader *r)
{
    free(r->buffer);
    if (r->fd >= 0)
        close(r->fd);
}

/* Opens the next file that has lines for us. */
static bool open_file(struct reader *r)
{
    for (; r->file < r->input->n && r->file_begin < r->end; r->file_begin += r->input->files[r->file++].bytes) {
        const struct input_file *file = &r->input->files[r->file];
        if (file->bytes == 0 || r->file_begin + file->bytes <= r->begin)
            continue;
        r->fd = open(file->path, O_RDONLY | O_CLOEXEC);
        if (r->fd < 0)
            die("cannot read %s: %s", file->path, strerror(errno));
        /* A line starts after a newline: so look at the byte before our first one, too. */
        r->in_line = r->begin > r->file_begin;
        r->next = r->in_line ? r->begin - r->file_begin - 1 : 0;
        r->at = r->next;
        r->given = r->have = 0;
        return true;
    }
    return false;
}

static void close_file(struct reader *r)
{
    close(r->fd);
    r->fd = -1;
    r->file_begin += r->input->files[r->file++].bytes;
}

/* Reads more, to our end and then only as much as the last line needs; adds the newline that a file may lack. */
static void read_more(struct reader *r)
{
    const struct input_file *file = &r->input->files[r->file];
    if (r->given > 0) {
        memmove(r->buffer, r->buffer + r->given, r->have - r->given);
        r->have -= r->given;
        r->given = 0;
    }
    if (r->capacity - r->have < MORE_BYTES + SORT_SLACK + 1) {
        r->capacity *= 2; /* a long line */
        r->buffer = realloc(r->buffer, r->capacity);
        if (!r->buffer)
            die("no memory for a line of more than %zu bytes", r->have);
    }
    size_t room = r->capacity - r->have - SORT_SLACK - 1;
    uint64_t left = file->bytes - r->next, ours = r->end - r->file_begin;
    size_t wanted = left < room ? (size_t)left : room;
    if (r->next < ours && wanted > ours - r->next)
        wanted = (size_t)(ours - r->next);
    else if (r->next >= ours && wanted > MORE_BYTES + r->have)
        wanted = MORE_BYTES + r->have;
    ssize_t got = pread(r->fd, r->buffer + r->have, wanted, (off_t)r->next);
    if (got < 0)
        die("cannot read %s: %s", file->path, strerror(errno));
    if (got == 0)
        die("%s became shorter while it was read", file->path);
    r->have += (size_t)got;
    r->next += (uint64_t)got;
    if (r->next == file->bytes && r->buffer[r->have - 1] != '\n')
        r->buffer[r->have++] = '\n';
}

static void drop(struct reader *r, size_t bytes)
{
    r->given += bytes;
    r->at += bytes;
}

bool reader_next(struct reader *r, struct lines *lines)
{
    while (r->fd >= 0 || open_file(r)) {
        uint64_t file_bytes = r->input->files[r->file].bytes, end = r->end - r->file_begin;
        uint64_t ours = end < file_bytes ? end : file_bytes; /* lines that start before this offset */
        if (r->at >= ours) {
            close_file(r);
            continue;
        }
        unsigned char *bytes = r->buffer + r->given, *newline;
        size_t size = r->have - r->given;
        if (r->in_line && size > 0) {
            newline = memchr(bytes, '\n', size);
            r->in_line = !newline;
            drop(r, newline != NULL ? (size_t)(newline - bytes) + 1 : size);
            continue;
        }
        if (r->at + size < ours) {
            newline = size > 0 ? memrchr(bytes, '\n', size) : NULL;
        } else { /* our last byte is here: its line ends with the next newline */
            size_t before = (size_t)(ours - 1 - r->at);
            newline = memchr(bytes + before, '\n', size - before);
        }
        if (newline != NULL) {
            size = (size_t)(newline - bytes) + 1;
            *lines = (struct lines){bytes, size, r->file_begin + r->at};
            drop(r, size);
            return true;
        }
        read_more(r);
    }
    return false;
}

/* --- output --- */

static struct {
    const char *name;         /* as the user gave it */
    char path[PATH_MAX];      /* of the file it leads to, through links */
    char temporary[PATH_MAX]; /* a second name in the same directory; empty while the file has none */
    int fd;
} output = {.fd = -1};

/* It has one on file systems that know no files without a name, and for a moment at the end: it must go when the job
 * ends early. */
static void remove_temporary(void)
{
    if (output.temporary[0] != '\0')
        unlink(output.temporary);
}

static void remove_and_end(int signal_number)
{
    remove_temporary();
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void name_temporary(int tries)
{
    const char *slash = strrchr(output.path, '/');
    int directory = slash != NULL ? (int)(slash - output.path) + 1 : 0;
    int n = snprintf(output.temporary, sizeof output.temporary, "%.*s.sort-%d-%d", directory, output.path,
                     (int)getpid(), tries);
    if (n >= (int)sizeof output.temporary) {
        output.temporary[0] = '\0';
        die("the path of %s is too long", output.name);
    }
}

static void create_named(void)
{
    for (int tries = 0; output.fd < 0; tries++) {
        name_temporary(tries);
        output.fd = open(output.temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (output.fd < 0 && (errno != EEXIST || tries == MAX_TRIES)) {
            output.temporary[0] = '\0';
            die("cannot write %s: %s. A new file is made in its directory first", output.name, strerror(errno));
        }
    }
}

void output_create(const char *path)
{
    output.name = path;
    atexit(remove_temporary);
    signal(SIGINT, remove_and_end);
    signal(SIGTERM, remove_and_end);
    signal(SIGHUP, remove_and_end);
    struct stat old;
    bool exists = stat(path, &old) == 0;
    if (exists && !S_ISREG(old.st_mode))
        die("%s is not a regular file: each rank writes its own part of the output, which only a file allows", path);
    if (exists && access(path, W_OK) != 0)
        die("cannot write %s: %s", path, strerror(errno));
    if (!(exists ? realpath(path, output.path) != NULL : snprintf(output.path, PATH_MAX, "%s", path) < PATH_MAX))
        die("cannot write %s: %s", path, exists ? strerror(errno) : "its path is too long");

    char directory[PATH_MAX];
    memcpy(directory, output.path, PATH_MAX);
    char *slash = strrchr(directory, '/');
    if (slash != NULL)
        slash[1] = '\0';
    output.fd = open(slash != NULL ? directory : ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
    if (output.fd < 0)
        create_named();
    if (exists && fchmod(output.fd, old.st_mode & 07777) != 0)
        die("cannot give the new %s the mode of the old one: %s", path, strerror(errno));
}

int output_descriptor(void)
{
    return output.fd;
}

void output_open(pid_t creator, int descriptor)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)creator, descriptor);
    output.name = "the output";
    output.fd = open(path, O_RDWR | O_CLOEXEC);
    if (output.fd < 0)
        die("cannot open the output that rank 0 has made (%s): %s", path, strerror(errno));
}

void output_write(const void *bytes, size_t size, uint64_t offset)
{
    if (output.fd < 0) {
        pass_to_writer(bytes, size, offset);
        return;
    }
    for (const char *p = bytes; size > 0;) {
        ssize_t written = pwrite(output.fd, p, size, (off_t)offset);
        if (written <= 0)
            die("cannot write %s: %s", output.name, written < 0 ? strerror(errno) : "nothing was written");
        p += written;
        size -= (size_t)written;
        offset += (uint64_t)written;
    }
}

void output_publish(void)
{
    bool named = output.temporary[0] != '\0';
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", output.fd);
    for (int tries = 0; !named && tries < MAX_TRIES; tries++) {
        name_temporary(tries);
        named = linkat(AT_FDCWD, path, AT_FDCWD, output.temporary, AT_SYMLINK_FOLLOW) == 0;
        if (!named && errno != EEXIST)
            break;
    }
    if (!named || rename(output.temporary, output.path) != 0) {
        int reason = errno;
        if (named)
            unlink(output.temporary);
        output.temporary[0] = '\0';
        die("cannot write %s: %s", output.name, strerror(reason));
    }
    output.temporary[0] = '\0';
    if (close(output.fd) != 0)
        die("cannot write %s: %s", output.name, strerror(errno));
}
