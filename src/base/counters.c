/* SPDX-License-Identifier: BSD-3-Clause
 *
 * counters.c - see counters.h. The descriptor of the memfd stays open, for it is what a reader finds; its number is
 * kept at the end of the page, past anything a version of the layout may use. Where the kernel can, nobody else is able
 * to write the page. Whatever a reader gets is untrusted: it works on a copy, reads no string past its end, and hands
 * no control characters to a terminal. */
#include "base/counters.h"
#include "base/error.h"
#include "base/limit.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#if !defined(F_SEAL_FUTURE_WRITE)
#define F_SEAL_FUTURE_WRITE 0x0010 /* Linux 5.1 */
#endif

static const char memfd_name[] = "runnel-counters";
static const char link_name[] = "/memfd:runnel-counters (deleted)";

enum { TAIL_BYTES = 64, HEAD_BYTES = offsetof(struct rnl_counters, messages_sent) };
static_assert(sizeof(struct rnl_counters) <= RNL_COUNTERS_BYTES - TAIL_BYTES, "the counters fit their page");
static_assert(HEAD_BYTES % 8 == 0, "counters follow the head");

static int *descriptor_of(struct rnl_counters *c)
{
    return (int *)(void *)((char *)c + RNL_COUNTERS_BYTES - TAIL_BYTES);
}

/* Is descriptor `name` of /proc/`proc`/fd a counters page? */
static int is_page(int fd_dir, const char *name)
{
    char target[sizeof link_name + 1];
    ssize_t n = readlinkat(fd_dir, name, target, sizeof target);
    return n == (ssize_t)sizeof link_name - 1 && memcmp(target, link_name, sizeof link_name - 1) == 0;
}

/* ---- ours ---- */

static void *map_memfd(int *fd)
{
    void *at = MAP_FAILED;
    *fd = memfd_create(memfd_name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (*fd < 0)
        return NULL;
    if (rnl_limit_allows_file(RNL_COUNTERS_BYTES) && ftruncate(*fd, RNL_COUNTERS_BYTES) == 0)
        at = mmap(NULL, RNL_COUNTERS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    if (at != MAP_FAILED) {
        int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
        if (fcntl(*fd, F_ADD_SEALS, seals | F_SEAL_FUTURE_WRITE) == 0 || fcntl(*fd, F_ADD_SEALS, seals) == 0)
            return at;
        munmap(at, RNL_COUNTERS_BYTES);
    }
    close(*fd);
    *fd = -1;
    return NULL;
}

int rnl_counters_new(uint32_t rank, uint32_t size, const char *program, uint64_t now_ns, struct rnl_counters **out)
{
    int fd;
    struct rnl_counters *c = map_memfd(&fd);
    if (c == NULL) {
        c = mmap(NULL, RNL_COUNTERS_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (c == MAP_FAILED)
            return rnl_fail_errno(RNL_ERR_NO_MEMORY, errno, "no memory for a counters page of %d bytes",
                                  RNL_COUNTERS_BYTES);
    }
    *descriptor_of(c) = fd;
    c->version = RNL_COUNTERS_VERSION;
    c->bytes = sizeof *c;
    c->pid = (uint32_t)getpid();
    c->rank = rank;
    c->size = size;
    c->start_ns = now_ns;
    if (program != NULL)
        strncpy(c->program, program, sizeof c->program - 1);
    __atomic_store_n(&c->magic, RNL_COUNTERS_MAGIC, __ATOMIC_RELEASE); /* a reader that finds no magic passes by */
    *out = c;
    return 0;
}

void rnl_counters_free(struct rnl_counters *c)
{
    if (c == NULL)
        return;
    int fd = *descriptor_of(c);
    struct stat st;
    munmap(c, RNL_COUNTERS_BYTES);
    /* On an old kernel others could write the number: close nothing but what looks like a counters page. Not by its
     * name: there may be no /proc here. */
    int have = fd >= 0 ? fcntl(fd, F_GET_SEALS) : -1, want = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    if (have >= 0 && (have & want) == want && fstat(fd, &st) == 0 && st.st_size == RNL_COUNTERS_BYTES)
        close(fd);
}

/* ---- somebody else's ---- */

/* What the process calls itself in its own name space: a page inherited over fork says another. 0 = not known. */
static uint32_t inner_pid(int pid)
{
    char path[32], line[256];
    uint32_t inner = 0;
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return 0;
    while (fgets(line, sizeof line, f) != NULL) {
        if (strncmp(line, "NSpid:", 6) != 0)
            continue;
        const char *last = strrchr(line, '\t');
        inner = last != NULL ? (uint32_t)strtoul(last, NULL, 10) : 0;
        break;
    }
    fclose(f);
    return inner;
}

/* 1 = *out is a page of ours, 0 = none, RNL_ERR_UNSUPPORTED. Never blocks, whatever took the descriptor's place
 * meanwhile. */
static int read_page(int fd_dir, const char *name, uint32_t pid, struct rnl_counters *out)
{
    struct stat st;
    ssize_t n = 0;
    int fd = openat(fd_dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return 0;
    memset(out, 0, sizeof *out);
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == RNL_COUNTERS_BYTES)
        n = pread(fd, out, sizeof *out, 0);
    close(fd);
    if (n != (ssize_t)sizeof *out || out->magic != RNL_COUNTERS_MAGIC)
        return 0;
    if (out->version != RNL_COUNTERS_VERSION)
        return RNL_ERR_UNSUPPORTED;
    if (out->bytes < HEAD_BYTES || out->bytes > RNL_COUNTERS_BYTES - TAIL_BYTES || (pid != 0 && out->pid != pid))
        return 0;
    if (out->bytes < sizeof *out)
        memset((char *)out + out->bytes, 0, sizeof *out - out->bytes); /* of an older library */
    else
        out->bytes = sizeof *out; /* of a newer one: what we do not know is not copied */
    out->program[sizeof out->program - 1] = '\0';
    for (char *p = out->program; *p != '\0'; p++)
        if (*p < ' ' || *p > '~')
            *p = '?';
    return 1;
}

int rnl_counters_read(int pid, struct rnl_counters *out, int n)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *dir = opendir(path);
    if (dir == NULL)
        return rnl_fail_errno(RNL_ERR_SYSTEM, errno, "cannot look into process %d", pid);
    uint32_t inner = inner_pid(pid);
    int found = 0, other_version = 0;
    const struct dirent *e;
    while (found < n && (e = readdir(dir)) != NULL) {
        if (!is_page(dirfd(dir), e->d_name))
            continue;
        int got = read_page(dirfd(dir), e->d_name, inner, &out[found]);
        if (got > 0)
            found++;
        else if (got < 0)
            other_version = 1;
    }
    closedir(dir);
    if (found == 0 && other_version)
        return rnl_fail(RNL_ERR_UNSUPPORTED, "process %d has a counters page of another version than %d", pid,
                        RNL_COUNTERS_VERSION);
    return found;
}

int rnl_counters_item(const struct rnl_counters *c, unsigned i, const char **name, const char **text, uint64_t *value)
{
    static const struct {
        const char *name, *text;
        size_t at;
    } items[] = {
#define ITEM(n, t) {#n, t, offsetof(struct rnl_counters, n)},
        RNL_COUNTERS(ITEM)
#undef ITEM
    };
    if (i >= sizeof items / sizeof *items || items[i].at + sizeof *value > c->bytes)
        return 0;
    *name = items[i].name;
    *text = items[i].text;
    *value = __atomic_load_n((const uint64_t *)(const void *)((const char *)c + items[i].at), __ATOMIC_RELAXED);
    return 1;
}
