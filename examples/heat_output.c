/* SPDX-License-Identifier: BSD-3-Clause
 *
 * heat_output.c - the heat example's outputs: each is written to a file without a name beside the place where it is to
 * be, and all of them get their names at the end. So a job that fails leaves the old ones, and nothing else. */
#include "heat.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_OUTPUTS = 2, MAX_TRIES = 100 };

struct output {
    const char *name;         /* as the user gave it */
    char path[PATH_MAX];      /* of the file it leads to, through links */
    char temporary[PATH_MAX]; /* a second name in the same directory; empty while the file has none */
    int fd;
    FILE *file;
};
static struct output outputs[MOST_OUTPUTS];
static size_t n_outputs;

static void remove_temporaries(void)
{
    for (size_t i = 0; i < MOST_OUTPUTS; i++)
        if (outputs[i].temporary[0] != '\0')
            unlink(outputs[i].temporary);
}

static void remove_and_end(int signal_number)
{
    remove_temporaries();
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static int directory_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? (int)(slash - path) + 1 : 0;
}

static void name_temporary(struct output *output, int tries)
{
    int n = snprintf(output->temporary, PATH_MAX, "%.*s.heat-%d-%d-%d", directory_length(output->path), output->path,
                     (int)getpid(), (int)(output - outputs), tries);
    if (n >= PATH_MAX) {
        output->temporary[0] = '\0';
        die("the path of %s is too long: name a file in the working directory", output->name);
    }
}

/* For file systems that know no files without a name. */
static void create_named(struct output *output)
{
    for (int tries = 0; output->fd < 0; tries++) {
        name_temporary(output, tries);
        output->fd = open(output->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (output->fd < 0 && (errno != EEXIST || tries == MAX_TRIES)) {
            output->temporary[0] = '\0';
            die("cannot write %s: %s. Name a file in a directory that exists and that you may write to", output->name,
                strerror(errno));
        }
    }
}

struct output *output_create(const char *path)
{
    struct output *output = &outputs[n_outputs];
    struct stat old;
    output->name = path;
    bool exists = stat(path, &old) == 0;
    if (exists && !S_ISREG(old.st_mode))
        die("%s is not a regular file, so it cannot be replaced: name a new file, or an old picture", path);
    if (exists && access(path, W_OK) != 0)
        die("cannot write %s: %s. Name another file", path, strerror(errno));
    if (!(exists ? realpath(path, output->path) != NULL : snprintf(output->path, PATH_MAX, "%s", path) < PATH_MAX))
        die("cannot write %s: %s", path, exists ? strerror(errno) : "its path is too long");
    for (size_t i = 0; i < n_outputs; i++)
        if (strcmp(outputs[i].path, output->path) == 0)
            die("%s would be written twice: name two files", path);
    if (n_outputs++ == 0) {
        atexit(remove_temporaries);
        signal(SIGINT, remove_and_end);
        signal(SIGTERM, remove_and_end);
        signal(SIGHUP, remove_and_end);
    }

    char directory[PATH_MAX];
    snprintf(directory, PATH_MAX, "%.*s", directory_length(output->path), output->path);
    output->fd = open(directory[0] != '\0' ? directory : ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
    if (output->fd < 0)
        create_named(output);
    if (exists && fchmod(output->fd, old.st_mode & 07777) != 0)
        die("cannot give the new %s the mode of the old one: %s. Remove the old one first", path, strerror(errno));
    output->file = fdopen(output->fd, "w");
    if (!output->file)
        die("no memory to write %s", path);
    return output;
}

static _Noreturn void die_writing(const struct output *output, int reason)
{
    die("cannot write %s: %s. Make room, or name a file where there is some", output->name, strerror(reason));
}

void output_write(struct output *output, const void *bytes, size_t size)
{
    if (fwrite(bytes, 1, size, output->file) != size)
        die_writing(output, errno);
}

static void name(struct output *output)
{
    char path[64];
    bool named = output->temporary[0] != '\0';
    if (fflush(output->file) != 0)
        die_writing(output, errno);
    snprintf(path, sizeof path, "/proc/self/fd/%d", output->fd);
    for (int tries = 0; !named; tries++) {
        name_temporary(output, tries);
        named = linkat(AT_FDCWD, path, AT_FDCWD, output->temporary, AT_SYMLINK_FOLLOW) == 0;
        if (!named && (errno != EEXIST || tries == MAX_TRIES)) {
            output->temporary[0] = '\0';
            die_writing(output, errno);
        }
    }
}

void outputs_publish(void)
{
    for (size_t i = 0; i < n_outputs; i++)
        name(&outputs[i]); /* what can fail for want of room fails before an old file is replaced */
    for (size_t i = 0; i < n_outputs; i++) {
        if (rename(outputs[i].temporary, outputs[i].path) != 0)
            die_writing(&outputs[i], errno);
        outputs[i].temporary[0] = '\0';
        if (fclose(outputs[i].file) != 0)
            die_writing(&outputs[i], errno);
    }
}
