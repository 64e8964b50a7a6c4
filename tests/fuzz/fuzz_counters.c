/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fuzz_counters.c - a counters page with anything in it, found where `runnel info` looks for it and shown as that shows
 * it. Names and values must be printable, and the page's own length believed only as far as it goes. Input: one byte
 * for the shape of the file, then what lies in it; the magic and the process number are put right half the time. */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/counters.h"
#include "fuzz/input.h"
#include "tools/info.h"

static void show(const struct rnl_counters *c)
{
    char *text = NULL;
    size_t bytes = 0;
    struct info_page page = {.json = 1};
    FILE *before = stdout;
    stdout = open_memstream(&text, &bytes); /* a variable, with this C library */
    FUZZ_MUST(stdout != NULL);
    info_section(&page, "running");
    info_row(&page, "program", c->program, NULL);
    info_end(&page);
    page = (struct info_page){.json = 0};
    info_row(&page, "program", c->program, NULL);
    fclose(stdout);
    stdout = before;
    for (size_t i = 0; i < bytes; i++)
        FUZZ_MUST(text[i] == '\n' || (text[i] >= ' ' && text[i] <= '~'));
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct rnl_counters_page page[2];
    const struct rnl_counters *c = &page[0].core;
    const char *name, *text;
    uint64_t value;
    unsigned items = 0;
    if (size < 1)
        return 0;
    unsigned shape = data[0];
    int fd = memfd_create("runnel-counters", MFD_CLOEXEC), n;
    FUZZ_MUST(fd >= 0);
    /* the page is at hand as a process's own descriptor, so it is found like anybody's */
    FUZZ_MUST(pwrite(fd, data + 1, size - 1, 0) == (ssize_t)(size - 1));
    FUZZ_MUST(ftruncate(fd, shape & 1 ? (off_t)size - 1 : RNL_COUNTERS_BYTES) == 0);
    if (shape & 2) {
        uint32_t head[2] = {RNL_COUNTERS_MAGIC, RNL_COUNTERS_VERSION}, pid = (uint32_t)getpid();
        FUZZ_MUST(pwrite(fd, head, sizeof head, 0) == sizeof head && pwrite(fd, &pid, sizeof pid, 12) == sizeof pid);
    }
    memset(page, 0x5a, sizeof page);
    n = rnl_counters_read(getpid(), page, 1);
    close(fd);
    FUZZ_MUST(n <= 1);
    if (n < 1)
        return 0;
    FUZZ_MUST(c->bytes <= sizeof *c && memchr(c->program, '\0', sizeof c->program) != NULL);
    for (text = c->program; *text; text++)
        FUZZ_MUST(*text >= ' ' && *text <= '~');
    for (; rnl_counters_item(&page[0], items, &name, &text, &value); items++) {
        FUZZ_MUST(memchr(name, '\0', 64) != NULL && memchr(text, '\0', 128) != NULL);
        for (const char *at = name; *at; at++)
            FUZZ_MUST(*at >= ' ' && *at <= '~');
    }
    FUZZ_MUST(items * sizeof value <= c->bytes + sizeof page[0].value);
    show(c);
    return 0;
}
