/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shim_files.c - descriptors of a virtual process: files of this machine, which all virtual hosts share. What would
 * make a run differ from the last one (devices, pipes, sockets, /proc but for descriptors of ranks of the same host) is
 * refused.
 */
#include "sim/cluster/arena.h"
#include "sim/cluster/cluster_internal.h"
#include "sim/cluster/shim.h"

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

/* Our descriptor behind the process's, or -1. */
static int real(int fd)
{
    const struct vc_process *vp = vc_process_now;
    if (fd > 2 && fd < VC_PROCESS_FDS && vp->fds[fd] >= 0)
        return vp->fds[fd];
    errno = EBADF;
    return -1;
}

/* Its number for a descriptor of ours, which is closed if it has none left. */
static int number(int ours)
{
    struct vc_process *vp = vc_process_now;
    if (ours < 0)
        return -1;
    for (int fd = 3; fd < VC_PROCESS_FDS; fd++) {
        if (vp->fds[fd] != -1)
            continue;
        vp->fds[fd] = ours;
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
static const struct vc_process *process(const char *text, size_t n)
{
    const struct vc_process *vp = vc_process_now;
    const struct vc_cluster *c = vp->cluster;
    if (n == 4 && memcmp(text, "self", 4) == 0)
        return vp;
    unsigned long pid = strtoul(text, NULL, 10);
    if (pid < VC_PROCESS_PID)
        return NULL;
    const struct vc_process *other = &c->process[(pid - VC_PROCESS_PID) % c->opt.ranks];
    unsigned long its = VC_PROCESS_PID + other->rank + (unsigned long)(other->life - 1) * c->opt.ranks;
    return other->state == VC_PROCESS_LIVES && its == pid && other->host == vp->host ? other : NULL;
}

/* Our name for the process's; in `buf` if it differs. NULL: refused, errno is set. */
static const char *named(const char *path, char *buf, size_t n)
{
    static const char proc[] = "/proc/", fd_of[] = "/fd/";
    if (strncmp(path, proc, sizeof proc - 1) == 0) {
        const char *who = path + sizeof proc - 1, *slash = strchr(who, '/');
        if (slash && strncmp(slash, fd_of, sizeof fd_of - 1) == 0) {
            const struct vc_process *other = process(who, (size_t)(slash - who));
            unsigned long fd = strtoul(slash + sizeof fd_of - 1, NULL, 10);
            if (other && fd < VC_PROCESS_FDS && other->fds[fd] >= 0) {
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

int vc_fd_open(const char *path, int flags, mode_t mode)
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

int vc_fd_close(int fd)
{
    if (fd >= 0 && fd <= 2)
        return 0;
    int ours = real(fd);
    if (ours < 0)
        return -1;
    vc_process_now->fds[fd] = -1;
    return close(ours);
}

ssize_t vc_fd_read(int fd, void *to, size_t n)
{
    if (fd == 0) /* the others' is empty, as with runnel run */
        return vc_process_now->rank == 0 ? read(STDIN_FILENO, to, n) : 0;
    int ours = real(fd);
    return ours < 0 ? -1 : read(ours, to, n);
}

ssize_t vc_fd_write(int fd, const void *from, size_t n)
{
    if (fd == 1 || fd == 2) {
        vc_process_write(vc_process_now, fd, from, n);
        return (ssize_t)n;
    }
    int ours = real(fd);
    return ours < 0 ? -1 : write(ours, from, n);
}

off_t vc_fd_seek(int fd, off_t offset, int whence)
{
    if (fd >= 0 && fd <= 2)
        return refused(ESPIPE);
    int ours = real(fd);
    return ours < 0 ? -1 : lseek(ours, offset, whence);
}

/* ---- the shims ---- */

static int shim_open(const char *path, int flags, mode_t mode)
{
    vc_process_called(vc_process_now);
    return vc_fd_open(path, flags, flags & (O_CREAT | O_TMPFILE) ? mode : 0);
}

static int shim_creat(const char *path, mode_t mode)
{
    return shim_open(path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

static int shim_openat(int directory, const char *path, int flags, mode_t mode)
{
    return directory == AT_FDCWD || path[0] == '/' ? shim_open(path, flags, mode) : refused(EACCES);
}

static int shim_close(int fd)
{
    vc_process_called(vc_process_now);
    return vc_fd_close(fd);
}

static ssize_t shim_read(int fd, void *to, size_t n)
{
    vc_process_called(vc_process_now);
    return vc_fd_read(fd, to, n);
}

static ssize_t shim_write(int fd, const void *from, size_t n)
{
    vc_process_called(vc_process_now);
    return vc_fd_write(fd, from, n);
}

static ssize_t shim_pread(int fd, void *to, size_t n, off_t at)
{
    vc_process_called(vc_process_now);
    int ours = real(fd);
    return ours < 0 ? -1 : pread(ours, to, n, at);
}

static ssize_t shim_pwrite(int fd, const void *from, size_t n, off_t at)
{
    vc_process_called(vc_process_now);
    int ours = real(fd);
    return ours < 0 ? -1 : pwrite(ours, from, n, at);
}

static off_t shim_lseek(int fd, off_t offset, int whence)
{
    vc_process_called(vc_process_now);
    return vc_fd_seek(fd, offset, whence);
}

static int shim_dup(int fd)
{
    int ours = real(fd);
    return ours < 0 ? -1 : number(fcntl(ours, F_DUPFD_CLOEXEC, 0));
}

static int shim_memfd_create(const char *name, unsigned flags)
{
    vc_process_called(vc_process_now);
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

static int shim_fstat(int fd, struct stat *st)
{
    if (fd >= 0 && fd <= 2) {
        memset(st, 0, sizeof *st);
        st->st_mode = S_IFIFO | 0600;
        return 0;
    }
    int ours = real(fd);
    return ours < 0 ? -1 : told(fstat(ours, st), st);
}

static int shim_stat(const char *path, struct stat *st)
{
    char buf[NAME];
    const char *name = named(path, buf, sizeof buf);
    return name ? told(stat(name, st), st) : -1;
}

static int shim_lstat(const char *path, struct stat *st)
{
    char buf[NAME];
    const char *name = named(path, buf, sizeof buf);
    return name ? told(lstat(name, st), st) : -1;
}

static int shim_access(const char *path, int mode)
{
    char buf[NAME];
    const char *name = named(path, buf, sizeof buf);
    return name ? access(name, mode) : -1;
}

static int shim_unlink(const char *path)
{
    char buf[NAME];
    const char *name = named(path, buf, sizeof buf);
    return name ? unlink(name) : -1;
}

static int shim_mkdir(const char *path, mode_t mode)
{
    char buf[NAME];
    const char *name = named(path, buf, sizeof buf);
    return name ? mkdir(name, mode) : -1;
}

static int shim_rename(const char *from, const char *to)
{
    char buf[2][NAME];
    const char *old = named(from, buf[0], sizeof buf[0]), *new = named(to, buf[1], sizeof buf[1]);
    return old && new ? rename(old, new) : -1;
}

static int shim_linkat(int from_directory, const char *from, int to_directory, const char *to, int flags)
{
    char buf[2][NAME];
    if (from_directory != AT_FDCWD || to_directory != AT_FDCWD)
        return refused(EACCES);
    const char *old = named(from, buf[0], sizeof buf[0]), *new = named(to, buf[1], sizeof buf[1]);
    return old && new ? linkat(AT_FDCWD, old, AT_FDCWD, new, flags) : -1;
}

static char *shim_realpath(const char *path, char *to)
{
    char buf[NAME], resolved[PATH_MAX];
    const char *name = named(path, buf, sizeof buf);
    if (!name || !realpath(name, resolved))
        return NULL;
    return to ? strcpy(to, resolved) : vc_arena_text(resolved);
}

static char *shim_getcwd(char *to, size_t n)
{
    char path[PATH_MAX];
    if (!getcwd(path, sizeof path))
        return NULL;
    if (!to)
        return vc_arena_text(path);
    if (strlen(path) < n)
        return strcpy(to, path);
    errno = ERANGE;
    return NULL;
}

static int shim_fchmod(int fd, mode_t mode)
{
    int ours = real(fd);
    return ours < 0 ? -1 : fchmod(ours, mode);
}

static int shim_ftruncate(int fd, off_t bytes)
{
    int ours = real(fd);
    return ours < 0 ? -1 : ftruncate(ours, bytes);
}

static int shim_fsync(int fd)
{
    return real(fd) < 0 ? -1 : 0; /* what is written is kept in any case: no virtual machine loses power */
}

static int shim_isatty(int fd)
{
    (void)fd;
    errno = ENOTTY;
    return 0;
}

const struct vc_shim vc_shim_files[] = {
    VC_SHIM(open),
    VC_SHIM_AS(open64, shim_open),
    VC_SHIM_AS(creat64, shim_creat),
    VC_SHIM(openat),
    VC_SHIM(creat),
    VC_SHIM(close),
    VC_SHIM(read),
    VC_SHIM(write),
    VC_SHIM(pread),
    VC_SHIM_AS(pread64, shim_pread),
    VC_SHIM(pwrite),
    VC_SHIM_AS(pwrite64, shim_pwrite),
    VC_SHIM(lseek),
    VC_SHIM_AS(lseek64, shim_lseek),
    VC_SHIM(dup),
    VC_SHIM(memfd_create),
    VC_SHIM(fstat),
    VC_SHIM_AS(fstat64, shim_fstat),
    VC_SHIM(stat),
    VC_SHIM_AS(stat64, shim_stat),
    VC_SHIM(lstat),
    VC_SHIM_AS(lstat64, shim_lstat),
    VC_SHIM(access),
    VC_SHIM(unlink),
    VC_SHIM_AS(remove, shim_unlink),
    VC_SHIM(mkdir),
    VC_SHIM(rename),
    VC_SHIM(linkat),
    VC_SHIM(realpath),
    VC_SHIM(getcwd),
    VC_SHIM(fchmod),
    VC_SHIM(ftruncate),
    VC_SHIM_AS(ftruncate64, shim_ftruncate),
    VC_SHIM(fsync),
    VC_SHIM_AS(fdatasync, shim_fsync),
    VC_SHIM(isatty),
    VC_SHIM_END,
};
