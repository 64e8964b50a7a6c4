/* SPDX-License-Identifier: BSD-3-Clause
 *
 * counters.c - makes, finds and reads pages of counters. The descriptor of the memfd stays open, since a reader finds
 * the page by it; its number is kept at the end of the page, past anything that a version of the layout may use. Where
 * the kernel can seal the page, no other process is able to write it. A page that is read is untrusted: the reader
 * works on a copy, reads no string past its end, and passes no control characters to a terminal. */
#include "base/counters.h"
#include "base/bug.h"
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
#define F_SEAL_FUTURE_WRITE 0x0010 /* since Linux 5.1 */
#endif

static const char memfd_name[] = "runnel-counters";
static const char link_name[] = "/memfd:runnel-counters (deleted)";

enum { TAIL_BYTES = 64, HEAD_BYTES = offsetof(struct rnl_counters, messages_sent) };
static_assert(sizeof(struct rnl_counters) <= RNL_COUNTERS_BYTES - TAIL_BYTES, "the counters fit their page");
static_assert(HEAD_BYTES % 8 == 0, "counters follow the head");
static_assert(sizeof(struct rnl_counters_page) <= RNL_COUNTERS_BYTES - TAIL_BYTES, "so do those of interfaces");
static_assert(offsetof(struct rnl_counters_page, used) == 1024 && offsetof(struct rnl_counters_page, value) == 1032 &&
                  offsetof(struct rnl_counters_page, label) == 1200 && sizeof(struct rnl_counters_label) == 132,
              "layout drawn in counters.h");

static int *descriptor_of(struct rnl_counters *c)
{
    return (int *)(void *)((char *)c + RNL_COUNTERS_BYTES - TAIL_BYTES);
}

/* Returns whether descriptor `name` of /proc/PID/fd is a page of counters. */
static bool is_page(int fd_dir, const char *name)
{
    char target[sizeof link_name + 1];
    ssize_t n = readlinkat(fd_dir, name, target, sizeof target);
    return n == (ssize_t)sizeof link_name - 1 && memcmp(target, link_name, sizeof link_name - 1) == 0;
}

/* ---- the own page ---- */

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
    if (!c) {
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
    if (program)
        strncpy(c->program, program, sizeof c->program - 1);
    __atomic_store_n(&c->magic, RNL_COUNTERS_MAGIC, __ATOMIC_RELEASE); /* readers ignore a page without it */
    *out = c;
    return 0;
}

void rnl_counters_free(struct rnl_counters *c)
{
    if (!c)
        return;
    int fd = *descriptor_of(c);
    struct stat st;
    __atomic_store_n(&c->magic, 0, __ATOMIC_RELAXED); /* for who has it mapped */
    munmap(c, RNL_COUNTERS_BYTES);
    /* On an old kernel other processes could write the number, so only what looks like a page of counters is closed.
     * Its name does not tell, for there may be no /proc here. */
    int have = fd >= 0 ? fcntl(fd, F_GET_SEALS) : -1, want = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    if (have >= 0 && (have & want) == want && fstat(fd, &st) == 0 && st.st_size == RNL_COUNTERS_BYTES)
        close(fd);
}

/* Returns whether the label is that of counter `name` of interface `prefix`. */
static bool is_label(const struct rnl_counters_label *label, const char *name, const char *prefix)
{
    size_t n = strlen(prefix);
    return strncmp(label->name, prefix, n) == 0 && label->name[n] == '.' && strcmp(label->name + n + 1, name) == 0;
}

int rnl_counters_add(struct rnl_counters *c, const char *prefix, const struct rnl_counter_text *table, uint64_t **out)
{
    struct rnl_counters_page *p = (struct rnl_counters_page *)(void *)c;
    uint64_t n = 0;
    while (table[n].name)
        n++;
    for (uint64_t i = 0; i + n <= p->used; i++)
        if (n > 0 && is_label(&p->label[i], table[0].name, prefix)) {
            *out = &p->value[i];
            return 0;
        }
    if (n > RNL_COUNTERS_IFACE_MAX - p->used)
        return rnl_fail(RNL_ERR_NO_MEMORY,
                        "the interface %s has %u counters, and the page of this endpoint has room for %u more", prefix,
                        (unsigned)n, RNL_COUNTERS_IFACE_MAX - (unsigned)p->used);
    *out = &p->value[p->used];
    for (uint64_t i = 0; i < n; i++) {
        struct rnl_counters_label *label = &p->label[p->used + i];
        snprintf(label->name, sizeof label->name, "%s.%s", prefix, table[i].name);
        snprintf(label->text, sizeof label->text, "%s", table[i].text);
    }
    __atomic_store_n(&p->used, p->used + n, __ATOMIC_RELEASE); /* a reader that counts a label finds it complete */
    return 0;
}

/* ---- pages of other processes ---- */

uint32_t rnl_counters_inner_pid(int pid)
{
    char path[32], line[256];
    uint32_t inner = 0;
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return 0;
    while (fgets(line, sizeof line, f)) {
        if (strncmp(line, "NSpid:", 6) != 0)
            continue;
        const char *last = strrchr(line, '\t');
        inner = last ? (uint32_t)strtoul(last, NULL, 10) : 0;
        break;
    }
    fclose(f);
    return inner;
}

/* Ends a text of n bytes, and leaves nothing in it that would move a terminal's cursor. */
static void clean(char *text, size_t n)
{
    text[n - 1] = '\0';
    for (; *text != '\0'; text++)
        if (*text < ' ' || *text > '~')
            *text = '?';
}

static void clean_page(struct rnl_counters_page *p)
{
    clean(p->core.program, sizeof p->core.program);
    if (p->used > RNL_COUNTERS_IFACE_MAX && !RNL_BUG(counters_trust_used))
        p->used = RNL_COUNTERS_IFACE_MAX;
    for (unsigned i = 0; i < RNL_COUNTERS_IFACE_MAX; i++) {
        clean(p->label[i].name, sizeof p->label[i].name);
        clean(p->label[i].text, sizeof p->label[i].text);
    }
}

/* Returns 1 if *page, which was copied, is a page of process pid (0 = of any), 0 if not, or RNL_ERR_UNSUPPORTED. */
static int check_page(struct rnl_counters_page *page, uint32_t pid)
{
    struct rnl_counters *out = &page->core;
    if (out->magic != RNL_COUNTERS_MAGIC)
        return 0;
    if (out->version != RNL_COUNTERS_VERSION)
        return RNL_ERR_UNSUPPORTED;
    if (out->bytes < HEAD_BYTES || out->bytes > RNL_COUNTERS_BYTES - TAIL_BYTES || (pid != 0 && out->pid != pid))
        return 0;
    if (out->bytes < sizeof *out)
        memset((char *)out + out->bytes, 0, sizeof *out - out->bytes); /* written by an older library */
    else
        out->bytes = sizeof *out; /* written by a newer library: unknown counters are not copied */
    clean_page(page);
    return 1;
}

/* Maps a page if nothing can take it away from under its readers, or leaves *view as it is. */
static void map_view(int fd, struct rnl_counters_view *view)
{
    const int seals = fcntl(fd, F_GET_SEALS);
    void *at = seals < 0 || !(seals & F_SEAL_SHRINK) ? MAP_FAILED
                                                     : mmap(NULL, RNL_COUNTERS_BYTES, PROT_READ, MAP_SHARED, fd, 0);
    if (at != MAP_FAILED)
        view->at = at;
}

/* Copies a page, and maps it unless view is NULL. Returns what check_page does. Never blocks, whatever has taken the
 * descriptor's place meanwhile. */
static int read_page(int fd_dir, const char *name, uint32_t pid, struct rnl_counters_page *page,
                     struct rnl_counters_view *view)
{
    struct stat st;
    ssize_t n = 0;
    int fd = openat(fd_dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return 0;
    memset(page, 0, sizeof *page);
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == RNL_COUNTERS_BYTES)
        n = pread(fd, page, sizeof *page, 0);
    const int good = n == (ssize_t)sizeof *page ? check_page(page, pid) : 0;
    if (good > 0 && view) {
        *view = (struct rnl_counters_view){.fd = atoi(name)};
        map_view(fd, view);
    }
    close(fd);
    return good > 0 && view && !view->at ? 0 : good;
}

bool rnl_counters_again(int pid, const struct rnl_counters_view *view, struct rnl_counters_page *page)
{
    char name[48];
    const uint32_t inner = page->core.pid;
    const uint64_t start_ns = page->core.start_ns;
    snprintf(name, sizeof name, "/proc/%d/fd/%d", pid, view->fd);
    if (!is_page(AT_FDCWD, name))
        return false;
    memcpy(page, view->at, sizeof *page);
    return check_page(page, inner) > 0 && page->core.start_ns == start_ns;
}

void rnl_counters_unview(struct rnl_counters_view *view)
{
    if (view->at)
        munmap((void *)(uintptr_t)view->at, RNL_COUNTERS_BYTES);
    view->at = NULL;
}

int rnl_counters_read(int pid, struct rnl_counters_page *out, int n)
{
    return rnl_counters_find(pid, out, NULL, n);
}

int rnl_counters_find(int pid, struct rnl_counters_page *out, struct rnl_counters_view *view, int n)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *dir = opendir(path);
    if (!dir)
        return rnl_fail_errno(RNL_ERR_SYSTEM, errno, "cannot look into process %d", pid);
    uint32_t inner = rnl_counters_inner_pid(pid);
    int found = 0, other_version = 0;
    const struct dirent *e;
    while (found < n && (e = readdir(dir)) != NULL) {
        if (!is_page(dirfd(dir), e->d_name))
            continue;
        int got = read_page(dirfd(dir), e->d_name, inner, &out[found], view ? &view[found] : NULL);
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

bool rnl_counters_item(const struct rnl_counters_page *p, unsigned i, const char **name, const char **text,
                       uint64_t *value)
{
    static const struct {
        const char *name, *text;
        size_t at;
    } items[] = {
#define ITEM(n, t) {#n, t, offsetof(struct rnl_counters, n)},
        RNL_COUNTERS(ITEM)
#undef ITEM
    };
    unsigned known = 0;
    const uint64_t *from;
    while (known < sizeof items / sizeof *items && items[known].at + sizeof *value <= p->core.bytes)
        known++;
    if (i < known) {
        *name = items[i].name;
        *text = items[i].text;
        from = (const uint64_t *)(const void *)((const char *)p + items[i].at);
    } else if (i - known < p->used) {
        *name = p->label[i - known].name;
        *text = p->label[i - known].text;
        from = &p->value[i - known];
    } else {
        return false;
    }
    *value = __atomic_load_n(from, __ATOMIC_RELAXED);
    return true;
}
