/* SPDX-License-Identifier: BSD-3-Clause
 *
 * notes.c - makes, finds and reads pages of notes. What another process shows is untrusted: the reader copies it, and
 * passes no control characters on. */
#include "base/notes.h"
#include "base/error.h"
#include "base/limit.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct page {
    uint64_t magic;
    uint32_t version, bytes;
    char text[RNL_NOTES_TEXT_MAX];
};
static_assert(sizeof(struct page) == RNL_NOTES_BYTES && offsetof(struct page, text) == 16, "as drawn in notes.h");
static const uint64_t magic = UINT64_C(0x7365746f6e6c6e72);
static const char link_name[] = "/memfd:runnel-notes (deleted)";

struct rnl_notes {
    struct page *page;
    int fd;
};

static struct rnl_notes *make(void)
{
    struct rnl_notes *n = malloc(sizeof *n);
    void *at = MAP_FAILED;
    int fd = n ? memfd_create("runnel-notes", MFD_CLOEXEC | MFD_ALLOW_SEALING) : -1;
    if (fd >= 0 && rnl_limit_allows_file(RNL_NOTES_BYTES) && ftruncate(fd, RNL_NOTES_BYTES) == 0)
        at = mmap(NULL, RNL_NOTES_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
        if (fd >= 0)
            close(fd);
        free(n);
        return NULL;
    }
    (void)fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    *n = (struct rnl_notes){.page = at, .fd = fd};
    n->page->magic = magic;
    return n;
}

int rnl_notes_set(struct rnl_notes **notes, const char *text, size_t n)
{
    if (!*notes && !(*notes = make()))
        return rnl_fail_errno(RNL_ERR_NO_MEMORY, errno, "no memory for %d bytes of notes", RNL_NOTES_BYTES);
    struct page *p = (*notes)->page;
    n = n < RNL_NOTES_TEXT_MAX ? n : RNL_NOTES_TEXT_MAX;
    /* Its readers have a copy by one system call, and compare the version on both sides of the text. */
    __atomic_store_n(&p->version, p->version + 1, __ATOMIC_SEQ_CST);
    if (n)
        memcpy(p->text, text, n);
    __atomic_store_n(&p->bytes, (uint32_t)n, __ATOMIC_SEQ_CST);
    __atomic_store_n(&p->version, p->version + 1, __ATOMIC_SEQ_CST);
    return 0;
}

void rnl_notes_free(struct rnl_notes *notes)
{
    if (!notes)
        return;
    munmap(notes->page, RNL_NOTES_BYTES);
    close(notes->fd);
    free(notes);
}

/* Copies at most `room` bytes and a zero. */
static size_t take(int fd, char *text, size_t room)
{
    struct page *p = malloc(sizeof *p);
    struct stat st;
    size_t n = 0;
    bool whole = false;
    for (int i = 0; p && i < 100 && !whole; i++) {
        uint32_t version = 0;
        if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size != RNL_NOTES_BYTES ||
            pread(fd, p, sizeof *p, 0) != (ssize_t)sizeof *p || p->magic != magic)
            break;
        whole = pread(fd, &version, sizeof version, offsetof(struct page, version)) == (ssize_t)sizeof version &&
                version == p->version && version % 2 == 0;
    }
    if (whole)
        n = p->bytes < room ? p->bytes : room;
    for (size_t i = 0; i < n; i++)
        text[i] = p->text[i] == '\n' || (p->text[i] >= ' ' && p->text[i] <= '~') ? p->text[i] : '?';
    text[n] = '\0';
    free(p);
    return n;
}

size_t rnl_notes_read(int pid, char text[RNL_NOTES_TEXT_MAX + 1])
{
    char path[32], target[sizeof link_name + 1];
    const struct dirent *e;
    size_t n = 0;
    text[0] = '\0';
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *d = opendir(path);
    while (d && (e = readdir(d))) {
        ssize_t got = readlinkat(dirfd(d), e->d_name, target, sizeof target);
        if (got != (ssize_t)sizeof link_name - 1 || memcmp(target, link_name, sizeof link_name - 1) != 0)
            continue;
        int fd = openat(dirfd(d), e->d_name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (fd < 0)
            continue;
        n += take(fd, text + n, RNL_NOTES_TEXT_MAX - n);
        close(fd);
    }
    if (d)
        closedir(d);
    return n;
}
