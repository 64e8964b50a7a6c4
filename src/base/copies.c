/* SPDX-License-Identifier: BSD-3-Clause
 *
 * copies.c - see copies.h: words, and the table on disk. */
#include "base/copies.h"
#include "base/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum { VERSION = 1, LINE_NS_MAX = 100000 };

void rnl_copies_default(struct rnl_copies *c)
{
    *c = (struct rnl_copies){.word = {RNL_COPIES_DEFAULT, RNL_COPIES_DEFAULT}};
}

bool rnl_copies_valid(uint64_t word)
{
    uint8_t wide = rnl_copy_detect();
    if ((word & 15) > 1)
        return false;
    for (unsigned k = 1; k <= RNL_COPIES_LOG2_MAX; k++) {
        uint64_t kind = word >> 4 * k & 15;
        if (kind >= RNL_COPY_KINDS || (kind == RNL_COPY_PAST64 && wide < RNL_COPY_AVX512) ||
            (kind == RNL_COPY_PAST32 && wide < RNL_COPY_AVX2))
            return false;
    }
    return true;
}

/* ---- the text ---- */

size_t rnl_copies_format(const struct rnl_copies *c, const char *processor, char *text)
{
    int n = snprintf(text, RNL_COPIES_TEXT_MAX,
                     "runnel copies %d\nprocessor %s\nnear %016llx %u\nfar %016llx %u\nend\n", VERSION, processor,
                     (unsigned long long)c->word[0], c->line_ns[0], (unsigned long long)c->word[1], c->line_ns[1]);
    return n < 0 ? 0 : n < RNL_COPIES_TEXT_MAX ? (size_t)n : RNL_COPIES_TEXT_MAX - 1;
}

bool rnl_copies_parse(const char *text, size_t n, const char *processor, struct rnl_copies *c)
{
    char own[RNL_COPIES_TEXT_MAX], whole[RNL_COPIES_TEXT_MAX];
    unsigned long long word[2];
    unsigned ns[2];
    const char *at = NULL;
    if (n >= sizeof own)
        return false;
    memcpy(own, text, n);
    own[n] = '\0';
    if ((at = strstr(own, "\nnear ")) == NULL ||
        sscanf(at, "\nnear %16llx %9u\nfar %16llx %9u\n", &word[0], &ns[0], &word[1], &ns[1]) != 4)
        return false;
    struct rnl_copies got = {.word = {word[0], word[1]}, .line_ns = {ns[0], ns[1]}};
    for (unsigned d = 0; d < RNL_COPIES_DISTANCES; d++)
        if (got.line_ns[d] > LINE_NS_MAX || (!rnl_copies_valid(got.word[d])))
            return false;
    /* Only a text that is to the byte what this program would write is a table. */
    size_t length = rnl_copies_format(&got, processor, whole);
    if (length != n || memcmp(whole, text, n) != 0)
        return false;
    *c = got;
    return true;
}

/* ---- where it is ---- */

void rnl_copies_processor(char *out, size_t size)
{
    unsigned word[12] = {0};
    char name[49];
#if defined(__x86_64__)
    if ((unsigned)__get_cpuid_max(0x80000000, NULL) >= 0x80000004)
        for (unsigned i = 0; i < 3; i++)
            __get_cpuid(0x80000002 + i, &word[4 * i], &word[4 * i + 1], &word[4 * i + 2], &word[4 * i + 3]);
    unsigned signature = 0, b, c, d;
    __get_cpuid(1, &signature, &b, &c, &d);
#else
    unsigned signature = 0;
#endif
    memcpy(name, word, 48);
    name[48] = '\0';
    for (char *p = name; *p; p++) /* one line, whatever the processor says of itself */
        if (*p <= ' ' || *p > '~')
            *p = '-';
    snprintf(out, size, "%s/%08x/%u", name, signature, rnl_copy_detect());
}

static bool place(char *out, size_t size, bool folder)
{
    static const struct {
        const char *variable, *below;
    } places[] = {{"RNL_COPIES", NULL}, {"XDG_CACHE_HOME", ""}, {"HOME", "/.cache"}};
    for (unsigned i = 0; i < sizeof places / sizeof places[0]; i++) {
        const char *value = secure_getenv(places[i].variable);
        int n = 0;
        char host[64];
        if (!value || (*value != '/' && places[i].below))
            continue;
        if (!places[i].below) {
            n = folder ? 0 : snprintf(out, size, "%s", value);
            return *value && n > 0 && (size_t)n < size;
        }
        if (gethostname(host, sizeof host) < 0)
            return false;
        host[sizeof host - 1] = '\0';
        for (char *p = host; *p; p++)
            if (*p == '/')
                *p = '-';
        n = folder ? snprintf(out, size, "%s%s/runnel", value, places[i].below)
                   : snprintf(out, size, "%s%s/runnel/copies-%s", value, places[i].below, host);
        return n > 0 && (size_t)n < size;
    }
    return false;
}

bool rnl_copies_path(char *out, size_t size)
{
    return place(out, size, false);
}

/* ---- reading and writing ---- */

bool rnl_copies_load(struct rnl_copies *c)
{
    char path[RNL_COPIES_PATH_MAX], text[RNL_COPIES_TEXT_MAX], processor[128];
    struct stat st;
    rnl_copies_default(c);
    if (!rnl_copies_path(path, sizeof path))
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return false;
    bool ours = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 022);
    ssize_t n = ours ? read(fd, text, sizeof text) : -1;
    close(fd);
    rnl_copies_processor(processor, sizeof processor);
    return n > 0 && rnl_copies_parse(text, (size_t)n, processor, c);
}

int rnl_copies_save(const struct rnl_copies *c)
{
    char path[RNL_COPIES_PATH_MAX], folder[RNL_COPIES_PATH_MAX], fresh[RNL_COPIES_PATH_MAX + 16];
    char text[RNL_COPIES_TEXT_MAX], processor[128];
    if (!rnl_copies_path(path, sizeof path))
        return -ENOENT;
    if (place(folder, sizeof folder, true)) {
        char *slash = strrchr(folder, '/');
        *slash = '\0';
        (void)mkdir(folder, 0700); /* ~/.cache; what is missing above it is not ours to make */
        *slash = '/';
        (void)mkdir(folder, 0700);
    }
    rnl_copies_processor(processor, sizeof processor);
    size_t n = rnl_copies_format(c, processor, text);
    snprintf(fresh, sizeof fresh, "%s.XXXXXX", path);
    int fd = mkostemp(fresh, O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int e = write(fd, text, n) == (ssize_t)n ? 0 : -EIO;
    if (close(fd) < 0 && e == 0)
        e = -errno;
    if (e == 0 && rename(fresh, path) < 0)
        e = -errno;
    if (e != 0)
        (void)unlink(fresh);
    return e;
}
