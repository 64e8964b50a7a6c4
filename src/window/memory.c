/* SPDX-License-Identifier: BSD-3-Clause
 *
 * memory.c - the memory of windows: sealed memory files that this process and its importers map. A window keeps its
 * address when its memory is moved to another file, and what a child process of fork sees is a private copy. Where an
 * endpoint is not of a real host (the virtual cluster), windows are plain memory, and all their imports carried. */
#include "window/window_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* ---- files ---- */

static int no_memory(size_t bytes)
{
    return rnl_fail_errno(
        errno == EMFILE || errno == ENFILE ? RNL_ERR_SYSTEM : RNL_ERR_NO_MEMORY, errno,
        "no memory for a window of %zu bytes: see the limits of memory, files and descriptors (ulimit "
        "-v, -f, -n)",
        bytes);
}

/* Makes a sealed file of these bytes; `from` is its content, or NULL for zeros. Returns it, or a status. */
static int file_new(size_t bytes, const unsigned char *from)
{
    int fd = memfd_create("runnel-window", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int status = fd >= 0 && ftruncate(fd, (off_t)bytes) == 0 ? 0 : no_memory(bytes);
    for (size_t done = 0; status == 0 && from && done < bytes;) {
        ssize_t n = pwrite(fd, from + done, bytes - done, (off_t)done);
        if (n < 0 && errno != EINTR)
            status = no_memory(bytes);
        done += n > 0 ? (size_t)n : 0;
    }
    if (status == 0 && fcntl(fd, F_ADD_SEALS, SEALS) < 0)
        status = rnl_fail_errno(RNL_ERR_SYSTEM, errno, "cannot seal the memory of a window");
    if (status < 0 && fd >= 0)
        close(fd);
    return status < 0 ? status : fd;
}

static int map_file(int fd, void *at, size_t bytes, void **out)
{
    void *p = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE | (at ? MAP_FIXED : 0), fd, 0);
    if (p == MAP_FAILED)
        return no_memory(bytes);
    *out = p;
    return 0;
}

/* Puts a private copy in the place of pages, at once as other threads see it. */
static int make_private(unsigned char *at, size_t bytes)
{
    void *copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED)
        return no_memory(bytes);
    memcpy(copy, at, bytes);
    if (mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at) == MAP_FAILED) {
        int status = no_memory(bytes);
        munmap(copy, bytes);
        return status;
    }
    return 0;
}

/* ---- windows ---- */

static bool is_real(const struct rnl_windows *ws)
{
    return ws->ep->env->open && !ws->ep->env->facts.is_virtual;
}

int rnl_window_pages_new(const struct rnl_windows *ws, size_t bytes, struct window_pages *out)
{
    size_t page = page_bytes(), all = (bytes + page - 1) & ~(page - 1);
    void *at = NULL;
    int fd = -1, status = 0;
    if (bytes == 0 || all < bytes)
        return rnl_fail(RNL_ERR_ARG, "a window of %zu bytes: it has to have some", bytes);
    if (is_real(ws)) {
        fd = file_new(all, NULL);
        status = fd < 0 ? fd : map_file(fd, NULL, all, &at);
        if (status < 0 && fd >= 0)
            close(fd);
    } else {
        at = aligned_alloc(page, all);
        if (at)
            memset(at, 0, all);
        else
            status = no_memory(all);
    }
    if (status == 0)
        *out = (struct window_pages){.at = at, .bytes = all, .file = fd, .kind = WINDOW_MADE};
    return status;
}

/* Whether the pages are anonymous private memory, readable and writable, that is neither a stack nor of huge pages.
 * Returns 1, 0, or a status. */
static int is_plain(const unsigned char *at, size_t bytes)
{
    char line[512];
    uintptr_t from, to, next = (uintptr_t)at, end = next + bytes;
    unsigned long inode;
    FILE *maps = fopen("/proc/self/maps", "re");
    if (!maps)
        return rnl_fail_errno(RNL_ERR_SYSTEM, errno, "cannot read /proc/self/maps");
    while (next < end && fgets(line, sizeof line, maps)) {
        char perms[8] = "", name[16] = "";
        if (sscanf(line, "%lx-%lx %7s %*x %*s %lu %15s", &from, &to, perms, &inode, name) < 4 || to <= next)
            continue;
        bool plain = from <= next && strcmp(perms, "rw-p") == 0 && inode == 0 &&
                     (name[0] == '\0' || strcmp(name, "[heap]") == 0 || strncmp(name, "[anon", 5) == 0);
        if (!plain)
            break;
        next = to;
    }
    fclose(maps);
    return next >= end;
}

int rnl_window_pages_adopt(const struct rnl_windows *ws, void *at, size_t bytes, struct window_pages *out)
{
    size_t page = page_bytes();
    void *mapped;
    int fd = -1;
    if (bytes == 0 || bytes > SIZE_MAX - (uintptr_t)at)
        return rnl_fail(RNL_ERR_ARG, "a window of %zu bytes at %p", bytes, at);
    if ((uintptr_t)at % page != 0 || bytes % page != 0)
        return rnl_fail(RNL_ERR_UNSUPPORTED,
                        "%zu bytes at %p are not whole pages of %zu: peers would see what else lies there; use "
                        "rnl_window_wrap, or align the memory",
                        bytes, at, page);
    if (is_real(ws)) {
        int status = is_plain(at, bytes);
        if (status == 0)
            return rnl_fail(RNL_ERR_UNSUPPORTED,
                            "the memory at %p is not anonymous and private (it is a file's, a stack's, or of huge "
                            "pages): use rnl_window_wrap",
                            at);
        fd = status < 0 ? status : file_new(bytes, at);
        status = fd < 0 ? fd : map_file(fd, at, bytes, &mapped);
        if (status < 0) {
            if (fd >= 0)
                close(fd);
            return status;
        }
    }
    *out = (struct window_pages){.at = at, .bytes = bytes, .file = fd, .kind = WINDOW_ADOPTED};
    return 0;
}

/* Whoever still maps the old file writes into it, and nobody reads that: the file's pages are given back. */
int rnl_window_pages_move(struct window_pages *w)
{
    void *copy = NULL;
    int fd = file_new(w->bytes, NULL);
    int status = fd < 0 ? fd : map_file(fd, NULL, w->bytes, &copy);
    if (status == 0) {
        memcpy(copy, w->at, w->bytes);
        if (mremap(copy, w->bytes, w->bytes, MREMAP_MAYMOVE | MREMAP_FIXED, w->at) == MAP_FAILED) {
            status = no_memory(w->bytes);
            munmap(copy, w->bytes);
        }
    }
    if (status < 0) {
        if (fd >= 0)
            close(fd);
        return status;
    }
    (void)fallocate(w->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)w->bytes);
    close(w->file);
    w->file = fd;
    return 0;
}

void rnl_window_pages_free(struct window_pages *w)
{
    if (w->kind == WINDOW_ADOPTED && w->file >= 0)
        (void)make_private(w->at, w->bytes);
    else if (w->kind == WINDOW_MADE && w->file >= 0)
        munmap(w->at, w->bytes);
    else if (w->kind == WINDOW_MADE)
        free(w->at);
    if (w->file >= 0)
        close(w->file);
    w->file = -1;
}

/* ---- imports ---- */

int rnl_window_map(int file, size_t bytes, void **at)
{
    int status = map_file(file, NULL, bytes, at);
    close(file);
    if (status == 0)
        (void)madvise(*at, bytes, MADV_DONTFORK);
    return status;
}

void rnl_window_close(int file)
{
    close(file);
}

void rnl_window_unmap(void *at, size_t bytes)
{
    munmap(at, bytes);
}

/* A put that another thread has under way goes into the void; the addresses stay valid until the import is dropped. */
void rnl_window_map_nothing(void *at, size_t bytes)
{
    if (mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) !=
        MAP_FAILED)
        (void)madvise(at, bytes, MADV_DONTFORK);
}

/* ---- fork ---- */

static struct {
    pthread_mutex_t lock;
    struct rnl_windows *first;
    bool is_watched;
} forks = {.lock = PTHREAD_MUTEX_INITIALIZER};

void rnl_window_fork_lock(void)
{
    pthread_mutex_lock(&forks.lock);
}

void rnl_window_fork_unlock(void)
{
    pthread_mutex_unlock(&forks.lock);
}

static void in_child(void)
{
    for (struct rnl_windows *ws = forks.first; ws; ws = ws->next_forked)
        for (struct rnl_window *w = ws->all; w; w = w->next)
            if (w->pages.file >= 0)
                (void)make_private(w->pages.at, w->pages.bytes);
    rnl_window_fork_unlock();
}

void rnl_window_fork_add(struct rnl_windows *ws)
{
    if (!is_real(ws))
        return;
    pthread_mutex_lock(&forks.lock);
    if (!forks.is_watched)
        forks.is_watched = pthread_atfork(rnl_window_fork_lock, rnl_window_fork_unlock, in_child) == 0;
    ws->next_forked = forks.first;
    forks.first = ws;
    pthread_mutex_unlock(&forks.lock);
}

void rnl_window_fork_remove(struct rnl_windows *ws)
{
    if (!is_real(ws))
        return;
    pthread_mutex_lock(&forks.lock);
    struct rnl_windows **at = &forks.first;
    while (*at && *at != ws)
        at = &(*at)->next_forked;
    if (*at)
        *at = ws->next_forked;
    pthread_mutex_unlock(&forks.lock);
}
