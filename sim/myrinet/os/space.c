/* SPDX-License-Identifier: BSD-3-Clause
 *
 * space.c - address spaces; see space.h. */
#include "sim/myrinet/os/space.h"

#include "sim/engine/random.h"

#include <stdlib.h>
#include <string.h>

enum { STREAM_FRAME = 0x4652 };

int myri_space_init(struct myri_space *s, struct myri_host *host)
{
    memset(s, 0, sizeof *s);
    s->host = host;
    if (host->spaces == 255) {
        myri_hw_fault(host->hw, "host %u: there can be 255 address spaces", host->id);
        return -1;
    }
    s->id = ++host->spaces;
    return 0;
}

void myri_space_fini(struct myri_space *s)
{
    for (uint32_t i = 0; i < s->pages; i++)
        free(s->away[i]);
}

/* Those that host.c deals in a row come from below, the frames of spaces from anywhere above, and not from the
 * sixteenth of it that is left to the kernel. */
static uint32_t frames_from(const struct myri_host *h)
{
    uint32_t kernel = h->hw->pages / 16;
    return h->taken > kernel ? h->taken : kernel;
}

/* A free frame, where chance has it. */
static uint32_t deal(struct myri_space *s)
{
    struct myri_host *h = s->host;
    uint32_t from = frames_from(h), n = h->hw->pages - from;
    uint64_t random = rnl_sim_random(rnl_sim_seed(h->hw->sim), STREAM_FRAME, h->id, h->dealt++);
    for (uint32_t i = 0, k = n ? (uint32_t)rnl_sim_below(random, n) : 0; i < n; i++, k = k + 1 == n ? 0 : k + 1)
        if (!h->owner[from + k]) {
            h->owner[from + k] = (uint8_t)s->id;
            if (from + k < h->dealt_from)
                h->dealt_from = from + k;
            memset(h->memory + (from + k) * h->hw->page, 0, h->hw->page);
            return from + k;
        }
    myri_hw_fault(h->hw, "host %u: no frame is left for a page of space %u", h->id, s->id);
    return 0;
}

/* The first of n frames in a row that are free, or this space's own and not pinned; 0: there are none. */
static uint32_t row_of(struct myri_space *s, uint32_t n)
{
    struct myri_host *h = s->host;
    for (uint32_t k = frames_from(h), free = 0; k < h->hw->pages; k++) {
        free = !h->owner[k] || (h->owner[k] == s->id && !h->pins[k]) ? free + 1 : 0;
        if (free == n)
            return k + 1 - n;
    }
    myri_hw_fault(h->hw, "host %u: %u frames in a row are asked for space %u, and there are none", h->id, n, s->id);
    return 0;
}

/* Whole pages for so many bytes; 0: there is no room for them. */
static uint32_t room_for(struct myri_space *s, uint32_t bytes)
{
    uint32_t page = s->host->hw->page, n = (bytes + page - 1) / page;
    if (n <= MYRI_SPACE_PAGES - s->pages)
        return n;
    myri_hw_fault(s->host->hw, "host %u: space %u has room for %u more pages; %u are asked for", s->host->id, s->id,
                  MYRI_SPACE_PAGES - s->pages, n);
    return 0;
}

uint32_t myri_space_map(struct myri_space *s, uint32_t bytes)
{
    uint32_t page = s->host->hw->page, n = room_for(s, bytes), first = s->pages;
    if (!n)
        return 0;
    for (uint32_t i = 0; i < n; i++)
        if (!(s->frame[s->pages++] = deal(s)))
            return 0;
    return (first + 1) * page;
}

uint32_t myri_space_map_area(struct myri_space *s, uint32_t bytes)
{
    struct myri_host *h = s->host;
    uint32_t page = h->hw->page, n = room_for(s, bytes), first = s->pages, row = n ? row_of(s, n) : 0;
    if (!row)
        return 0;
    for (uint32_t k = row; k < row + n; k++)
        h->owner[k] = (uint8_t)s->id;
    for (uint32_t i = 0; i < first; i++) /* the kernel moves what is in the way */
        if (s->frame[i] >= row && s->frame[i] < row + n) {
            uint32_t was = s->frame[i];
            if (!(s->frame[i] = deal(s)))
                return 0;
            memcpy(h->memory + s->frame[i] * page, h->memory + was * page, page);
        }
    memset(h->memory + row * page, 0, n * page);
    memset(h->pins + row, 1, n);
    for (uint32_t k = row; k < row + n; k++) {
        s->pinned[s->pages] = 1;
        s->frame[s->pages++] = k;
    }
    if (row < h->dealt_from)
        h->dealt_from = row;
    return (first + 1) * page;
}

/* The page of an address, or MYRI_SPACE_PAGES: none. */
static uint32_t page_of(const struct myri_space *s, uint32_t at)
{
    uint32_t k = at / s->host->hw->page;
    return k >= 1 && k <= s->pages ? k - 1 : MYRI_SPACE_PAGES;
}

static void bring_in(struct myri_space *s, struct myri_task *t, uint32_t k)
{
    struct myri_host *h = s->host;
    if (s->frame[k] || !(s->frame[k] = deal(s)))
        return;
    s->page_ins++;
    if (s->away[k])
        memcpy(h->memory + s->frame[k] * h->hw->page, s->away[k], h->hw->page);
    free(s->away[k]);
    s->away[k] = NULL;
    if (t)
        myri_task_spend(t, myri_machine_us(&h->hw->machine, MYRI_M_system_call), "page in");
}

uint32_t myri_space_pin(struct myri_space *s, uint32_t at)
{
    uint32_t k = page_of(s, at), page = s->host->hw->page;
    if (k == MYRI_SPACE_PAGES)
        return 0;
    bring_in(s, NULL, k);
    if (!s->frame[k])
        return 0;
    if (s->pinned[k]++ == 0)
        s->host->pins[s->frame[k]] = 1;
    return MYRI_SPACE_ADDRESS(s->id, s->frame[k] * page + at % page);
}

void myri_space_unpin(struct myri_space *s, uint32_t at)
{
    uint32_t k = page_of(s, at);
    if (k != MYRI_SPACE_PAGES && s->pinned[k] && --s->pinned[k] == 0)
        s->host->pins[s->frame[k]] = 0;
}

int myri_space_page_out(struct myri_space *s, uint32_t at)
{
    uint32_t k = page_of(s, at), page = s->host->hw->page;
    if (k == MYRI_SPACE_PAGES || s->pinned[k] || !s->frame[k] || !(s->away[k] = malloc(page)))
        return -1;
    memcpy(s->away[k], s->host->memory + s->frame[k] * page, page);
    memset(s->host->memory + s->frame[k] * page, 0xee, page);
    s->host->owner[s->frame[k]] = 0;
    s->frame[k] = 0;
    s->page_outs++;
    return 0;
}

uint32_t myri_space_at(struct myri_space *s, struct myri_task *t, uint32_t at)
{
    uint32_t k = page_of(s, at), page = s->host->hw->page;
    if (k == MYRI_SPACE_PAGES) {
        myri_hw_fault(s->host->hw, "host %u: address %u is no page's of space %u", s->host->id, at, s->id);
        return 0;
    }
    bring_in(s, t, k);
    return s->frame[k] ? s->frame[k] * page + at % page : 0;
}

static void move(struct myri_space *s, struct myri_task *t, uint32_t at, void *out, const void *in, uint32_t bytes)
{
    uint32_t page = s->host->hw->page;
    for (uint32_t done = 0; done < bytes;) {
        uint32_t left = page - (at + done) % page, n = left < bytes - done ? left : bytes - done;
        uint32_t physical = myri_space_at(s, t, at + done);
        if (!physical)
            return;
        if (out)
            memcpy((uint8_t *)out + done, s->host->memory + physical, n);
        else
            memcpy(s->host->memory + physical, (const uint8_t *)in + done, n);
        done += n;
    }
}

void myri_space_read(struct myri_space *s, struct myri_task *t, uint32_t at, void *out, uint32_t bytes)
{
    move(s, t, at, out, NULL, bytes);
}

void myri_space_write(struct myri_space *s, struct myri_task *t, uint32_t at, const void *from, uint32_t bytes)
{
    move(s, t, at, NULL, from, bytes);
}

void myri_space_copy(struct myri_space *s, struct myri_task *t, uint32_t to, uint32_t from, uint32_t bytes)
{
    uint8_t part[1024]; /* no page is smaller */
    myri_task_spend(t, myri_machine_bytes(&s->host->hw->machine, MYRI_M_copy_rate, bytes), "copy");
    s->host->hw->count.bytes_copied += bytes;
    for (uint32_t done = 0; done < bytes; done += (uint32_t)sizeof part) {
        uint32_t n = bytes - done < sizeof part ? bytes - done : (uint32_t)sizeof part;
        myri_space_read(s, t, from + done, part, n);
        myri_space_write(s, t, to + done, part, n);
    }
}

uint32_t myri_space_word(struct myri_space *s, struct myri_task *t, uint32_t at)
{
    uint32_t physical = myri_space_at(s, t, at);
    return physical ? myri_host_word(s->host, physical) : 0;
}

void myri_space_set_word(struct myri_space *s, struct myri_task *t, uint32_t at, uint32_t value)
{
    uint32_t physical = myri_space_at(s, t, at);
    if (physical)
        myri_host_set_word(s->host, physical, value);
}
