/* SPDX-License-Identifier: BSD-3-Clause
 *
 * text.c - reads and writes descriptions of faults as text. Whatever is not understood is an error that names it and
 * says what is allowed there, so that a typing error never turns a fault off unnoticed. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "net/fault/fault.h"

enum what { CHANCE, CHANCE_PAIR, CHANCE_TIME, TIME, TIME_SPAN, NUMBER, LENGTH, NUMBERS, RANKS };

static const struct item {
    const char *name;
    enum what what;
    size_t first, second; /* offsets of its fields in struct rnl_fault */
} items[] = {
#define AT(f) offsetof(struct rnl_fault, f)
    {"loss", CHANCE, AT(loss), 0},
    {"burst", CHANCE_PAIR, AT(burst_begin), AT(burst_end)},
    {"nth", NUMBER, AT(nth), 0},
    {"drop", NUMBERS, AT(drop), AT(drops)},
    {"dup", CHANCE, AT(dup), 0},
    {"delay", TIME_SPAN, AT(delay_least_ns), AT(delay_most_ns)},
    {"reorder", CHANCE_TIME, AT(reorder), AT(reorder_ns)},
    {"corrupt", CHANCE, AT(corrupt), 0},
    {"cut", CHANCE, AT(cut), 0},
    {"mtu", LENGTH, AT(mtu), 0},
    {"ce", CHANCE, AT(ce), 0},
    {"bleach", CHANCE, AT(bleach), 0},
    {"in", RANKS, AT(in), 0},
    {"out", RANKS, AT(out), 0},
    {"part", RANKS, AT(part), 0},
    {"noroom", CHANCE, AT(noroom), 0},
    {"after", TIME, AT(after_ns), 0},
    {"for", TIME, AT(for_ns), 0},
    {"seed", NUMBER, AT(seed), 0},
#undef AT
};
enum { ITEMS = sizeof items / sizeof *items };
static const char all_names[] = "loss, burst, nth, drop, dup, delay, reorder, corrupt, cut, mtu, ce, bleach, in, out, "
                                "part, noroom, after, for, seed";

/* ---- reading ---- */

/* Each of these functions reads one part of [*at, end) and moves *at behind it. 1, or 0 = it is not there. */

static bool digit(const char *at, const char *end)
{
    return at < end && *at >= '0' && *at <= '9';
}

static bool read_number(const char **at, const char *end, uint64_t *out)
{
    uint64_t n = 0;
    if (!digit(*at, end))
        return false;
    for (; digit(*at, end); ++*at) {
        unsigned d = (unsigned)(**at - '0');
        if (n > (UINT64_MAX - d) / 10)
            return false;
        n = n * 10 + d;
    }
    *out = n;
    return true;
}

enum { BILLION = 1000000000 };

/* Reads digits [. digits]; *part is the fraction in units of 10^-9. */
static bool read_decimal(const char **at, const char *end, uint64_t *whole, uint64_t *part)
{
    *part = 0;
    if (!read_number(at, end, whole))
        return false;
    if (*at < end && **at == '.') {
        ++*at;
        if (!digit(*at, end))
            return false;
        for (uint64_t place = BILLION / 10; digit(*at, end); ++*at, place /= 10) {
            if (place == 0)
                return false; /* more digits than *part can hold */
            *part += place * (uint64_t)(**at - '0');
        }
    }
    return true;
}

static bool read_chance(const char **at, const char *end, uint32_t *out)
{
    uint64_t whole, n;
    if (!read_decimal(at, end, &whole, &n) || whole > 100)
        return false;
    n += whole * BILLION;
    if (*at < end && **at == '%') {
        ++*at;
        if (n % 100)
            return false;
        n /= 100;
    }
    if (n > RNL_CHANCE_ALWAYS)
        return false;
    *out = (uint32_t)n;
    return true;
}

static bool read_time(const char **at, const char *end, uint64_t *out)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", BILLION}};
    uint64_t whole, part;
    if (!read_decimal(at, end, &whole, &part))
        return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t len = strlen(units[i].name);
        if ((size_t)(end - *at) < len || memcmp(*at, units[i].name, len) != 0)
            continue;
        uint64_t ns = units[i].ns;
        if (part % (BILLION / ns) || whole > (UINT64_MAX - BILLION) / ns) /* only whole ns that fit into 64 bits */
            return false;
        *at += len;
        *out = whole * ns + part / (BILLION / ns);
        return true;
    }
    return false;
}

static bool read_char(const char **at, const char *end, char c)
{
    if (*at >= end || **at != c)
        return false;
    ++*at;
    return true;
}

static bool read_ranks(const char **at, const char *end, struct rnl_fault_ranks *r)
{
    do {
        uint64_t first, last;
        if (r->count == RNL_FAULT_RANGES || !read_number(at, end, &first))
            return false;
        last = first;
        if (read_char(at, end, '-') && !read_number(at, end, &last))
            return false;
        if (last < first || last >= UINT32_MAX)
            return false;
        r->range[r->count].first = (uint32_t)first;
        r->range[r->count++].last = (uint32_t)last;
    } while (read_char(at, end, '+'));
    return true;
}

static bool read_numbers(const char **at, const char *end, uint64_t *to, uint32_t *count)
{
    do {
        if (*count == RNL_FAULT_DROPS || !read_number(at, end, &to[*count]) || to[*count] == 0)
            return false;
        ++*count;
    } while (read_char(at, end, '+'));
    return true;
}

static bool read_span(const char **at, const char *end, uint64_t *least, uint64_t *most)
{
    if (!read_time(at, end, least))
        return false;
    *most = *least;
    if (end - *at >= 2 && memcmp(*at, "..", 2) == 0) {
        *at += 2;
        if (!read_time(at, end, most))
            return false;
    }
    return *least <= *most;
}

static int read_value(const struct item *item, const char **at, const char *end, struct rnl_fault *f)
{
    void *first = (char *)f + item->first, *second = (char *)f + item->second;
    uint64_t n;
    switch (item->what) {
    case CHANCE:
        return read_chance(at, end, first);
    case CHANCE_PAIR: /* the second may not be 0, since for losses that never end there are loss and in */
        return read_chance(at, end, first) && read_char(at, end, ':') && read_chance(at, end, second) &&
               *(uint32_t *)second > 0;
    case CHANCE_TIME:
        return read_chance(at, end, first) && read_char(at, end, ':') && read_time(at, end, second);
    case TIME:
        return read_time(at, end, first);
    case TIME_SPAN:
        return read_span(at, end, first, second);
    case NUMBER:
        return read_number(at, end, first);
    case LENGTH:
        if (!read_number(at, end, &n) || n == 0 || n > UINT32_MAX)
            return 0;
        *(uint32_t *)first = (uint32_t)n;
        return 1;
    case NUMBERS:
        return read_numbers(at, end, first, second);
    case RANKS:
        return read_ranks(at, end, first);
    }
    return 0;
}

static const char *form_of(enum what what)
{
    static const char *const form[] = {[CHANCE] = "a probability from 0 to 100%, like 1% or 0.01",
                                       [CHANCE_PAIR] = "two probabilities like 0.1%:25%, the second above 0",
                                       [CHANCE_TIME] = "a probability and a time, like 1%:200us",
                                       [TIME] = "a time in whole ns, like 50us or 1.5ms",
                                       [TIME_SPAN] = "a time like 50us, or two like 50us..200us",
                                       [NUMBER] = "a whole number",
                                       [LENGTH] = "a length in bytes, from 1 on",
                                       [NUMBERS] = "up to 16 numbers from 1 on, like 7+9",
                                       [RANKS] = "up to 8 ranks or ranges, like 0-3+7"};
    return form[what];
}

static const struct item *find_item(const char *name, size_t len)
{
    for (int i = 0; i < ITEMS; i++)
        if (strlen(items[i].name) == len && memcmp(items[i].name, name, len) == 0)
            return &items[i];
    return NULL;
}

int rnl_fault_parse(const char *text, struct rnl_fault *out)
{
    struct rnl_fault f;
    uint32_t seen = 0;
    memset(&f, 0, sizeof f);
    for (const char *at = text; *at;) {
        const char *end = at + strcspn(at, ","), *equals = memchr(at, '=', (size_t)(end - at));
        int len = (int)(end - at);
        if (!equals)
            return rnl_fail(RNL_ERR_ARG, "faults: '%.*s' is not of the form NAME=VALUE", len, at);
        const struct item *item = find_item(at, (size_t)(equals - at));
        if (!item)
            return rnl_fail(RNL_ERR_ARG, "faults: there is no '%.*s'; there are: %s", (int)(equals - at), at,
                            all_names);
        if (seen & 1u << (item - items))
            return rnl_fail(RNL_ERR_ARG, "faults: '%s' stands there twice", item->name);
        seen |= 1u << (item - items);
        const char *value = equals + 1;
        if (!read_value(item, &value, end, &f) || value != end)
            return rnl_fail(RNL_ERR_ARG, "faults: '%.*s': %s takes %s", len, at, item->name, form_of(item->what));
        at = end;
        if (*at == ',' && *++at == '\0')
            return rnl_fail(RNL_ERR_ARG, "faults: something is missing behind the last comma");
    }
    *out = f;
    return 0;
}

/* ---- writing ---- */

struct writer {
    char *to;
    size_t bytes;
    int len;
};

RNL_PRINTF(2, 3) static void say(struct writer *w, const char *format, ...)
{
    va_list args;
    size_t left = (size_t)w->len < w->bytes ? w->bytes - (size_t)w->len : 0;
    va_start(args, format);
    int n = vsnprintf(left ? w->to + w->len : NULL, left, format, args);
    va_end(args);
    w->len += n > 0 ? n : 0;
}

static void say_chance(struct writer *w, uint32_t parts)
{
    char text[16];
    int len = snprintf(text, sizeof text, "%u.%07u", parts / 10000000, parts % 10000000);
    while (text[len - 1] == '0')
        len--;
    if (text[len - 1] == '.')
        len--;
    say(w, "%.*s%%", len, text);
}

static void say_time(struct writer *w, uint64_t ns)
{
    static const char *const unit[] = {"ns", "us", "ms", "s"};
    int i = 0;
    for (; i < 3 && ns && ns % 1000 == 0; i++)
        ns /= 1000;
    say(w, "%llu%s", (unsigned long long)ns, unit[i]);
}

static void say_ranks(struct writer *w, const struct rnl_fault_ranks *r)
{
    for (uint32_t i = 0; i < r->count; i++) {
        say(w, "%s%u", i ? "+" : "", r->range[i].first);
        if (r->range[i].last != r->range[i].first)
            say(w, "-%u", r->range[i].last);
    }
}

static void say_value(struct writer *w, const struct item *item, const struct rnl_fault *f)
{
    const void *first = (const char *)f + item->first, *second = (const char *)f + item->second;
    switch (item->what) {
    case CHANCE:
        say_chance(w, *(const uint32_t *)first);
        return;
    case CHANCE_PAIR:
        say_chance(w, *(const uint32_t *)first);
        say(w, ":");
        say_chance(w, *(const uint32_t *)second);
        return;
    case CHANCE_TIME:
        say_chance(w, *(const uint32_t *)first);
        say(w, ":");
        say_time(w, *(const uint64_t *)second);
        return;
    case TIME_SPAN:
        say_time(w, *(const uint64_t *)first);
        if (*(const uint64_t *)first != *(const uint64_t *)second) {
            say(w, "..");
            say_time(w, *(const uint64_t *)second);
        }
        return;
    case TIME:
        say_time(w, *(const uint64_t *)first);
        return;
    case NUMBER:
        say(w, "%llu", (unsigned long long)*(const uint64_t *)first);
        return;
    case LENGTH:
        say(w, "%u", *(const uint32_t *)first);
        return;
    case NUMBERS:
        for (uint32_t i = 0; i < *(const uint32_t *)second; i++)
            say(w, "%s%llu", i ? "+" : "", (unsigned long long)((const uint64_t *)first)[i]);
        return;
    case RANKS:
        say_ranks(w, first);
        return;
    }
}

int rnl_fault_print(const struct rnl_fault *f, char *to, size_t bytes)
{
    struct writer w = {to, bytes, 0};
    static const struct rnl_fault zeros;
    if (bytes)
        to[0] = '\0';
    for (int i = 0; i < ITEMS; i++) {
        const struct item *item = &items[i];
        static const size_t size_of[] = {
            [CHANCE] = 4, [CHANCE_PAIR] = 4, [CHANCE_TIME] = 4, [TIME] = 8, [TIME_SPAN] = 8,
            [NUMBER] = 8, [LENGTH] = 4,      [NUMBERS] = 8,     [RANKS] = 4};
        /* A span is printed unless its end is 0, since it may begin at 0. */
        size_t at = item->what == TIME_SPAN ? item->second : item->first;
        if (memcmp((const char *)f + at, (const char *)&zeros + at, size_of[item->what]) == 0)
            continue;
        say(&w, "%s%s=", w.len ? "," : "", item->name);
        say_value(&w, item, f);
    }
    return w.len;
}
