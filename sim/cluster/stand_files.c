/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stand_files.c - descriptors of a copy: files of this machine, which all virtual hosts share. What would make a run
 * differ from the last one (devices, pipes, sockets, /proc but for descriptors of ranks of the same host) is refused.
 */
#include "sim/cluster/files.h"
#include "sim/cluster/inside.h"
#include "sim/cluster/stand.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* ---- numbers ---- */

/* Our descriptor behind the copy's, or -1. */
static int real(int fd)
{
    const struct rnl_guest *g = rnl_guest_now;
    if (fd > 2 && fd < RNL_GUEST_FDS && g->fds[fd] >= 0)
        return g->fds[fd];
    errno = EBADF;
    return -1;
}

/* Its number for a descriptor of ours, which is closed if it has none left. */
static int number(int ours)
{
    struct rnl_guest *g = rnl_guest_now;
    if (ours < 0)
        return -1;
    for (int fd = 3; fd < RNL_GUEST_FDS; fd++) {
        if (g->fds[fd] != -1)
            continue;
        g->fds[fd] = ours;
        return fd;
    }
    close(ours);
    errno = EMFILE;
    return -1;
}

/* ---- names ---- */

static int refused(int e)
{
    errno = e;
    return -1;
}

/* The rank with this number that runs on our host. */
static const struct rnl_guest *process(const char *text, size_t n)
{
    const struct rnl_guest *g = rnl_guest_now;
    const struct rnl_cluster *c = g->cluster;
    if (n == 4 && memcmp(text, "self", 4) == 0)
        return g;
    unsigned long pid = strtoul(text, NULL, 10);
    if (pid < RNL_GUEST_PID)
        return NULL;
    const struct rnl_guest *other = &c->guest[(pid - RNL_GUEST_PID) % c->opt.ranks];
    unsigned long its = RNL_GUEST_PID + other->rank + (unsigned long)(other->life - 1) * c->opt.ranks;
    return other->state == RNL_GUEST_LIVES && its == pid && other->host == g->host ? other : NULL;
}

/* Our name for the copy's; in `buf` if it differs. NULL: refused, errno is set. */
static const char *named(const char *path, char *buf, size_t n)
{
    static const char proc[] = "/proc/", fd_of[] = "/fd/";
    if (strncmp(path, proc, sizeof proc - 1) == 0) {
        const char *who = path + sizeof proc - 1, *slash = strchr(who, '/');
        if (slash != NULL && strncmp(slash, fd_of, sizeof fd_of - 1) == 0) {
            const struct rnl_guest *other = process(who, (size_t)(slash - who));
            unsigned long fd = strtoul(slash + sizeof fd_of - 1, NULL, 10);
            if (other != NULL && fd < RNL_GUEST_FDS && other->fds[fd] >= 0) {
                snprintf(buf, n, "/proc/self/fd/%d", other->fds[fd]);
                return buf;
            }
            errno = ENOENT;
            return NULL;
        }
    }
    if ((strncmp(path, proc, sizeof proc - 1) == 0 || strncmp(path, "/dev/", 5) == 0 ||
         strncmp(path, "/sys/", 5) == 0) &&
        strcmp(path, "/dev/null") != 0) {
        errno = EACCES;
        return NULL;
    }
    return path;
}

enum { NAME = 64 };

/* ---- what is shared with streams ---- */

int rnl_fd_open(const char *path, int flags, mode_t mode)
{
    char buf[NAME];
    struct stat st;
    const char *name = named(path, buf, sizeof buf);
    int ours = name ? open(name, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, mode) : -1;
    if (ours < 0)
        return -1;
    int plain = fstat(ours, &st) == 0 &&
                (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) || (S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3)));
    if (plain)
        return number(ours);
    close(ours);
    return refused(EACCES);
}

int rnl_fd_close(int fd)
{
    if (fd >= 0 && fd <= 2)
        return 0;
    int ours = real(fd);
    if (ours < 0)
        return -1;
    rnl_guest_now->fds[fd] = -1;
    return close(ours);
}

ssize_t rnl_fd_read(int fd, void *to, size_t n)
{
    if (fd == 0) /* the others' is empty, as with runnel run */
        return rnl_guest_now->rank == 0 ? read(STDIN_FILENO, to, n) : 0;
    int ours = real(fd);
    return ours < 0 ? -1 : read(ours, to, n);
}

ssize_t rnl_fd_write(int fd, const void *from, size_t n)
{
    if (fd == 1 || fd == 2) {
        rnl_guest_write(rnl_guest_now, fd, from, n);
        return (ssize_t)n;
    }
    int ours = real(fd);
    return ours < 0 ? -1 : write(ours, from, n);
}

off_t rnl_fd_seek(int fd, off_t offset, int whence)
{
    if (fd >= 0 && fd <= 2)
        return refused(ESPIPE);
    int ours = real(fd);
    return ours < 0 ? -1 : lseek(ours, offset, whence);
}

/* ---- the stand-ins ---- */

static int stand_open(const char *path, int flags, mode_t mode)
{
    rnl_guest_called(rnl_guest_now);
    return rnl_fd_open(path, flags, flags & (O_CREAT | O_TMPFILE) ? mode : 0);
}

static int stand_creat(const char *path, mode_t mode)
{
    return stand_open(path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

static int stand_openat(int directory, const char *path, int flags, mode_t mode)
{
    return directory == AT_FDCWD || path[0] == '/' ? stand_open(path, flags, mode) : refused(EACCES);
}

static int stand_close(int fd)
{
    rnl_guest_called(rnl_guest_now);
    return rnl_fd_close(fd);
}

static ssize_t stand_read(int fd, void *to, size_t n)
{
    rnl_guest_called(rnl_guest_now);
    return rnl_fd_read(fd, to, n);
}

static ssize_t stand_write(int fd, const void *from, size_t n)
{
    rnl_guest_called(rnl_guest_now);
    return rnl_fd_write(fd, from, n);
}

static ssize_t stand_pread(int fd, void *to, size_t n, off_t at)
{
    rnl_guest_called(rnl_guest_now);
    int ours = real(fd);
    return ours < 0 ? -1 : pread(ours, to, n, at);
}

static ssize_t stand_pwrite(int fd, const void *from, size_t n, off_t at)
{
    rnl_guest_called(rnl_guest_now);
    int ours = real(fd);
    return ours < 0 ? -1 : pwrite(ours, from, n, at);
}

static off_t stand_lseek(int fd, off_t offset, int whence)
{
    rnl_guest_called(rnl_guest_now);
    return rnl_fd_seek(fd, offset, whence);
}

static int stand_dup(int fd)
{
    int ours = real(fd);
    return ours < 0 ? -1 : number(fcntl(ours, F_DUPFD_CLOEXEC, 0));
}

static int stand_memfd_create(const char *name, unsigned flags)
{
    rnl_guest_called(rnl_guest_now);
    return number(memfd_create(name, flags | MFD_CLOEXEC));
}

/* When it was last looked at differs from run to run. */
static int told(int status, struct stat *st)
{
    if (status == 0) {
        memset(&st->st_atim, 0, sizeof st->st_atim);
        memset(&st->st_ctim, 0, sizeof st->st_ctim);
    }
    return status;
}

static int stand_fstat(int fd, struct stat *st)
{
    if (fd >= 0 && fd <= 2) {
        memset(st, 0, sizeof *st);
        st->st_mode = S_IFIFO | 0600;
        return 0;
    }
    int ours = real(fd);
    return ours < 0 ? -1 : told(fstat(ours, st), st);
}

static int stand_stat(const char *path, struct stat *st)
{
    char buf[NAME];
    const char *name = named(path, buf, sizeof buf);
    return name ? told(stat(name, st), st) : -1;
}

static int stand_lstat(const char *path, struct stat *st)
{
    char buf[NAME];
    const char *name = named(path, buf, sizeof buf);
    return name ? told(lstat(name, st), st) : -1;
}

static int stand_access(const char *path, int mode)
{
    char buf[NAME];
    const char *name = named(path, buf, sizeof buf);
    return name ? access(name, mode) : -1;
}

static int stand_unlink(const char *path)
{
    char buf[NAME];
    const char *name = named(path, buf, sizeof buf);
    return name ? unlink(name) : -1;
}

static int stand_mkdir(const char *path, mode_t mode)
{
    char buf[NAME];
    const char *name = named(path, buf, sizeof buf);
    return name ? mkdir(name, mode) : -1;
}

static int stand_rename(const char *from, const char *to)
{
    char buf[2][NAME];
    const char *old = named(from, buf[0], sizeof buf[0]), *new = named(to, buf[1], sizeof buf[1]);
    return old && new ? rename(old, new) : -1;
}

static int stand_linkat(int from_directory, const char *from, int to_directory, const char *to, int flags)
{
    char buf[2][NAME];
    if (from_directory != AT_FDCWD || to_directory != AT_FDCWD)
        return refused(EACCES);
    const char *old = named(from, buf[0], sizeof buf[0]), *new = named(to, buf[1], sizeof buf[1]);
    return old && new ? linkat(AT_FDCWD, old, AT_FDCWD, new, flags) : -1;
}

static char *stand_realpath(const char *path, char *to)
{
    char buf[NAME], resolved[PATH_MAX];
    const char *name = named(path, buf, sizeof buf);
    if (name == NULL || realpath(name, resolved) == NULL)
        return NULL;
    return to ? strcpy(to, resolved) : rnl_arena_text(resolved);
}

static char *stand_getcwd(char *to, size_t n)
{
    char path[PATH_MAX];
    if (getcwd(path, sizeof path) == NULL)
        return NULL;
    if (to == NULL)
        return rnl_arena_text(path);
    if (strlen(path) < n)
        return strcpy(to, path);
    errno = ERANGE;
    return NULL;
}

static int stand_fchmod(int fd, mode_t mode)
{
    int ours = real(fd);
    return ours < 0 ? -1 : fchmod(ours, mode);
}

static int stand_ftruncate(int fd, off_t bytes)
{
    int ours = real(fd);
    return ours < 0 ? -1 : ftruncate(ours, bytes);
}

static int stand_fsync(int fd)
{
    return real(fd) < 0 ? -1 : 0; /* what is written is kept in any case: no virtual machine loses power */
}

static int stand_isatty(int fd)
{
    (void)fd;
    errno = ENOTTY;
    return 0;
}

const struct rnl_stand rnl_stand_files[] = {
    RNL_STAND(open),
    RNL_STAND_AS(open64, stand_open),
    RNL_STAND_AS(creat64, stand_creat),
    RNL_STAND(openat),
    RNL_STAND(creat),
    RNL_STAND(close),
    RNL_STAND(read),
    RNL_STAND(write),
    RNL_STAND(pread),
    RNL_STAND_AS(pread64, stand_pread),
    RNL_STAND(pwrite),
    RNL_STAND_AS(pwrite64, stand_pwrite),
    RNL_STAND(lseek),
    RNL_STAND_AS(lseek64, stand_lseek),
    RNL_STAND(dup),
    RNL_STAND(memfd_create),
    RNL_STAND(fstat),
    RNL_STAND_AS(fstat64, stand_fstat),
    RNL_STAND(stat),
    RNL_STAND_AS(stat64, stand_stat),
    RNL_STAND(lstat),
    RNL_STAND_AS(lstat64, stand_lstat),
    RNL_STAND(access),
    RNL_STAND(unlink),
    RNL_STAND_AS(remove, stand_unlink),
    RNL_STAND(mkdir),
    RNL_STAND(rename),
    RNL_STAND(linkat),
    RNL_STAND(realpath),
    RNL_STAND(getcwd),
    RNL_STAND(fchmod),
    RNL_STAND(ftruncate),
    RNL_STAND_AS(ftruncate64, stand_ftruncate),
    RNL_STAND(fsync),
    RNL_STAND_AS(fdatasync, stand_fsync),
    RNL_STAND(isatty),
    RNL_STAND_END,
};
