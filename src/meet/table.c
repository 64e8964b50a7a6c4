/* SPDX-License-Identifier: BSD-3-Clause
 *
 * table.c - makes and reads the table of table.h. */
#include "meet/table.h"

#include "base/counters.h"
#include "job/fds.h"

#include <dirent.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#if !defined(F_SEAL_FUTURE_WRITE)
#define F_SEAL_FUTURE_WRITE 0x0010 /* since Linux 5.1 */
#endif

static const char link_name[] = "/memfd:runnel-peers (deleted)";

static size_t bytes_of(uint32_t size)
{
    return sizeof(struct rnl_meet_table) + size * sizeof(struct rnl_meet_row);
}

int rnl_meet_table_new(uint32_t size, struct rnl_meet_table **out)
{
    int fd;
    if (rnl_memfd_new("runnel-peers", bytes_of(size), 0, &fd) < 0)
        return -1;
    struct rnl_meet_table *t = mmap(NULL, bytes_of(size), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (t == MAP_FAILED) {
        close(fd);
        return -1;
    }
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_FUTURE_WRITE) < 0)
        (void)fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL);
    t->version = RNL_MEET_TABLE_VERSION;
    t->pid = (uint32_t)getpid();
    t->size = size;
    __atomic_store_n(&t->magic, RNL_MEET_TABLE_MAGIC, __ATOMIC_RELEASE); /* readers ignore a table without it */
    *out = t;
    return fd;
}

void rnl_meet_table_free(struct rnl_meet_table *t, uint32_t size, int fd)
{
    if (t)
        munmap(t, bytes_of(size));
    if (fd >= 0)
        close(fd);
}

/* Returns the rows of the table behind descriptor `name`, or -1. Never blocks, whatever is there. */
static int read_table(int fd_dir, const char *name, uint32_t pid, struct rnl_meet_row *rows)
{
    char target[sizeof link_name + 1];
    struct rnl_meet_table head;
    struct stat st;
    ssize_t n = readlinkat(fd_dir, name, target, sizeof target);
    if (n != (ssize_t)sizeof link_name - 1 || memcmp(target, link_name, sizeof link_name - 1) != 0)
        return -1;
    int fd = openat(fd_dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -1;
    bool good = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && pread(fd, &head, sizeof head, 0) == sizeof head &&
                head.magic == RNL_MEET_TABLE_MAGIC && head.version == RNL_MEET_TABLE_VERSION &&
                head.size <= RNL_MEET_TABLE_MOST && (pid == 0 || head.pid == pid);
    const size_t bytes = good ? head.size * sizeof *rows : 0;
    good = good && pread(fd, rows, bytes, sizeof head) == (ssize_t)bytes;
    close(fd);
    return good ? (int)head.size : -1;
}

int rnl_meet_table_read(int pid, unsigned n, struct rnl_meet_row *rows)
{
    char path[32];
    int size = -1;
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *dir = opendir(path);
    if (!dir)
        return -1;
    const uint32_t inner = rnl_counters_inner_pid(pid);
    for (const struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        size = read_table(dirfd(dir), e->d_name, inner, rows);
        if (size >= 0 && n-- == 0)
            break;
        size = -1;
    }
    closedir(dir);
    return size;
}
